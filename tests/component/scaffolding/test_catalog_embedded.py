"""The embedded catalog: Backstage's API, durable, following the repositories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from ground.errors import InvalidInputError, RefusedError
from ground.names import RepoId
from orderkit.adapters.backstage import BackstageCatalog
from orderkit_standins.catalog import EmbeddedCatalog

REPO = RepoId("platform", "repo")
ENTITY = """\
apiVersion: backstage.io/v1alpha1
kind: Component
metadata:
  name: {name}
  description: "{description}"
spec: {{type: order, lifecycle: production, owner: "group:default/team"}}
"""


def entity(name: str, description: str = "first") -> str:
    return ENTITY.format(name=name, description=description)


@pytest.fixture
def target(world: Any) -> str:
    world.forge.ensure_org(REPO.owner)
    world.forge.ensure_repo(REPO, description="")
    world.push(REPO, {"catalog-info.yaml": entity("one")})
    return str(world.url(REPO))


def test_a_push_is_followed(
    world: Any, target: str, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    world.catalog.register(target)
    world.push(REPO, {"catalog-info.yaml": entity("one", "second") + "---\n" + entity("two")})

    world.embedded_catalog.notify(REPO)

    eventually(lambda: world.catalog.entity("component:default/two") is not None)
    assert world.catalog.entity("component:default/one")["metadata"]["description"] == "second"


def test_a_missed_push_is_found_by_reading_again(world: Any, target: str) -> None:
    world.catalog.register(target)
    world.push(REPO, {"catalog-info.yaml": entity("two")})

    world.embedded_catalog.refresh()

    assert world.catalog.entity("component:default/one") is None
    assert world.catalog.entity("component:default/two") is not None


def test_a_broken_file_keeps_the_last_good_entities(world: Any, target: str) -> None:
    world.catalog.register(target)
    world.push(REPO, {"catalog-info.yaml": "a: [broken"})

    world.embedded_catalog.refresh()

    assert world.catalog.entity("component:default/one") is not None


def test_a_restart_loses_nothing(world: Any, target: str, tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    first = EmbeddedCatalog(path, world.forge)
    first.register(target)
    first.close()

    second = EmbeddedCatalog(path, world.forge)
    try:
        assert [location.target for location in second.locations()] == [target]
        assert second.entity("component:default/one") is not None
    finally:
        second.close()


def test_a_state_of_a_newer_version_is_refused(world: Any, tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    path = tmp_path / "newer.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")

    with pytest.raises(RefusedError, match="newer"):
        EmbeddedCatalog(path, world.forge)


@pytest.mark.usefixtures("target")
@pytest.mark.parametrize(
    "where", ["/platform/repo/src/branch/main/none.yaml", "/x/y/src/branch/main/a"]
)
def test_a_missing_file_is_refused(world: Any, where: str) -> None:
    with pytest.raises(InvalidInputError, match="is not there"):
        world.catalog.register(world.forge.base_url + where)


def test_a_file_elsewhere_is_refused(world: Any) -> None:
    with pytest.raises(InvalidInputError, match="is not a file on this platform's forge"):
        world.catalog.register("https://elsewhere.example/a/b/src/branch/main/catalog-info.yaml")


def test_entities_come_in_pages_and_by_kind(world: Any, target: str) -> None:
    documents = [entity(f"e{at:03}") for at in range(45)]
    group = entity("g").replace("kind: Component", "kind: Group")
    group = group.replace("type: order", "type: team, children: []")
    world.push(REPO, {"catalog-info.yaml": "---\n".join([*documents, group])})
    world.catalog.register(target)
    base, headers = f"{world.catalog_url}/api/catalog/entities", {"Authorization": auth(world)}

    first = requests.get(
        f"{base}/by-query?filter=kind=component", headers=headers, timeout=5
    ).json()
    cursor = first["pageInfo"]["nextCursor"]
    second = requests.get(f"{base}/by-query?cursor={cursor}", headers=headers, timeout=5).json()

    assert (len(first["items"]), first["totalItems"], len(second["items"])) == (20, 45, 20)
    plain = requests.get(f"{base}?filter=kind=group,metadata.name=g", headers=headers, timeout=5)
    assert [found["kind"] for found in plain.json()] == ["Group"]


def auth(world: Any) -> str:
    return str(world.catalog._headers["Authorization"])  # noqa: SLF001 - the test's own client


def test_readiness_is_open(world: Any) -> None:
    url = f"{world.catalog_url}/.backstage/health/v1/readiness"

    assert requests.get(url, timeout=5).json() == {"status": "ok"}


def test_credentials_never_go_over_plain_http_to_another_machine() -> None:
    with pytest.raises(RefusedError, match="plain HTTP"):
        BackstageCatalog("http://portal.example", token="secret-token")


LOCATION = """\
apiVersion: backstage.io/v1alpha1
kind: Location
metadata: {{name: datasets}}
spec: {{type: url, targets: {targets}}}
"""


def test_what_a_location_names_above_itself_is_not_read(world: Any, target: str) -> None:
    targets = "[./entities/a.yaml, ../outside.yaml, ./entities/../b%20c.yaml]"
    world.push(
        REPO,
        {
            "catalog-info.yaml": LOCATION.format(targets=targets),
            "entities/a.yaml": entity("one") + "---\n" + entity("two"),
            "outside.yaml": entity("three"),
            "b c.yaml": entity("four"),
        },
    )

    refs = world.catalog.register(target)

    assert sorted(refs) == [
        "component:default/four",
        "component:default/one",
        "component:default/two",
        "location:default/datasets",
    ]
