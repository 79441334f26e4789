"""One person orders the stage kit in a real browser; what they see, and what comes of it."""

from __future__ import annotations

from typing import Any

import pytest
from browsing import browse
from commands import Command
from lab.realbackstage import Backstage
from published import Up

TEAM = "ae86"


@pytest.fixture(scope="module")
def seen(backstage: Backstage, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the browser showed on the way."""
    return browse("journey", backstage, tmp_path_factory.mktemp("chromium"), team=TEAM)


def test_a_bad_team_name_is_explained_in_words(seen: Any) -> None:
    shown = seen["messages"][-1]

    assert "'Team' must have 3 to 29 characters: lower-case letters, digits and '-'" in shown
    assert "^[a-z]" not in shown


def test_the_team_is_picked_from_the_catalog(seen: Any) -> None:
    assert {f"Team {TEAM}", "Platform team"} <= {name.strip() for name in seen["teams"]}
    assert seen["button"] == "Order"


def test_the_review_shows_what_was_typed_and_nothing_baked(seen: Any, up: Up) -> None:
    assert TEAM in seen["review"]
    assert up.settings.forge.url.partition("://")[2] not in seen["review"]


def test_the_task_says_what_happens_next(seen: Any) -> None:
    assert f"orderkit status garage-{TEAM}" in seen["task"]


def test_the_link_leads_to_the_repository(seen: Any) -> None:
    assert f"{TEAM}/garage-{TEAM}" in seen["page"]
    assert "catalog-info.yaml" in seen["page"]


def test_the_catalog_shows_the_order(seen: Any) -> None:
    assert f"Stage Kit of team {TEAM}" in seen["catalog"]
    assert "can't be found" not in seen["catalog"]


def test_the_order_becomes_ready(seen: Any, orderkit: Command) -> None:
    assert seen["repository"]
    done = orderkit("order", "garage", f"team_name={TEAM}", "stage=stage2", "--json")

    assert done.code == 0, done.err
    assert done.json["ready"]
    assert not done.json["created"]


def test_the_browser_asks_nobody_else(seen: Any) -> None:
    assert seen["foreign"] == []
