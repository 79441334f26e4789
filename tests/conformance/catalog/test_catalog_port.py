"""The port `orderkit.ports.catalog.Catalog`, method by method, through the client."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from lab.loopback import free_ports
from portalsides import Side, eventually

from ground.errors import AccessError, InvalidInputError, NotFoundError, UnreachableError
from orderkit.adapters.backstage import BackstageCatalog
from orderkit.core.portal.catalog_origins import is_owned
from orderkit.ports.catalog import Catalog

COMPONENT = """\
apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  name: {name}
  description: "{description}"
spec: {{type: order, lifecycle: production, owner: "group:default/team"}}
"""
LOCATION = """\
apiVersion: backstage.io/v1alpha1
kind: Location
metadata: {{name: {name}}}
spec: {{type: url, targets: {targets}}}
"""
SYSTEM = """\
apiVersion: backstage.io/v1alpha1
kind: System
metadata: {name: x}
spec: {owner: team}
"""
CALLS: dict[str, Callable[[Catalog], object]] = {
    "register": lambda catalog: catalog.register("http://127.0.0.1/a/b/src/branch/main/c.yaml"),
    "unregister": lambda catalog: catalog.unregister("http://127.0.0.1/a"),
    "locations": lambda catalog: catalog.locations(),
    "entity": lambda catalog: catalog.entity("component:default/anything"),
}
"""Each method of the port."""


def component(name: str, description: str = "first") -> str:
    return COMPONENT.format(name=name, description=description)


def registered_targets(side: Side) -> set[str]:
    return {location.target for location in side.catalog.locations()}


def shown(side: Side, ref: str) -> bool:
    return side.catalog.entity(ref) is not None


def gone(side: Side, ref: str) -> bool:
    return side.catalog.entity(ref) is None


def description_of(side: Side, ref: str) -> Any:
    entity = side.catalog.entity(ref)
    return entity and entity["metadata"].get("description")


@pytest.fixture
def target(side: Side, name: str) -> str:
    """A file that holds the component ``{name}``."""
    return side.target(side.push({"catalog-info.yaml": component(name)}))


@pytest.fixture
def name() -> str:
    """A name that no other test of this side uses."""
    return f"c-{secrets.token_hex(5)}"


def test_registering_returns_the_references_of_the_file(side: Side, name: str) -> None:
    file = component(name) + "---\n" + component(f"{name}-b")
    target = side.target(side.push({"catalog-info.yaml": file}))

    assert sorted(side.catalog.register(target)) == [
        f"component:default/{name}",
        f"component:default/{name}-b",
    ]


def test_a_registered_entity_can_be_looked_up(side: Side, name: str, target: str) -> None:
    side.catalog.register(target)

    eventually(partial(shown, side, f"component:default/{name}"))


def test_a_reference_is_lower_case_and_found_in_any_case(side: Side, name: str) -> None:
    target = side.target(side.push({"catalog-info.yaml": component(name.upper())}))

    assert list(side.catalog.register(target)) == [f"component:default/{name}"]
    eventually(partial(shown, side, f"Component:Default/{name.title()}"))
    entity = side.catalog.entity(f"component:default/{name}")
    assert entity is not None
    assert entity["metadata"]["name"] == name.upper()


def test_an_entity_carries_what_the_catalog_adds(side: Side, name: str, target: str) -> None:
    side.catalog.register(target)
    eventually(partial(shown, side, f"component:default/{name}"))

    entity = side.catalog.entity(f"component:default/{name}")

    assert entity is not None
    assert entity["spec"]["owner"] == "group:default/team"
    assert entity["metadata"]["namespace"] == "default"
    assert entity["metadata"]["uid"]
    assert entity["metadata"]["etag"]
    annotations = entity["metadata"]["annotations"]
    assert annotations["backstage.io/managed-by-location"] == f"url:{target}"
    assert annotations["backstage.io/managed-by-origin-location"] == f"url:{target}"
    assert annotations["backstage.io/view-url"] == target
    folder = target.removesuffix("catalog-info.yaml")
    assert annotations["backstage.io/source-location"] == f"url:{folder}"


def test_registering_again_changes_nothing(side: Side, target: str) -> None:
    first = side.catalog.register(target)
    before = [location for location in side.catalog.locations() if location.target == target]

    assert side.catalog.register(target) == first
    after = [location for location in side.catalog.locations() if location.target == target]
    assert after == before
    assert len(after) == 1


def test_a_location_has_an_id_of_its_own(side: Side, name: str, target: str) -> None:
    other = side.target(side.push({"catalog-info.yaml": component(f"{name}-b")}))
    for address in (target, other):
        side.catalog.register(address)

    ids = [
        location.id for location in side.catalog.locations() if location.target in (target, other)
    ]

    assert len(ids) == len(set(ids)) == 2
    assert all(ids)


def test_the_catalog_follows_the_file(side: Side, name: str) -> None:
    repo = side.push({"catalog-info.yaml": component(name)})
    side.catalog.register(side.target(repo))
    eventually(lambda: description_of(side, f"component:default/{name}") == "first")

    side.push({"catalog-info.yaml": component(name, "second")}, repo)

    eventually(lambda: description_of(side, f"component:default/{name}") == "second")


def test_a_file_that_breaks_later_keeps_its_entities(side: Side, name: str) -> None:
    repo = side.push({"catalog-info.yaml": component(name), "other.yaml": component(f"{name}-b")})
    for path in ("catalog-info.yaml", "other.yaml"):
        side.catalog.register(side.target(repo, path))
    for suffix in ("", "-b"):
        eventually(partial(shown, side, f"component:default/{name}{suffix}"))

    side.push({"catalog-info.yaml": "a: [broken", "other.yaml": component(f"{name}-b", "2")}, repo)

    eventually(lambda: description_of(side, f"component:default/{name}-b") == "2")
    assert shown(side, f"component:default/{name}")


def test_unregistering_removes_location_and_entities(side: Side, name: str, target: str) -> None:
    side.catalog.register(target)
    eventually(partial(shown, side, f"component:default/{name}"))

    assert side.catalog.unregister(target) is True
    assert target not in registered_targets(side)
    eventually(partial(gone, side, f"component:default/{name}"))


def test_unregistering_again_says_so(side: Side, target: str) -> None:
    side.catalog.register(target)

    assert side.catalog.unregister(target) is True
    assert side.catalog.unregister(target) is False


def test_what_was_never_registered_cannot_be_unregistered(side: Side, target: str) -> None:
    assert side.catalog.unregister(target) is False


def test_unregistering_leaves_other_locations(side: Side, name: str, target: str) -> None:
    other = side.target(side.push({"catalog-info.yaml": component(f"{name}-b")}))
    for address in (target, other):
        side.catalog.register(address)
    for suffix in ("", "-b"):
        eventually(partial(shown, side, f"component:default/{name}{suffix}"))

    side.catalog.unregister(target)

    assert other in registered_targets(side)
    eventually(partial(gone, side, f"component:default/{name}"))
    assert shown(side, f"component:default/{name}-b")


def test_an_unregistered_location_can_come_back(side: Side, name: str, target: str) -> None:
    side.catalog.register(target)
    side.catalog.unregister(target)

    assert list(side.catalog.register(target)) == [f"component:default/{name}"]
    eventually(partial(shown, side, f"component:default/{name}"))


def test_an_unknown_entity_is_none(side: Side, name: str) -> None:
    assert side.catalog.entity(f"component:default/{name}") is None


@pytest.mark.parametrize("ref", ["", "one", "component:one", "default/one", "component:/one"])
def test_a_reference_must_be_full(side: Side, ref: str) -> None:
    with pytest.raises(InvalidInputError, match="entity"):
        side.catalog.entity(ref)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: [broken", id="no-yaml"),
        pytest.param("", id="empty"),
        pytest.param("just text", id="no-map"),
        pytest.param(component("x").replace("kind: Component", "kind: Konponent"), id="kind"),
        pytest.param(component("'-bad-'"), id="name"),
        pytest.param(component("x").replace("  name: x\n", ""), id="no-name"),
        pytest.param(component("x\n  namespace: Not_A_Label"), id="namespace"),
        pytest.param(component("x").replace(', owner: "group:default/team"', ""), id="no-owner"),
        pytest.param(component("x").replace("spec:", "other:"), id="no-spec"),
        pytest.param(SYSTEM.replace("owner: team", ""), id="system"),
        pytest.param(SYSTEM.replace("System", "Group"), id="group"),
        pytest.param(SYSTEM.replace("System", "Resource"), id="resource"),
        pytest.param(SYSTEM.replace("System", "API"), id="api"),
        pytest.param(component("x").replace("type: order, ", ""), id="no-type"),
        pytest.param(component("x") + "---\n" + component("'-bad-'"), id="second"),
    ],
)
def test_a_file_without_good_entities_is_refused(side: Side, text: str) -> None:
    target = side.target(side.push({"catalog-info.yaml": text}))

    with pytest.raises(InvalidInputError, match="catalogInfoUrl"):
        side.catalog.register(target)
    assert target not in registered_targets(side)


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("{repository}/none.yaml", id="file"),
        pytest.param("{forge}/nobody/nothing/src/branch/main/catalog-info.yaml", id="repository"),
        pytest.param("{repository}", id="folder"),
        pytest.param("http://127.0.0.1:9/a/b/src/branch/main/catalog-info.yaml", id="elsewhere"),
        pytest.param("no address", id="no-address"),
    ],
)
def test_a_location_that_cannot_be_read_is_refused(side: Side, target: str, place: str) -> None:
    repository = target.removesuffix("/catalog-info.yaml")
    address = place.format(repository=repository, forge=side.forge.base_url)

    with pytest.raises(InvalidInputError, match="catalogInfoUrl"):
        side.catalog.register(address)
    assert address not in registered_targets(side)


def test_the_first_location_of_an_entity_keeps_it(side: Side, name: str, target: str) -> None:
    side.catalog.register(target)
    eventually(partial(shown, side, f"component:default/{name}"))
    files = component(name, "copy") + "---\n" + component(f"{name}-b")
    other = side.target(side.push({"catalog-info.yaml": files}))

    assert f"component:default/{name}" in side.catalog.register(other)

    eventually(partial(shown, side, f"component:default/{name}-b"))
    assert other in registered_targets(side)
    assert description_of(side, f"component:default/{name}") == "first"


def test_what_a_location_names_beside_itself_is_read_too(side: Side, name: str) -> None:
    repo = side.push(
        {
            "catalog-info.yaml": LOCATION.format(
                name=name, targets="[./entities/a.yaml, ./b%20b.yaml]"
            ),
            "entities/a.yaml": component(f"{name}-a"),
            "b b.yaml": component(f"{name}-b"),
        },
        side.platform_repo(),
    )
    target = side.target(repo)
    refs = sorted(side.catalog.register(target))

    expected = [f"component:default/{name}-{suffix}" for suffix in "ab"]
    assert refs == [*expected, f"location:default/{name}"]
    for ref in refs:
        eventually(partial(shown, side, ref))
    entity = side.catalog.entity(f"component:default/{name}-a")
    assert entity is not None
    annotations = entity["metadata"]["annotations"]
    child = side.target(repo, "entities/a.yaml")
    assert annotations["backstage.io/managed-by-location"] == f"url:{child}"
    assert annotations["backstage.io/managed-by-origin-location"] == f"url:{target}"

    assert side.catalog.unregister(target) is True
    for ref in refs:
        eventually(partial(gone, side, ref))


def test_a_location_that_names_a_missing_file_is_refused(side: Side, name: str) -> None:
    location = LOCATION.format(name=name, targets="[./a.yaml, ./gone.yaml]")
    files = {"catalog-info.yaml": location, "a.yaml": component(f"{name}-a")}
    repo = side.push(files, side.platform_repo())

    with pytest.raises(InvalidInputError, match="catalogInfoUrl"):
        side.catalog.register(side.target(repo))
    assert side.target(repo) not in registered_targets(side)


def test_a_named_file_that_breaks_later_keeps_them_all(side: Side, name: str) -> None:
    files = {"a.yaml": component(f"{name}-a"), "b.yaml": component(f"{name}-b")}
    location = LOCATION.format(name=name, targets="[./a.yaml, ./b.yaml]")
    files = {"catalog-info.yaml": location, "other.yaml": component(name), **files}
    repo = side.push(files, side.platform_repo())
    for path in ("catalog-info.yaml", "other.yaml"):
        side.catalog.register(side.target(repo, path))
    for suffix in ("", "-a", "-b"):
        eventually(partial(shown, side, f"component:default/{name}{suffix}"))

    changed = {"other.yaml": component(name, "2"), "a.yaml": component(f"{name}-a", "2")}
    side.push({**changed, "b.yaml": "a: [broken"}, repo)

    eventually(lambda: description_of(side, f"component:default/{name}") == "2")
    assert description_of(side, f"component:default/{name}-a") == "first"
    assert shown(side, f"component:default/{name}-b")


USER = """\
apiVersion: backstage.io/v1alpha1
kind: User
metadata: {{name: {name}, annotations: {{orderkit.dev/forge-login: approver}}}}
spec: {{memberOf: [platform]}}
"""


def _kind(kind: str, spec: str) -> str:
    return USER.replace("User", kind).replace("memberOf: [platform]", spec)


NOT_FROM_ORDERS = {
    "User": USER,
    "Group": _kind("Group", "type: team, children: []"),
    "Domain": _kind("Domain", "owner: team"),
    "Location": LOCATION.replace("{targets}", "[./people.yaml]"),
    "Template": _kind("Template", "type: order, steps: []").replace(
        "backstage.io/v1alpha1", "scaffolder.backstage.io/v1beta3"
    ),
}


@pytest.mark.parametrize("kind", NOT_FROM_ORDERS)
def test_an_order_brings_no_entity_that_says_who_somebody_is(
    side: Side, name: str, kind: str
) -> None:
    """In a document of its own beside the order's; a whole file with such a one is refused."""
    entity = NOT_FROM_ORDERS[kind].format(name=name)
    people = {"people.yaml": USER.format(name=f"{name}-u")}
    repo = side.push({"catalog-info.yaml": f"{component(name)}---\n{entity}", **people})

    with pytest.raises(InvalidInputError, match=r"catalogInfoUrl.*kind"):
        side.catalog.register(side.target(repo))

    assert gone(side, f"{kind}:default/{name}")
    assert gone(side, f"user:default/{name}-u")


def test_an_order_that_was_registered_adds_no_person_later(side: Side, name: str) -> None:
    repo = side.push({"catalog-info.yaml": component(name), "other.yaml": component(f"{name}-b")})
    for path in ("catalog-info.yaml", "other.yaml"):
        side.catalog.register(side.target(repo, path))
    for suffix in ("", "-b"):
        eventually(partial(shown, side, f"component:default/{name}{suffix}"))

    file = f"{component(name, '2')}---\n{USER.format(name=name)}"
    side.push({"catalog-info.yaml": file, "other.yaml": component(f"{name}-b", "2")}, repo)

    eventually(lambda: description_of(side, f"component:default/{name}-b") == "2")
    assert gone(side, f"user:default/{name}")


def test_a_file_does_not_say_where_it_came_from(side: Side, name: str) -> None:
    """The catalog writes its own annotations over those of a file."""
    forged = (
        "\n  annotations:\n    backstage.io/managed-by-location: url:https://x.example/a"
        "\n    backstage.io/managed-by-origin-location: url:https://x.example/a"
    )
    target = side.target(side.push({"catalog-info.yaml": component(f"{name}{forged}")}))
    side.catalog.register(target)
    eventually(partial(shown, side, f"component:default/{name}"))

    entity = side.catalog.entity(f"component:default/{name}")

    assert entity is not None
    annotations = entity["metadata"]["annotations"]
    assert annotations["backstage.io/managed-by-location"] == f"url:{target}"
    assert annotations["backstage.io/managed-by-origin-location"] == f"url:{target}"
    assert not is_owned(entity, ["url:https://x.example/a"])


@pytest.mark.parametrize("method", CALLS)
def test_a_wrong_token_is_refused(side: Side, method: str) -> None:
    with pytest.raises(AccessError, match="401"):
        CALLS[method](BackstageCatalog(side.url, token="a-wrong-token"))


@pytest.mark.parametrize("method", CALLS)
def test_nobody_there_is_unreachable(side: Side, method: str) -> None:
    (port,) = free_ports(1)

    with pytest.raises(UnreachableError, match="no server answers"):
        CALLS[method](BackstageCatalog(f"http://127.0.0.1:{port}", token=side.token))


@pytest.mark.parametrize("method", ["register", "unregister", "locations"])
def test_an_address_that_is_no_portal_is_named(side: Side, method: str) -> None:
    with pytest.raises(NotFoundError, match="404") as error:
        CALLS[method](BackstageCatalog(f"{side.url}/elsewhere", token=side.token))

    assert "Backstage's backend" in error.value.hint
