"""Files against their definitions: what is judged, what is skipped, and where each fault stands."""

from __future__ import annotations

from pathlib import PurePath, PurePosixPath
from typing import Any

import pytest
import yaml

from ground.errors import InvalidInputError
from ground.objects.kube_objects import Kind
from kubeschema.validate.file_check import (
    Definitions,
    SourceFile,
    ValidationOutcome,
    definition_sources,
    old_objects,
    validate,
)
from kubeschema.validate.findings import Finding, FindingSeverity, sentence


def definition(kind: str = "XDisk", group: str = "x.io", **spec: Any) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "referenceable": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "properties": {"size": {"type": "integer"}},
                        "x-kubernetes-validations": [
                            {"rule": "self.size >= oldSelf.size", "message": "never shrinks"}
                        ],
                    }
                },
            }
        },
    }
    names = {"kind": kind, "plural": f"{kind.lower()}s"}
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.{group}"},
        "spec": {"scope": "Cluster", "group": group, "names": names, "versions": [version], **spec},
    }


def file(name: str, *documents: Any, named: bool = True) -> SourceFile:
    data = yaml.safe_dump_all(documents, sort_keys=False).encode()
    return SourceFile(PurePath(name), data, is_named=named)


def disk(
    size: object = 1, kind: str = "XDisk", version: str = "x.io/v1", **meta: Any
) -> dict[str, Any]:
    metadata = {"name": "a", **meta}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {"size": size}}


DEFINED = Definitions.of([file("xrd.yaml", definition(), {"apiVersion": "v1", "kind": "Pod"})])


def told(outcome: ValidationOutcome) -> list[str]:
    return [sentence(entry) for entry in outcome.findings]


@pytest.mark.parametrize(
    ("document", "sentences", "reason"),
    [
        (disk(), [], "a sound object"),
        (
            disk("x"),
            ['a.yaml:6: spec.size: Invalid value: "string": spec.size in body must be of type'],
            "a wrong one",
        ),
        (disk(kind="Pod", version="v1"), [], "a kind of nobody's group is skipped"),
        (
            disk(kind="XDiks"),
            ["a.yaml:2: kind: no XRD defines XDiks.x.io (rule: a kind of the pack)"],
            "a kind that the group lacks",
        ),
        (
            disk(version="y.io/v1"),
            ["a.yaml:1: apiVersion: no XRD defines XDisk.y.io (value: y.io/v1; rule: a kind of"],
            "a kind of another group",
        ),
        (
            disk(namespace="home"),
            ["a.yaml:5: metadata.namespace: XDisk is cluster-scoped: it is in no namespace"],
            "a namespace of what has none",
        ),
        (
            disk(labels={"a": "undefined", "b": "fine"}, annotations={"c": "null"}),
            [
                'a.yaml:6: metadata.labels[a]: "undefined" is what a template writes for a value',
            ],
            "a template's leftover",
        ),
    ],
)
def test_an_object_is_judged_by_the_definition_of_its_kind(
    document: dict[str, Any], sentences: list[str], reason: str
) -> None:
    found = told(validate([file("a.yaml", document)], DEFINED))

    assert len(found) == len(sentences), (reason, found)
    assert all(one.startswith(part) for one, part in zip(found, sentences, strict=True)), found


@pytest.mark.parametrize(
    ("document", "hint"),
    [
        (disk(kind="XDiks"), "did you mean 'XDisk'?"),
        (disk(kind="Zebra"), "kinds of x.io: XDisk"),
        (disk(version="y.io/v1"), "XDisk is of apiVersion x.io/v1"),
    ],
)
def test_an_unknown_kind_has_a_way_out(document: dict[str, Any], hint: str) -> None:
    (found,) = validate([file("a.yaml", document)], DEFINED).findings

    assert isinstance(found.about, Finding)
    assert found.about.hint == hint


def test_what_was_read_is_counted() -> None:
    pod = disk(kind="Pod", version="v1")
    outcome = validate(
        [
            file("a.yaml", disk("x"), pod, definition("XTape")),
            SourceFile(PurePath("b"), b"", is_named=True),
        ],
        DEFINED,
    )

    assert (outcome.files, outcome.definitions, outcome.skipped) == (2, 1, 1)
    assert [str(path) for path in outcome.empty] == ["b"]
    assert [(str(path), doc.manifest["kind"]) for path, doc in outcome.documents] == [
        ("a.yaml", "XDisk"),
        ("a.yaml", "Pod"),
        ("a.yaml", "CompositeResourceDefinition"),
    ]
    assert [judged.report.name for judged in outcome.objects] == ["a"]
    assert (outcome.errors, outcome.warnings) == (1, 0)


def test_outcomes_of_several_folders_are_one() -> None:
    first = validate([file("b.yaml", disk("x"))], DEFINED)
    second = validate([file("a.yaml", disk(namespace="home"), definition("XTape"))], DEFINED)

    first.merge(second)

    assert (first.files, first.definitions, len(first.objects)) == (2, 1, 2)
    assert [str(entry.file) for entry in first.findings] == ["a.yaml", "b.yaml"]
    assert (first.errors, first.warnings) == (1, 1)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (SourceFile(PurePath("a"), None, is_named=False, is_link=True), "a: is a symbolic link"),
        (SourceFile(PurePath("a"), None, is_named=False), "a: larger than 1000000 bytes"),
        (
            SourceFile(PurePath("a"), b"version https://git-lfs.github.com/spec/v1", is_named=True),
            "a: is a pointer of Git LFS, not the file",
        ),
        (SourceFile(PurePath("a"), b"a: [", is_named=True), "a:2: did not find expected node"),
        (
            SourceFile(PurePath("a"), b"apiVersion: v1\nkind: A\nmetadata: [", is_named=False),
            "a:4: did not find expected node",
        ),
        (SourceFile(PurePath("a"), b"a: [", is_named=False), ""),
    ],
    ids=["link", "large", "LFS", "named", "meant as a manifest", "another file"],
)
def test_a_file_that_cannot_be_read_is_told_if_it_was_meant(source: SourceFile, words: str) -> None:
    found = told(validate([source], DEFINED))

    assert len(found) == bool(words)
    assert all(one.startswith(words) for one in found), found


def test_a_change_begins_at_the_object_of_the_same_kind_name_and_namespace() -> None:
    before = [file("old.yaml", disk(5), disk(1, name="b"))]

    shrunk = validate([file("a.yaml", disk(4))], DEFINED, before)
    grown = validate([file("a.yaml", disk(6))], DEFINED, before)
    other = validate([file("a.yaml", disk(0, name="c"))], DEFINED, before)
    by_function = validate([file("a.yaml", disk(4))], DEFINED, old_of=old_objects(before))

    assert [len(one.findings) for one in (shrunk, grown, other, by_function)] == [1, 0, 0, 1]
    assert "never shrinks" in told(shrunk)[0]
    assert old_objects(before)(disk(0, namespace="home")) is None


def test_an_old_file_that_cannot_be_read_is_refused_if_it_was_named() -> None:
    broken = b"apiVersion: v1\nkind: A\nmetadata: ["

    with pytest.raises(InvalidInputError, match=r"^old: 4 did not find expected node"):
        old_objects([SourceFile(PurePath("old"), broken, is_named=True)])
    assert old_objects([SourceFile(PurePath("old"), broken, is_named=False)])(disk()) is None


BROKEN = definition(
    versions=[
        {"name": "v0", "served": False, "referenceable": False, "schema": {"openAPIV3Schema": {}}},
        {
            **definition()["spec"]["versions"][0],
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "x-kubernetes-validations": [{"rule": "self.zz == 1"}],
                        }
                    },
                }
            },
        },
    ]
)


def test_a_rule_that_does_not_compile_is_told_at_the_definition() -> None:
    definitions = Definitions.of([file("xrd.yaml", BROKEN)])

    found = validate([file("a.yaml", disk())], definitions).findings

    faults = [entry for entry in found if str(entry.file) == "xrd.yaml"]
    assert len(faults) == 1
    assert faults[0].line == 27
    assert isinstance(faults[0].about, Finding)
    assert faults[0].about.message.startswith("version v1: ")
    assert faults[0].about.severity is FindingSeverity.ERROR


INCOMPLETE = "is an incomplete definition: it needs spec.group, spec.names.kind and spec.versions"


@pytest.mark.parametrize(
    ("document", "told_"),
    [
        ({**definition(), "spec": {}}, INCOMPLETE),
        ({**definition(), "spec": None}, INCOMPLETE),
        (definition(versions=["v1"]), INCOMPLETE),
        (definition(versions=None), INCOMPLETE),
        (definition(), "xrd.yaml: 'XDisk.x.io' is defined in own.yaml too"),
    ],
)
def test_a_definition_that_counts_is_whole_and_the_only_one_of_its_kind(
    document: dict[str, Any], told_: str
) -> None:
    own = file("own.yaml", definition())

    with pytest.raises(InvalidInputError) as refused:
        Definitions.of([own, file("xrd.yaml", document)])
    assert str(refused.value).endswith(told_)
    found = Definitions.of([file("xrd.yaml", document), own], own=own.path)
    assert str(found.place(Kind("x.io", "v1", "XDisk"))[0]) == "own.yaml"


def test_definitions_are_known_by_group_and_kind() -> None:
    found = Definitions.of(
        [file("a", definition(), definition("XTape")), file("b", definition(group="a.io"))]
    )

    assert found.kinds_of("x.io") == ["XDisk", "XTape"]
    assert found.kinds_of("z.io") == []
    assert found.groups_of("XDisk") == ["a.io", "x.io"]
    assert found.versions("x.io", "XDisk") == "v1"
    assert found.versions("x.io", "XBike") == ""
    assert found.validator(Kind("x.io", "v9", "XBike")) is None


def test_a_legacy_definition_defines_its_claim_too() -> None:
    legacy = definition(claimNames={"kind": "Disk", "plural": "disks"}, scope=None)
    del legacy["spec"]["scope"]
    found = Definitions.of([file("a", {**legacy, "apiVersion": "apiextensions.crossplane.io/v1"})])

    assert found.kinds_of("x.io") == ["Disk", "XDisk"]
    assert found.validator(Kind("x.io", "v1", "Disk")) is not None


def test_the_definitions_of_a_pack_are_those_of_its_kits() -> None:
    files = {
        PurePosixPath(path): b"x"
        for path in (
            "gitops/apis/b/definition.yaml",
            "gitops/apis/a/definition.yaml",
            "gitops/apis/a/composition.yaml",
            "gitops/other/a/definition.yaml",
            "other/apis/a/definition.yaml",
            "apis/a/definition.yaml",
            "packs/p/gitops/apis/c/definition.yaml",
        )
    }

    found = definition_sources(PurePath("pack"), files)

    assert [(str(source.path), source.is_named) for source in found] == [
        ("pack/gitops/apis/a/definition.yaml", True),
        ("pack/gitops/apis/b/definition.yaml", True),
        ("pack/packs/p/gitops/apis/c/definition.yaml", True),
    ]
