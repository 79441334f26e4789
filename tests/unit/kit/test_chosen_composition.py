"""Which Composition makes an order, and how an order may choose it."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from ground.errors import InvalidInputError, RefusedError
from ground.objects.kube_objects import Manifest
from orderkit.core.kit.compositions import (
    choice_findings,
    chosen_composition,
    composition_of,
    compositions_of,
    name_shown,
)
from orderkit.core.kit.pack import Pack, kit_of, read_kit, read_pack
from orderkit.core.secret_values import APPLIED

SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": {}}}}


def definition(kind: str = "XDisk", **spec: Any) -> Manifest:
    names = {"kind": kind, "plural": f"{kind.lower()}s"}
    versions = [{"name": "v1", "served": True, "referenceable": True,
                 "schema": {"openAPIV3Schema": SCHEMA}}]  # fmt: skip
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.x.io"},
        "spec": {"scope": "Cluster", "group": "x.io", "names": names, "versions": versions, **spec},
    }


def composition(name: str, kind: str = "XDisk") -> Manifest:
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": name},
        "spec": {"compositeTypeRef": {"apiVersion": "x.io/v1", "kind": kind}},
    }


def dump(*documents: Manifest) -> bytes:
    return yaml.safe_dump_all(documents).encode()


ROOM = PurePosixPath("gitops/apis/disk")
FILES = {
    ROOM / "definition.yaml": dump(definition()),
    ROOM / "a.yaml": dump(composition("first"), composition("other", "XTape")),
    ROOM / "b.yml": dump(composition("second")),
    ROOM / "c.json": b"{",
    PurePosixPath("gitops/apis/tape/a.yaml"): dump(composition("third")),
}
OFFERS = {"compositions": [{"name": "first"}, {"name": "second"}]}


def disk(**spec: Any) -> Manifest:
    return {
        "apiVersion": "x.io/v1",
        "kind": "XDisk",
        "metadata": {"name": "a"},
        "spec": spec,
    }


def by_name(name: str) -> Manifest:
    return disk(crossplane={"compositionRef": {"name": name}})


def test_the_compositions_of_a_kit_are_those_of_its_kind_in_its_folder() -> None:
    kit = kit_of("disk", {}, definition())

    assert [one["metadata"]["name"] for one in compositions_of(FILES, kit)] == ["first", "second"]


@pytest.mark.parametrize(
    ("spec", "xr", "name"),
    [
        ({}, None, "first"),
        ({"defaultCompositionRef": {"name": "second"}}, None, "second"),
        ({"defaultCompositionRef": {"name": "gone"}}, None, "first"),
        ({"defaultCompositionRef": {"name": "first"}}, by_name("second"), "second"),
        ({"enforcedCompositionRef": {"name": "first"}}, by_name("second"), "first"),
        ({}, by_name("gone"), "first"),
    ],
)
def test_a_composition_is_enforced_chosen_or_the_default(
    spec: dict[str, Any], xr: Manifest | None, name: str
) -> None:
    kit = kit_of("disk", OFFERS, definition(**spec))

    found = composition_of(FILES, kit, xr)

    assert found is not None
    assert found["metadata"]["name"] == name
    assert composition_of({}, kit, xr) is None


def test_only_an_offered_field_chooses() -> None:
    offering, plain = (kit_of("disk", spec, definition()) for spec in (OFFERS, {}))

    assert chosen_composition(offering, by_name("second")) == "second"
    assert chosen_composition(offering, disk(crossplane={"compositionRef": {"name": 5}})) == ""
    assert chosen_composition(plain, by_name("second")) == ""


def test_the_name_is_shown_where_new_xrs_have_it() -> None:
    assert name_shown(definition(), composition("first")) == "first"
    assert name_shown(definition(scope="LegacyCluster"), composition("first")) == ""


@pytest.mark.parametrize(
    ("xr", "hint"),
    [
        (by_name("first"), None),
        (disk(), None),
        (by_name("secnd"), "did you mean 'second'?"),
        (by_name("zzz"), "Compositions: first, second"),
    ],
)
def test_a_composition_that_the_kit_does_not_offer_is_told(xr: Manifest, hint: str | None) -> None:
    kit = kit_of("disk", OFFERS, definition())

    found = list(choice_findings(kit, xr))

    assert [finding.hint for finding in found] == ([hint] if hint else [])
    assert all(finding.path == "spec.crossplane.compositionRef.name" for finding in found)


def live(applied: str | None) -> Manifest:
    xr = by_name("first")
    annotations = {} if applied is None else {APPLIED: applied}
    return {**xr, "metadata": {"name": "a", "uid": "u", "annotations": annotations}}


WITH = '{"spec": {"crossplane": {"a": 1}}}'


@pytest.mark.parametrize(
    ("old", "new", "is_told", "reason"),
    [
        (by_name("first"), disk(), True, "Git had it"),
        (by_name("first"), disk(crossplane=None), True, "a null removes it too"),
        (by_name("first"), disk(crossplane={}), False, "an empty map keeps what others own"),
        (by_name("first"), by_name("second"), False, "it is still there"),
        (disk(), disk(), False, "Git had none"),
        (None, disk(), False, "nobody knows"),
        (live(WITH), disk(), True, "the cluster's copy of what was applied has it"),
        (live('{"spec": {}}'), disk(), False, "what the cluster has is Crossplane's own"),
        (live(None), disk(), False, "nothing was applied so"),
        (live("{"), disk(), False, "the copy cannot be read"),
        (live("[]"), disk(), False, "the copy is no object"),
    ],
)
def test_what_crossplane_keeps_in_an_xr_must_not_be_removed(
    old: Manifest | None, new: Manifest, *, is_told: bool, reason: str
) -> None:
    kit = kit_of("disk", {}, definition())

    found = [finding.path for finding in choice_findings(kit, new, old)]

    assert found == ["spec.crossplane"] * is_told, reason


HEAD = b"apiVersion: orderkit.dev/v1alpha1\nkind: Pack\nmetadata: {name: p}\nspec: {kits: [%s]}\n"


def pack(**definitions: Manifest) -> Pack:
    files = {
        PurePosixPath("gitops", "apis", name, "definition.yaml"): dump(xrd)
        for name, xrd in definitions.items()
    }
    kits = ", ".join(definitions).encode()
    return read_pack({PurePosixPath("pack.yaml"): HEAD % kits, **files})


def test_two_kits_of_one_kind_are_refused_and_a_broken_one_hinders_no_other() -> None:
    broken = {"apiVersion": "v1", "kind": "CompositeResourceDefinition", "metadata": {}, "spec": {}}
    found = pack(a=definition(), b=definition(), c=definition("XTape"), d=broken)

    found.check_only("c")
    with pytest.raises(RefusedError, match=r"^kit a cannot be used: kit b defines XDisk"):
        found.check_only("a")


@pytest.mark.parametrize("path", ["/a", "a/../b", "..", ".git/config", "x/.GIT/hooks"])
def test_a_file_that_leaves_the_pack_is_refused(path: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        read_pack({PurePosixPath("pack.yaml"): HEAD % b"a", PurePosixPath(path): b""})

    assert str(refused.value) == f"path: {path!r} leaves the pack"


def test_what_has_no_pack_file_is_no_pack_and_a_kit_needs_its_definition() -> None:
    with pytest.raises(InvalidInputError, match=r"^pack\.yaml is missing: this is not a pack"):
        read_pack({})
    with pytest.raises(InvalidInputError, match=r"^gitops/apis/a/definition\.yaml is missing"):
        read_kit("a", {})


def test_files_of_a_folder_have_paths_within_it() -> None:
    found = read_pack({PurePosixPath("pack.yaml"): HEAD % b"a", PurePosixPath("x/y/z"): b"1"})

    assert found.folder("x") == {PurePosixPath("y/z"): b"1"}
