"""The page about templates names every action, and what a dry run does with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orderkit.flows.template.actions import ACTIONS

PAGE = (Path(__file__).parents[3] / "docs" / "template-actions.md").read_text()
ROWS = {
    action: row.split("|")[2:4]
    for row in PAGE.partition("## Actions")[2].splitlines()
    if row.startswith("| `")
    for action in re.findall(r"`([a-z]+:[a-z:-]+)`", row.split("|")[1])
}


def test_every_action_has_a_row_and_no_other() -> None:
    assert set(ROWS) == set(ACTIONS)


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_the_row_says_what_holds(action: str) -> None:
    alone, dry = (cell.strip() for cell in ROWS[action])

    assert alone.startswith("no") == ACTIONS[action].remote
    assert dry == ("runs" if ACTIONS[action].dry_run else "named")
