"""``orderkit merge``: what the plan does not refuse is merged, and delivered."""

from __future__ import annotations

import pytest
from bays import Bay
from commands import Command
from pullhand import Hand

from orderkit.ports.forge import CommitStatus
from orderkit_standins.serve_platform import Running


@pytest.fixture
def hand(site: Running, bay: Bay) -> Hand:
    return Hand(site.settings, bay)


def test_it_is_merged_and_delivered_and_repeating_it_changes_nothing(
    hand: Hand, orderkit: Command
) -> None:
    pull = hand.edits("stage1", "stage2")

    done = orderkit("merge", hand.bay.order, str(pull.number), "--json")

    assert done.code == 0, done.err
    assert (done.json["schema"], done.json["number"]) == ("orderkit.merge/v1", pull.number)
    assert done.json["commit"] == hand.bay.head
    assert orderkit("status", hand.bay.order, "--check").code == 0
    again = orderkit("merge", hand.bay.order, str(pull.number), "--no-wait", "--json")
    assert (again.code, again.json["commit"]) == (0, hand.bay.head)


def test_what_the_plan_refuses_is_not_merged_whatever_its_status_says(
    hand: Hand, orderkit: Command
) -> None:
    pull = hand.edits("stage1", "stage9")
    forged = CommitStatus("orderkit/plan", "success", "all is well", "")
    hand.bay.platform.forge.set_status(hand.bay.repo, pull.head_commit, forged)
    before = hand.bay.head

    done = orderkit("merge", hand.bay.order, str(pull.number))

    assert done.code == 4
    assert f"{hand.bay.repo}#{pull.number} is not merged" in done.err
    assert "by its plan: refused: " in done.err
    assert "stage9" in done.err
    assert hand.bay.head == before


def test_what_cannot_be_merged_says_why(hand: Hand, orderkit: Command) -> None:
    pull, elsewhere = hand.edits("stage1", "stage2"), hand.edits("stage1", "stage3", base="main")
    hand.bay.platform.forge.close_pull(hand.bay.repo, pull.number)

    closed = orderkit("merge", hand.bay.order, str(pull.number))
    missing = orderkit("merge", hand.bay.order, "99")
    unknown = orderkit("merge", "garage-nobody", str(elsewhere.number))

    assert (closed.code, "was closed: merging it delivers nothing" in closed.err) == (4, True)
    assert "has no pull request 99" in missing.err
    assert missing.code == unknown.code == 1
    assert "garage-nobody" in unknown.err
