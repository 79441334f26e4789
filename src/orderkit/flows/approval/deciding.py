"""
Somebody agrees to an order, or declines it: with a proof of who they are, never as a claim.

Two ways: a person whom the service knows by a token or a session, whose agreement goes into the
ledger; or a person's own credentials for the forge, with which they review the pull request there.

``pending`` lists what waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from ground.errors import AccessError, ConflictError, NotFoundError, RefusedError
from ground.names import MAIN, RepoId
from ground.shapes import Answer, Known
from orderkit.core.kit.approval_rules import Need, sentence
from orderkit.core.order import ledger
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
from orderkit.flows.order.agreements import LOGIN_HINT, WRITES, forge_user, may_agree
from orderkit.flows.order.approvals import asking_of, order_needs
from orderkit.flows.order.commit_judging import CommitJudge
from orderkit.flows.order.ledger_records import begun_end, record_agreement, waiting_order
from orderkit.flows.order.live_order import find_living, new_live_order, read_xr
from orderkit.flows.order.order_proposals import Proposal, open_proposal, proposal_of
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.ports.forge import ForgeUser, PullRequest
from orderkit.ports.requesters import UNKNOWN, Requester

_DECLINED = "orderkit/declined"
"""Marks the comment that says who declined."""


DecidedState = Literal["waiting", "approved", "declined", "delivered", "withdrawn", "closed"]


class Decided(Answer, frozen=True):
    """What became of an order by somebody's decision."""

    order: str
    team: str
    state: DecidedState
    """On the forge it is approved or declined, or its pull request was closed there."""
    missing: Known = ""
    """Who still has to agree, and why."""
    does_not_count: Known = ""
    """Why the approval does not count, as far as the caller can see; empty if it does."""
    url: Known = ""
    """Its pull request."""
    counts: bool | None = None
    """Whether an approval on the forge counts; None: it was none."""
    number: int | None = None
    """The number of the pull request of a change; None: the order itself waits."""


def approve(
    platform: Platform,
    order: str,
    person: Requester,
    *,
    number: int | None = None,
    head: str | None = None,
) -> Decided:
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
    subject = subject_of(platform, order, number)
    pull = subject.pull
    if head is not None and not (head and pull.head_commit.startswith(head)):
        raise ConflictError(
            f"{order}: what is proposed changed: it is at {pull.head_commit[:8]}, not {head[:8]}",
            hint="look at it again, then approve",
        )
    user = subject.asked_person(person)
    # by id: a login can be changed, and somebody else can take it
    if user.id in subject.behind:
        raise RefusedError(
            f"{user.login} is behind {order} and cannot approve it",
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
) -> Decided:
    """
    Withdraw an order that waits, or close a change, for somebody who is asked or asked for it.

    Idempotent.

    Raises:
        NotFoundError: No such order or pull request, or it does not wait.
        RefusedError: The person is not proved, or neither.
    """
    if number is None and (own := _own_order(platform, order, person)):
        entry, url = own
        withdraw(platform, entry, person.ref, person.proof, reason)
        return Decided(order, entry.team, "withdrawn", url=url)
    subject = subject_of(platform, order, number)
    if number is None:
        subject.asked_person(person)
        withdraw(platform, subject.entry, person.ref, person.proof, reason)
    else:
        if not (person.proof and person.ref == subject.requester):
            subject.asked_person(person)
        text = _declined(person.ref, reason)
        platform.forge.comment(subject.repo, number, text, marker=_DECLINED)
        platform.forge.close_pull(subject.repo, number)
    return Decided(order, subject.entry.team, "withdrawn", url=subject.pull.web_url)


def _own_order(platform: Platform, order: str, person: Requester) -> tuple[OrderEntry, str] | None:
    """
    Return an order that this person asked for and that waits, or whose end they began.

    With the URL of what proposes it, if its end has not begun. Nothing but the ledger is read: the
    order's repository may be gone.
    """
    paths = ledger_snapshot(platform).blobs
    entry = ledger.ending_order(paths, order) or ledger.living_order(paths, order)
    if entry is None or not person.proof:
        return None
    if entry.end_path in paths:
        end = begun_end(platform, entry)
        return (entry, "") if end and end.requester == person.ref else None
    waiting = waiting_order(platform, entry)
    if waiting is None or waiting.requester != person.ref:
        return None
    pull = open_proposal(platform, waiting)
    return entry, pull.web_url if pull else ""


def approve_on_forge(platform: Platform, order: str, *, number: int | None = None) -> Decided:
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
        text = f"{order}: approved with 'orderkit approve'"
        platform.forge.review(repo, pull.number, "approved", head=pull.head_commit, text=text)
        why_not = _does_not_count(platform, entry, pull, number, me)
        return Decided(
            order, entry.team, "approved", approval, why_not, pull.web_url, not why_not, number
        )
    if number is None:
        decision = _settled(platform, entry)
    else:
        decision = _merged(platform, entry, number, Requester(UNKNOWN))
    if decision.state == "waiting":
        raise RefusedError(
            f"{me} is the platform's account and proves nobody; {order} is not approved:"
            f" {decision.missing}",
            hint="approve with your own account of the forge (ORDERKIT_FORGE_USER and"
            " ORDERKIT_FORGE_PASSWORD, or ORDERKIT_FORGE_TOKEN), or in the console",
        )
    return decision


def decline_on_forge(
    platform: Platform, order: str, requester: str, *, number: int | None = None, reason: str = ""
) -> Decided:
    """
    Decline an order that waits, or a change, with the caller's own credentials. Idempotent.

    It is a review that asks for changes, which proves who declines, and blocks. Whoever may also
    closes the pull request; the service then withdraws the order. With the platform's credentials
    the order is withdrawn at once, for `requester`; an interrupted withdrawal is continued.

    Raises:
        NotFoundError: No such order or pull request, it does not wait, or the caller may not see
            the ledger.
    """
    ending = ledger.ending_order(ledger_snapshot(platform).blobs, order)
    if number is None and ending is not None and _is_withdrawn(platform, ending):
        if platform.forge.missing_rights(platform.ledger):
            return Decided(order, ending.team, "declined")
        withdraw(platform, ending, requester, reason=reason)
        return Decided(order, ending.team, "withdrawn")
    entry, repo, pull, _ = _on_forge(platform, order, number)
    me = platform.forge.user()
    is_own = pull.author.login.lower() == me.lower()
    if is_own and number is None:
        withdraw(platform, entry, requester, reason=reason)
        return Decided(order, entry.team, "withdrawn", url=pull.web_url)
    text = _declined(requester if is_own else me, reason)
    if is_own:  # Gitea lets nobody review their own pull request
        platform.forge.comment(repo, pull.number, text, marker=_DECLINED)
    else:
        platform.forge.review(repo, pull.number, "rejected", head=pull.head_commit, text=text)
    try:
        platform.forge.close_pull(repo, pull.number)
    except AccessError:
        missing = f"{me} asked for changes; whoever may write to {repo} can close it"
        return Decided(order, entry.team, "waiting", missing, url=pull.web_url)
    state: DecidedState = "declined" if number is None else "withdrawn"
    return Decided(order, entry.team, state, url=pull.web_url)


def _does_not_count(
    platform: Platform, entry: OrderEntry, pull: PullRequest, number: int | None, me: str
) -> str:
    """Return why an approval by the login `me` does not count; empty if nothing we see says so."""
    waiting = waiting_order(platform, entry) if number is None else None
    if waiting is not None:
        snapshot = ledger_snapshot(platform)
        live = new_live_order(platform, entry, snapshot, waiting.kit)
        xr = read_xr(platform, live, waiting.commit).xr
        asking = asking_of(waiting)
        needs = order_needs(platform, live, xr, asking, snapshot)
        is_own = is_own_request(waiting, me)
    else:
        live = find_living(platform, entry.order)
        judgement = Judgement(platform, live, pull)
        try:
            needs = judgement.needs()
            with suppress(AccessError):  # only an owner may ask for the rights of others
                judgement.parties()
        except RefusedError as error:  # whoever approves it, it is not merged
            return f"{error}; {error.hint}" if error.hint else str(error)
        is_own = (pull.requester or "").lower() == f"user:default/{me.lower()}"
        found = platform.forge.user_with_right(live.repository, me)
        if not needs and (found is None or found[1] not in WRITES):
            return f"{me} may not write to {live.repository}, so {me} cannot review its changes"
    if is_own:
        who = f": {sentence(needs)}" if needs else ""
        return f"{me} asked for it, and somebody else has to approve it{who}"
    if needs and not is_asked(platform, entry, needs, me):
        return f"{me} is not asked; it needs {sentence(needs)}"
    return ""


def _declined(who: str, reason: str) -> str:
    return f"Declined by {plain_line(who)}{f': {plain_line(reason)}' if reason else ''}"


def _is_withdrawn(platform: Platform, entry: OrderEntry) -> bool:
    end = begun_end(platform, entry)
    return end is not None and end.is_withdrawal


def _on_forge(
    platform: Platform, order: str, number: int | None
) -> tuple[OrderEntry, RepoId, PullRequest, str]:
    """Return what is to be approved, with as few rights as somebody's own credentials have."""
    if number is not None:
        live = find_living(platform, order)
        return live.entry, live.repository, open_pull(platform.forge, live, number), ""
    entry = waiting_entry(platform, order)
    waiting = waiting_order(platform, entry)
    pull = open_proposal(platform, waiting) if waiting else None
    if pull is None or waiting is None:
        raise NotFoundError(f"{order} is not proposed yet", hint="repeat its order")
    return entry, platform.ledger, pull, waiting.approval


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
class Subject:
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
                f"{person.ref} is not a user of the forge, whose groups decide who may approve",
                hint=LOGIN_HINT,
            )
        if not any(may_agree(self.platform, self.entry, need, user) for need in self.needs):
            raise RefusedError(
                f"{user.login} is not an approver of {self.entry.order}",
                hint=f"who is: {sentence(self.needs) or 'nobody'}",
            )
        return user


def subject_of(platform: Platform, order: str, number: int | None) -> Subject:
    """
    Return what waits: the order itself, or a change of it by the number of its pull request.

    Raises:
        NotFoundError: No such order or pull request, or it does not wait.
        RefusedError: Who is behind it is not known.
    """
    if number is None:
        entry = waiting_entry(platform, order)
        proposal = proposal_of(platform, entry)
        if proposal is None:
            raise NotFoundError(f"{order} does not wait for approval any more")
        return subject_of_proposal(proposal)
    live = find_living(platform, order)
    pull = open_pull(platform.forge, live, number)
    if pull.state != "open":
        raise NotFoundError(f"{live.repository}#{number} is merged")
    needs, behind = Judgement(platform, live, pull).parties()
    judge = CommitJudge(platform, live.repository, pull.head_commit)
    commits = platform.forge.compare(live.repository, MAIN, pull.head_commit)
    proved = {judge.requester(commit) for commit in commits}
    requester = proved.pop() if len(proved) == 1 else ""
    return Subject(platform, live.entry, live.repository, pull, needs, behind, requester)


def subject_of_proposal(proposal: Proposal) -> Subject:
    """Return a proposed order as something to agree to; raises RefusedError as `subject_of`."""
    return Subject(
        proposal.platform,
        proposal.live.entry,
        proposal.platform.ledger,
        proposal.pull,
        proposal.needs,
        proposal.behind(),
        proposal.waiting.requester,
    )


def is_asked(platform: Platform, entry: OrderEntry, needs: Iterable[Need], me: str) -> bool:
    """Say whether our credentials, of the login `me`, are of one who is asked, as far as we see."""
    approvers = {approver for need in needs for approver in need.by}
    return any(_is_me(platform, entry, approver, me) for approver in approvers)


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


def is_own_request(waiting: WaitingOrder, me: str) -> bool:
    """Say whether the login `me` asked for an order, so that its approval does not count."""
    return waiting.requester.lower() == f"user:default/{me.lower()}"


def _merged(platform: Platform, entry: OrderEntry, number: int, person: Requester) -> Decided:
    """Merge a change if nobody is missing any more."""
    live = find_living(platform, entry.order)
    pull = open_pull(platform.forge, live, number)
    verdict = judge_review(platform, live, pull)
    if verdict.refusal:
        set_review_status(platform.forge, live.repository, pull, verdict)
        return Decided(entry.order, entry.team, "waiting", verdict.refusal, url=pull.web_url)
    merge_reviewed(platform, entry.order, number, requester=person.ref, proof=person.proof)
    return Decided(entry.order, entry.team, "delivered", url=pull.web_url)


def _settled(platform: Platform, entry: OrderEntry) -> Decided:
    settled = settle(platform, entry)
    if settled is None:  # another process settled it
        is_there = entry.application_path in ledger_snapshot(platform).blobs
        return Decided(entry.order, entry.team, "delivered" if is_there else "withdrawn")
    url = settled.pull.web_url if settled.pull else ""
    return Decided(entry.order, entry.team, settled.state, settled.missing, url=url)
