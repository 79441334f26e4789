"""
What waits for somebody's agreement: proposed orders, and open pull requests of delivered ones.

The live model asks `lacking_of`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial

from ground.errors import OrderkitError, RefusedError
from ground.names import MAIN, OrderId, TeamName
from ground.shapes import Answer, changed
from orderkit.core.kit.approval_rules import sentence
from orderkit.core.order import ledger
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.approval.deciding import (
    Subject,
    is_asked,
    is_own_request,
    subject_of,
    subject_of_proposal,
)
from orderkit.flows.change.review_judging import Judgement
from orderkit.flows.change.reviewing import judge_review
from orderkit.flows.order.approvals import asking_of, may_need_approval, order_needs
from orderkit.flows.order.ledger_records import waiting_order
from orderkit.flows.order.live_order import LiveOrder, find_living, new_live_order, read_xr
from orderkit.flows.order.order_proposals import open_proposal, proposal_of
from orderkit.flows.platform import (
    Platform,
    RepositorySnapshot,
    ledger_snapshot,
    published_pack,
)
from orderkit.flows.team.limit_check import team_of
from orderkit.ports.forge import OpenPullRef, PullRequest
from orderkit.ports.requesters import Requester

logger = logging.getLogger(__name__)


class PendingApproval(Answer, frozen=True):
    """An order, or a change of one, that waits for somebody."""

    order: str
    team: str
    kit: str
    requester: str
    since: str
    approval: str
    """Who has to agree, and why."""
    url: str
    head: str
    number: int | None = None
    """The pull request of a change; None: the order itself waits."""
    yours: bool = True
    """The person who asked for the list may approve it."""
    reason: str = ""
    """Why that person may not, if that is known."""


def pending(
    platform: Platform,
    person: Requester | None = None,
    *,
    order: str | None = None,
    teams: Collection[str] | None = (),
) -> Iterator[PendingApproval]:
    """
    Yield the orders that wait, by team and id, then the changes.

    Args:
        person: What waits for this person, who may agree; None: all.
        teams: What waits for others is yielded, too, if it is of these teams; None: of all.
        order: Only this order itself; None: all orders, and their changes.
    """
    snapshot = ledger_snapshot(platform)
    for entry in ledger.waiting_orders(snapshot.blobs):
        if order not in (None, entry.order):
            continue
        try:
            proposal = proposal_of(platform, entry)
            if proposal is None:
                continue
            reason = _why_not(partial(subject_of_proposal, proposal), person)
            if not reason or teams is None or entry.team in teams:
                waiting = proposal.waiting
                asked_for = (waiting.requester, waiting.since, sentence(proposal.needs))
                pending_order = _pending(proposal.live, proposal.pull, *asked_for)
                yield changed(pending_order, yours=not reason, reason=reason)
        except OrderkitError as error:
            if person is None:
                yield PendingApproval(entry.order, entry.team, "", "", "", str(error), "", "")
    for live, pull in _open_changes(platform, snapshot) if order is None else ():
        with suppress(OrderkitError):  # the forge does not show yet who pushed it
            lacking = judge_review(platform, live, pull).approval
            if not lacking:
                continue
            reason = _why_not(partial(subject_of, platform, live.entry.order, pull.number), person)
            if not reason or teams is None or live.entry.team in teams:
                pending_change = _pending_change(live, pull, lacking)
                yield changed(pending_change, yours=not reason, reason=reason)


def pending_for_credentials(platform: Platform) -> Iterator[PendingApproval]:
    """
    Yield everything that waits, and whether it waits for whoever our credentials belong to.

    Raises:
        NotFoundError: They may not see the ledger.
    """
    snapshot, me = ledger_snapshot(platform), platform.forge.user()
    for entry in ledger.waiting_orders(snapshot.blobs):
        waiting = waiting_order(platform, entry, snapshot.commit)
        pull = open_proposal(platform, waiting) if waiting else None
        if waiting is None or pull is None:
            continue
        live = new_live_order(platform, entry, snapshot, waiting.kit)
        xr = read_xr(platform, live, waiting.commit).xr
        asking = asking_of(waiting)
        needs = order_needs(platform, live, xr, asking, snapshot)
        pending_order = _pending(live, pull, waiting.requester, waiting.since, sentence(needs))
        is_yours = is_asked(platform, entry, needs, me) and not is_own_request(waiting, me)
        yield changed(pending_order, yours=is_yours)
    for live, pull in _open_changes(platform, snapshot):
        with suppress(RefusedError):  # it proposes what nobody can agree to
            needs = Judgement(platform, live, pull).needs()
            if needs:
                is_yours = is_asked(platform, live.entry, needs, me)
                yield changed(_pending_change(live, pull, sentence(needs)), yours=is_yours)


def _open_changes(
    platform: Platform, snapshot: RepositorySnapshot
) -> Iterator[tuple[LiveOrder, PullRequest]]:
    """Yield the open pull requests that may need approval; one that cannot be read is left out."""
    kits_ask = any(kit.approval.rules for kit in published_pack(platform).kits())
    for team in ledger.teams(snapshot.blobs):
        # without this, a platform of 400 teams whose kits ask nobody is asked 400 times
        if not kits_ask and team_of(platform, team, snapshot).limits.over != "ask":
            continue
        for ref in platform.forge.open_pulls(team):
            try:
                change = _change_at(platform, snapshot, ref)
            except OrderkitError as error:
                logger.warning("%s#%d cannot be read: %s", ref.repo, ref.number, error)
                continue
            if change is not None:
                yield change


def _change_at(
    platform: Platform, snapshot: RepositorySnapshot, ref: OpenPullRef
) -> tuple[LiveOrder, PullRequest] | None:
    entry = OrderEntry(TeamName(ref.repo.owner), OrderId(ref.repo.name))
    if entry.application_path not in snapshot.blobs or entry.end_path in snapshot.blobs:
        return None
    live = find_living(platform, entry.order, snapshot)
    pull = platform.forge.pull(ref.repo, ref.number) if may_need_approval(live) else None
    is_change = pull is not None and (pull.state, pull.base) == ("open", MAIN)
    return (live, pull) if pull and is_change else None


def lacking_of(platform: Platform, snapshot: RepositorySnapshot, ref: OpenPullRef) -> str:
    """
    Return which agreement an open pull request of an order lacks, in words; empty if none.

    Raises:
        OrderkitError: It cannot be judged now.
    """
    change = _change_at(platform, snapshot, ref)
    if change is None:
        return ""
    live, pull = change
    lacking = judge_review(platform, live, pull).approval
    return f"#{pull.number} at {pull.head_commit[:8]} waits for {lacking}" if lacking else ""


def _why_not(subject: Callable[[], Subject], person: Requester | None) -> str:
    """Return why somebody may not agree, in a sentence; empty if they may, as None: anybody."""
    if person is None:
        return ""
    try:
        waiting = subject()
        is_behind = waiting.asked_person(person).id in waiting.behind
    except RefusedError as error:
        return str(error)
    return f"{person.ref} asked for it or pushed to it" if is_behind else ""


def _pending(
    live: LiveOrder, pull: PullRequest, requester: str, since: str, approval: str
) -> PendingApproval:
    entry, url = live.entry, pull.web_url
    return PendingApproval(
        entry.order, entry.team, live.kit.name, requester, since, approval, url, pull.head_commit
    )


def _pending_change(live: LiveOrder, pull: PullRequest, approval: str) -> PendingApproval:
    requester = pull.requester or f"user:default/{pull.author.login}"
    waiting = _pending(live, pull, requester, pull.created, approval)
    return changed(waiting, number=pull.number)
