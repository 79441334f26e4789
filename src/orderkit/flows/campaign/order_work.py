"""
Do a campaign's work on one order: look what is done, make the change, take it back.

What is done is read from the order's own history: a commit with the campaign's id in its trailers,
signed by Orderkit if this platform signs. So nothing is done twice, whoever does it and however
often he is killed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from ground.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RemoteError,
)
from ground.names import MAIN, CommitSha, OrderId, RepoId
from ground.objects.kube_objects import Manifest
from orderkit.core.campaign.computing import Computer
from orderkit.core.campaign.deciding import OrderPhase
from orderkit.core.campaign.definition import CAMPAIGN_TRAILER, STEP_TRAILER, Campaign, FieldValues
from orderkit.core.campaign.record import CampaignRecord, attempt_of, is_back, step_text
from orderkit.core.kit.kit_file import How
from orderkit.core.kit.model import Kit
from orderkit.core.order.change import FieldConflictError
from orderkit.core.order.damage import in_entry
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_file import OrderFile
from orderkit.flows.argocd.commit_pinning import deliver
from orderkit.flows.campaign.campaign_reads import HISTORY
from orderkit.flows.change import ChangeRequest, change_living
from orderkit.flows.change.reverting import RevertRequest, revert
from orderkit.flows.forge_protection import needs_protection
from orderkit.flows.order.approvals import may_need_approval
from orderkit.flows.order.commit_judging import CommitJudge
from orderkit.flows.order.live_order import LiveOrder, check_kit, read_xr
from orderkit.flows.platform import Platform, RepositorySnapshot
from orderkit.flows.team.limit_check import team_of
from orderkit.ports.forge import Commit, Forge, PullRequest
from orderkit.ports.requesters import Requester

_ROUNDS = 8
HOW = {"kit": None, "direct": How.DIRECT, "review": How.REVIEW}


@dataclass(frozen=True, slots=True)
class GitFact:
    """What the repository of an order shows of a campaign."""

    kind: Literal["none", "made", "back", "proposed", "closed", "merged"]
    """``merged``: as commits that are not ours, because somebody rebased or squashed ours."""
    commit: CommitSha | None = None
    step: str = ""
    pull: int = 0


@dataclass(frozen=True, slots=True)
class Worked:
    """What became of one order just now."""

    phase: OrderPhase
    why: str = ""
    commit: CommitSha | None = None
    pull: int = 0
    base: CommitSha | None = None
    """The commit that it was made on, if that was just now."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What to do, for whom: the campaign, its record, the number of the wave."""

    ledger: RepositorySnapshot
    campaign: Campaign
    record: CampaignRecord
    wave: int
    requester: Requester

    def operation(self, order: str, *, back: bool = False) -> str:
        """Return the id of the one write that this attempt makes in an order."""
        return f"campaign-{self.record.id}-{order}-{self.record.attempt}{'-back' if back else ''}"

    def trailers(self, *, back: bool = False) -> tuple[tuple[str, str], ...]:
        """Return the trailers of its commits."""
        step = step_text(self.wave, self.record.attempt, back=back)
        return (CAMPAIGN_TRAILER, self.record.id), (STEP_TRAILER, step)


class Work(Protocol):
    """A kind of campaign, for one order at a time."""

    @property
    def kit(self) -> Kit:
        """The kit of the orders."""
        ...

    def on(self, platform: Platform) -> Work:
        """Return the same work through other ports."""
        ...

    def make(
        self, live: LiveOrder, head: CommitSha, cluster_xr: Manifest | None, to: Assignment
    ) -> Worked:
        """
        Make the change on top of a commit, or find that there is nothing to do.

        Raises:
            ConflictError: Somebody wrote meanwhile: look again.
            OrderkitError: It is refused, or the forge fails.
        """
        ...

    def take_back(self, live: LiveOrder, commit: CommitSha, to: Assignment) -> Worked:
        """Undo what a commit did, as far as nobody changed it since. Idempotent."""
        ...


def git_fact(
    platform: Platform, repo: RepoId, campaign_id: str, operation: str, *, pulls: bool = True
) -> GitFact:
    """
    Look what a repository shows of a campaign.

    Args:
        operation: Of the pull request to look for.
        pulls: Look for pull requests too, which is one request more.
    """
    commits = platform.forge.commits(repo, limit=HISTORY)
    if not commits:
        return GitFact("none")
    judge = CommitJudge(platform, repo, commits[0].id)
    for commit in commits:
        if commit.trailers.get(CAMPAIGN_TRAILER) == campaign_id and _is_ours(judge, commit):
            step = commit.trailers.get(STEP_TRAILER, "")
            return GitFact("back" if is_back(step) else "made", commit.id, step)
    if not pulls:
        return GitFact("none")
    for pull in platform.forge.pulls(repo, state="all", base=MAIN):
        if pull.operation != operation:
            continue
        if pull.state == "merged":
            return GitFact("merged", pull.merge_commit or pull.head_commit, pull=pull.number)
        if _proposes(platform, repo, campaign_id, pull):
            return GitFact("proposed" if pull.state == "open" else "closed", pull=pull.number)
    return GitFact("none")


def _proposes(platform: Platform, repo: RepoId, campaign_id: str, pull: PullRequest) -> bool:
    """Say whether a pull request has a commit of the campaign: its text may be anybody's."""
    judge = CommitJudge(platform, repo, pull.head_commit)
    commits = platform.forge.compare(repo, MAIN, pull.head_commit)
    return any(
        commit.trailers.get(CAMPAIGN_TRAILER) == campaign_id and _is_ours(judge, commit)
        for commit in commits
    )


def _is_ours(judge: CommitJudge, commit: Commit) -> bool:
    """Say whether Orderkit made a commit: whoever pushes can write trailers, but not sign."""
    return not judge.platform.signatures.can_sign or judge.is_proved(commit)


def found(fact: GitFact, record: CampaignRecord) -> Worked | None:
    """Return what a look means for the present attempt; None: there is something to do."""
    match fact.kind:
        case "made":
            return Worked(OrderPhase.MADE, commit=fact.commit)
        case "back" if attempt_of(fact.step) >= record.attempt:
            return Worked(OrderPhase.BACK, commit=fact.commit)
        case "proposed":
            return Worked(OrderPhase.PROPOSED, f"pull request #{fact.pull} is open", pull=fact.pull)
        case "closed":
            why = f"pull request #{fact.pull} was closed without being merged"
            return Worked(OrderPhase.SKIPPED, why, pull=fact.pull)
    return None


def living(
    platform: Platform, kit: Kit, entry: OrderEntry, ledger_files: RepositorySnapshot
) -> LiveOrder:
    """
    Return an order of a kit by the ledger alone: `find_living` with fewer requests.

    A write to an archived repository is refused by the forge.

    Raises:
        NotFoundError: It has ended.
        RefusedError: It is ending, or the ledger has it as an order of another kit.
    """
    order, blobs = entry.order, ledger_files.blobs
    if entry.application_path not in blobs:
        raise NotFoundError(f"{order} has ended", hint="orderkit list names live orders")
    if entry.end_path in blobs:
        raise NotFoundError(f"{order} is ending")
    application, added = check_kit(platform, entry, kit.name)
    team = team_of(platform, entry.team, ledger_files)
    record = OrderFile(OrderId(order), kit.name, entry.team, "", {})
    edits = tuple(in_entry(entry, application, added=added)) if application else ()
    return LiveOrder(entry, kit, record, team, edits)


def work_on(
    platform: Platform,
    work: Work,
    entry: OrderEntry,
    to: Assignment,
    cluster_xr: Manifest | None,
) -> Worked:
    """
    Bring one order to what the campaign wants. Idempotent.

    A refusal is returned as failure, because it says something about this order only.

    Raises:
        RemoteError: The forge or the cluster fails in a way that may pass: try again later.
    """
    problem: OrderkitError | None = None
    for _ in range(_ROUNDS):
        try:
            live = living(platform, work.kit, entry, to.ledger)
        except NotFoundError as error:
            return Worked(OrderPhase.SKIPPED, str(error))
        except OrderkitError as error:
            if not _is_odd(error):
                return _refused(error)
            problem = error
            continue
        try:
            return _done(platform, work, live, to, cluster_xr)
        except (ConflictError, InvalidInputError) as error:
            # Of two that work on one order with other values, one finds the other's operation.
            if isinstance(error, InvalidInputError) and error.field != "operation":
                return _refused(error)
            problem = error
        except OrderkitError as error:
            if not _is_odd(error):
                return _refused(error)
            problem = error
    return _refused(problem or ConflictError("others won every round"))


def _is_odd(error: OrderkitError) -> bool:
    """Say whether an answer means nothing to us: a proxy may have given it, so ask again."""
    return type(error) is RemoteError


def _done(
    platform: Platform,
    work: Work,
    live: LiveOrder,
    to: Assignment,
    cluster_xr: Manifest | None,
) -> Worked:
    """
    Return what is done in an order already, and make sure that it is delivered; or do it.

    A merged pull request counts if nothing is left to do: whose commits they are, nobody proves.
    """
    operation, pulls = to.operation(live.entry.order), _may_propose(live, to)
    fact = git_fact(platform, live.repository, to.record.id, operation, pulls=pulls)
    if fact.kind == "made" and fact.commit:
        deliver(platform, live.entry, fact.commit, to.requester.ref, to.requester.proof)
    if (known := found(fact, to.record)) is not None:
        return known
    made = _made_now(platform.forge, work, live, to, cluster_xr)
    if fact.kind == "merged" and made.phase is OrderPhase.SKIPPED:
        return Worked(OrderPhase.MADE, commit=fact.commit, pull=fact.pull)
    return made


def _made_now(
    forge: Forge, work: Work, live: LiveOrder, to: Assignment, cluster_xr: Manifest | None
) -> Worked:
    head = forge.head(live.repository)
    if head is None:
        return Worked(OrderPhase.FAILED, f"{live.repository} has no commit")
    return work.make(live, head, cluster_xr, to)


def _may_propose(live: LiveOrder, to: Assignment) -> bool:
    """Say whether the campaign can have opened a pull request in an order at all."""
    how = to.campaign.how
    if to.campaign.what.fields is None:
        return how != "direct"
    is_asked = needs_protection(live.kit) or may_need_approval(live)
    return how == "review" or (how == "kit" and is_asked)


def _refused(error: OrderkitError) -> Worked:
    if error.retryable and not isinstance(error, ConflictError):
        raise error
    return Worked(OrderPhase.FAILED, str(error))


def take_back_on(
    platform: Platform,
    work: Work,
    entry: OrderEntry,
    to: Assignment,
) -> Worked:
    """
    Take back what the campaign did in one order, as far as nobody changed it since. Idempotent.

    Raises:
        RemoteError: The forge or the cluster fails in a way that may pass: try again later.
    """
    try:
        live = living(platform, work.kit, entry, to.ledger)
    except OrderkitError as error:
        if error.retryable:
            raise
        return Worked(OrderPhase.SKIPPED, str(error))
    fact = git_fact(platform, live.repository, to.record.id, to.operation(entry.order))
    if fact.kind == "proposed":
        with suppress(ConflictError):  # it was merged just now: look again
            platform.forge.close_pull(live.repository, fact.pull)
            return Worked(OrderPhase.BACK, f"pull request #{fact.pull} is closed")
        fact = git_fact(platform, live.repository, to.record.id, "", pulls=False)
    if fact.kind != "made" or fact.commit is None:
        phases = {"back": OrderPhase.BACK, "merged": OrderPhase.KEPT}
        by_hand = f"pull request #{fact.pull} was rebased or squashed: revert its commits by hand"
        why = by_hand if fact.kind == "merged" else ""
        return Worked(phases.get(fact.kind, OrderPhase.SKIPPED), why, fact.commit)
    try:
        return work.take_back(live, fact.commit, to)
    except FieldConflictError as error:
        return Worked(OrderPhase.KEPT, str(error), fact.commit)
    except OrderkitError as error:
        if error.retryable:
            raise
        return Worked(OrderPhase.KEPT, str(error), fact.commit)


@dataclass(frozen=True)
class FieldWork:
    """Gives fields of orders other values, by changes as anybody may make them."""

    platform: Platform
    computer: Computer
    fields: FieldValues

    @property
    def kit(self) -> Kit:
        """The kit of the orders."""
        return self.computer.kit

    def on(self, platform: Platform) -> FieldWork:
        """See `Work`."""
        return replace(self, platform=platform)

    def make(
        self, live: LiveOrder, head: CommitSha, cluster_xr: Manifest | None, to: Assignment
    ) -> Worked:
        """See `Work`. Every rule of the kit, of the team and of approvals applies."""
        xr = read_xr(self.platform, live, head).xr
        values = self.computer.variables(live.entry, xr, cluster_xr)
        match = self.computer.matches(to.campaign.which.where, values)
        if not match.holds:
            why = match.why or "it does not match any more"
            return Worked(OrderPhase.FAILED if match.why else OrderPhase.SKIPPED, why)
        edits = self.computer.edits_of(self.fields, xr.get("spec") or {}, values)
        if not edits:
            return Worked(OrderPhase.SKIPPED, "it has the values already")
        request = ChangeRequest(
            order=live.entry.order,
            edits=edits,
            requester=to.requester,
            base=head,
            reason=to.campaign.reason,
            how=HOW[to.campaign.how],
            operation=to.operation(live.entry.order),
            trailers=to.trailers(),
            is_searched=True,
        )
        changed = change_living(self.platform, live, request)
        if changed.state == "proposed" and changed.pull:
            why = f"pull request #{changed.pull.number} is open"
            return Worked(OrderPhase.PROPOSED, why, pull=changed.pull.number)
        if changed.state == "committed":
            return Worked(OrderPhase.MADE, commit=changed.commit, base=head)
        return Worked(OrderPhase.SKIPPED, "it has the values already")

    def take_back(self, live: LiveOrder, commit: CommitSha, to: Assignment) -> Worked:
        """See `Work`."""
        request = RevertRequest(
            order=live.entry.order,
            commit=commit,
            requester=to.requester,
            reason=f"takes back campaign {to.campaign.name}",
            how=HOW[to.campaign.how],
            operation=to.operation(live.entry.order, back=True),
            trailers=to.trailers(back=True),
        )
        changed = revert(self.platform, request)
        if changed.pull:
            return Worked(OrderPhase.KEPT, f"pull request #{changed.pull.number} takes it back")
        return Worked(OrderPhase.BACK, commit=changed.commit)
