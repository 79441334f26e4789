"""One person changes an order and ends it in a real browser; what they see, what comes of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import pytest
from browsing import browse
from commands import Command
from lab.realbackstage import GUEST, Backstage
from ordered import TEMPLATE, Ordered
from published import Up, read_kit
from scaffolderapi import Scaffolder

from ground.objects.kube_objects import ObjectKey
from orderkit.core.order import ledger
from orderkit.flows.change.reviewing import merge_unreviewed
from orderkit.ports.forge import MergeStyle, Operation

PROFILE = "changing"
READY_S = 180.0


@pytest.fixture(scope="module")
def placed(scaffolder: Scaffolder, new_team: Callable[[], str], up: Up) -> list[Ordered]:
    """Two orders placed through the portal, with a budget: one to change and one to end."""
    found = []
    for _ in range(2):
        team = new_team()
        values = {"team_name": team, "stage": "stage2", "budget": 5, "level": "low"}
        kit = read_kit(up, "garage", values)
        found.append(Ordered(team, kit, scaffolder.run(TEMPLATE, kit.values)))
        assert found[-1].task.status == "completed", found[-1].task.log
    return found


@pytest.fixture(scope="module")
def order(placed: list[Ordered]) -> Ordered:
    return placed[0]


@pytest.fixture(scope="module")
def ending(placed: list[Ordered]) -> Ordered:
    return placed[1]


@pytest.fixture(scope="module")
def seen(
    backstage: Backstage,
    order: Ordered,
    ending: Ordered,
    up: Up,
    tmp_path_factory: pytest.TempPathFactory,
) -> Any:
    """What the browser showed on the way."""
    profile = tmp_path_factory.mktemp("chromium")
    service = up.settings.service.url
    return browse(
        "changing", backstage, profile, order=order.name, ending=ending.name, service=service
    )


def test_create_lists_orders_and_no_form_that_needs_one(seen: Any) -> None:
    assert "Stage Kit" in seen["create"]
    for title in ("Change budget", "Change level", "End the Stage Kit"):
        assert title not in seen["create"]


def test_buttons_say_what_they_do(seen: Any) -> None:
    assert (seen["changeButton"], seen["endButton"]) == ("Change", "End")


def test_a_form_without_an_order_asks_for_it_and_leads_on(
    seen: Any, order: Ordered, ending: Ordered
) -> None:
    assert "Budget" not in seen["emptyForm"].replace("Change budget", "")
    assert {order.name, ending.name} <= {name.strip() for name in seen["orders"]}
    assert f"opens the form of {order.name}" in seen["notYet"]
    assert seen["continued"] == "9"


def test_the_orders_page_leads_to_its_changes_and_its_end(seen: Any) -> None:
    for title in ("Change budget", "Change level", "Change paint", "End the Stage Kit"):
        assert title in seen["order"]
    assert "Change plate" not in seen["order"]


def test_the_form_opens_with_what_git_holds(seen: Any, order: Ordered) -> None:
    assert (seen["budget"], seen["shownOrder"]) == ("5", order.name)


def test_a_forbidden_change_is_refused_in_words(seen: Any) -> None:
    """In the banner, not only in the log."""
    banner = "Error: There was an issue with the request: TypeError: "
    assert f"{banner}budget 5 → 3 is refused: it may only grow" in seen["refused"]
    assert "Unable to complete request" not in seen["refused"]


def test_a_conflict_can_be_started_over(seen: Any, order: Ordered) -> None:
    assert f"{order.name}: laps is 9 now" in seen["conflict"]
    assert "START OVER changes them all the same" in seen["conflict"]
    assert seen["startedOver"] == "5"
    assert "laps 9 → 5" in seen["overridden"]


def test_a_good_change_is_committed_for_the_person(seen: Any, order: Ordered, up: Up) -> None:
    assert "budget 5 → 9" in seen["committed"]
    commits = up.platform.forge.commits(order.repository)
    (message,) = [c.message for c in commits if "budget" in c.summary]
    assert f"Orderkit-Requester: {GUEST}\nOrderkit-Requester-Proof: signed by" in message
    assert "two more races" in message


def test_a_choice_offers_the_next_step_only(seen: Any) -> None:
    assert [level for level in seen["levels"] if level] == ["low", "middle"]


def test_a_change_that_is_reviewed_ends_with_a_pull_request(
    seen: Any, order: Ordered, up: Up
) -> None:
    (pull,) = up.platform.forge.pulls(order.repository)
    assert "motto" in pull.title
    assert f"Pull request #{pull.number} waits for review" in seen["proposed"]


def test_what_was_committed_and_merged_is_ready_at_that_commit(
    seen: Any, order: Ordered, up: Up, orderkit: Command
) -> None:
    assert seen["committed"]
    forge = up.platform.forge
    (pull,) = forge.pulls(order.repository)
    merging = Operation("merge-motto", GUEST, "merge")
    merge_unreviewed(up.platform, order.repository, pull, merging, style=MergeStyle.MERGE)
    head = forge.head(order.repository)
    end = time.monotonic() + READY_S

    while not (found := orderkit("status", order.name, "--json").json)["ready"]:
        assert time.monotonic() < end, found
        time.sleep(0.5)

    assert found["revision"] == head
    xr = up.platform.cluster.get(ObjectKey.from_json(found["xr"]))
    assert xr is not None
    assert (xr["spec"]["budget"], xr["spec"]["motto"]) == (9, "fast")


def test_an_end_needs_the_orders_id(seen: Any) -> None:
    assert "is not the order's id" in seen["unconfirmed"]


def test_the_order_has_ended_with_proof(seen: Any, ending: Ordered, up: Up) -> None:
    assert "XGarage" in seen["ended"]
    head = up.platform.forge.head(up.platform.ledger)
    assert head is not None
    paths = up.platform.forge.tree(up.platform.ledger, head)
    assert ledger.tombstones(paths, ending.name)
    assert PurePosixPath("apps", ending.team, f"{ending.name}.yaml") not in paths


def test_an_ended_order_leaves_the_catalog(
    seen: Any, ending: Ordered, order: Ordered, scaffolder: Scaffolder, up: Up
) -> None:
    """Its entity too: Backstage keeps those of a removed location as orphans."""
    assert seen["ended"]
    catalog = up.platform.catalog

    assert scaffolder.entity(f"component/default/{ending.name}").status == 404
    assert scaffolder.entity(f"component/default/{order.name}").status == 200
    targets = [location.target for location in catalog.locations()]
    assert not any(f"/{ending.repository}/" in target for target in targets)
    assert any(f"/{order.repository}/" in target for target in targets)


def test_links_to_what_has_ended_open_a_page_for_people(seen: Any, ending: Ordered) -> None:
    assert "This order has ended" in seen["gone"]
    assert f"{ending.name} ended on" in seen["gone"]
    assert f"{GUEST} asked for it" in seen["gone"]
    assert "There is no order “garage-nobody” that everybody may see." in seen["unknown"]


def test_the_browser_asks_nobody_else(seen: Any) -> None:
    assert seen["foreign"] == []
