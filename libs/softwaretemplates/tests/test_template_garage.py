"""The garage kit's skeleton: values are data, whatever they look like."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from yamllint import linter
from yamllint.config import YamlLintConfig

from softwaretemplates.render import SkeletonFile, render_tree
from softwaretemplates.template import parse_template
from yamlfiles import yaml12
from yamlfiles.manifests import parse_manifests

KIT = Path(__file__).parents[3] / "templates" / "garage"
SKELETON = {
    PurePosixPath(path.relative_to(KIT / "skeleton")): SkeletonFile(path.read_bytes())
    for path in (KIT / "skeleton").rglob("*")
    if path.is_file()
}
AWKWARD = ["yes", "null", "1e3", "0x10", "~", "017", "12:30", 'a "b"\n: #x', "${{ values.x }}", ""]


def render(
    team: str = "ae86", stage: str = "stage1", order: str = "garage-ae86", requester: str = "me"
) -> dict[str, bytes]:
    values = {
        "order": order,
        "team": team,
        "requester": requester,
        "pack_commit": "a" * 40,
        "spec": {"teamName": team, "stage": stage},
    }
    return {str(p): f.data for p, f in render_tree(SKELETON, values).items()}


def test_the_skeleton_has_the_files_of_an_order() -> None:
    assert sorted(render()) == [
        ".orderkit/order.yaml",
        "README.md",
        "catalog-info.yaml",
        "manifests/xgarage.yaml",
    ]


def read_by_all(data: bytes) -> list[Any]:
    """Read a document as YAML 1.1, as YAML 1.2, and as Kubernetes does."""
    (kubernetes,) = parse_manifests("x.yaml", data)
    return [yaml.safe_load(data), yaml12.load(data, name="x"), kubernetes]


@pytest.mark.parametrize("text", AWKWARD)
def test_every_value_stays_text(text: str) -> None:
    files = render(team=text, stage=text, order=f"garage-{text}", requester=text)

    for xr in read_by_all(files["manifests/xgarage.yaml"]):
        assert xr["spec"] == {"teamName": text, "stage": text}
        assert xr["metadata"]["name"] == f"garage-{text}"
    for order in read_by_all(files[".orderkit/order.yaml"]):
        assert order["spec"]["ordered"] == {"teamName": text, "stage": text}
        assert (order["spec"]["team"], order["spec"]["requester"]) == (text, text)
    for entity in read_by_all(files["catalog-info.yaml"]):
        assert entity["metadata"]["description"] == f"Stage Kit of team {text}"
        assert entity["spec"]["owner"] == f"group:default/{text}"


# Left out: control characters and line separators, which YAML cannot hold unescaped.
PRINTABLE = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cn", "Co"]))


@given(PRINTABLE)
def test_no_value_changes_the_structure(text: str) -> None:
    data = render(team=text)["manifests/xgarage.yaml"]

    assert yaml.safe_load(data)["spec"] == {"teamName": text, "stage": "stage1"}


def test_rendered_files_pass_yamllint() -> None:
    for path, data in render().items():
        if path.endswith(".yaml"):
            found = list(linter.run(data.decode(), YamlLintConfig("extends: default")))
            assert [str(problem) for problem in found] == [], path


def test_the_form_refuses_what_was_never_baked() -> None:
    template = parse_template((KIT / "template.yaml").read_bytes(), name="template.yaml")

    for name, sentinel in (
        ("forge_host", "__ORDERKIT_FORGE_HOST__"),
        ("pack_commit", "__ORDERKIT_PACK_COMMIT__"),
    ):
        schema = template.properties[name]
        assert schema["default"] == sentinel
        assert schema["ui:widget"] == "hidden"
        assert "pattern" in schema
