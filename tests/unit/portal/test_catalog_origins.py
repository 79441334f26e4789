"""Where an entity of the portal's catalog came from, and whom the platform believes."""

from __future__ import annotations

import pytest

from ground.objects.kube_objects import Manifest
from orderkit.core.portal.catalog_origins import came_from, catalog_config, is_owned, pack_location

BASE = "https://git.example/platform/pack/main/"
FOLDER = pack_location(BASE)
REGISTERED, READ = (
    "backstage.io/managed-by-origin-location",
    "backstage.io/managed-by-location",
)


def entity(registered: str | None, read: str | None) -> Manifest:
    origins = {REGISTERED: registered, READ: read}
    return {"metadata": {"annotations": {key: url for key, url in origins.items() if url}}}


@pytest.mark.parametrize("below", ["people.yaml", "x", "a/b/c.yaml", "_a/-b.yaml"])
def test_files_below_a_folder_of_the_platform_are_its_own(below: str) -> None:
    location = f"url:{BASE}{below}"

    assert is_owned(entity(location, location), ["url:https://other.example/x", FOLDER])


@pytest.mark.parametrize(
    "below", ["", ".", "../x", "a/../x", "a/.x", ".x", "a//b", "a/", "%2e%2e/x", "a?b", "é", "a\n"]
)
def test_what_may_lead_out_of_the_folder_is_not(below: str) -> None:
    location = f"url:{BASE}{below}"

    assert not is_owned(entity(location, location), [FOLDER])


@pytest.mark.parametrize(
    ("registered", "read"),
    [
        (f"url:{BASE}a.yaml", "url:https://git.example/team/shop/main/a.yaml"),
        ("url:https://git.example/team/shop/main/a.yaml", f"url:{BASE}a.yaml"),
        (f"url:{BASE}a.yaml", None),
        (None, f"url:{BASE}a.yaml"),
        (None, None),
    ],
)
def test_both_locations_have_to_be_the_platforms(registered: str | None, read: str | None) -> None:
    assert not is_owned(entity(registered, read), [FOLDER])


def test_an_exact_location_covers_only_itself() -> None:
    location = "url:https://idp.example/users"

    assert is_owned(entity(location, location), [location])
    assert not is_owned(entity(f"{location}/a", f"{location}/a"), [location])
    assert not is_owned(entity(location, location), [])


def test_an_entity_came_from_the_server_where_it_is_registered() -> None:
    base = "https://git.example"

    assert came_from(entity(f"url:{base}/a", None), base)
    assert not came_from(entity(None, f"url:{base}/a"), base)
    assert not came_from(entity(f"url:{base}.evil.example/a", None), base)
    assert not came_from(entity(f"file:{base}/a", None), base)


def test_templates_are_admitted_from_their_exact_addresses_only() -> None:
    kinds, template = ["Component", "API", "Resource", "System"], [{"allow": ["Template"]}]

    assert catalog_config(["a", "b"]) == {
        "rules": [{"allow": kinds}],
        "locations": [
            {"type": "url", "target": "a", "rules": template},
            {"type": "url", "target": "b", "rules": template},
        ],
    }
