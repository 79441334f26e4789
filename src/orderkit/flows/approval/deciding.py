"""
Somebody agrees to an order, or declines it: with a proof of who they are, never as a claim.

Two ways: a person whom the service knows by a token or a session, whose agreement goes into the
ledger; or a person's own credentials for the forge, with which they review the pull request there.

Called by ``orderkit approve`` and ``orderkit approvals``, and by the service.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from orderkit.core.errors import (
    AccessError,
    ConflictError,
    NotFoundError,
    OrderkitError,
    RefusedError,
)
from orderkit.core.kit.approval_rules import Need, sentence
from orderkit.core.names import MAIN, RepoId
from orderkit.core.order import end_record, ledger
from orderkit.core.order.approval import Agreement, WaitingOrder
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.plan.plan_markdown import plain_line
from orderkit.flows.approval.settling import settle, withdraw
from orderkit.flows.change.review_judging import Judgement
from orderkit.flows.change.reviewing import (
    judge_review,
    merge_reviewed,
    open_pull,
    set_review_status,
)
from orderkit.flows.order import order_report
from orderkit.flows.order.approval_judging import forge_user, may_agree
from orderkit.flows.order.approval_needs import Asking, order_needs
from orderkit.flows.order.approval_records import record_agreement, waiting_order
from orderkit.flows.order.commit_judging import CommitJudge
from orderkit.flows.order.live_order import find_living, new_live_order, read_xr
from orderkit.flows.order.order_proposals import (
    Proposal,
    open_proposal,
    proposal_of,
)
from orderkit.flows.platform import Platform, ledger_snapshot, read_text
from orderkit.ports.forge import ForgeUser, PullRequest
from orderkit.ports.requesters import UNKNOWN, Requester


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of an order by somebody's decision."""

    order: str
    team: str
    state: str
    """``waiting``, ``approved`` on the forge, ``delivered`` or ``withdrawn``."""
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
    platform: Platform,
    order: str,
    person: Requester,
    *,
    number: int | None = None,
    head: str | None = None,
) -> Decision:
    """
    Record the agreement of a person who proved who they are; deliver if nobody is missing.

    Idempotent.

    Args:
        number: The pull request of a change; None: the order itself waits.
        head: The head that the person looked at; None: the present one.

    Raises:
        NotFoundError: No such order or pull request, or it does not wait.
        RefusedError: The person is not proved, not asked, or behind the order or the change.
        ConflictError: What is proposed changed since the person looked.
    """
    subject = _subject(platform, order, number)
    pull = subject.pull
    if head is not None and not (head and pull.head_commit.startswith(head)):
        raise ConflictError(
            f"{order}: what is proposed changed: it is at {pull.head_commit[:8]}, not {head[:8]}",
            hint="look at it again, then approve",
        )
    user = subject.asked_person(person)
    if user.id in subject.behind:
        raise RefusedError(
            f"{user.login} is behind {order} and cannot agree to it",
            hint=f"somebody else has to: {sentence(subject.needs)}",
        )
    agreement = Agreement(
        str(subject.repo),
        pull.number,
        pull.head_commit,
        person.ref,
        user.login,
        user.id,
        person.proof,
        platform.clock.now().isoformat(timespec="seconds"),
    )
    record_agreement(platform, subject.entry, agreement)
    if number is None:
        return _settled(platform, subject.entry)
    return _merged(platform, subject.entry, number, person)


def decline(
    platform: Platform,
    order: str,
    person: Requester,
    *,
    number: int | None = None,
    reason: str = "",
) -> Decision:
    """
    Withdraw an order that waits, or close a change, for somebody who is asked or asked for it.

    Idempotent.

    Raises:
        NotFoundError: No such order or pull request, or it does not wait.
        RefusedError: The person is not proved, or neither.
    """
    if number is None and (ending := _own_withdrawal(platform, order, person)):
        withdraw(platform, ending, person.ref, person.proof, reason)
        return Decision(order, ending.team, "withdrawn")
    subject = _subject(platform, order, number)
    if not (person.proof and person.ref == subject.requester):
        subject.asked_person(person)
    if number is None:
        withdraw(platform, subject.entry, person.ref, person.proof, reason)
    else:
        why = f": {plain_line(reason)}" if reason else ""
        text = f"Declined by {plain_line(person.ref)}{why}"
        platform.forge.comment(subject.repo, number, text, marker="orderkit/declined")
        platform.forge.close_pull(subject.repo, number)
    return Decision(order, subject.entry.team, "withdrawn", url=subject.pull.web_url)


def _own_withdrawal(platform: Platform, order: str, person: Requester) -> OrderEntry | None:
    """Return an order whose end somebody began and that did not come to its end."""
    entry = ledger.ending_order(ledger_snapshot(platform).blobs, order)
    text = read_text(platform, platform.ledger, entry.end_path, MAIN) if entry else None
    if entry is None or text is None or not person.proof:
        return None
    record = end_record.parse(text, name=str(entry.end_path))
    return entry if record.requester == person.ref else None


def approve_on_forge(platform: Platform, order: str, *, number: int | None = None) -> Decision:
    """
    Approve a pull request on the forge, with the caller's own credentials. Idempotent.

    With the platform's credentials, which prove nobody, it only delivers what everybody agreed to.

    Raises:
        NotFoundError: No such order or pull request, it does not wait, or the caller may not see
            the ledger.
        RefusedError: The credentials are the platform's, and somebody still has to agree.
    """
    entry, repo, pull, approval = _on_forge(platform, order, number)
    me = platform.forge.user()
    if pull.author.login.lower() != me.lower():
        text = f"{order}: agreed to with 'orderkit approve'"
        platform.forge.approve(repo, pull.number, head=pull.head_commit, text=text)
        return Decision(order, entry.team, "approved", approval, pull.web_url)
    if number is None:
        decision = _settled(platform, entry)
    else:
        decision = _merged(platform, entry, number, Requester(UNKNOWN))
    if decision.state == "waiting":
        raise RefusedError(
            f"{me} is the platform's account and proves nobody; {order} waits for"
            f" {decision.missing}",
            hint="approve with your own account of the forge (ORDERKIT_FORGE_USER and"
            " ORDERKIT_FORGE_PASSWORD, or ORDERKIT_FORGE_TOKEN), or in the console",
        )
    return decision


def _on_forge(
    platform: Platform, order: str, number: int | None
) -> tuple[OrderEntry, RepoId, PullRequest, str]:
    """Return what is to be approved, with as few rights as somebody's own credentials have."""
    if number is not None:
        live = find_living(platform, order)
        return live.entry, live.repository, open_pull(platform, live, number), ""
    entry = waiting_entry(platform, order)
    waiting = waiting_order(platform, entry)
    pull = open_proposal(platform, waiting) if waiting else None
    if pull is None or waiting is None:
        raise NotFoundError(f"{order} is not proposed yet", hint="repeat its order")
    return entry, platform.ledger, pull, waiting.approval


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
                yield PendingApproval(entry.order, entry.team, "", "", "", str(error), "", "")
            continue
        yield _pending(proposal.waiting, proposal.pull, proposal.needs)


def pending_for_credentials(platform: Platform) -> Iterator[PendingApproval]:
    """
    Yield the orders that wait for whoever our credentials belong to; all for the platform's own.

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
        asking = Asking(waiting.requester, waiting.proof)
        needs = order_needs(platform, live, xr, asking, snapshot)
        approvers = {approver for need in needs for approver in need.by}
        is_mine = pull.author.login.lower() == me.lower()
        if is_mine or any(_is_me(platform, entry, approver, me) for approver in approvers):
            yield _pending(waiting, pull, needs)


def _is_me(platform: Platform, entry: OrderEntry, approver: str, me: str) -> bool:
    """Say whether our credentials are those of one who is asked, as far as they can see."""
    if approver in ("team", "platform"):
        repo = platform.forge.repo(entry.repository if approver == "team" else platform.ledger)
        return repo is not None and repo.can_write
    kind, _, name = approver.partition(":default/")
    if kind == "user":
        return name.lower() == me.lower()
    org, _, team = name.partition(":")
    with suppress(AccessError):
        return any(m.login.lower() == me.lower() for m in platform.forge.members(org, team))
    return False


def _pending(waiting: WaitingOrder, pull: PullRequest, needs: Iterable[Need]) -> PendingApproval:
    return PendingApproval(
        waiting.order,
        waiting.team,
        waiting.kit,
        waiting.requester,
        waiting.since,
        sentence(needs),
        pull.web_url,
        pull.head_commit,
    )


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


@dataclass(frozen=True, slots=True)
class _Subject:
    """What somebody may agree to: a proposed order, or a change's pull request."""

    platform: Platform
    entry: OrderEntry
    repo: RepoId
    pull: PullRequest
    needs: tuple[Need, ...]
    behind: Collection[int]
    requester: str
    """Who asked for it, if that is proved."""

    def asked_person(self, person: Requester) -> ForgeUser:
        """
        Return the forge's account of somebody who may agree.

        Raises:
            RefusedError: The person is not proved, has no account, or is not asked.
        """
        if not person.proof:
            raise RefusedError(
                f"nothing proves that this is {person.ref}",
                hint="sign in to the console, or approve on the forge",
            )
        user = forge_user(self.platform, self.platform.ledger, person.ref)
        if user is None:
            raise RefusedError(
                f"{person.ref} is not a user of the forge, whose groups say who may agree",
                hint="name the login in the annotation orderkit.dev/forge-login of the User in the"
                " portal's catalog",
            )
        if not any(may_agree(self.platform, self.entry, need, user) for need in self.needs):
            raise RefusedError(
                f"{user.login} is not asked to agree to {self.entry.order}",
                hint=f"who is: {sentence(self.needs) or 'nobody'}",
            )
        return user


def _subject(platform: Platform, order: str, number: int | None) -> _Subject:
    if number is None:
        entry = waiting_entry(platform, order)
        proposal = proposal_of(platform, entry)
        if proposal is None:
            raise NotFoundError(f"{order} does not wait for approval any more")
        return _of_proposal(proposal)
    live = find_living(platform, order)
    pull = open_pull(platform, live, number)
    if pull.state != "open":
        raise NotFoundError(f"{live.repository}#{number} is merged")
    needs, behind = Judgement(platform, live, pull).parties()
    judge = CommitJudge(platform, live.repository, pull.head_commit)
    commits = platform.forge.compare(live.repository, MAIN, pull.head_commit)
    proved = {judge.requester(commit) for commit in commits}
    requester = proved.pop() if len(proved) == 1 else ""
    return _Subject(platform, live.entry, live.repository, pull, needs, behind, requester)


def _of_proposal(proposal: Proposal) -> _Subject:
    return _Subject(
        proposal.platform,
        proposal.live.entry,
        proposal.platform.ledger,
        proposal.pull,
        proposal.needs,
        proposal.behind(),
        proposal.waiting.requester,
    )


def _waits_for(proposal: Proposal, person: Requester) -> bool:
    try:
        subject = _of_proposal(proposal)
        return subject.asked_person(person).id not in subject.behind
    except RefusedError:
        return False


def _merged(platform: Platform, entry: OrderEntry, number: int, person: Requester) -> Decision:
    """Merge a change if nobody is missing any more."""
    live = find_living(platform, entry.order)
    pull = open_pull(platform, live, number)
    verdict = judge_review(platform, live, pull)
    if verdict.refusal:
        set_review_status(platform, live.repository, pull, verdict)
        return Decision(entry.order, entry.team, "waiting", verdict.refusal, pull.web_url)
    merge_reviewed(platform, entry.order, number, requester=person.ref, proof=person.proof)
    return Decision(entry.order, entry.team, "delivered", "", pull.web_url)


def _settled(platform: Platform, entry: OrderEntry) -> Decision:
    settled = settle(platform, entry)
    if settled is None:  # another process settled it
        return Decision(entry.order, entry.team, "delivered")
    url = settled.pull.web_url if settled.pull else ""
    return Decision(entry.order, entry.team, settled.state, settled.missing, url)
