"""Cluster contract: server-side apply, who owns which field, and what happens when two want it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ground.errors import ConflictError, NotFoundError
from ground.objects.kube_objects import Manifest, ObjectKey
from orderkit.ports.cluster import ApplyConflictError, Cluster, InvalidObjectError, WrongTypeError

if TYPE_CHECKING:
    from tests.conformance.cluster.conftest import World


def owners(manifest: Manifest) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return field sets by manager, operation and subresource."""
    return {
        (e["manager"], e["operation"], e.get("subresource", "")): e["fieldsV1"]
        for e in manifest["metadata"]["managedFields"]
    }


def test_apply_creates_what_is_missing(cluster: Cluster, world: World) -> None:
    applied = cluster.apply(world.car(), owner="me")

    assert applied["metadata"]["generation"] == 1
    assert world.read(applied) == applied
    assert owners(applied)["me", "Apply", ""]["f:spec"] == {"f:size": {}}


def test_any_text_arrives_word_for_word(cluster: Cluster, world: World) -> None:
    """Server-side apply is sent as YAML, whose readers stumble over some of JSON's escapes."""
    texts = {
        "beyond 16 bits": "a garage 🏡 and 𠮷",
        "like an escape": "\\ud83c\\udfe1 and \\n",
        "ends of lines": "a\x85b\u2028c\u2029d\r\ne",
        "controls": "\x01\x7f\x9f\t\ufeff",
    }
    data = {key.replace(" ", "-"): text for key, text in texts.items()}

    applied = cluster.apply(world.config_map(data=data), owner="me")

    assert applied["data"] == data
    assert world.read(applied)["data"] == data


def test_applying_the_same_again_changes_nothing(cluster: Cluster, world: World) -> None:
    car = world.car(labels={"a": "b"})
    first = cluster.apply(car, owner="me")

    assert cluster.apply(car, owner="me") == first
    assert world.read(car) == first


def test_fields_that_are_left_out_go_away(cluster: Cluster, world: World) -> None:
    name = world.fresh()
    cluster.apply(world.car(name, spec={"size": "small", "team": "ae86", "fast": True}), owner="me")
    applied = cluster.apply(world.car(name, spec={"size": "small", "fast": True}), owner="me")

    assert "team" not in applied["spec"]
    assert applied["spec"]["fast"] is True
    assert applied["metadata"]["generation"] == 2


def test_labels_and_annotations_that_are_left_out_go_away(cluster: Cluster, world: World) -> None:
    name = world.fresh()
    cluster.apply(world.car(name, labels={"a": "1", "b": "2"}, annotations={"c": "3"}), owner="me")
    applied = cluster.apply(world.car(name, labels={"a": "1"}), owner="me")

    assert applied["metadata"]["labels"] == {"a": "1"}
    assert "annotations" not in applied["metadata"]


def test_fields_of_others_are_left_alone(cluster: Cluster, world: World) -> None:
    name = world.fresh()
    cluster.apply(world.car(name, spec={"size": "small", "team": "ae86"}), owner="first")
    cluster.apply(world.car(name, spec={"size": "small", "message": "hello"}), owner="second")
    applied = cluster.apply(world.car(name, spec={"size": "small"}), owner="second")

    assert applied["spec"]["team"] == "ae86"
    assert "message" not in applied["spec"]


def test_a_field_stays_while_somebody_still_owns_it(cluster: Cluster, world: World) -> None:
    name = world.fresh()
    both = {"size": "small", "team": "ae86"}
    cluster.apply(world.car(name, spec=both), owner="first", force=False)
    cluster.apply(world.car(name, spec=both), owner="second", force=False)

    once = cluster.apply(world.car(name, spec={"size": "small"}), owner="first")
    assert once["spec"]["team"] == "ae86"
    twice = cluster.apply(world.car(name, spec={"size": "small"}), owner="second")
    assert "team" not in twice["spec"]


def test_a_field_owned_by_an_update_stays_when_an_applier_leaves_it_out(
    cluster: Cluster, world: World
) -> None:
    created = cluster.create(world.car(spec={"size": "small", "team": "ae86"}), owner="maker")
    name = created["metadata"]["name"]
    cluster.apply(world.car(name, spec={"size": "small", "team": "ae86"}), owner="me")

    applied = cluster.apply(world.car(name, spec={"size": "small"}), owner="me")
    assert applied["spec"]["team"] == "ae86"


def test_another_value_without_force_is_a_conflict(cluster: Cluster, world: World) -> None:
    name = world.fresh()
    cluster.apply(world.car(name, spec={"size": "small", "team": "ae86"}), owner="first")

    theirs = world.car(name, spec={"size": "small", "team": "fd3s", "fast": True})
    with pytest.raises(ApplyConflictError) as caught:
        cluster.apply(theirs, owner="second", force=False)
    message = 'Apply failed with 1 conflict: conflict with "first": .spec.team'
    assert str(caught.value) == message
    assert world.read(theirs)["spec"]["team"] == "ae86"
    assert "fast" not in world.read(theirs)["spec"]


def test_a_conflict_with_an_update_names_its_api_version(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(spec={"size": "small", "team": "ae86"}), owner="maker")
    name = created["metadata"]["name"]

    spec = {"size": "large", "team": "fd3s"}
    with pytest.raises(ApplyConflictError) as caught:
        cluster.apply(world.car(name, spec=spec), owner="me", force=False)
    message = str(caught.value)
    assert message.startswith('Apply failed with 2 conflicts: conflicts with "maker" using ')
    assert ".spec.size" in message
    assert ".spec.team" in message


def test_force_takes_a_field_over(cluster: Cluster, world: World) -> None:
    name = world.fresh()
    cluster.apply(world.car(name, spec={"size": "small", "team": "ae86"}), owner="first")
    cluster.apply(world.car(name, spec={"size": "small", "team": "fd3s"}), owner="second")

    found = owners(world.read(world.car(name)))
    assert found["first", "Apply", ""]["f:spec"] == {"f:size": {}}
    assert "f:team" in found["second", "Apply", ""]["f:spec"]
    applied = cluster.apply(world.car(name, spec={"size": "small"}), owner="first")
    assert applied["spec"]["team"] == "fd3s"


def test_the_same_value_is_shared_without_force(cluster: Cluster, world: World) -> None:
    car = world.car()
    cluster.apply(car, owner="first", force=False)
    applied = cluster.apply(car, owner="second", force=False)

    assert owners(applied).keys() == {("first", "Apply", ""), ("second", "Apply", "")}


def test_an_update_takes_the_fields_it_changes(cluster: Cluster, world: World) -> None:
    car = world.car(spec={"size": "small", "team": "ae86"})
    cluster.apply(car, owner="me")
    patched = cluster.patch(ObjectKey.of(car), {"spec": {"team": "fd3s"}}, owner="user")

    assert owners(patched)["me", "Apply", ""]["f:spec"] == {"f:size": {}}
    with pytest.raises(ApplyConflictError, match='conflict with "user"'):
        cluster.apply(car, owner="me", force=False)
    assert cluster.apply(car, owner="me")["spec"]["team"] == "ae86"


def test_defaults_belong_to_nobody(cluster: Cluster, world: World) -> None:
    applied = cluster.apply(world.car(), owner="me")
    assert applied["spec"]["replicas"] == 1

    patched = cluster.patch(ObjectKey.of(applied), {"spec": {"replicas": 3}}, owner="user")
    again = cluster.apply(world.car(applied["metadata"]["name"]), owner="me", force=False)
    assert again["spec"]["replicas"] == 3
    assert again["metadata"]["resourceVersion"] == patched["metadata"]["resourceVersion"]


def test_a_left_out_field_with_a_default_takes_the_default(cluster: Cluster, world: World) -> None:
    name = world.fresh()
    cluster.apply(world.car(name, spec={"size": "small", "replicas": 4}), owner="me")

    applied = cluster.apply(world.car(name), owner="me")
    assert applied["spec"]["replicas"] == 1


def test_items_of_a_keyed_list_have_owners(cluster: Cluster, world: World) -> None:
    name = world.fresh()

    def apply(owner: str, *stops: dict[str, Any]) -> list[dict[str, Any]]:
        spec = {"size": "small", "stops": list(stops)}
        found: list[dict[str, Any]] = cluster.apply(world.car(name, spec=spec), owner=owner)[
            "spec"
        ]["stops"]
        return found

    apply("first", {"name": "a", "seconds": 1}, {"name": "b"})
    merged = apply("second", {"name": "a", "crew": "x"}, {"name": "c"})
    assert merged == [{"name": "a", "seconds": 1, "crew": "x"}, {"name": "b"}, {"name": "c"}]
    assert apply("first", {"name": "a"}) == [{"name": "a", "crew": "x"}, {"name": "c"}]


def test_entries_of_a_set_have_owners(cluster: Cluster, world: World) -> None:
    name = world.fresh()
    for owner, tags in (("first", ["x", "y"]), ("second", ["y", "z"]), ("first", ["x"])):
        spec = {"size": "small", "tags": tags}
        applied = cluster.apply(world.car(name, spec=spec), owner=owner)

    assert applied["spec"]["tags"] == ["x", "y", "z"]


def test_a_plain_list_is_one_field(cluster: Cluster, world: World) -> None:
    name = world.fresh()
    cluster.apply(world.car(name, spec={"size": "small", "plain": ["x", "y"]}), owner="first")

    other = world.car(name, spec={"size": "small", "plain": ["y", "z"]})
    with pytest.raises(ApplyConflictError, match=r"\.spec\.plain"):
        cluster.apply(other, owner="second", force=False)
    assert cluster.apply(other, owner="second")["spec"]["plain"] == ["y", "z"]


def test_nested_maps_are_merged_field_by_field(cluster: Cluster, world: World) -> None:
    name = world.fresh()
    cluster.apply(world.config_map(name, {"a": "1"}), owner="first")
    cluster.apply(world.config_map(name, {"b": "2"}), owner="second")

    assert world.read(world.config_map(name))["data"] == {"a": "1", "b": "2"}
    applied = cluster.apply(world.config_map(name, {}), owner="first")
    assert applied["data"] == {"b": "2"}


def test_finalizers_have_owners(cluster: Cluster, world: World) -> None:
    name = world.fresh()
    cluster.apply(world.car(name, finalizers=["suite.orderkit.dev/one"]), owner="first")
    cluster.apply(world.car(name, finalizers=["suite.orderkit.dev/two"]), owner="second")
    assert len(world.read(world.car(name))["metadata"]["finalizers"]) == 2

    applied = cluster.apply(world.car(name), owner="second")
    assert applied["metadata"]["finalizers"] == ["suite.orderkit.dev/one"]


def test_apply_honours_a_resource_version(cluster: Cluster, world: World) -> None:
    applied = cluster.apply(world.car(), owner="me")
    name, version = applied["metadata"]["name"], applied["metadata"]["resourceVersion"]
    cluster.patch(ObjectKey.of(applied), {"spec": {"size": "large"}}, owner="you")

    with pytest.raises(ConflictError, match="the object has been modified"):
        cluster.apply(world.car(name, resourceVersion=version), owner="me")


def test_status_is_applied_apart(cluster: Cluster, world: World) -> None:
    car = world.car()
    cluster.apply(car, owner="me")
    other = {**world.car(car["metadata"]["name"], spec={"size": "large"}), "status": {"laps": 1}}
    applied = cluster.apply(other, owner="runner", status=True)

    assert applied["status"] == {"laps": 1}
    assert applied["spec"]["size"] == "small"
    assert applied["metadata"]["generation"] == 1
    assert owners(applied)["runner", "Apply", "status"] == {"f:status": {"f:laps": {}}}


def test_an_applied_spec_leaves_the_status_alone(cluster: Cluster, world: World) -> None:
    car = world.car()
    cluster.apply(car, owner="me")
    cluster.apply({**car, "status": {"laps": 1}}, owner="me", status=True)

    applied = cluster.apply({**car, "status": {"laps": 5}}, owner="me")
    assert applied["status"] == {"laps": 1}


def test_a_status_field_that_is_left_out_goes_away(cluster: Cluster, world: World) -> None:
    car = world.car()
    cluster.apply(car, owner="me")
    cluster.apply({**car, "status": {"laps": 1, "best": "quick"}}, owner="me", status=True)

    applied = cluster.apply({**car, "status": {"laps": 2}}, owner="me", status=True)
    assert applied["status"] == {"laps": 2}
    again = cluster.apply({**car, "status": {"laps": 2}}, owner="me", status=True)
    assert again["metadata"]["resourceVersion"] == applied["metadata"]["resourceVersion"]


def test_a_status_needs_its_object(cluster: Cluster, world: World) -> None:
    with pytest.raises(NotFoundError):
        cluster.apply({**world.car(), "status": {"laps": 1}}, owner="me", status=True)


def test_a_kind_without_status_subresource_takes_no_status(cluster: Cluster, world: World) -> None:
    track = world.track()
    cluster.apply(track, owner="me")

    with pytest.raises(NotFoundError):
        cluster.apply({**track, "status": {"open": True}}, owner="me", status=True)
    cluster.delete(ObjectKey.of(track))


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"size": 5}, ".spec.size: expected string, got &value.valueUnstructured{Value:5}"),
        ({"size": "small", "colour": "red"}, ".spec.colour: field not declared in schema"),
        (
            {"size": "small", "replicas": "two"},
            ".spec.replicas: expected numeric (int or float), got string",
        ),
        ({"size": "small", "fast": "yes"}, ".spec.fast: expected boolean, got &{yes}"),
        ({"size": "small", "engine": []}, ".spec.engine: expected map, got &{[]}"),
        ({"size": "small", "plain": "x"}, ".spec.plain: expected list, got &{x}"),
    ],
    ids=["string", "unknown field", "number", "boolean", "map", "list"],
)
def test_apply_cannot_read_a_wrong_type(
    cluster: Cluster, world: World, spec: dict[str, Any], text: str
) -> None:
    car = world.car(spec=spec)
    with pytest.raises(WrongTypeError) as caught:
        cluster.apply(car, owner="me")
    assert str(caught.value) == (
        f"failed to create typed patch object ({world.namespace}/{car['metadata']['name']}; "
        f"{world.CAR.api_version}, Kind=Car): {text}"
    )
    assert cluster.get(ObjectKey.of(car)) is None


def test_a_wrong_value_is_invalid_but_no_wrong_type(cluster: Cluster, world: World) -> None:
    with pytest.raises(InvalidObjectError, match="Unsupported value") as caught:
        cluster.apply(world.car(spec={"size": "huge"}), owner="me")
    assert not isinstance(caught.value, WrongTypeError)


def test_managed_fields_cannot_be_applied(cluster: Cluster, world: World) -> None:
    applied = cluster.apply(world.car(), owner="me")

    with pytest.raises(InvalidObjectError, match="managedFields must be nil"):
        cluster.apply(applied, owner="me")
