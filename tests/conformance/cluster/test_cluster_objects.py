"""Cluster contract: create, read, list, replace, merge patch; names, versions, generations."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from ground.errors import ConflictError, NotFoundError
from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Kind, ObjectKey
from orderkit.ports.cluster import (
    Cluster,
    InvalidObjectError,
    NoSuchKindError,
    NoSuchNamespaceError,
)

if TYPE_CHECKING:
    from tests.conformance.cluster.conftest import World

GHOST = Kind("ghosts.orderkit.dev", "v1", "Ghost")
GHOST_KEY = ObjectKey(GHOST, "casper", "default")
GHOST_MANIFEST = {
    "apiVersion": GHOST.api_version,
    "kind": GHOST.kind,
    "metadata": {"name": "casper", "namespace": "default"},
}


def test_create_fills_in_what_only_the_server_knows(cluster: Cluster, world: World) -> None:
    meta = cluster.create(world.car(), owner="me")["metadata"]

    assert re.match(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", meta["uid"])
    assert meta["resourceVersion"].isdigit()
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z", meta["creationTimestamp"])
    assert meta["generation"] == 1


def test_get_returns_what_create_returned(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(), owner="me")

    assert cluster.get(ObjectKey.of(created)) == created


def test_get_of_a_missing_object_is_none(cluster: Cluster, world: World) -> None:
    assert cluster.get(ObjectKey(world.CAR, "nobody", world.namespace)) is None


def test_get_in_a_missing_namespace_is_none(cluster: Cluster, world: World) -> None:
    assert cluster.get(ObjectKey(world.CAR, "nobody", "no-such-namespace")) is None


def test_get_of_a_missing_namespace_is_none(cluster: Cluster) -> None:
    assert cluster.get(ObjectKey(NAMESPACE, "no-such-namespace")) is None


def test_manifests_handed_out_are_copies(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(), owner="me")
    created["spec"]["size"] = "large"
    cluster.list(world.CAR, namespace=world.namespace).items[0]["spec"]["size"] = "medium"

    assert world.read(created)["spec"]["size"] == "small"


def test_manifests_handed_in_stay_the_callers(cluster: Cluster, world: World) -> None:
    mine = world.car()
    before = repr(mine)
    cluster.create(mine, owner="me")

    assert repr(mine) == before
    mine["spec"]["size"] = "large"
    assert world.read(mine)["spec"]["size"] == "small"


def test_creating_twice_is_a_conflict(cluster: Cluster, world: World) -> None:
    car = world.car()
    cluster.create(car, owner="me")

    with pytest.raises(ConflictError) as caught:
        cluster.create(car, owner="me")
    expected = f'cars.conformance.orderkit.dev "{car["metadata"]["name"]}" already exists'
    assert str(caught.value) == expected


def test_names_are_unique_per_namespace_only(cluster: Cluster, world: World) -> None:
    other = world.new_namespace()
    first, second = world.car("same"), world.car("same")
    second["metadata"]["namespace"] = other
    cluster.create(first, owner="me")
    cluster.create(second, owner="me")

    assert world.read(first)["metadata"]["uid"] != world.read(second)["metadata"]["uid"]
    cluster.delete(ObjectKey(NAMESPACE, other))


@pytest.mark.parametrize("verb", ["create", "apply"])
def test_nothing_is_written_into_a_missing_namespace(
    cluster: Cluster, world: World, verb: str
) -> None:
    car = world.car()
    car["metadata"]["namespace"] = "no-such-namespace"

    with pytest.raises(NoSuchNamespaceError, match=r'^namespaces "no-such-namespace" not found$'):
        getattr(cluster, verb)(car, owner="me")


@pytest.mark.parametrize("verb", ["create", "apply", "replace"])
def test_a_namespaced_object_names_its_namespace(cluster: Cluster, world: World, verb: str) -> None:
    car = world.car()
    del car["metadata"]["namespace"]

    with pytest.raises(InvalidObjectError, match="namespace"):
        getattr(cluster, verb)(car, owner="me")


def test_a_cluster_scoped_object_loses_the_namespace_it_names(
    cluster: Cluster, world: World
) -> None:
    created = cluster.create(world.track(namespace="anywhere"), owner="me")

    assert "namespace" not in created["metadata"]
    cluster.delete(ObjectKey.of(created))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("Upper", id="capitals"),
        pytest.param("under_score", id="underscore"),
        pytest.param("-dash", id="leading dash"),
        pytest.param("x" * 254, id="longer than 253"),
    ],
)
def test_names_are_dns_names(cluster: Cluster, world: World, name: str) -> None:
    with pytest.raises(InvalidObjectError, match=r"metadata\.name: "):
        cluster.create(world.config_map(name), owner="me")


def test_a_dotted_name_is_a_name(cluster: Cluster, world: World) -> None:
    assert cluster.create(world.config_map("kube-root.crt.mine"), owner="me")


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.is_namespaced(GHOST),
        lambda c: c.get(GHOST_KEY),
        lambda c: c.list(GHOST),
        lambda c: c.create(GHOST_MANIFEST, owner="me"),
        lambda c: c.apply(GHOST_MANIFEST, owner="me"),
        lambda c: c.replace(GHOST_MANIFEST, owner="me"),
        lambda c: c.patch(GHOST_KEY, {}, owner="me"),
        lambda c: c.delete(GHOST_KEY),
        lambda c: list(c.watch(GHOST, since="1", timeout_s=0.1)),
    ],
    ids=["is_namespaced", "get", "list", "create", "apply", "replace", "patch", "delete", "watch"],
)
def test_every_method_says_when_a_kind_is_not_served(
    cluster: Cluster, call: Callable[[Cluster], Any]
) -> None:
    with pytest.raises(NoSuchKindError) as caught:
        call(cluster)
    assert str(caught.value) == 'no matches for kind "Ghost" in version "ghosts.orderkit.dev/v1"'


def test_serves_tells_whether_a_kind_is_served(cluster: Cluster, world: World) -> None:
    assert cluster.serves(NAMESPACE)
    assert cluster.serves(world.CAR)
    assert not cluster.serves(GHOST)
    assert not cluster.serves(Kind(world.CAR.group, "v9", world.CAR.kind))
    assert not cluster.serves(Kind(world.CAR.group, world.CAR.version, "Cart"))


def test_scope_is_told(cluster: Cluster, world: World) -> None:
    assert cluster.is_namespaced(CONFIG_MAP)
    assert cluster.is_namespaced(world.CAR)
    assert not cluster.is_namespaced(NAMESPACE)
    assert not cluster.is_namespaced(world.TRACK)


def test_a_namespace_starts_active_and_labelled(cluster: Cluster, world: World) -> None:
    found = cluster.get(ObjectKey(NAMESPACE, world.namespace))

    assert found
    assert found["status"]["phase"] == "Active"
    assert found["metadata"]["labels"]["kubernetes.io/metadata.name"] == world.namespace
    assert found["spec"]["finalizers"] == ["kubernetes"]


def test_list_returns_one_namespace_sorted_by_name(cluster: Cluster, world: World) -> None:
    for name in ("b", "c", "a"):
        cluster.create(world.car(name), owner="me")

    items = cluster.list(world.CAR, namespace=world.namespace).items
    assert [item["metadata"]["name"] for item in items] == ["a", "b", "c"]


def test_list_without_namespace_returns_all_of_them(cluster: Cluster, world: World) -> None:
    other = world.new_namespace()
    for namespace in (world.namespace, other):
        car = world.car("everywhere")
        car["metadata"]["namespace"] = namespace
        cluster.create(car, owner="me")

    found = {(i["metadata"]["namespace"]) for i in cluster.list(world.CAR).items}
    assert {world.namespace, other} <= found
    cluster.delete(ObjectKey(NAMESPACE, other))


def test_listed_items_say_what_they_are(cluster: Cluster, world: World) -> None:
    cluster.create(world.config_map("said"), owner="me")

    items = cluster.list(CONFIG_MAP, namespace=world.namespace).items
    assert {(i["apiVersion"], i["kind"]) for i in items} == {("v1", "ConfigMap")}


def test_list_in_a_missing_namespace_is_empty(cluster: Cluster, world: World) -> None:
    assert cluster.list(world.CAR, namespace="no-such-namespace").items == ()


def test_list_is_complete_whatever_the_page_size(
    cluster: Cluster, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"car-{number}" for number in range(7)]
    for name in names:
        cluster.create(world.car(name), owner="me")
    monkeypatch.setattr("orderkit.adapters.kube.cluster.PAGE_SIZE", 3)

    items = cluster.list(world.CAR, namespace=world.namespace).items
    assert [item["metadata"]["name"] for item in items] == names


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"colour": "red"}, ["one", "two"]),
        ({"colour": "red", "doors": "2"}, ["one"]),
        ({"colour": "green"}, []),
        ({"missing": ""}, []),
        ({}, ["bare", "one", "two"]),
    ],
)
def test_list_selects_objects_that_carry_all_labels(
    cluster: Cluster, world: World, labels: dict[str, str], expected: list[str]
) -> None:
    cluster.create(world.car("one", labels={"colour": "red", "doors": "2"}), owner="me")
    cluster.create(world.car("two", labels={"colour": "red", "doors": "4"}), owner="me")
    cluster.create(world.car("bare"), owner="me")

    found = cluster.list(world.CAR, namespace=world.namespace, labels=labels).items
    assert [item["metadata"]["name"] for item in found] == expected


def test_a_label_value_must_be_one(cluster: Cluster, world: World) -> None:
    with pytest.raises(InvalidObjectError, match=r"metadata\.labels: Invalid value: "):
        cluster.create(world.car(labels={"colour": "not a label"}), owner="me")


def test_replace_removes_what_is_left_out(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.config_map(data={"a": "1", "b": "2"}), owner="me")
    created["data"] = {"b": "3"}

    assert cluster.replace(created, owner="me")["data"] == {"b": "3"}
    assert world.read(created)["data"] == {"b": "3"}


def test_replace_of_a_stale_object_is_a_conflict(cluster: Cluster, world: World) -> None:
    stale = cluster.create(world.car(), owner="me")
    cluster.patch(ObjectKey.of(stale), {"spec": {"size": "large"}}, owner="you")
    stale["spec"]["size"] = "medium"

    with pytest.raises(ConflictError, match="the object has been modified; please apply your"):
        cluster.replace(stale, owner="me")
    assert world.read(stale)["spec"]["size"] == "large"


def test_replace_of_a_missing_object_is_not_found(cluster: Cluster, world: World) -> None:
    missing = world.car(resourceVersion="1")

    with pytest.raises(NotFoundError, match="not found"):
        cluster.replace(missing, owner="me")


def test_a_custom_object_is_replaced_with_its_version_only(cluster: Cluster, world: World) -> None:
    car = world.car()
    cluster.create(car, owner="me")

    with pytest.raises(InvalidObjectError, match="must be specified for an update"):
        cluster.replace(car, owner="me")


def test_a_config_map_may_be_replaced_without_its_version(cluster: Cluster, world: World) -> None:
    mine = world.config_map(data={"a": "1"})
    cluster.create(mine, owner="me")
    mine["data"] = {"a": "2"}

    assert cluster.replace(mine, owner="me")["data"] == {"a": "2"}


def test_replacing_an_object_of_another_uid_is_a_conflict(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.config_map(), owner="me")
    created["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    created["data"] = {"a": "2"}

    with pytest.raises(ConflictError):
        cluster.replace(created, owner="me")
    assert world.read(created)["data"] == {"a": "1"}


def test_a_write_without_change_keeps_the_version(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(), owner="me")
    version = created["metadata"]["resourceVersion"]

    replaced = cluster.replace(created, owner="me")
    patched = cluster.patch(ObjectKey.of(created), {"spec": {"size": "small"}}, owner="me")
    assert replaced["metadata"]["resourceVersion"] == version
    assert patched["metadata"]["resourceVersion"] == version


def test_each_change_gives_a_newer_version(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(), owner="me")
    patched = cluster.patch(ObjectKey.of(created), {"spec": {"size": "large"}}, owner="me")

    versions = [int(m["metadata"]["resourceVersion"]) for m in (created, patched)]
    assert versions[0] < versions[1]


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({"spec": {"size": "large"}}, 2, id="spec changes"),
        pytest.param({"metadata": {"labels": {"a": "b"}}}, 1, id="labels change"),
        pytest.param({"metadata": {"annotations": {"a": "b"}}}, 1, id="annotations change"),
        pytest.param({"status": {"laps": 3}}, 1, id="status changes"),
    ],
)
def test_generation_counts_changes_of_what_is_wanted(
    cluster: Cluster, world: World, patch: dict[str, Any], expected: int
) -> None:
    created = cluster.create(world.car(), owner="me")
    cluster.patch(ObjectKey.of(created), patch, owner="me", status="status" in patch)

    assert world.read(created)["metadata"]["generation"] == expected


def test_a_config_map_has_no_generation(cluster: Cluster, world: World) -> None:
    assert "generation" not in cluster.create(world.config_map(), owner="me")["metadata"]


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        pytest.param({"a": None}, {"b": "2"}, id="null removes"),
        pytest.param({"c": "3"}, {"a": "1", "b": "2", "c": "3"}, id="maps merge"),
        pytest.param({"zz": None}, {"a": "1", "b": "2"}, id="null of nothing is nothing"),
        pytest.param(None, None, id="null removes a whole map"),
    ],
)
def test_merge_patch_follows_rfc_7386(
    cluster: Cluster, world: World, notes: object, expected: object
) -> None:
    spec = {"size": "small", "notes": {"a": "1", "b": "2"}}
    created = cluster.create(world.car(spec=spec), owner="me")

    patched = cluster.patch(ObjectKey.of(created), {"spec": {"notes": notes}}, owner="me")
    assert patched["spec"].get("notes") == expected
    assert world.read(created) == patched


def test_merge_patch_replaces_lists(cluster: Cluster, world: World) -> None:
    spec = {"size": "small", "stops": [{"name": "a"}, {"name": "b"}]}
    created = cluster.create(world.car(spec=spec), owner="me")

    patch = {"spec": {"stops": [{"name": "c"}]}}
    patched = cluster.patch(ObjectKey.of(created), patch, owner="me")
    assert patched["spec"]["stops"] == [{"name": "c"}]


def test_patch_with_a_stale_version_is_a_conflict(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(), owner="me")
    cluster.patch(ObjectKey.of(created), {"spec": {"size": "large"}}, owner="you")
    stale = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}}

    with pytest.raises(ConflictError):
        cluster.patch(ObjectKey.of(created), {**stale, "spec": {"replicas": 2}}, owner="me")
    assert world.read(created)["spec"]["replicas"] == 1


def test_patch_of_a_missing_object_is_not_found(cluster: Cluster, world: World) -> None:
    with pytest.raises(NotFoundError):
        cluster.patch(ObjectKey(world.CAR, "nobody", world.namespace), {}, owner="me")


def test_patch_cannot_rename(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(), owner="me")

    with pytest.raises(InvalidObjectError):
        cluster.patch(ObjectKey.of(created), {"metadata": {"name": "other"}}, owner="me")


def test_updates_cannot_change_when_an_object_was_made(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(), owner="me")
    patch = {"metadata": {"creationTimestamp": None}, "spec": {"size": "large"}}
    patched = cluster.patch(ObjectKey.of(created), patch, owner="me")

    assert patched["metadata"]["creationTimestamp"] == created["metadata"]["creationTimestamp"]
    assert patched["metadata"]["uid"] == created["metadata"]["uid"]


def test_writers_are_recorded_as_field_managers(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(), owner="maker")
    cluster.patch(ObjectKey.of(created), {"spec": {"size": "large"}}, owner="patcher")

    managers = {
        entry["manager"]: entry for entry in world.read(created)["metadata"]["managedFields"]
    }
    assert {entry["operation"] for entry in managers.values()} == {"Update"}
    assert "f:size" in managers["patcher"]["fieldsV1"]["f:spec"]
    assert "f:size" not in managers["maker"]["fieldsV1"]["f:spec"]


def test_status_is_written_through_its_subresource_only(cluster: Cluster, world: World) -> None:
    car = world.car()
    car["status"] = {"laps": 7}
    created = cluster.create(car, owner="me")
    assert "status" not in created

    created["status"] = {"laps": 8}
    assert "status" not in cluster.replace(created, owner="me")
    patched = cluster.patch(ObjectKey.of(created), {"status": {"laps": 9}}, owner="me")
    assert "status" not in patched


def test_replacing_the_status_leaves_the_spec_alone(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(), owner="me")
    created["spec"]["size"] = "large"
    created["metadata"]["labels"] = {"a": "b"}
    created["status"] = {"laps": 1}

    replaced = cluster.replace(created, owner="me", status=True)
    assert replaced["status"] == {"laps": 1}
    assert replaced["spec"]["size"] == "small"
    assert "labels" not in replaced["metadata"]


def test_the_status_survives_a_replaced_spec(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(), owner="me")
    cluster.patch(ObjectKey.of(created), {"status": {"laps": 1}}, owner="me", status=True)
    fresh = world.read(created)
    del fresh["status"]
    fresh["spec"]["size"] = "large"

    assert cluster.replace(fresh, owner="me")["status"] == {"laps": 1}


def test_a_stale_status_is_a_conflict(cluster: Cluster, world: World) -> None:
    stale = cluster.create(world.car(), owner="me")
    cluster.patch(ObjectKey.of(stale), {"spec": {"size": "large"}}, owner="you")
    stale["status"] = {"laps": 1}

    with pytest.raises(ConflictError):
        cluster.replace(stale, owner="me", status=True)


def test_without_status_subresource_the_status_is_a_field(cluster: Cluster, world: World) -> None:
    track = {**world.track(), "status": {"open": True}}
    created = cluster.create(track, owner="me")
    assert created["status"] == {"open": True}

    with pytest.raises(NotFoundError):
        cluster.patch(ObjectKey.of(track), {"status": {}}, owner="me", status=True)
    cluster.delete(ObjectKey.of(track))
