"""
Somebody agrees to an order, or declines it: with a proof of who they are, never as a claim.

Two ways: a person whom the service knows by a token or a session, whose agreement goes into the
ledger; or a person's own credentials for the forge, with which they review the pull request there.

Called by ``orderkit approve`` and ``orderkit approvals``, and by the service.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from orderkit.core.errors import ConflictError, NotFoundError, OrderkitError, RefusedError
from orderkit.core.kit.approval_rules import sentence
from orderkit.core.order import ledger
from orderkit.core.order.approval import Agreement
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.approval.judging import forge_user, may_agree
from orderkit.flows.approval.order_proposals import (
    Proposal,
    open_proposal,
    proposal_of,
    settle,
    withdraw,
)
from orderkit.flows.approval.records import record_agreement, waiting_order
from orderkit.flows.order import order_report
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.ports.forge import ForgeUser
from orderkit.ports.requesters import Requester


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of an order by somebody's decision."""

    order: str
    team: str
    state: str
    """``waiting``, ``delivered`` or ``withdrawn``."""
    missing: str = ""
    """Who still has to agree, and why."""
    url: str = ""
    """Its pull request."""

    def to_json(self) -> dict[str, Any]:
        """Return the stable shape that command and service answer with."""
        return {
            "order": self.order,
            "team": self.team,
            "state": self.state,
            "missing": self.missing or None,
            "url": self.url or None,
        }


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """An order that waits for somebody."""

    order: str
    team: str
    kit: str
    requester: str
    since: str
    approval: str
    """Who has to agree, and why."""
    url: str
    head: str

    def to_json(self) -> dict[str, Any]:
        """Return the stable shape that command and service answer with."""
        return {name: getattr(self, name) for name in self.__slots__}


def approve(
    platform: Platform, order: str, person: Requester, *, head: str | None = None
) -> Decision:
    """
    Record the agreement of a person who proved who they are, and settle the order. Idempotent.

    Args:
        head: The head that the person looked at; None: the present one.

    Raises:
        NotFoundError: No such order, or it does not wait.
        RefusedError: The person is not proved, not asked, or behind the order.
        ConflictError: What is proposed changed since the person looked.
    """
    entry = waiting_entry(platform, order)
    proposal = _proposal(platform, entry)
    pull = proposal.pull
    if head is not None and not (head and pull.head_commit.startswith(head)):
        raise ConflictError(
            f"{order}: what is proposed changed: it is at {pull.head_commit[:8]}, not {head[:8]}",
            hint="look at it again, then approve",
        )
    user = _asked_person(proposal, person)
    if user.id in proposal.behind():
        raise RefusedError(
            f"{user.login} is behind {order} and cannot agree to it",
            hint=f"somebody else has to: {sentence(proposal.needs)}",
        )
    agreement = Agreement(
        str(platform.ledger),
        pull.number,
        pull.head_commit,
        person.ref,
        user.login,
        user.id,
        person.proof,
        platform.clock.now().isoformat(timespec="seconds"),
    )
    record_agreement(platform, entry, agreement)
    return _settled(platform, entry)


def decline(platform: Platform, order: str, person: Requester, *, reason: str = "") -> Decision:
    """
    Withdraw an order that waits, for somebody who may agree to it or who ordered it. Idempotent.

    Raises:
        NotFoundError: No such order, or it does not wait.
        RefusedError: The person is not proved, or neither.
    """
    entry = waiting_entry(platform, order)
    proposal = _proposal(platform, entry)
    if not (person.proof and person.ref == proposal.waiting.requester):
        _asked_person(proposal, person)
    withdraw(platform, entry, person.ref, person.proof, reason)
    return Decision(order, entry.team, "withdrawn", url=proposal.pull.web_url)


def approve_on_forge(platform: Platform, order: str) -> Decision:
    """
    Approve an order's pull request on the forge, with the caller's own credentials. Idempotent.

    With the platform's credentials, which prove nobody, it only settles the order.

    Raises:
        NotFoundError: No such order, it does not wait, or the caller may not see the ledger.
        RefusedError: The credentials are the platform's, and somebody still has to agree.
    """
    entry = waiting_entry(platform, order)
    waiting = waiting_order(platform, entry)
    pull = open_proposal(platform, waiting) if waiting else None
    if pull is None or pull.author.login.lower() == platform.forge.user().lower():
        decision = _settled(platform, entry)
        if decision.state != "waiting":
            return decision
        raise RefusedError(
            f"{platform.forge.user()} is the platform's account and proves nobody; {order} waits"
            f" for {decision.missing}",
            hint="approve with your own account of the forge (ORDERKIT_FORGE_USER and"
            " ORDERKIT_FORGE_PASSWORD, or ORDERKIT_FORGE_TOKEN), or in the console",
        )
    text = f"{order}: agreed to with 'orderkit approve'"
    platform.forge.approve(platform.ledger, pull.number, head=pull.head_commit, text=text)
    return Decision(order, entry.team, "waiting", waiting.approval if waiting else "", pull.web_url)


def pending(platform: Platform, person: Requester | None = None) -> Iterator[PendingApproval]:
    """
    Yield the orders that wait, by team and id.

    Args:
        person: Only what waits for this person, who may agree; None: all.
    """
    for entry in ledger.waiting_orders(ledger_snapshot(platform).blobs):
        try:
            proposal = proposal_of(platform, entry)
            if proposal is None or (person is not None and not _waits_for(proposal, person)):
                continue
        except OrderkitError as error:
            if person is None:
                record = waiting_order(platform, entry)
                kit = record.kit if record else ""
                yield PendingApproval(entry.order, entry.team, kit, "", "", str(error), "", "")
            continue
        waiting, pull = proposal.waiting, proposal.pull
        yield PendingApproval(
            entry.order,
            entry.team,
            waiting.kit,
            waiting.requester,
            waiting.since,
            sentence(proposal.needs),
            pull.web_url,
            pull.head_commit,
        )


def may_decide(platform: Platform, order: str, person: Requester) -> bool:
    """Say whether an order waits for a person, who is not behind it."""
    try:
        proposal = proposal_of(platform, waiting_entry(platform, order))
        return proposal is not None and _waits_for(proposal, person)
    except OrderkitError:
        return False


def waiting_entry(platform: Platform, order: str) -> OrderEntry:
    """
    Return the entry of an order that waits for approval.

    Raises:
        NotFoundError: No such order, or it does not wait.
    """
    paths = ledger_snapshot(platform).blobs
    entry = order_report.find(order, paths)
    if entry.waiting_path not in paths:
        raise NotFoundError(
            f"{order} does not wait for approval", hint=f"see 'orderkit status {order}'"
        )
    return entry


def _proposal(platform: Platform, entry: OrderEntry) -> Proposal:
    proposal = proposal_of(platform, entry)
    if proposal is None:
        raise NotFoundError(f"{entry.order} does not wait for approval any more")
    return proposal


def _waits_for(proposal: Proposal, person: Requester) -> bool:
    try:
        return _asked_person(proposal, person).id not in proposal.behind()
    except RefusedError:
        return False


def _asked_person(proposal: Proposal, person: Requester) -> ForgeUser:
    """
    Return the forge's account of somebody who may agree.

    Raises:
        RefusedError: The person is not proved, has no account, or is not asked.
    """
    platform, entry = proposal.platform, proposal.live.entry
    if not person.proof:
        raise RefusedError(
            f"nothing proves that this is {person.ref}",
            hint="sign in to the console, or approve on the forge",
        )
    user = forge_user(platform, platform.ledger, person.ref)
    if user is None:
        raise RefusedError(
            f"{person.ref} is not a user of the forge, whose groups say who may agree",
            hint="name the login in the annotation orderkit.dev/forge-login of the User in the"
            " portal's catalog",
        )
    if not any(may_agree(platform, entry, need, user) for need in proposal.needs):
        raise RefusedError(
            f"{user.login} is not asked to agree to {entry.order}",
            hint=f"who is: {sentence(proposal.needs)}",
        )
    return user


def _settled(platform: Platform, entry: OrderEntry) -> Decision:
    settled = settle(platform, entry)
    if settled is None:  # another process settled it
        return Decision(entry.order, entry.team, "delivered")
    url = settled.pull.web_url if settled.pull else ""
    return Decision(entry.order, entry.team, settled.state, settled.missing, url)
