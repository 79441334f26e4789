"""What the background controllers clean up, also after a restart in the middle."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from extras.standins.tests.component.embedded_cluster.conftest import GARAGE_CRD

from ground.errors import AccessError
from ground.objects.kube_objects import CONFIG_MAP, CRD, EVENT, NAMESPACE, Kind, Manifest, ObjectKey
from orderkit.ports.cluster import InvalidObjectError
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.cluster.admission import AdmissionRequest
from orderkit_standins.cluster.refusals import Forbidden

if TYPE_CHECKING:
    from collections.abc import Callable

GARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")


def eventually(probe: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 90
    while not (found := probe()):
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)
    return found


def garage(name: str, **meta: Any) -> Manifest:
    return {
        "apiVersion": GARAGE.api_version,
        "kind": GARAGE.kind,
        "metadata": {"name": name, **meta},
        "spec": {"teamName": "ae86"},
    }


def owned(name: str, *owners: Manifest, **more: Any) -> Manifest:
    references = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            **more,
        }
        for owner in owners
    ]
    meta = {"name": name, "namespace": "default", "ownerReferences": references}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def sheet(name: str, namespace: str = "default", **meta: Any) -> Manifest:
    meta = {"name": name, "namespace": namespace, **meta}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def key(name: str, namespace: str = "default") -> ObjectKey:
    return ObjectKey(CONFIG_MAP, name, namespace)


def test_dependents_of_a_lost_owner_go_after_a_restart(
    cluster: EmbeddedCluster, cluster_file: Path
) -> None:
    owner = cluster.create(garage("g"), owner="me")
    cluster._collector.stop()  # noqa: SLF001 - as if killed before it could act
    cluster.create(owned("child", owner), owner="me")
    cluster.delete(ObjectKey.of(owner))
    assert cluster.get(key("child")) is not None
    cluster.close()

    again = EmbeddedCluster(cluster_file)
    eventually(lambda: again.get(key("child")) is None)
    again.close()


def test_a_namespace_is_emptied_after_a_restart(
    cluster: EmbeddedCluster, cluster_file: Path
) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}, owner="me")
    cluster.create(sheet("a", "x"), owner="me")
    cluster._collector.stop()  # noqa: SLF001 - as if killed before it could act
    cluster.delete(ObjectKey(NAMESPACE, "x"))
    cluster.close()

    again = EmbeddedCluster(cluster_file)
    eventually(lambda: again.get(ObjectKey(NAMESPACE, "x")) is None)
    assert again.get(key("a", "x")) is None
    again.close()


def test_a_namespace_waits_for_content_with_finalizers(cluster: EmbeddedCluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}, owner="me")
    cluster.create(sheet("a", "x", finalizers=["test/held"]), owner="me")
    cluster.delete(ObjectKey(NAMESPACE, "x"))
    held = eventually(lambda: _deleting(cluster, key("a", "x")))
    namespace = cluster.get(ObjectKey(NAMESPACE, "x"))
    assert namespace is not None
    assert namespace["status"]["phase"] == "Terminating"
    with pytest.raises(AccessError, match="because it is being terminated"):
        cluster.create(sheet("b", "x"), owner="me")
    cluster.patch(ObjectKey.of(held), {"metadata": {"finalizers": None}}, owner="me")
    eventually(lambda: cluster.get(ObjectKey(NAMESPACE, "x")) is None)


def _deleting(cluster: EmbeddedCluster, where: ObjectKey) -> Manifest | None:
    found = cluster.get(where)
    return found if found and found["metadata"].get("deletionTimestamp") else None


def test_a_definition_takes_objects_and_their_dependents_along(cluster: EmbeddedCluster) -> None:
    owners = [cluster.create(garage(f"g{n}"), owner="me") for n in range(5)]
    for number, owner in enumerate(owners):
        cluster.create(owned(f"c{number}", owner), owner="me")
    cluster.delete(ObjectKey(CRD, "xgarages.blog.opsbogus.dev"))

    eventually(lambda: not cluster.serves(GARAGE))
    eventually(lambda: not cluster.list(CONFIG_MAP).items)


def test_foreground_deletion_frees_a_child_that_another_owner_keeps(
    cluster: EmbeddedCluster,
) -> None:
    one, two = (cluster.create(garage(name), owner="me") for name in ("one", "two"))
    cluster.create(owned("child", one, two, blockOwnerDeletion=True), owner="me")
    cluster.delete(ObjectKey.of(one), propagation="Foreground")
    eventually(lambda: cluster.get(ObjectKey.of(one)) is None)

    child = cluster.get(key("child"))
    assert child is not None
    assert [r["name"] for r in child["metadata"]["ownerReferences"]] == ["two"]


@pytest.mark.parametrize("place", ["owner", "namespace", "definition"])
def test_a_refused_deletion_delays_no_other_and_is_tried_again(
    cluster_file: Path, place: str
) -> None:
    """The first of three objects to delete is protected by a policy, for a while."""
    protected = {"a"}

    def admit(request: AdmissionRequest) -> tuple[str, ...]:
        if request.operation == "DELETE" and request.meta["name"] in protected:
            raise Forbidden("protected")
        return ()

    cluster = EmbeddedCluster(cluster_file, admission=admit)
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}, owner="me")
    if place == "definition":
        cluster.create(GARAGE_CRD, owner="me")
        children = [cluster.create(garage(name), owner="me") for name in "abc"]
        whole = ObjectKey(CRD, "xgarages.blog.opsbogus.dev")
    else:
        owner = cluster.create(sheet("owner", "x"), owner="me")
        owners = () if place == "namespace" else (owner,)
        dependents = [owned(name, *owners, blockOwnerDeletion=True) for name in "abc"]
        for dependent in dependents:
            dependent["metadata"]["namespace"] = "x"
        children = [cluster.create(dependent, owner="me") for dependent in dependents]
        whole = ObjectKey(NAMESPACE, "x") if place == "namespace" else ObjectKey.of(owner)
    cluster.delete(whole, propagation="Foreground")
    eventually(lambda: not any(cluster.get(ObjectKey.of(child)) for child in children[1:]))
    assert cluster.get(whole) is not None
    assert cluster.get(ObjectKey.of(children[0])) is not None

    protected.clear()
    eventually(lambda: cluster.get(whole) is None)
    assert place == "definition" or cluster.get(ObjectKey.of(children[0])) is None
    cluster.close()


def test_an_owner_of_an_unknown_kind_is_not_taken_for_gone(cluster: EmbeddedCluster) -> None:
    stranger = {"apiVersion": "x.dev/v1", "kind": "Y", "metadata": {"name": "y", "uid": "u"}}
    cluster.create(owned("child", stranger), owner="me")
    gone = cluster.create(garage("g"), owner="me")
    cluster.create(owned("marker", gone), owner="me")
    cluster.delete(ObjectKey.of(gone))
    eventually(lambda: cluster.get(key("marker")) is None)

    assert cluster.get(key("child")) is not None


def test_old_events_are_swept(cluster: EmbeddedCluster) -> None:
    for name, time_ in (("old", "2020-01-01T00:00:00Z"), ("new", "2999-01-01T00:00:00Z")):
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": "default"},
            "lastTimestamp": time_,
        }
        cluster.create(event, owner="me")
    cluster._collector._sweep_events()  # noqa: SLF001 - it runs once a minute

    assert [e["metadata"]["name"] for e in cluster.list(EVENT).items] == ["new"]


def test_two_controllers_of_one_object_are_refused(cluster: EmbeddedCluster) -> None:
    owners = [cluster.create(garage(name), owner="me") for name in ("one", "two")]
    with pytest.raises(InvalidObjectError, match="Only one reference can have Controller set"):
        cluster.create(owned("child", *owners, controller=True), owner="me")


def test_admission_sees_every_write_and_can_refuse(cluster_file: Path) -> None:
    seen: list[tuple[str, str]] = []

    def admit(request: AdmissionRequest) -> tuple[str, ...]:
        if request.kind == CONFIG_MAP:
            seen.append((request.operation, request.owner))
            if request.owner == "intruder":
                raise Forbidden("no")
        return ()

    cluster = EmbeddedCluster(cluster_file, admission=admit)
    cluster.create(sheet("a"), owner="me")
    with pytest.raises(AccessError, match="no"):
        cluster.apply({**sheet("a"), "data": {"x": "y"}}, owner="intruder")
    cluster.delete(key("a"))
    cluster.close()

    assert seen == [("CREATE", "me"), ("UPDATE", "intruder"), ("DELETE", "")]


def test_no_increment_is_lost_when_eight_writers_share_an_object(cluster: EmbeddedCluster) -> None:
    """Optimistic concurrency: every acknowledged increment is in the counter."""
    from ground.errors import ConflictError

    cluster.create({**sheet("counter"), "data": {"n": "0"}}, owner="me")

    def count() -> None:
        done = 0
        while done < 25:
            found = cluster.get(key("counter"))
            assert found is not None
            found["data"]["n"] = str(int(found["data"]["n"]) + 1)
            try:
                cluster.replace(found, owner="me")
            except ConflictError:
                continue
            done += 1

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = cluster.get(key("counter"))
    assert found is not None
    assert found["data"]["n"] == "200"
