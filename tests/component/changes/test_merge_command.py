"""``orderkit merge``: what the plan does not refuse is merged, and delivered."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from bays import Bay, merge
from commands import Command
from faultproxy import Decision, Falsehood, Fault, Listed
from pullhand import Hand
from tests.component.changes.conftest import Through

from ground.errors import InProgressError
from orderkit.flows.change.reviewing import merge_reviewed
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import CommitStatus, Operation, PullDraft
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


def test_a_request_whose_commits_main_has_already_says_so(hand: Hand, orderkit: Command) -> None:
    """Somebody opened another one of the same commits, which was merged."""
    bay, pull = hand.bay, hand.edits("stage1", "stage2")
    forge = bay.platform.forge
    forge.ensure_branch(bay.repo, f"same-{pull.number}", pull.head_commit)
    draft = PullDraft("The same", "", f"same-{pull.number}")
    same = forge.open_pull(bay.repo, draft, Operation("same", "user:default/hand", "the same"))
    merge(bay, same.number)

    done = orderkit("merge", bay.order, str(pull.number))

    assert (done.code, "it has no commit that main lacks" in done.err) == (4, True), done.err
    assert f"close it; main has its commits: orderkit history {bay.order}" in done.err


def is_timeline(method: str, path: str) -> bool:
    """Say whether a request reads who pushed to a pull request, from any forge."""
    return method == "GET" and any(part in path for part in ("/timeline", "/activity", "/versions"))


class Hasty(SystemClock):
    """The machine's clock, for a test that does not wait; it notes how often it should have."""

    def __init__(self) -> None:
        self.pauses = 0

    def sleep(self, seconds: float) -> None:
        self.pauses += bool(seconds)


@pytest.mark.parametrize("looks", [1, 99])
def test_a_push_that_the_forge_has_not_noted_yet_is_waited_for_and_never_passed_over(
    hand: Hand, through: Through, looks: int
) -> None:
    """Who pushed decides whose approval counts; Gitea notes a push after it was answered."""
    pull, before = hand.edits("stage1", "stage2"), hand.bay.head
    clock = Hasty()
    merge = partial(
        merge_reviewed, order=hand.bay.order, number=pull.number, requester="user:default/eve"
    )
    nothing = Decision(Fault.REFUSE_BEFORE, Falsehood(200, b"[]"))
    with through(Listed([nothing] * looks, is_timeline)) as platform:
        if looks == 1:
            merge(replace(platform, clock=clock))
        else:
            with pytest.raises(InProgressError, match="does not show who pushed"):
                merge(replace(platform, clock=clock))

    assert (hand.bay.head != before) is (looks == 1)
    assert clock.pauses >= min(looks, 10)
