"""Files that somebody else wrote, imported or tried out: nothing is run, and nothing breaks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from orderkit.cli.main import run

Capture = pytest.CaptureFixture[str]
Document = dict[str, Any]

XRD: Document = {
    "apiVersion": "apiextensions.crossplane.io/v2",
    "kind": "CompositeResourceDefinition",
    "metadata": {"name": "xthings.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"kind": "XThing", "plural": "xthings"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "referenceable": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "string"}}}
                        },
                    }
                },
            }
        ],
    },
}
NUNJUCKS = "${{ 7*7 }}"
PYTHON = 'x"""\nimport os\nos.mkdir("pwned")\n"""'


def rename(xrd: Document, plural: str, group: str) -> None:
    xrd["metadata"]["name"] = f"{plural}.{group}"
    xrd["spec"]["names"]["plural"], xrd["spec"]["group"] = plural, group


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda xrd: xrd["spec"]["versions"][0].update(name=NUNJUCKS), "spec.versions[0].name"),
        (lambda xrd: xrd["spec"]["versions"][0].pop("name"), "spec.versions[0].name"),
        (lambda xrd: xrd["spec"]["names"].update(kind=NUNJUCKS), "spec.names.kind"),
        (lambda xrd: xrd["spec"]["names"].update(kind=PYTHON), "spec.names.kind"),
        (lambda xrd: xrd["spec"]["names"].pop("kind"), "spec.names.kind"),
        (lambda xrd: rename(xrd, "../../x", "example.org"), "spec.names.plural"),
        (lambda xrd: rename(xrd, "xthings", NUNJUCKS), "spec.group"),
        (lambda xrd: rename(xrd, "xthings", "a' || true || '"), "spec.group"),
        (lambda xrd: rename(xrd, "xthings", "../.."), "spec.group"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_xrd_whose_names_are_code_or_paths_makes_no_kit(
    change: Callable[[Document], Any], field: str, tmp_path: Path, capsys: Capture
) -> None:
    """Its names become parts of templates, stations, policies and paths."""
    pack, file, xrd = tmp_path / "pack", tmp_path / "xrd.yaml", copy.deepcopy(XRD)
    assert run(["init", str(pack)]) == 0
    change(xrd)
    file.write_text(yaml.safe_dump(xrd))
    before = {path: path.stat().st_mtime_ns for path in pack.rglob("*")}

    code = run(["kit", "import", str(file), "--pack", str(pack)])

    said = capsys.readouterr().err
    assert code == 2, said
    refusals = f"would be refused by the API server: {field}: ", f"no whole XRD: {field} is missing"
    assert any(refusal in said for refusal in refusals), said
    assert {path: path.stat().st_mtime_ns for path in pack.rglob("*")} == before


def template(**spec: Any) -> Document:
    steps = [{"id": "s", "name": "s", "action": "debug:log", "input": {"message": "x"}}]
    return {
        "apiVersion": "scaffolder.backstage.io/v1beta3",
        "kind": "Template",
        "metadata": {"name": "t", "title": "t"},
        "spec": {"owner": "x", "type": "s", "parameters": [], "steps": steps, **spec},
    }


@pytest.fixture
def dry_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Document], int]:
    monkeypatch.delenv("ORDERKIT_PLATFORM", raising=False)
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))

    def act(document: Document) -> int:
        (tmp_path / "template.yaml").write_text(yaml.safe_dump(document))
        values = ["-p", "name=x"] if document["spec"]["parameters"] else []
        return run(["run", str(tmp_path / "template.yaml"), *values, "--dry-run", "--json"])

    return act


@pytest.mark.parametrize("expression", ["cycler", "joiner", "range", "[joiner]", "{'x': cycler}"])
def test_a_function_as_an_output_is_no_value(
    dry_run: Callable[[Document], int], expression: str, capsys: Capture
) -> None:
    code = dry_run(template(output={"a": f"${{{{ {expression} }}}}"}))

    said = capsys.readouterr()
    assert code == 0, said.err
    assert "object at 0x" not in said.out


def test_a_form_that_refers_to_itself_is_refused(
    dry_run: Callable[[Document], int], capsys: Capture
) -> None:
    form = {"properties": {"name": {"$ref": "#/properties/name"}}}

    code = dry_run(template(parameters=[form]))

    assert code == 2
    assert "leads back to itself" in capsys.readouterr().err
