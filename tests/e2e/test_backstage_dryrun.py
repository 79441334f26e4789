"""Each kit of the pack through a real backend's dry run: the same tree, the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from lab.realbackstage import GUEST
from published import Up, read_kit, wanted_repository
from scaffolderapi import Scaffolder

from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.core.kit.pack import read_pack

KITS = [kit.name for kit in read_pack(read_folder(reference_pack())).kits()]
VALUES: Mapping[str, list[dict[str, Any]]] = {
    "garage": [
        {"team_name": "ae86", "stage": "stage2"},
        {"team_name": "yes", "stage": "stage1"},
        {"team_name": "null", "stage": "stage3"},
        {"team_name": "a--0123456789-0123456789-01-9", "stage": "stage1"},
    ]
}
"""Form values by kit. A new kit gets its line here, or its test fails."""


@pytest.mark.parametrize("kit", KITS)
def test_a_dry_run_writes_the_tree_that_ours_writes(
    kit: str, scaffolder: Scaffolder, up: Up
) -> None:
    for values in VALUES[kit]:
        found = read_kit(up, kit, values)
        ours = wanted_repository(up, found, requester=GUEST).files
        theirs = scaffolder.dry_run(found.entity, found.values, found.files)

        assert {path: file.data for path, file in theirs.files.items()} == dict(ours)
        assert not [path for path, file in theirs.files.items() if file.executable]


@pytest.mark.parametrize("kit", KITS)
def test_a_dry_run_says_which_calls_it_left_out(kit: str, scaffolder: Scaffolder, up: Up) -> None:
    found = read_kit(up, kit, VALUES[kit][0])

    said = scaffolder.dry_run(found.entity, found.values, found.files).log

    assert "Skipping non dry-run safe method 'POST' request to /proxy/orderkit/v1/orders" in said


@pytest.mark.parametrize("kit", KITS)
def test_the_backend_hands_the_form_what_the_platform_baked(
    kit: str, scaffolder: Scaffolder, up: Up
) -> None:
    found = read_kit(up, kit, VALUES[kit][0])

    pages = scaffolder.form(found.entity["metadata"]["name"])

    asked = {name for page in pages for name in page["properties"]}
    assert asked == set(found.values)
    baked = {
        name: s["default"] for p in pages for name, s in p["properties"].items() if "default" in s
    }
    assert baked.items() <= found.values.items()
    assert "__ORDERKIT" not in str(pages)
