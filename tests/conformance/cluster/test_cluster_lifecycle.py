"""Cluster contract: deletion, finalizers, owner references, the end of a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ground.errors import AccessError, ConflictError
from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Manifest, ObjectKey, metadata
from orderkit.ports.cluster import Cluster, InvalidObjectError

if TYPE_CHECKING:
    from tests.conformance.cluster.conftest import World

HOLD = "suite.orderkit.dev/hold"
ABSENT_UID = "00000000-0000-0000-0000-000000000000"


def owned_by(*owners: Manifest, block: bool = True) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": block,
        }
        for owner in owners
    ]


def release(cluster: Cluster, manifest: Manifest) -> None:
    """Take all finalizers away."""
    cluster.patch(ObjectKey.of(manifest), {"metadata": {"finalizers": None}}, owner="me")


def test_delete_removes_an_object_once(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(), owner="me")
    key = ObjectKey.of(created)

    assert cluster.delete(key) is True
    assert cluster.get(key) is None
    assert cluster.delete(key) is False


def test_delete_in_a_missing_namespace_finds_nothing(cluster: Cluster, world: World) -> None:
    assert cluster.delete(ObjectKey(world.CAR, "nobody", "no-such-namespace")) is False


def test_delete_of_a_missing_namespace_finds_nothing(cluster: Cluster) -> None:
    assert cluster.delete(ObjectKey(NAMESPACE, "no-such-namespace")) is False


def test_a_new_object_of_the_same_name_has_another_uid(cluster: Cluster, world: World) -> None:
    car = world.car()
    first = cluster.create(car, owner="me")
    cluster.delete(ObjectKey.of(car))

    assert cluster.create(car, owner="me")["metadata"]["uid"] != first["metadata"]["uid"]


def test_delete_spares_an_object_of_another_uid(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(), owner="me")
    key = ObjectKey.of(created)

    with pytest.raises(ConflictError):
        cluster.delete(key, uid=ABSENT_UID)
    assert cluster.get(key) == created
    assert cluster.delete(key, uid=created["metadata"]["uid"]) is True


def test_a_finalizer_holds_a_deleted_object(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(finalizers=[HOLD]), owner="me")
    key = ObjectKey.of(created)

    assert cluster.delete(key) is True
    held = world.read(created)["metadata"]
    assert held["deletionTimestamp"]
    assert held["generation"] == created["metadata"]["generation"] + 1
    assert cluster.delete(key) is True
    assert world.read(created)["metadata"]["deletionTimestamp"] == held["deletionTimestamp"]

    release(cluster, created)
    assert cluster.get(key) is None


def test_replacing_away_the_last_finalizer_ends_the_object(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(finalizers=[HOLD]), owner="me")
    cluster.delete(ObjectKey.of(created))
    held = world.read(created)
    held["metadata"]["finalizers"] = []

    cluster.replace(held, owner="me")
    assert cluster.get(ObjectKey.of(created)) is None


def test_an_applier_that_drops_its_last_finalizer_ends_the_object(
    cluster: Cluster, world: World
) -> None:
    car = world.car(finalizers=[HOLD])
    cluster.apply(car, owner="me")
    cluster.delete(ObjectKey.of(car))

    cluster.apply(world.car(car["metadata"]["name"]), owner="me")
    assert cluster.get(ObjectKey.of(car)) is None


def test_taking_away_one_of_two_finalizers_is_not_enough(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(finalizers=[HOLD, f"{HOLD}-2"]), owner="me")
    key = ObjectKey.of(created)
    cluster.delete(key)

    cluster.patch(key, {"metadata": {"finalizers": [HOLD]}}, owner="me")
    assert world.read(created)["metadata"]["finalizers"] == [HOLD]
    release(cluster, created)
    assert cluster.get(key) is None


def test_a_dying_object_gets_no_new_finalizer(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(finalizers=[HOLD]), owner="me")
    key = ObjectKey.of(created)
    cluster.delete(key)

    with pytest.raises(InvalidObjectError, match="no new finalizers can be added"):
        cluster.patch(key, {"metadata": {"finalizers": [HOLD, f"{HOLD}-2"]}}, owner="me")


def test_a_dying_object_can_still_be_changed(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(finalizers=[HOLD]), owner="me")
    key = ObjectKey.of(created)
    cluster.delete(key)

    assert cluster.patch(key, {"spec": {"size": "large"}}, owner="me")["spec"]["size"] == "large"
    with pytest.raises(ConflictError):
        cluster.create(world.car(key.name), owner="me")


def test_nobody_can_take_a_deletion_back(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(finalizers=[HOLD]), owner="me")
    key = ObjectKey.of(created)
    cluster.delete(key)

    patched = cluster.patch(key, {"metadata": {"deletionTimestamp": None}}, owner="me")
    assert patched["metadata"]["deletionTimestamp"]


@pytest.mark.controllers
def test_background_deletion_takes_the_owner_first(cluster: Cluster, world: World) -> None:
    owner = cluster.create(world.car(), owner="me")
    child = cluster.create(world.config_map(ownerReferences=owned_by(owner)), owner="me")
    grandchild = cluster.create(world.config_map(ownerReferences=owned_by(child)), owner="me")

    cluster.delete(ObjectKey.of(owner), propagation="Background")
    assert cluster.get(ObjectKey.of(owner)) is None
    world.gone(child)
    world.gone(grandchild)


@pytest.mark.controllers
def test_foreground_deletion_waits_for_the_dependents(cluster: Cluster, world: World) -> None:
    owner = cluster.create(world.car(), owner="me")
    references = owned_by(owner)
    child = cluster.create(
        world.config_map(ownerReferences=references, finalizers=[HOLD]), owner="me"
    )

    cluster.delete(ObjectKey.of(owner), propagation="Foreground")
    waiting = world.read(owner)["metadata"]
    assert waiting["finalizers"] == ["foregroundDeletion"]
    assert waiting["deletionTimestamp"]
    world.eventually(lambda: "deletionTimestamp" in metadata(world.read(child)))
    assert cluster.get(ObjectKey.of(owner))

    release(cluster, child)
    world.gone(owner)
    assert cluster.get(ObjectKey.of(child)) is None


@pytest.mark.controllers
def test_foreground_deletion_of_a_lone_object_ends_at_once(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(), owner="me")

    cluster.delete(ObjectKey.of(created), propagation="Foreground")
    world.gone(created)


@pytest.mark.controllers
def test_foreground_deletion_waits_for_nobody_who_does_not_block(
    cluster: Cluster, world: World
) -> None:
    owner = cluster.create(world.car(), owner="me")
    references = owned_by(owner, block=False)
    child = cluster.create(
        world.config_map(ownerReferences=references, finalizers=[HOLD]), owner="me"
    )

    cluster.delete(ObjectKey.of(owner), propagation="Foreground")
    world.gone(owner)
    world.eventually(lambda: "deletionTimestamp" in metadata(world.read(child)))
    release(cluster, child)
    world.gone(child)


@pytest.mark.controllers
def test_orphaned_dependents_stay_without_owner(cluster: Cluster, world: World) -> None:
    owner = cluster.create(world.car(), owner="me")
    child = cluster.create(world.config_map(ownerReferences=owned_by(owner)), owner="me")

    cluster.delete(ObjectKey.of(owner), propagation="Orphan")
    world.gone(owner)
    world.eventually(lambda: "ownerReferences" not in metadata(world.read(child)))


@pytest.mark.controllers
def test_a_dependent_lives_as_long_as_one_owner_does(cluster: Cluster, world: World) -> None:
    first = cluster.create(world.car(), owner="me")
    second = cluster.create(world.car(), owner="me")
    child = cluster.create(world.config_map(ownerReferences=owned_by(first, second)), owner="me")

    cluster.delete(ObjectKey.of(first))
    world.eventually(lambda: len(metadata(world.read(child))["ownerReferences"]) == 1)
    cluster.delete(ObjectKey.of(second))
    world.gone(child)


@pytest.mark.controllers
def test_a_dependent_of_nobody_is_collected(cluster: Cluster, world: World) -> None:
    owner = world.car("never-was")
    owner["metadata"]["uid"] = ABSENT_UID

    world.gone(cluster.create(world.config_map(ownerReferences=owned_by(owner)), owner="me"))


@pytest.mark.controllers
def test_a_cluster_scoped_owner_takes_namespaced_dependents_along(
    cluster: Cluster, world: World
) -> None:
    owner = cluster.create(world.track(), owner="me")
    child = cluster.create(world.config_map(ownerReferences=owned_by(owner)), owner="me")

    cluster.delete(ObjectKey.of(owner))
    world.gone(child)


def test_an_object_has_one_controller(cluster: Cluster, world: World) -> None:
    owners = [cluster.create(world.car(), owner="me") for _ in range(2)]
    references = [{**reference, "controller": True} for reference in owned_by(*owners)]

    with pytest.raises(InvalidObjectError, match="Only one reference can have Controller set to"):
        cluster.create(world.config_map(ownerReferences=references), owner="me")


@pytest.mark.controllers
def test_a_namespace_ends_with_everything_in_it(cluster: Cluster, world: World) -> None:
    name = world.new_namespace()
    car, note = world.car(), world.config_map()
    for manifest in (car, note):
        manifest["metadata"]["namespace"] = name
        cluster.create(manifest, owner="me")

    assert cluster.delete(ObjectKey(NAMESPACE, name)) is True
    world.eventually(lambda: cluster.get(ObjectKey(NAMESPACE, name)) is None)
    assert cluster.get(ObjectKey.of(car)) is None
    assert cluster.get(ObjectKey.of(note)) is None


@pytest.mark.controllers
def test_a_dying_namespace_takes_nothing_new_in(cluster: Cluster, world: World) -> None:
    name = world.new_namespace()
    car = world.car(finalizers=[HOLD])
    car["metadata"]["namespace"] = name
    cluster.create(car, owner="me")
    cluster.delete(ObjectKey(NAMESPACE, name))

    found = cluster.get(ObjectKey(NAMESPACE, name))
    assert found
    assert found["status"]["phase"] == "Terminating"
    assert found["metadata"]["deletionTimestamp"]
    late = world.config_map()
    late["metadata"]["namespace"] = name
    with pytest.raises(AccessError, match="because it is being terminated") as caught:
        cluster.create(late, owner="me")
    assert caught.value.retryable
    assert cluster.list(CONFIG_MAP, namespace=name, labels={"late": "yes"}).items == ()

    world.eventually(lambda: "deletionTimestamp" in metadata(world.read(car)))
    release(cluster, car)
    world.eventually(lambda: cluster.get(ObjectKey(NAMESPACE, name)) is None)


def test_the_default_namespace_cannot_be_deleted(cluster: Cluster) -> None:
    with pytest.raises(AccessError, match="this namespace may not be deleted"):
        cluster.delete(ObjectKey(NAMESPACE, "default"))
