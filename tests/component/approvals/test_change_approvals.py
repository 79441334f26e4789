"""A change that needs somebody's agreement: a pull request, agreed to, delivered."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from approvaldesk import Desk, new_desk, person, published_approval, published_terms
from bays import XR, Bay, ask, set_
from forgeusers import ForgeUser, new_user

from ground.errors import NotFoundError, RefusedError
from orderkit.core.kit.kit_file import How
from orderkit.core.order import order_file
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.approval.deciding import approve, decline
from orderkit.flows.approval.pending import pending
from orderkit.flows.argocd.commit_pinning import pinned_commit
from orderkit.flows.change import Changed
from orderkit.flows.change.reviewing import merge_reviewed
from orderkit.flows.live.forge_records import (
    ForgeRecords,
    WaitingChanges,
    with_ledger,
    with_pack,
)
from orderkit.flows.order.registering import Registration, register
from orderkit.ports.clock import SystemClock
from orderkit.ports.requesters import Requester


@pytest.fixture
def bay(desk: Desk) -> Bay:
    """An order that is delivered."""
    desk.order(stage="stage1")
    return Bay(desk.platform, desk.team, desk.team)


def member(bay: Bay, by: ForgeUser) -> Requester:
    """Return somebody as one of the order's team."""
    groups = frozenset({f"group:default/{bay.team}"})
    return Requester(f"user:default/{by.login}", "token", groups)


def proposed(bay: Bay, by: ForgeUser, stage: str = "stage3", *, field: str = "stage") -> Changed:
    """Let somebody ask for a stage, or for another field's value."""
    return ask(bay, set_(field, stage), requester=member(bay, by))


def delivered(bay: Bay, desk: Desk) -> str | None:
    return pinned_commit(desk.platform, OrderEntry(desk.team, bay.order))


def test_a_change_that_no_rule_concerns_is_committed(bay: Bay, desk: Desk) -> None:
    assert proposed(bay, desk.eve, "stage2").state == "committed"


def test_a_change_that_needs_approval_is_proposed_and_says_so(bay: Bay, desk: Desk) -> None:
    changed = proposed(bay, desk.eve)

    assert (changed.state, changed.how) == ("proposed", How.REVIEW)
    assert changed.pull is not None
    assert "- group finance, because stage 3 is expensive" in changed.pull.body
    statuses = desk.platform.forge.statuses(bay.repo, changed.pull.head_commit)
    assert ("orderkit/approval", "pending") in [(s.context, s.state) for s in statuses]
    with pytest.raises(RefusedError, match="and cannot be committed directly"):
        ask(bay, set_("stage", "stage3"), how=How.DIRECT)


def test_it_is_merged_once_finance_agrees_and_not_before(bay: Bay, desk: Desk) -> None:
    pull = proposed(bay, desk.eve).pull
    assert pull is not None
    path = f"/repos/{bay.repo}/pulls/{pull.number}/reviews"
    desk.carol.api("POST", path, {"event": "APPROVED"})

    with pytest.raises(RefusedError, match="it needs approval by group finance"):
        merge_reviewed(desk.platform, bay.order, pull.number, requester="user:default/boss")
    assert bay.spec()["stage"] == "stage1"
    decision = approve(desk.platform, bay.order, person(desk.frank), number=pull.number)

    assert decision.state == "delivered", decision.missing
    assert bay.spec()["stage"] == "stage3"
    assert delivered(bay, desk) == bay.head
    with pytest.raises(NotFoundError, match=f"#{pull.number} is merged"):
        approve(desk.platform, bay.order, person(desk.frank), number=pull.number)


def test_a_reviewed_change_needs_a_member_among_those_who_agreed_in_the_console(
    bay: Bay, desk: Desk
) -> None:
    """Its rule asks for two, of the platform's people or the team's, and the kit for a review."""
    pull = proposed(bay, desk.eve, "fast", field="motto").pull
    assert pull is not None
    dave = new_user(desk.admin, "dave")
    for each in (desk.frank, dave):
        path = f"/repos/{desk.platform.ledger}/collaborators/{each.login}"
        desk.admin.api("PUT", path, {"permission": "write"})
    first, second, third = (
        approve(desk.platform, bay.order, person(each), number=pull.number)
        for each in (desk.frank, dave, desk.carol)
    )
    desk.admin.call("DELETE", f"/repos/{desk.platform.ledger}/collaborators/{dave.login}")

    assert (first.state, second.state, third.state) == ("waiting", "waiting", "delivered")
    assert "nobody else has approved" in second.missing
    assert bay.spec()["motto"] == "fast"


def test_whoever_asked_cannot_agree_even_if_of_the_group(bay: Bay, desk: Desk) -> None:
    pull = proposed(bay, desk.frank).pull
    assert pull is not None

    with pytest.raises(RefusedError, match=f"{desk.frank.login} is behind"):
        approve(desk.platform, bay.order, person(desk.frank), number=pull.number)


def test_declining_closes_it(bay: Bay, desk: Desk) -> None:
    pull = proposed(bay, desk.eve).pull
    assert pull is not None

    decline(desk.platform, bay.order, person(desk.frank), number=pull.number, reason="too much")

    closed = desk.platform.forge.pull(bay.repo, pull.number)
    assert closed is not None
    assert closed.state == "closed"


def test_what_was_written_to_main_by_hand_is_not_delivered(bay: Bay, desk: Desk) -> None:
    before = delivered(bay, desk)
    bay.edit("stage1", "stage3")
    registration = Registration(bay.order, "garage", desk.team, "user:default/boss")

    with pytest.raises(RefusedError, match="bypassed Orderkit and needs approval by group"):
        register(desk.platform, registration)
    beside = ask(bay, set_("budget", 5))

    assert beside.state == "proposed"  # merging it would deliver both
    assert delivered(bay, desk) == before


def test_taking_back_what_was_written_by_hand_needs_nobody(bay: Bay, desk: Desk) -> None:
    bay.edit("stage1", "stage3")

    reverted = ask(bay, set_("stage", "stage1"))

    assert reverted.state == "committed"
    assert delivered(bay, desk) == bay.head


def test_what_an_admin_merged_is_not_delivered(bay: Bay, desk: Desk) -> None:
    before, pull = delivered(bay, desk), proposed(bay, desk.eve).pull
    assert pull is not None
    for context in ("orderkit/approval", "orderkit/review", "orderkit/plan"):
        body = {"context": context, "state": "success"}
        desk.admin.api("POST", f"/repos/{bay.repo}/statuses/{pull.head_commit}", body)
    desk.admin.api("POST", f"/repos/{bay.repo}/pulls/{pull.number}/merge", {"Do": "merge"})

    with pytest.raises(RefusedError, match="is merged and not delivered: it needs approval by"):
        merge_reviewed(desk.platform, bay.order, pull.number, requester="user:default/boss")

    assert delivered(bay, desk) == before


def test_a_change_that_only_some_may_ask_for_is_not_merged_if_somebody_else_wrote_it(
    bay: Bay, desk: Desk
) -> None:
    """Carol is of the team, and pushes to a branch of its order."""
    stage = {"name": "stage", "fields": ["stage"], "who": ["platform"]}
    repo, text = f"/repos/{bay.repo}", bay.text().replace("stage1", "stage2")
    seen = desk.platform.forge.read(bay.repo, XR, "main")
    assert seen is not None
    with published_terms(desk.platform, changes=[stage]):
        content = {"content": b64encode(text.encode()).decode(), "sha": seen.sha}
        desk.carol.api("POST", f"{repo}/branches", {"new_branch_name": "mine"})
        put = {**content, "message": "mine", "branch": "mine"}
        desk.carol.api("PUT", f"{repo}/contents/{XR}", put)
        pull = desk.carol.api(
            "POST", f"{repo}/pulls", {"head": "mine", "base": "main", "title": "Mine"}
        )

        with pytest.raises(RefusedError, match="only platform may ask for 'stage'") as refused:
            merge_reviewed(desk.platform, bay.order, pull["number"], requester="user:default/boss")

    assert f"{desk.carol.login} opened it or pushed to it" in str(refused.value)
    assert bay.spec()["stage"] == "stage1"


GROWS: dict[str, Any] = {
    "when": "!order.isNew && new.budget - (has(old.budget) ? old.budget : 0) > 10",
    "by": ["group:default/finance"],
    "because": "it grows by more than 10",
    "within": "1h",
}


class Later(SystemClock):
    """The clock of two hours later."""

    def now(self) -> datetime:
        return super().now() + timedelta(hours=2)


def test_small_steps_within_a_window_are_counted_together(bay: Bay, desk: Desk) -> None:
    eve = member(bay, desk.eve)
    with published_approval(desk.platform, [GROWS]):
        first = ask(bay, set_("budget", 8), requester=eve)
        second = ask(bay, set_("budget", 15), requester=eve)
        later = replace(desk.platform, clock=Later())
        third = ask(bay, set_("budget", 16), requester=eve, platform=later)

    assert [first.state, second.state, third.state] == ["committed", "proposed", "committed"]
    assert second.pull is not None
    assert "because it grows by more than 10 (counted over 1h)" in second.pull.body


def test_a_step_that_a_rule_concerns_by_itself_is_told_once(bay: Bay, desk: Desk) -> None:
    with published_approval(desk.platform, [GROWS]):
        changed = ask(bay, set_("budget", 11), requester=member(bay, desk.eve))

    assert changed.pull is not None
    assert changed.pull.body.count("it grows by more than 10") == 1
    assert "(counted over" not in changed.pull.body


def test_a_request_that_cannot_be_read_is_left_out_of_the_list_and_the_others_stay(
    bay: Bay, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody broke the order's record by hand."""
    other = new_desk(desk.platform, desk.admin)
    other.order(stage="stage1")
    beside = Bay(other.platform, other.team, other.team)
    for each, who in ((bay, desk.eve), (beside, other.eve)):
        proposed(each, who)
    bay.put({order_file.PATH: "{"})

    orders = {entry.order for entry in pending(desk.platform, teams=None)}

    assert (bay.order in orders, beside.order in orders) == (False, True)
    assert f"{bay.repo}#1 cannot be read: " in caplog.text
    ledger_read = with_ledger(desk.platform, ForgeRecords(), {})
    lacking = WaitingChanges(desk.platform).read(with_pack(desk.platform, ledger_read))
    assert lacking.keys() & {bay.order, beside.order} == {beside.order}
    assert f"{bay.repo}#1 cannot be judged now: " in caplog.text
