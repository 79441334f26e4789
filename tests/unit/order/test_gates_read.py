"""A gate answers from the cluster; what cannot be read is unknown, and never used up."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest
from bareplatform import platform_of
from countedforge import CountedForge
from ownforge import OwnForge, Watched, unanswered
from refusedreads import RefusedReads

from ground.errors import InvalidInputError, NotFoundError
from ground.objects.kube_objects import APPLICATION, TRACKING_ID, Kind, Manifest, ObjectKey
from orderkit.core.kit.pack import definition_path, kit_path, read_pack
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.order.budget_gate_check import GateRequest, Gates, UnknownGateError, team_of
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.testing import permissive_crd

PACK = Path(__file__).parents[3] / "packs" / "agents"
KIT, OTHER = "agentbudget", "datasetagent"
FILES = {
    str(path): (PACK / path).read_text()
    for name in (KIT, OTHER)
    for path in (Path("pack.yaml"), Path(kit_path(name)), Path(definition_path(name)))
}


CONTENTS = {PurePosixPath(path): text.encode() for path, text in FILES.items()}
KIND: Kind = read_pack(CONTENTS).kit(KIT).kind


def xr(name: str, namespace: str, **meta: Any) -> Manifest:
    whole = {"name": name, "namespace": namespace, **meta}
    return {"apiVersion": KIND.api_version, "kind": KIND.kind, "metadata": whole, "spec": {}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    found = EmbeddedCluster(tmp_path_factory.mktemp("gates") / "cluster.sqlite")
    for namespace in ("a", "b", "argocd"):
        found.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, owner="x"
        )
    for kind in (KIND, APPLICATION):
        found.create(permissive_crd(kind, namespaced=True), owner="x")
    for name, namespace in (("one", "a"), ("two", "a"), ("two", "b")):
        found.create(xr(name, namespace), owner="x")
    application = {
        "apiVersion": APPLICATION.api_version,
        "kind": APPLICATION.kind,
        "metadata": {"name": application_key("garage-a").name, "namespace": "argocd"},
        "spec": {"project": "ae86"},
    }
    found.create(application, owner="x")
    yield found
    found.close()


def test_an_xr_is_found_by_its_name_if_one_namespace_has_it(
    cluster: EmbeddedCluster, forge: OwnForge
) -> None:
    forge.repo(forge.pack, FILES)
    platform, gates = forge.platform(cluster), Gates()

    def found(name: str, namespace: str = "") -> str | None:
        answer = gates.xr(platform, GateRequest(KIT, name, namespace))
        return str(answer["metadata"]["namespace"]) if answer else None

    assert [found("one"), found("one", "a"), found("one", "b"), found("two", "b")] == [
        "a",
        "a",
        None,
        "b",
    ]
    assert found("none") is None
    with pytest.raises(InvalidInputError, match="is needed: two is in a, b"):
        found("two")


def test_a_cluster_that_does_not_answer_leaves_a_gate_unknown(
    cluster: EmbeddedCluster, refused: RefusedReads, forge: OwnForge
) -> None:
    forge.repo(forge.pack, FILES)
    silent = forge.platform(refused.of(cluster, {KIND.kind}, silent=True))

    for namespace in ("", "a"):
        with pytest.raises(UnknownGateError, match="cannot be read now"):
            Gates().xr(silent, GateRequest(KIT, "one", namespace))


def test_a_kit_that_was_read_counts_while_the_forge_is_silent(
    forge: OwnForge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forge.repo(forge.pack, FILES)
    hours = itertools.count(step=3_600)
    clock = SimpleNamespace(monotonic=lambda: float(next(hours)))
    monkeypatch.setattr("orderkit.flows.order.budget_gate_check.time", clock)
    gates, line = Gates(), Watched()
    platform = forge.platform(forge=forge.proxied(line))

    first = gates.kit(platform, KIT)
    line.next = unanswered(2)

    assert gates.kit(platform, KIT) == first
    silence = f"kit '{OTHER}' cannot be read now: {platform.forge.base_url} did not answer"
    with pytest.raises(UnknownGateError, match=silence):
        gates.kit(platform, OTHER)
    assert line.next == []
    forge.client.delete_repo(forge.pack)
    with pytest.raises(NotFoundError):
        gates.kit(platform, KIT)


def test_a_kit_is_read_once_in_a_while(forge: OwnForge) -> None:
    forge.repo(forge.pack, FILES)
    gates, counted = Gates(), CountedForge(forge.client, forge.pack)
    for _ in range(3):
        gates.kit(forge.platform(forge=counted), KIT)

    assert (counted.calls["head"], counted.calls["read"]) == (1, 3), "its three files"


def test_a_kit_without_a_gate_has_none(forge: OwnForge) -> None:
    text = FILES[str(kit_path(KIT))]
    shut = "\n".join(line for line in text.splitlines() if not line.startswith("  gate:"))
    forge.repo(forge.pack, {**FILES, str(kit_path(KIT)): shut})

    with pytest.raises(NotFoundError, match="has no gate"):
        Gates().kit(forge.platform(), KIT)


def owned(by: str, namespace: str = "a") -> Manifest:
    owner = {"apiVersion": KIND.api_version, "kind": KIND.kind, "name": by, "uid": "u"}
    return xr("inner", namespace, ownerReferences=[{**owner, "controller": True}])


@pytest.mark.parametrize(
    ("annotation", "team"),
    [("garage-a:lab.example.org/X:a/x", "ae86"), ("garage-none:x", None), ("", None)],
)
def test_the_team_of_an_xr_is_the_project_that_delivers_it(
    annotation: str, team: str | None, cluster: EmbeddedCluster
) -> None:
    outer = xr("outer", "a", annotations={TRACKING_ID: annotation} if annotation else {})

    assert team_of(platform_of(cluster).cluster, outer) == team


def test_the_team_of_an_inner_xr_is_that_of_the_outermost(
    cluster: EmbeddedCluster, refused: RefusedReads
) -> None:
    live = cluster.get(ObjectKey(KIND, "one", "a"))
    assert live
    live["metadata"]["annotations"] = {TRACKING_ID: "garage-a:x"}
    cluster.replace(live, owner="x")

    assert team_of(platform_of(cluster).cluster, owned("one")) == "ae86"
    assert team_of(platform_of(cluster).cluster, owned("gone")) is None
    with pytest.raises(UnknownGateError, match="the XR's team cannot be read now"):
        team_of(refused.of(cluster, {KIND.kind}, silent=True), owned("one"))
