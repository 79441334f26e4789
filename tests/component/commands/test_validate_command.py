"""``orderkit validate``: files, folders, packs, changes; text, JSON, SARIF; exit codes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import Done

from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.cli import main

GARAGE = """\
apiVersion: blog.opsbogus.dev/v1alpha1
kind: XGarage
metadata:
  name: garage-ae86
spec:
  teamName: ae86
  stage: {stage}
"""
XRD: dict[str, Any] = {
    "apiVersion": "apiextensions.crossplane.io/v2",
    "kind": "CompositeResourceDefinition",
    "metadata": {"name": "xdisks.example.org"},
    "spec": {
        "scope": "Cluster",
        "group": "example.org",
        "names": {"kind": "XDisk", "plural": "xdisks"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "referenceable": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {
                                        "type": "integer",
                                        "x-kubernetes-validations": [
                                            {"rule": "self >= oldSelf", "message": "never shrinks"}
                                        ],
                                    },
                                    "version": {
                                        "type": "string",
                                        "x-kubernetes-validations": [{"rule": "isSemver(self)"}],
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}
DISK = "apiVersion: example.org/v1\nkind: XDisk\nmetadata: {{name: d}}\nspec: {spec}\n"

Validate = Callable[..., Done]


@pytest.fixture
def validate(capsys: pytest.CaptureFixture[str]) -> Validate:
    def run(*arguments: object) -> Done:
        code = main.run(["validate", *map(str, arguments)])
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return run


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    return write(tmp_path / "definition.yaml", yaml.safe_dump(XRD))


def test_a_good_order_exits_0_and_says_what_was_looked_at(
    validate: Validate, tmp_path: Path
) -> None:
    done = validate(write(tmp_path / "xgarage.yaml", GARAGE.format(stage="stage1")))

    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("1 objects, 0 XRDs, 0 findings, 0 rules not evaluated")


def test_a_finding_exits_1_and_stands_with_line_and_column(
    validate: Validate, tmp_path: Path
) -> None:
    file = write(tmp_path / "xgarage.yaml", GARAGE.format(stage="stage9"))

    done = validate(file)

    assert done.code == 1
    first, hint = done.out.splitlines()
    assert first.startswith(f"{file}:7:3: not-allowed: spec.stage: Unsupported value")
    assert hint.startswith('  hint: use one of "stage1", "stage2", "stage3"')


def test_an_orders_repository_is_its_manifests(validate: Validate, tmp_path: Path) -> None:
    write(tmp_path / "manifests/xgarage.yaml", GARAGE.format(stage="stage1"))
    write(tmp_path / "catalog-info.yaml", "kind: Component\nspec: {{")

    assert validate(tmp_path).code == 0


def test_a_folder_of_anything_is_searched_for_objects(validate: Validate, tmp_path: Path) -> None:
    write(tmp_path / "a/one.yaml", GARAGE.format(stage="stage1"))
    write(tmp_path / "template.yaml", "{% if x %}")
    write(tmp_path / ".git/hidden.yaml", GARAGE.format(stage="bad"))
    write(tmp_path / "other.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    (tmp_path / "link.yaml").symlink_to(tmp_path / ".git/hidden.yaml")

    done = validate(tmp_path, "--json")

    assert done.code == 0
    assert done.json["counts"] == {
        "files": 3,
        "objects": 1,
        "definitions": 0,
        "skipped": 1,
        "findings": 0,
        "warnings": 0,
        "not_evaluated": 0,
    }


def test_a_misspelt_kind_of_a_known_group_is_found(validate: Validate, tmp_path: Path) -> None:
    text = GARAGE.format(stage="stage1").replace("XGarage", "XGarge")

    done = validate(write(tmp_path / "a.yaml", text))

    assert done.code == 1
    assert "unknown-kind" in done.out
    assert "did you mean 'XGarage'?" in done.out


def test_claims_of_a_legacy_xrd_are_judged_by_their_own_fields(
    validate: Validate, tmp_path: Path
) -> None:
    names = {"kind": "Disk", "plural": "disks"}
    spec = {**XRD["spec"], "scope": "LegacyCluster", "claimNames": names}
    legacy = {**XRD, "apiVersion": "apiextensions.crossplane.io/v1", "spec": spec}
    definition = write(tmp_path / "definition.yaml", yaml.safe_dump(legacy))
    xr = DISK.format(spec="{size: 1, claimRef: {apiVersion: a, kind: b, namespace: c, name: d}}")
    text = f"{xr}---\n{xr.replace('XDisk', 'Disk')}"

    done = validate(write(tmp_path / "a.yaml", text), "--xrd", definition, "--json")

    assert done.code == 1
    assert done.json["counts"]["objects"] == 2
    (finding,) = done.json["findings"]
    assert (finding["subject"], finding["path"]) == ("Disk d", "spec.claimRef")


def test_warnings_about_an_xrd_fail_only_if_asked_to_be_strict(
    validate: Validate, tmp_path: Path
) -> None:
    text = yaml.safe_dump(XRD).replace("integer", "object").replace("self >=", "self ==")
    definition = write(tmp_path / "definition.yaml", text)

    done = validate(definition)
    strict = validate(definition, "--strict")
    sarif = json.loads(validate(definition, "--sarif").out)

    assert (done.code, strict.code) == (0, 1)
    line = next(n for n, told in enumerate(text.splitlines(), 1) if "size:" in told)
    assert f"{definition}:{line}:15: warning: unmeant: " in done.out
    assert [result["level"] for result in sarif["runs"][0]["results"]] == ["warning"]


def test_another_pack_is_used(validate: Validate, tmp_path: Path) -> None:
    for room in ("templates", "gitops"):
        shutil.copytree(reference_pack() / room, tmp_path / "pack" / room)
    shutil.copy(reference_pack() / "pack.yaml", tmp_path / "pack")
    file = tmp_path / "pack/gitops/apis/garage/definition.yaml"
    file.write_text(file.read_text().replace("stage3]", "stage3, stage9]"))
    order = write(tmp_path / "a.yaml", GARAGE.format(stage="stage9"))

    assert validate(order).code == 1
    assert validate(order, "--pack", tmp_path / "pack").code == 0


def test_a_change_is_judged_with_what_was_there_before(
    validate: Validate, tmp_path: Path, disks: Path
) -> None:
    old = write(tmp_path / "old.yaml", DISK.format(spec="{size: 3}"))
    new = write(tmp_path / "new.yaml", DISK.format(spec="{size: 2}"))

    assert validate(new, "--xrd", disks).code == 0
    done = validate(new, "--xrd", disks, "--old", old, "--json")

    assert done.code == 1
    assert [(f["reason"], f["line"], f["column"]) for f in done.json["findings"]] == [
        ("transition", 4, 8)
    ]


def test_a_rule_that_cannot_be_evaluated_is_shown_and_fails_only_if_asked(
    validate: Validate, tmp_path: Path, disks: Path
) -> None:
    file = write(tmp_path / "a.yaml", DISK.format(spec="{version: 1.0.0}"))

    done = validate(file, "--xrd", disks)

    assert done.code == 0
    assert "not evaluated: spec.version: isSemver(self)" in done.out
    assert "1 rules not evaluated" in done.err
    assert validate(file, "--xrd", disks, "--strict").code == 1


def test_sarif_names_file_line_and_rule(validate: Validate, tmp_path: Path) -> None:
    file = write(tmp_path / "a.yaml", GARAGE.format(stage="stage9"))

    done = validate(file, "--sarif")

    assert done.code == 1
    (result,) = json.loads(done.out)["runs"][0]["results"]
    assert result["ruleId"] == "not-allowed"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == file.as_uri()
    assert place["region"]["startLine"] == 7


def test_an_xrd_is_judged_itself(validate: Validate, tmp_path: Path) -> None:
    text = yaml.safe_dump(XRD).replace("self >= oldSelf", "self.x >= oldSelf")

    done = validate(write(tmp_path / "definition.yaml", text))

    assert done.code == 1
    assert "broken-schema" in done.out
    assert "compilation failed" in done.out
    assert validate(write(tmp_path / "good.yaml", yaml.safe_dump(XRD))).code == 0


def test_a_broken_rule_of_the_definition_is_told_at_its_place(
    validate: Validate, tmp_path: Path
) -> None:
    text = yaml.safe_dump(XRD).replace("self >= oldSelf", "self.x >= oldSelf")
    definition = write(tmp_path / "definition.yaml", text)
    file = write(tmp_path / "a.yaml", DISK.format(spec="{size: 1}"))

    done = validate(file, "--xrd", definition, "--json")

    assert done.code == 1
    (finding,) = done.json["findings"]
    assert finding["file"] == str(definition)
    assert "self.x" in text.splitlines()[finding["line"] - 1]


HOSTILE = {
    "deep": "[" * 50_000,
    "bomb": "a: &a [x,x]\nb: &b [*a,*a]\nc: [" + ",".join(["*b"] * 50) + "]",
    "twice": "apiVersion: v1\napiVersion: v1\n",
    "tag": "!!python/object/apply:os.system [true]",
    "no object": "just text",
    "not UTF-8": "\udcff",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_or_broken_file_is_a_finding(
    validate: Validate, tmp_path: Path, kind: str
) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(HOSTILE[kind].encode(errors="surrogateescape"))

    done = validate(file)

    assert done.code == 1
    assert "unreadable" in done.out


def test_a_file_too_large_is_not_even_read(validate: Validate, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    with file.open("wb") as handle:
        handle.truncate(3_000_000_000)

    done = validate(file)

    assert done.code == 1
    assert "larger than 1000000 bytes" in done.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["absent.yaml"], "absent.yaml does not exist"),
        ([], "Missing argument"),
        (["{file}", "--json", "--sarif"], "--json or --sarif"),
        (["{file}", "--pack", "a", "--xrd", "b"], "--pack or --xrd"),
        (["{file}"], "nothing to validate"),
        (["{file}", "--xrd", "{file}", "--xrd", "absent.yaml"], "absent.yaml does not exist"),
    ],
)
def test_misuse_exits_2(
    validate: Validate, tmp_path: Path, arguments: list[str], told: str
) -> None:
    file = write(tmp_path / "a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")

    done = validate(*(argument.format(file=file) for argument in arguments))

    assert done.code == 2
    assert told in done.err


def test_a_definition_that_is_none_exits_2(validate: Validate, tmp_path: Path) -> None:
    broken = write(tmp_path / "x.yaml", f"apiVersion: {XRD['apiVersion']}\nkind: {XRD['kind']}\n")
    file = write(tmp_path / "a.yaml", DISK.format(spec="{}"))

    done = validate(file, "--xrd", broken)

    assert done.code == 2
    assert "is an incomplete definition" in done.err


def test_two_definitions_of_one_kind_are_refused(
    validate: Validate, tmp_path: Path, disks: Path
) -> None:
    other = write(tmp_path / "other.yaml", yaml.safe_dump(XRD))
    file = write(tmp_path / "a.yaml", DISK.format(spec="{}"))

    done = validate(file, "--xrd", disks, "--xrd", other)

    assert done.code == 2
    assert "too" in done.err
