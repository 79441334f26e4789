"""pack.yaml, kit.yaml and what an order is called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest
from ownforge import OwnForge

from ground.errors import InvalidInputError, NotFoundError
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.core.kit.pack import read_pack
from orderkit.core.platform.baking import BAKED_FOLDERS, SENTINEL, bake
from orderkit.flows.composing.published_pack import published_workshop

PACK = read_folder(reference_pack())


def changed(path: str, old: str, new: str) -> dict[PurePosixPath, bytes]:
    """Return the reference pack with one text replaced."""
    key = PurePosixPath(path)
    assert old in PACK[key].decode()
    return {**PACK, key: PACK[key].decode().replace(old, new).encode()}


def test_the_reference_pack_offers_the_garage() -> None:
    kit = read_pack(PACK).kit("garage")

    assert (kit.kind.group, kit.kind.kind) == ("blog.opsbogus.dev", "XGarage")
    assert kit.order_id({"team_name": "ae86"}) == "garage-ae86"
    assert kit.team({"team_name": "ae86"}) == "ae86"


@dataclass(frozen=True)
class Broken:
    reason: str
    path: str
    old: str
    new: str
    says: str


BROKEN = [
    Broken("misspelt key", "templates/garage/kit.yaml", "nameFrom:", "nameform:", "'nameform'"),
    Broken("misspelt key, with advice", "pack.yaml", "kits:", "kit:", "'kit'"),
    Broken("wrong version", "pack.yaml", "v1alpha1", "v0", "orderkit.dev/v1alpha1"),
    Broken("kit name that is not a name", "pack.yaml", "- garage", "- Gar_age", "Gar_age"),
    Broken(
        "no YAML",
        "templates/garage/kit.yaml",
        "spec:",
        "spec: [",
        "garage/kit.yaml is not valid YAML",
    ),
    Broken(
        "no referenceable version",
        "gitops/apis/garage/definition.yaml",
        "referenceable: true",
        "referenceable: false",
        "definition.yaml",
    ),
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.reason)
def test_a_broken_file_is_named_with_its_rule(case: Broken) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_pack(changed(case.path, case.old, case.new)).kits()

    assert case.says in f"{caught.value} {caught.value.hint}"


def test_an_unknown_kit_names_the_nearest() -> None:
    with pytest.raises(NotFoundError) as caught:
        read_pack(PACK).kit("garge")

    assert "garage" in caught.value.hint


def test_a_name_that_is_no_label_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="team_name"):
        read_pack(PACK).kit("garage").order_id({"team_name": "AE_86"})


VALUES = {
    "FORGE_URL": "http://127.0.0.1:7300",
    "FORGE_HOST": "127.0.0.1:7300",
    "PACK_COMMIT": "c" * 40,
    "REGISTRY": "registry.local",
    "SERVICE_URL": "http://127.0.0.1:7399",
    "PORTAL_URL": "http://127.0.0.1:7399",
    "CLUSTER_NAME": "local",
    "PACK_REPOSITORY": "platform/pack",
    "LEDGER_REPOSITORY": "platform/ledger",
    "CROSSPLANE_CHARTS": "https://charts.example.org/stable",
    "CROSSPLANE_ACCOUNT": "system:serviceaccount:crossplane-system:crossplane",
    "ARGOCD_ACCOUNT": "system:serviceaccount:argocd:argocd-application-controller",
    **{f"VERSION_{n.upper().replace('-', '_')}": v for n, v in read_pack(PACK).versions.items()},
}


def test_baking_leaves_no_sentinel_behind() -> None:
    baked = bake(PACK, VALUES)

    left = [p for p, d in baked.items() if p.parts[0] in BAKED_FOLDERS and SENTINEL.search(d)]
    assert left == []
    assert b"http://127.0.0.1:7300/platform/pack.git" in baked[PurePosixPath("gitops/root.yaml")]


def test_a_sentinel_without_value_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="__ORDERKIT_MOON__"):
        bake({PurePosixPath("gitops/x.yaml"): b"url: __ORDERKIT_MOON__\n"}, VALUES)


@pytest.mark.parametrize("value", ['a"b', "a b", "a\nb", "${{ x }}", "", "#c"])
def test_a_value_that_would_need_quoting_is_refused(value: str) -> None:
    with pytest.raises(InvalidInputError, match="FORGE_URL"):
        bake({}, {**VALUES, "FORGE_URL": value})


def test_a_skeleton_may_have_files_that_are_larger_than_yaml_ever_is(tmp_path: Path) -> None:
    (tmp_path / "pack.yaml").write_bytes(PACK[PurePosixPath("pack.yaml")])
    video = tmp_path / "templates/garage/skeleton/film.mp4"
    video.parent.mkdir(parents=True)
    video.write_bytes(bytes(3_000_000))

    assert len(read_folder(tmp_path)[PurePosixPath("templates/garage/skeleton/film.mp4")]) > 2**21
    video.write_bytes(bytes(40 * 2**20))
    with pytest.raises(InvalidInputError, match="more than 32 MiB"):
        read_folder(tmp_path)


def test_a_platform_whose_pack_has_no_commit_is_not_bootstrapped(forge: OwnForge) -> None:
    forge.empty(forge.pack)

    with pytest.raises(NotFoundError, match=f"{forge.pack}: no pack on") as refused:
        published_workshop(forge.platform())

    assert refused.value.hint == "the platform is not bootstrapped"
