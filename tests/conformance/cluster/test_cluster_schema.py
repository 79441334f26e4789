"""Cluster contract: CustomResourceDefinitions, and what their schemas do to objects."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

from ground.objects.kube_objects import CONFIG_MAP, CRD, Kind, Manifest, ObjectKey, dig
from kubeschema.known import openapi_kind
from orderkit.ports.cluster import Cluster, InvalidObjectError, NoSuchKindError

if TYPE_CHECKING:
    from tests.conformance.cluster.conftest import World


def conditions(manifest: Manifest | None) -> dict[str, str]:
    entries = dig(manifest, "status", "conditions") or ()
    return {entry["type"]: entry["status"] for entry in entries}


def thing(world: World, kind: Kind, spec: dict[str, Any], name: str = "thing") -> Manifest:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": world.namespace},
        "spec": spec,
    }


def string_field(name: str, **rules: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string", **rules}}}


def test_defaults_are_filled_in(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(spec={"size": "small"}), owner="me")

    assert created["spec"] == {
        "size": "small",
        "replicas": 1,
        "maybe": "yes",
        "tyres": {"kind": "street"},
    }


def test_defaults_go_into_existing_objects_only(cluster: Cluster, world: World) -> None:
    bare = cluster.create(world.car(), owner="me")
    tuned = cluster.create(world.car(spec={"size": "small", "engine": {"power": 1}}), owner="me")

    assert "engine" not in bare["spec"]
    assert tuned["spec"]["engine"] == {"power": 1, "fuel": "petrol"}


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        pytest.param("replicas", 1, id="a null takes the default"),
        pytest.param("team", "absent", id="a null without default goes away"),
        pytest.param("maybe", None, id="a nullable null stays"),
    ],
)
def test_nulls_follow_the_schema(
    cluster: Cluster, world: World, field: str, expected: object
) -> None:
    created = cluster.create(world.car(spec={"size": "small", field: None}), owner="me")

    assert created["spec"].get(field, "absent") == expected


UNKNOWN = [
    pytest.param({"size": "small", "colour": "red"}, "spec.colour", id="field"),
    pytest.param(
        {"size": "small", "engine": {"power": 1, "noise": 2}}, "spec.engine.noise", id="nested"
    ),
    pytest.param(
        {"size": "small", "stops": [{"name": "a", "why": "?"}]}, "spec.stops[0].why", id="in a list"
    ),
]


@pytest.mark.parametrize(("spec", "path"), UNKNOWN)
def test_create_refuses_unknown_fields(
    cluster: Cluster, world: World, spec: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidObjectError) as caught:
        cluster.create(world.car(spec=spec), owner="me")
    assert str(caught.value) == (
        'Car in version "v1" cannot be handled as a Car: strict decoding error: '
        f'unknown field "{path}"'
    )


@pytest.mark.parametrize("verb", ["replace", "patch"])
def test_updates_refuse_unknown_fields(cluster: Cluster, world: World, verb: str) -> None:
    created = cluster.create(world.car(), owner="me")
    key = ObjectKey.of(created)
    created["spec"]["colour"] = "red"

    def write() -> object:
        if verb == "replace":
            return cluster.replace(created, owner="me")
        return cluster.patch(key, {"spec": {"colour": "red"}}, owner="me")

    with pytest.raises(InvalidObjectError, match=r'unknown field "spec\.colour"'):
        write()
    assert "colour" not in world.read(created)["spec"]


def test_open_parts_of_a_schema_keep_everything(cluster: Cluster, world: World) -> None:
    spec = {
        "size": "small",
        "notes": {"any": "key"},
        "free": {"deep": [{"x": None, "y": 1.5}], "flag": True},
    }
    created = cluster.create(world.car(spec=spec), owner="me")

    assert created["spec"]["notes"] == {"any": "key"}
    assert created["spec"]["free"] == {"deep": [{"x": None, "y": 1.5}], "flag": True}


@pytest.mark.parametrize("port", [80, "http"])
def test_int_or_string_takes_both(cluster: Cluster, world: World, port: object) -> None:
    created = cluster.create(world.car(spec={"size": "small", "port": port}), owner="me")

    assert created["spec"]["port"] == port


def test_a_whole_number_with_a_point_is_an_integer(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(spec={"size": "small", "replicas": 3.0}), owner="me")

    assert created["spec"]["replicas"] == 3


PROBLEMS = [
    (
        "enum",
        {"size": "huge"},
        'spec.size: Unsupported value: "huge": supported values: "small", "medium", "large"',
    ),
    ("required", {}, "spec.size: Required value"),
    (
        "maximum",
        {"size": "small", "replicas": 9},
        "spec.replicas: Invalid value: 9: spec.replicas in body should be less than or equal to 5",
    ),
    (
        "minimum",
        {"size": "small", "replicas": 0},
        (
            "spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or "
            "equal to 1"
        ),
    ),
    (
        "exclusive minimum",
        {"size": "small", "weight": 0.5},
        "spec.weight: Invalid value: 0.5: spec.weight in body should be greater than 0.5",
    ),
    (
        "pattern",
        {"size": "small", "team": "AE86"},
        (
            'spec.team: Invalid value: "AE86": spec.team in body should match '
            "'^[a-z][a-z0-9-]{2,28}$'"
        ),
    ),
    (
        "pattern and a newline at the end",
        {"size": "small", "team": "ae86\n"},
        (
            'spec.team: Invalid value: "ae86\\n": spec.team in body should match '
            "'^[a-z][a-z0-9-]{2,28}$'"
        ),
    ),
    (
        "too long",
        {"size": "small", "message": "x" * 21},
        "spec.message: Too long: may not be more than 20 bytes",
    ),
    (
        "too short",
        {"size": "small", "message": "x"},
        'spec.message: Invalid value: "x": spec.message in body should be at least 2 chars long',
    ),
    (
        "text for an integer",
        {"size": "small", "replicas": "two"},
        (
            'spec.replicas: Invalid value: "string": spec.replicas in body must be of type '
            'integer: "string"'
        ),
    ),
    (
        "true for an integer",
        {"size": "small", "replicas": True},
        (
            'spec.replicas: Invalid value: "boolean": spec.replicas in body must be of type '
            'integer: "boolean"'
        ),
    ),
    (
        "number for text",
        {"size": "small", "team": 5},
        'spec.team: Invalid value: "integer": spec.team in body must be of type string: "integer"',
    ),
    (
        "list for a map",
        {"size": "small", "engine": []},
        'spec.engine: Invalid value: "array": spec.engine in body must be of type object: "array"',
    ),
    (
        "map for int or string",
        {"size": "small", "port": {}},
        (
            'spec.port: Invalid value: "object": spec.port in body must be of type integer,string: '
            '"object"'
        ),
    ),
    (
        "value of an open map",
        {"size": "small", "notes": {"a": 1}},
        (
            'spec.notes.a: Invalid value: "integer": spec.notes.a in body must be of type string: '
            '"integer"'
        ),
    ),
    (
        "required in a list",
        {"size": "small", "stops": [{"seconds": 1}]},
        "spec.stops[0].name: Required value",
    ),
    (
        "too many items",
        {"size": "small", "plain": ["a", "b", "c", "d"]},
        "spec.plain: Too many: 4: must have at most 3 items",
    ),
    (
        "twice in a set",
        {"size": "small", "tags": ["x", "x"]},
        'spec.tags[1]: Duplicate value: "x"',
    ),
    (
        "twice in a keyed list",
        {"size": "small", "stops": [{"name": "a"}, {"name": "a", "seconds": 1}]},
        'spec.stops[1]: Duplicate value: {"name":"a"}',
    ),
    (
        "no date-time",
        {"size": "small", "when": "noon"},
        'spec.when: Invalid value: "noon": spec.when in body must be of type date-time: "noon"',
    ),
]


@pytest.mark.parametrize(
    ("spec", "text"), [pytest.param(spec, text, id=reason) for reason, spec, text in PROBLEMS]
)
def test_a_refused_value_is_named_with_its_rule(
    cluster: Cluster, world: World, spec: dict[str, Any], text: str
) -> None:
    car = world.car(spec=spec)
    with pytest.raises(InvalidObjectError) as caught:
        cluster.create(car, owner="me")
    name = car["metadata"]["name"]
    assert str(caught.value) == f'Car.{world.CAR.group} "{name}" is invalid: {text}'
    assert cluster.get(ObjectKey.of(car)) is None


def test_a_fraction_is_no_integer(cluster: Cluster, world: World) -> None:
    with pytest.raises(InvalidObjectError, match='must be of type integer: "number"'):
        cluster.create(world.car(spec={"size": "small", "replicas": 1.5}), owner="me")


def test_several_problems_are_told_at_once(cluster: Cluster, world: World) -> None:
    with pytest.raises(InvalidObjectError) as caught:
        cluster.create(world.car(spec={"replicas": 9, "team": "X"}), owner="me")
    message = str(caught.value)
    assert "is invalid: [" in message
    assert "spec.size: Required value" in message
    assert "spec.team: Invalid value" in message
    assert "spec.replicas: Invalid value" in message


@pytest.mark.parametrize("verb", ["replace", "patch", "apply"])
def test_updates_are_judged_too(cluster: Cluster, world: World, verb: str) -> None:
    created = cluster.create(world.car(), owner="me")
    key = ObjectKey.of(created)
    changed = copy.deepcopy(created)
    changed["spec"]["size"] = "huge"
    writes = {
        "replace": lambda: cluster.replace(changed, owner="me"),
        "patch": lambda: cluster.patch(key, {"spec": {"size": "huge"}}, owner="me"),
        "apply": lambda: cluster.apply(world.car(key.name, spec={"size": "huge"}), owner="me"),
    }

    with pytest.raises(InvalidObjectError, match="Unsupported value"):
        writes[verb]()
    assert world.read(created) == created


def test_a_status_is_judged_too(cluster: Cluster, world: World) -> None:
    created = cluster.create(world.car(), owner="me")

    with pytest.raises(InvalidObjectError, match=r"status\.best: Unsupported value"):
        cluster.patch(ObjectKey.of(created), {"status": {"best": "?"}}, owner="me", status=True)


def test_a_definition_is_served_once_it_is_established(cluster: Cluster, world: World) -> None:
    kind = world.fresh_kind()
    assert not cluster.serves(kind)

    definition = world.definition(kind, string_field("a"))
    assert world.install(definition) == kind
    assert cluster.is_namespaced(kind)
    assert cluster.list(kind).items == ()
    assert cluster.create(thing(world, kind, {"a": "b"}), owner="me")["spec"] == {"a": "b"}
    found = conditions(world.read(definition))
    assert found["NamesAccepted"] == found["Established"] == "True"
    cluster.delete(ObjectKey.of(definition))


def test_a_deleted_definition_takes_its_objects_along(cluster: Cluster, world: World) -> None:
    kind = world.fresh_kind()
    definition = world.definition(kind, string_field("a"))
    world.install(definition)
    cluster.create(thing(world, kind, {}), owner="me")

    assert cluster.delete(ObjectKey.of(definition))
    world.gone(definition)
    world.eventually(lambda: not cluster.serves(kind))
    with pytest.raises(NoSuchKindError):
        cluster.list(kind)

    world.install(definition)
    assert cluster.list(kind).items == ()
    cluster.delete(ObjectKey.of(definition))


def test_a_changed_schema_judges_new_writes(cluster: Cluster, world: World) -> None:
    kind = world.fresh_kind()
    definition = world.definition(kind, string_field("a", enum=["old"]))
    world.install(definition)
    cluster.create(thing(world, kind, {"a": "old"}), owner="me")

    cluster.apply(world.definition(kind, string_field("a", enum=["new"])), owner="suite")

    def accepts_new() -> bool:
        try:
            cluster.create(thing(world, kind, {"a": "new"}, world.fresh()), owner="me")
        except InvalidObjectError:
            return False
        return True

    assert world.eventually(accepts_new)
    with pytest.raises(InvalidObjectError, match='supported values: "new"'):
        cluster.create(thing(world, kind, {"a": "old"}, world.fresh()), owner="me")
    assert cluster.get(ObjectKey(kind, "thing", world.namespace))
    cluster.delete(ObjectKey.of(definition))


def test_a_new_default_shows_in_old_objects(cluster: Cluster, world: World) -> None:
    kind = world.fresh_kind()
    definition = world.definition(kind, string_field("a"))
    world.install(definition)
    old = cluster.create(thing(world, kind, {}), owner="me")

    cluster.apply(world.definition(kind, string_field("a", default="late")), owner="suite")
    world.eventually(lambda: world.read(old)["spec"] == {"a": "late"})
    cluster.delete(ObjectKey.of(definition))


def test_a_field_that_left_the_schema_is_pruned(cluster: Cluster, world: World) -> None:
    kind = world.fresh_kind()
    definition = world.definition(kind, string_field("a"))
    world.install(definition)
    old = cluster.create(thing(world, kind, {"a": "x"}), owner="me")

    cluster.apply(world.definition(kind, string_field("b")), owner="suite")
    world.eventually(lambda: world.read(old)["spec"] == {})
    cluster.delete(ObjectKey.of(definition))


def test_a_definition_must_have_a_structural_schema(cluster: Cluster, world: World) -> None:
    definition = world.definition(world.fresh_kind(), {"properties": {"a": {"type": "string"}}})

    with pytest.raises(InvalidObjectError, match="must not be empty for specified object fields"):
        cluster.create(definition, owner="me")


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        pytest.param({"pattern": "(?=x)"}, "must be a valid regular expression", id="pattern"),
        pytest.param({"default": 5}, "default", id="default of another type"),
        pytest.param(
            {"enum": ["a"], "default": "b"}, "Unsupported value", id="default off the enum"
        ),
    ],
)
def test_a_schema_must_make_sense(
    cluster: Cluster, world: World, rules: dict[str, Any], text: str
) -> None:
    with pytest.raises(InvalidObjectError, match=text):
        cluster.create(world.definition(world.fresh_kind(), string_field("a", **rules)), owner="me")


def test_a_definition_is_named_after_plural_and_group(cluster: Cluster, world: World) -> None:
    definition = world.definition(world.fresh_kind(), string_field("a"))
    definition["metadata"]["name"] = "others." + definition["spec"]["group"]

    with pytest.raises(
        InvalidObjectError, match=r"must be spec\.names\.plural\+\"\.\"\+spec\.group"
    ):
        cluster.create(definition, owner="me")


def test_a_definition_has_one_storage_version(cluster: Cluster, world: World) -> None:
    definition = world.definition(world.fresh_kind(), string_field("a"))
    definition["spec"]["versions"][0]["storage"] = False

    with pytest.raises(
        InvalidObjectError, match="must have exactly one version marked as storage version"
    ):
        cluster.create(definition, owner="me")


def test_the_kind_of_definitions_is_served(cluster: Cluster) -> None:
    assert cluster.serves(CRD)
    assert not cluster.is_namespaced(CRD)


def test_a_kind_has_its_plural_while_it_is_served(cluster: Cluster, world: World) -> None:
    kind = Kind.of(world.car())

    assert cluster.plural(kind) == "cars"
    assert cluster.plural(Kind("", "v1", "Namespace")) == "namespaces"
    assert cluster.plural(Kind(kind.group, kind.version, "Nothing")) is None
    assert cluster.plural(Kind("nowhere.example.org", "v1", "Car")) is None


def test_the_openapi_document_of_a_version_judges_its_kinds(cluster: Cluster) -> None:
    document = cluster.openapi("", "v1")

    assert document is not None
    known = openapi_kind(document, CONFIG_MAP)
    assert known is not None
    assert (known.namespaced, known.plural) == (True, "configmaps")
    wrong = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "dta": {}}
    wrong |= {"data": {"n": 3}}
    found = {finding.path for finding in known.validator.check(wrong).findings}
    assert found == {"data.n", "dta"}
    assert cluster.openapi("nowhere.example.org", "v1") is None
