"""An order that needs somebody's agreement: proposed, agreed to, delivered, declined."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any, Literal

import pytest
from approvaldesk import Desk, person, published_approval
from bays import new_repository
from commands import Command
from forgehands import client_at
from rivals import Rival

from ground.errors import ConflictError, NotFoundError, OrderkitError, RefusedError
from ground.names import TeamName
from orderkit.core.order import ledger
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.approval.deciding import approve, decline
from orderkit.flows.approval.pending import pending
from orderkit.flows.approval.settling import settle
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest, begin_withdrawal
from orderkit.flows.lease.extending import ExtendRequest, propose_extension
from orderkit.flows.order.order_report import list_orders, status
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.platform import ledger_snapshot
from orderkit.flows.repeating import until
from orderkit.flows.team.teams import TeamChange, add_team
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.requesters import Requester
from orderkit_standins.serve_platform import Running


def test_an_order_waits_and_says_for_whom_and_why(desk: Desk) -> None:
    report = desk.order()

    row = report.row()
    assert row.phase == "Waiting"
    assert row.approval == "group finance, because stage 3 is expensive"
    assert row.reason == "waits for approval by group finance, because stage 3 is expensive"
    assert row.remedy == f"an approver decides: orderkit approve {row.order}"
    assert desk.in_ledger(report.entry) == ""
    listed = {r.entry: r.state.phase for r in list_orders(desk.platform)}
    assert listed[report.entry] == "Waiting"


def test_an_order_that_no_rule_concerns_is_delivered_at_once(desk: Desk) -> None:
    report = desk.order(stage="stage1")

    assert report.state.phase != "Waiting"
    assert desk.in_ledger(report.entry)


def test_the_pull_request_shows_the_rule_who_may_agree_and_the_plan(desk: Desk) -> None:
    pull = desk.proposal(desk.order().entry)

    assert pull.state == "open"
    assert "- group finance, because stage 3 is expensive" in pull.body
    assert "**Plan: " in pull.body
    (status_,) = desk.platform.forge.statuses(desk.platform.ledger, pull.head_commit)
    assert (status_.context, status_.state) == ("orderkit/approval", "pending")


def test_the_review_of_somebody_who_is_asked_delivers_it(desk: Desk) -> None:
    entry = desk.order().entry
    desk.approve(desk.proposal(entry), desk.frank)

    settled = settle(desk.platform, entry)  # unless the service was faster

    assert settled is None or settled.approvers == (desk.frank.login,)
    assert desk.proposal(entry).state == "merged"
    report = until(
        desk.platform.clock,
        lambda: status(desk.platform, entry.order),
        lambda report: report.state.ready,
        timeout_s=60,
        goal="Ready",
    )
    assert report.row().approval == ""
    assert "automated" in desk.in_ledger(entry)
    assert settle(desk.platform, entry) is None


def test_an_agreement_that_the_service_proves_delivers_it(desk: Desk) -> None:
    entry = desk.order().entry

    decision = approve(desk.platform, entry.order, person(desk.frank))

    assert decision.state == "delivered", decision.missing
    assert entry not in ledger.waiting_orders(ledger_snapshot(desk.platform).blobs)
    assert "automated" in desk.in_ledger(entry)


@pytest.mark.parametrize("who", ["eve", "carol"])
def test_others_cannot_agree(desk: Desk, who: str) -> None:
    entry = desk.order().entry
    user = getattr(desk, who)
    desk.approve(desk.proposal(entry), user)

    with pytest.raises(RefusedError, match=f"{user.login} is not an approver of"):
        approve(desk.platform, entry.order, person(user))

    settled = settle(desk.platform, entry)
    assert settled is not None
    assert settled.state == "waiting"
    assert desk.phase(entry) == "Waiting"


def test_a_rule_may_name_a_person_of_the_platform(desk: Desk) -> None:
    leads = TeamName(f"leads{secrets.token_hex(3)}")
    change = TeamChange(members=(desk.frank.login,))
    add_team(desk.platform, leads, requester="user:default/boss", change=change)
    rule = {"when": "true", "by": [f"user:default/{desk.frank.login}"], "because": "frank pays"}
    with published_approval(desk.platform, [rule]):
        entry = desk.order(stage="stage1").entry
        desk.approve(desk.proposal(entry), desk.carol)
        by_another = settle(desk.platform, entry)
        waits = desk.phase(entry)
        desk.approve(desk.proposal(entry), desk.frank)
        settled = settle(desk.platform, entry)  # unless the service was faster

    assert by_another is not None
    assert (by_another.state, waits) == ("waiting", "Waiting")
    assert by_another.missing == f"{desk.frank.login}, because frank pays"
    assert settled is None or desk.frank.login in settled.approvers
    assert desk.proposal(entry).state == "merged"


@pytest.mark.parametrize("state", ["delivered", "withdrawn"])
def test_what_another_process_settles_meanwhile_is_told(desk: Desk, state: str) -> None:
    entry, platform = desk.order().entry, desk.platform

    def act() -> None:
        if state == "delivered":
            settle(platform, entry)
        else:
            decline(platform, entry.order, person(desk.frank))

    # once the agreement is written, the service may deliver the order before the rival acts
    when: Literal["before", "after"] = "after" if state == "delivered" else "before"
    rival: Any = Rival(platform.forge, "write", act, when=when)
    done = approve(replace(platform, forge=rival), entry.order, person(desk.frank))

    assert (done.state, rival.has_acted) == (state, True)
    assert (desk.in_ledger(entry) != "") is (state == "delivered")


def test_an_order_that_is_agreed_to_while_it_is_judged_is_delivered(desk: Desk) -> None:
    entry, platform = desk.order().entry, desk.platform

    def act() -> None:
        approve(platform, entry.order, person(desk.frank))

    rival: Any = Rival(platform.forge, "reviews", act, when="after")
    settled = settle(replace(platform, forge=rival), entry)

    assert settled is None or settled.state == "delivered", settled.missing
    assert rival.has_acted
    assert desk.in_ledger(entry)


def test_who_agrees_to_an_order_that_is_delivered_meanwhile_is_told_so(desk: Desk) -> None:
    entry, platform = desk.order().entry, desk.platform

    def act() -> None:
        approve(platform, entry.order, person(desk.frank))

    rival: Any = Rival(platform.forge, "head", act, when="after")
    with pytest.raises(NotFoundError, match=f"{entry.order} does not wait for approval any more"):
        approve(replace(platform, forge=rival), entry.order, person(desk.frank))

    assert rival.has_acted


@pytest.mark.parametrize("only_waiting", [True, False])
def test_who_withdraws_an_order_that_is_delivered_meanwhile_does_not_end_it(
    desk: Desk, *, only_waiting: bool
) -> None:
    entry, platform = desk.order().entry, desk.platform

    def act() -> None:
        approve(platform, entry.order, person(desk.frank))

    rival: Any = Rival(platform.forge, "head", act, when="before" if only_waiting else "after")
    request = EndRequest(entry.order, person(desk.eve).ref, only_waiting=only_waiting)
    with pytest.raises(NotFoundError, match="does not wait any more"):
        destroy(replace(platform, forge=rival), request, on_step=lambda *_: None)

    assert rival.has_acted
    assert desk.in_ledger(entry)
    assert desk.phase(entry) != "Ended"


def test_whoever_began_to_withdraw_an_order_finishes_it(desk: Desk) -> None:
    entry, eve = desk.order().entry, person(desk.eve)
    begin_withdrawal(desk.platform, entry, requester=eve.ref, proof="", notes=(), repository=None)

    done = decline(desk.platform, entry.order, eve)

    assert (done.state, desk.phase(entry)) == ("withdrawn", "Ended")
    assert desk.proposal(entry).state == "closed"


def test_an_order_that_cannot_be_read_is_listed_with_the_reason_and_asks_nobody(
    desk: Desk, orderkit: Command
) -> None:
    """Somebody deleted its repository, for example."""
    entry = desk.order().entry
    desk.platform.forge.delete_repo(entry.repository)

    (listed,) = pending(desk.platform, order=entry.order)
    asked = list(pending(desk.platform, person(desk.frank), order=entry.order))

    assert str(entry.repository) in listed.approval
    assert asked == []
    assert orderkit("destroy", "--yes", entry.order).code == 0


def test_whoever_ordered_may_withdraw_what_lost_its_repository(desk: Desk) -> None:
    entry = desk.order().entry
    desk.platform.forge.delete_repo(entry.repository)

    with pytest.raises(OrderkitError):
        decline(desk.platform, entry.order, person(desk.carol))
    done = decline(desk.platform, entry.order, person(desk.eve))

    assert (done.state, done.url) == ("withdrawn", desk.proposal(entry).web_url)
    assert desk.phase(entry) == "Ended"
    assert desk.proposal(entry).state == "closed"


def test_two_people_are_two_people(desk: Desk) -> None:
    entry = desk.order(stage="stage2").entry
    pull = desk.proposal(entry)
    desk.approve(pull, desk.carol)
    desk.approve(pull, desk.carol)

    first = settle(desk.platform, entry)
    desk.approve(pull, desk.eve)  # she asked for it
    second = settle(desk.platform, entry)

    assert first is not None
    assert second is not None
    assert f"so far: {desk.carol.login}" in first.missing
    assert f"{desk.eve.login} is behind it and does not count" in second.missing


def test_the_same_order_again_finds_its_open_pull_request(desk: Desk) -> None:
    entry = desk.order().entry
    before = desk.proposal(entry)

    again = desk.order()

    assert again.state.phase == "Waiting"
    assert desk.proposal(entry) == before
    titles = [p.title for p in desk.platform.forge.pulls(desk.platform.ledger, state="all")]
    assert titles.count(before.title) == 1


def test_a_command_that_waits_ends_with_who_has_to_agree(desk: Desk, orderkit: Command) -> None:
    done = orderkit(
        "order", "garage", f"team_name={desk.team}", "stage=stage3",
        "--requester", f"user:default/{desk.eve.login}",
    )  # fmt: skip

    assert done.code == 5
    assert "waits for approval by group finance, because stage 3 is expensive" in done.err
    assert f"orderkit approve garage-{desk.team}" in done.err


def test_closing_the_pull_request_withdraws_the_order(desk: Desk) -> None:
    entry = desk.order().entry
    pull = desk.proposal(entry)
    desk.platform.forge.close_pull(desk.platform.ledger, pull.number)

    with suppress(OrderkitError):  # the service does the same at the same time
        settle(desk.platform, entry)

    until(
        desk.platform.clock,
        lambda: desk.phase(entry),
        lambda phase: phase == "Ended",
        timeout_s=60,
        goal="withdrawn",
    )
    assert_withdrawn(desk, entry)


def assert_withdrawn(desk: Desk, entry: OrderEntry) -> None:
    """Nothing is delivered, nothing waits; the repository is archived, and a tombstone says so."""
    paths = ledger_snapshot(desk.platform).blobs
    repository = desk.platform.forge.repo(entry.repository)
    assert repository is not None
    assert repository.archived
    assert len(ledger.tombstones(paths, entry.order)) == 1
    assert not {entry.waiting_path, entry.end_path, entry.application_path} & set(paths)
    assert desk.proposal(entry).state == "closed"


def test_many_withdraw_at_once_and_it_is_withdrawn_once(desk: Desk) -> None:
    entry = desk.order().entry

    def withdraw(_: int) -> None:
        with suppress(ConflictError, NotFoundError):  # another was faster, which they say
            decline(desk.platform, entry.order, person(desk.eve))

    with ThreadPoolExecutor() as pool:
        list(pool.map(withdraw, range(4)))

    assert_withdrawn(desk, entry)


def test_a_waiting_order_is_ended_as_any_other(desk: Desk, orderkit: Command) -> None:
    entry = desk.order().entry

    done = orderkit("destroy", "--yes", entry.order)

    assert done.code == 0, done.err
    assert_withdrawn(desk, entry)


def test_whoever_ordered_may_withdraw_and_a_stranger_may_not(desk: Desk) -> None:
    entry = desk.order().entry

    with pytest.raises(RefusedError, match="is not an approver"):
        decline(desk.platform, entry.order, person(desk.carol))
    decline(desk.platform, entry.order, person(desk.eve), reason="not needed")

    assert_withdrawn(desk, entry)


def test_an_order_that_waits_cannot_be_changed(desk: Desk, orderkit: Command) -> None:
    entry = desk.order().entry

    done = orderkit("change", entry.order, "stage=stage1")

    assert done.code == 4
    assert "waits for approval and cannot be changed yet" in done.err


def test_an_order_that_waits_has_no_lease_yet(desk: Desk, orderkit: Command) -> None:
    order, eve = desk.order().entry.order, Requester("user:default/eve")
    extending = ExtendRequest(order, timedelta(hours=1), eve, "more")

    shown = orderkit("lease", order)
    extended = orderkit("lease", "extend", order, "1h", "--reason", "more")
    with pytest.raises(RefusedError, match="waits for approval and is not delivered"):
        propose_extension(desk.platform, extending)

    assert (shown.code, extended.code) == (4, 4)
    assert f"{order} waits for approval and is not delivered" in shown.err
    assert f"orderkit destroy {order}" in extended.err


def test_the_id_of_a_waiting_order_is_taken(desk: Desk, orderkit: Command) -> None:
    entry = desk.order().entry

    done = orderkit("register", entry.order, "--kit", "garage", "--team", "other")

    assert done.code != 0
    assert desk.phase(entry) == "Waiting"


def test_a_team_may_ask_for_more_than_its_limit(desk: Desk, orderkit: Command) -> None:
    changed = orderkit("team", "change", desk.team, "--limit", "orders=0", "--over", "ask")

    report = desk.order(stage="stage1")

    assert changed.code == 0, changed.err
    assert report.row().approval == (
        f"the platform team, because team {desk.team} has reached its limit of 0 orders;"
        " no one can give that approval now: 1 must, and no one could"
    )
    desk.approve(desk.proposal(report.entry), desk.frank)
    waiting = settle(desk.platform, report.entry)
    path = f"/repos/{desk.platform.ledger}/collaborators/{desk.carol.login}"
    desk.admin.api("PUT", path, {"permission": "write"})
    desk.approve(desk.proposal(report.entry), desk.carol)
    settled = settle(desk.platform, report.entry)
    assert waiting is not None
    assert waiting.state == "waiting"
    assert settled is None or settled.state == "delivered", settled.missing
    assert "automated" in desk.in_ledger(report.entry)


def test_an_order_that_waits_neither_fails_nor_was_removed(desk: Desk, orderkit: Command) -> None:
    """Above all ``repair`` does not put its Application into the ledger, past the approval."""
    entry = desk.order().entry
    order = str(entry.order)

    assert order not in orderkit("doctor").out
    assert "was removed" not in orderkit("status", order).out
    assert "first failing" not in orderkit("trace", order).out
    assert order not in orderkit("list", "--failing").out
    repaired = orderkit("repair", order, "--json").json

    assert repaired["steps"] == []
    assert desk.in_ledger(entry) == ""


@pytest.mark.parametrize(
    ("bases", "told"),
    [
        (("beside", "main"), "somebody changed the base of its pull request"),
        (("beside",), "is not Orderkit's into main"),
    ],
)
def test_a_proposal_whose_base_somebody_changed_is_approved_by_nobody(
    desk: Desk, bases: tuple[str, ...], told: str
) -> None:
    """The forge forgets who pushed to it, so it does not say any more who is behind it."""
    platform, entry = desk.platform, desk.order().entry
    pull, head = desk.proposal(entry), platform.forge.head(platform.ledger)
    assert head is not None
    platform.forge.ensure_branch(platform.ledger, f"beside-{entry.order}", head)
    for base in bases:
        body = {"base": base.replace("beside", f"beside-{entry.order}")}
        desk.admin.api("PATCH", f"/repos/{platform.ledger}/pulls/{pull.number}", body)

    with pytest.raises(RefusedError, match=told):
        approve(platform, entry.order, person(desk.frank))
    assert desk.in_ledger(entry) == ""


def test_an_order_whose_id_another_team_took_meanwhile_is_not_delivered(desk: Desk) -> None:
    """Somebody wrote it into the ledger by hand."""
    platform, entry = desk.platform, desk.order().entry
    taken = OrderEntry(TeamName(f"other-{desk.team}"), entry.order).application_path
    by_hand = Operation(f"taken-{desk.team}", "user:default/hand", "by hand")
    platform.forge.write(platform.ledger, [FileChange(taken, b"{}", None)], by_hand)
    desk.approve(desk.proposal(entry), desk.frank)

    settled = settle(platform, entry)

    file = platform.forge.read(platform.ledger, taken, "main")
    assert file is not None
    back = Operation(f"back-{desk.team}", "user:default/hand", "by hand")
    platform.forge.write(platform.ledger, [FileChange(taken, None, file.sha)], back)
    assert settled is not None
    assert (settled.state, settled.missing) == (
        "waiting",
        f"{entry.order} is taken by another team",
    )
    assert desk.in_ledger(entry) == ""


def test_an_order_that_cannot_be_planned_is_proposed_and_says_why(desk: Desk) -> None:
    """For example, somebody removed the kit's Composition a minute ago."""
    platform, path = desk.platform, PurePosixPath("gitops", "apis", "garage", "composition.yaml")
    file = platform.forge.read(platform.pack_repo, path, "main")
    assert file is not None

    def publish(number: int, change: FileChange) -> None:
        operation = Operation(f"pack-{number}-{desk.team}", "user:default/t", "p")
        platform.forge.write(platform.pack_repo, [change], operation)

    publish(1, FileChange(path, None, file.sha))
    try:
        entry = desk.order().entry
    finally:
        publish(2, FileChange(path, file.data, None))

    assert "No plan: kit 'garage' has no Composition in " in desk.proposal(entry).body
    assert desk.phase(entry) == "Waiting"


def test_an_order_whose_pull_request_was_closed_is_not_proposed_again(desk: Desk) -> None:
    entry = desk.order().entry
    path = f"/repos/{desk.platform.ledger}/pulls/{desk.proposal(entry).number}"
    desk.admin.api("PATCH", path, {"state": "closed"})

    with pytest.raises(OrderkitError) as refused:
        desk.order()

    assert desk.in_ledger(entry) == ""
    assert "its pull request was closed, which withdraws the order" in str(refused.value)


def test_what_nobody_proves_to_have_written_is_not_proposed(site: Running, desk: Desk) -> None:
    """Whose approval would count is not known of a push."""
    platform = desk.platform
    bay = new_repository(platform, f"unproved-{desk.team}", desk.team)
    stranger = client_at(platform.forge.base_url, site.settings.forge, None, read_timeout_s=10)
    with stranger:
        by_hand = replace(bay, platform=replace(platform, forge=stranger))
        by_hand.edit("stage1", "stage3")
    asked = Registration(bay.order, "garage", desk.team, f"user:default/{desk.eve.login}")

    with pytest.raises(RefusedError, match="nothing proves who wrote"):
        register(platform, asked)
