"""What is read of orders in a cluster that lacks a kind, keeps objects back or does not answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from bareplatform import platform_of
from ownforge import OwnForge
from refusedreads import RefusedReads

from ground.errors import InvalidInputError
from ground.names import OrderId, TeamName
from ground.objects.kube_objects import APPLICATION, Kind, Manifest, ObjectKey
from orderkit.core.kit.kit_file_parts import Hints, Refers
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import definition_path, kit_path
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.ledger_applications import order_application
from orderkit.core.order.order_state import OrderState
from orderkit.flows.order.order_report import list_orders
from orderkit.flows.order.registration_check import check_references
from orderkit.flows.order.tracing import WaitReport
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.testing import permissive_crd
from yamlfiles import yaml11

XR = Kind("lab.example.org", "v1", "XApp")
NEVER_SERVED = Kind("lab.example.org", "v1", "XNone")
ROOT = ObjectKey(XR, "root")


def made(kind: Kind, name: str, **more: Any) -> Manifest:
    whole = {"name": name} if kind == XR else {"name": name, "namespace": "default"}
    meta = {**whole, **more.pop("metadata", {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **more}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """An XR that composed a ConfigMap and a Secret; another one that is ready."""
    found = EmbeddedCluster(tmp_path / "cluster.sqlite")
    found.create(permissive_crd(XR, namespaced=False), owner="x")
    kinds = [Kind("", "v1", name) for name in ("ConfigMap", "Secret")]
    references = [
        {"apiVersion": "v1", "kind": kind.kind, "name": "part", "namespace": "default"}
        for kind in kinds
    ]
    root = found.create(made(XR, "root", spec={"resourceRefs": references}), owner="x")
    owner = {"apiVersion": XR.api_version, "kind": XR.kind, "name": "root", "controller": True}
    owners = [{**owner, "uid": root["metadata"]["uid"]}]
    for kind in kinds:
        found.create(made(kind, "part", metadata={"ownerReferences": owners}), owner="x")
    found.create(made(XR, "made", spec={"isMade": True}), owner="x")
    yield found
    found.close()


@pytest.mark.parametrize(
    ("kept_back", "told"),
    [
        ((), "Assembling 2/2"),
        (("Secret",), "Assembling 2/2"),  # Jobs may read none
        (("ConfigMap",), "Assembling: waits"),
    ],
)
def test_whoever_waits_is_told_the_parts_as_far_as_they_may_be_read(
    cluster: EmbeddedCluster, refused: RefusedReads, kept_back: Collection[str], told: str
) -> None:
    said: list[str] = []
    waiting = WaitReport(platform_of(refused.of(cluster, kept_back)), said.append)

    state = waiting(OrderState("Assembling", "waits"), ROOT)

    assert said == [told]
    assert state.phase == "Assembling"


def kit(kind: Kind) -> Kit:
    """Return a kit whose field ``base`` names an object of a kind that is ready."""
    refers = Refers(kind.api_version, kind.kind, ready="spec.isMade")
    return Kit(name="app", xrd={}, fields={"base": Hints(refers=refers)})


@pytest.mark.parametrize(
    ("kind", "named", "rule", "hint"),
    [
        (XR, "mode", "is not a XApp of this platform", "did you mean 'made'?"),
        (XR, "zzz", "is not a XApp of this platform", "there are: made, root"),
        (XR, "root", "is a XApp that is not ready", "wait until its spec.isMade is true"),
        (NEVER_SERVED, "a", "is not a XNone of this platform", "there are: none"),
    ],
)
def test_an_order_that_refers_to_what_is_not_there_is_refused(
    cluster: EmbeddedCluster, kind: Kind, named: str, rule: str, hint: str
) -> None:
    with pytest.raises(InvalidInputError) as found:
        check_references(cluster, kit(kind), {"base": named})

    assert (found.value.field, found.value.value, found.value.rule) == ("base", named, rule)
    assert found.value.hint.startswith(hint)
    check_references(cluster, kit(XR), {"base": "made"})


PACK = Path(__file__).parents[3] / "packs" / "agents"
KIT = "agentbudget"
FILES = {
    str(path): (PACK / path).read_text()
    for name in (KIT, "datasetagent")
    for path in (Path("pack.yaml"), Path(kit_path(name)), Path(definition_path(name)))
}


def test_an_order_is_listed_although_its_kits_kind_is_not_served_yet(
    cluster: EmbeddedCluster, forge: OwnForge
) -> None:
    entry = OrderEntry(TeamName("ae86"), OrderId(f"{KIT}-a"))
    application = order_application(entry, kit=KIT, forge_url=forge.client.base_url)
    forge.repo(forge.pack, FILES)
    forge.repo(forge.ledger, {str(entry.application_path): yaml11.dump(application)})
    cluster.create(permissive_crd(APPLICATION, namespaced=True), owner="x")

    (listed,) = list_orders(forge.platform(cluster))

    assert (listed.entry, listed.state.phase) == (entry, "Written")
