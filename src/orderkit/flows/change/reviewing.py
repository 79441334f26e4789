"""
Merge a reviewed change: judge its pull request by the kit's rules, then merge it as the platform.

The forge cannot do this. It bars the author of a pull request from approving it, but the author is
our account, not the person who asked. So on a protected branch nobody else may merge, and we merge
what somebody approved who neither asked for it nor pushed to it.
"""

from __future__ import annotations

from dataclasses import replace

from ground.errors import InProgressError, NotFoundError, RefusedError, shorten
from ground.names import MAIN, CommitSha, OrderId, RepoId, TeamName
from ground.shapes import Answer
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_state import short
from orderkit.flows.argocd.commit_pinning import deliver, pinned_commit
from orderkit.flows.argocd.refreshing import Ancestry
from orderkit.flows.change.review_judging import Judgement, ReviewVerdict
from orderkit.flows.forge_protection import CONTEXT, needs_protection
from orderkit.flows.order.agreements import set_approval_status
from orderkit.flows.order.approvals import may_need_approval, refuse_excess
from orderkit.flows.order.live_order import LiveOrder, find_living
from orderkit.flows.plan.pull_requests import plan_open_pull, set_plan_status
from orderkit.flows.platform import Platform
from orderkit.ports.forge import CommitStatus, Forge, MergeStyle, Operation, PullRequest

_DESCRIPTION_MAX = 140
"""GitHub refuses a longer description of a status."""
_LOOKS, _PAUSE_S = 10, 0.5
"""How often, and how far apart, the forge is asked again who pushed."""


class Merged(Answer, frozen=True):
    """A pull request and the commit on ``main`` that carries it."""

    order: str
    number: int
    commit: CommitSha
    approvers: tuple[str, ...]


def merge_reviewed(
    platform: Platform, order: str, number: int, *, requester: str, proof: str = ""
) -> Merged:
    """
    Merge a pull request of an order if its kit's rules let it, and say so in a status. Idempotent.

    Raises:
        NotFoundError: No such order or pull request.
        RefusedError: It lacks an approval by somebody else, the kit's rules forbid it, or the order
            would be refused after it.
        ConflictError: Somebody pushed to it meanwhile, or it was closed.
        InProgressError: The forge does not show yet who pushed a commit.
        IncompleteError: It is merged and not delivered yet; the same again delivers it.
    """
    live = find_living(platform, order)
    pull = open_pull(platform.forge, live, number)
    ancestry = Ancestry(platform.forge, live.repository)
    # merged already and perhaps not delivered: the same command again delivers it
    if pull.merge_commit is not None:
        main = platform.forge.head(live.repository) or ""
        # not one that somebody took off main again
        if ancestry.contains(main, pull.merge_commit):
            _refuse_bypass(Judgement(platform, live, pull), pull.merge_commit, ancestry)
            deliver(platform, live.entry, pull.merge_commit, requester, proof, ancestry=ancestry)
        return Merged(live.entry.order, number, pull.merge_commit, ())
    judgement = Judgement(platform, live, pull)
    judgement = replace(judgement, own_id=judgement.my_id())
    verdict = _judge_once_pushers_are_known(judgement)
    set_review_status(platform.forge, live.repository, pull, verdict)
    if verdict.refusal:
        raise RefusedError(
            f"{live.repository}#{number} is not merged: {verdict.refusal}",
            hint=verdict.hint
            or f"ask another member of the team for: orderkit approve {order} --pull {number}",
        )
    _refuse_by_plan(platform, live, pull)
    notes = tuple(("Orderkit-Approved-By", login) for login in verdict.approvers)
    why = Operation(
        f"merge-{number}-{pull.head_commit[:12]}", requester, pull.title, proof, notes=notes
    )
    # the head that was judged: the forge refuses to merge what somebody pushed since
    commit = platform.forge.merge_pull(
        live.repository, number, head=pull.head_commit, style=MergeStyle.MERGE, operation=why
    )
    # somebody may have merged it past Orderkit, or written to main just before
    _refuse_bypass(judgement, commit, ancestry)
    deliver(platform, live.entry, commit, requester, proof, ancestry=ancestry)
    return Merged(live.entry.order, number, commit, verdict.approvers)


def _refuse_bypass(judgement: Judgement, merge: CommitSha, ancestry: Ancestry) -> None:
    """
    Check that those who have to agree to what a merge delivers did, and the limits of the team.

    Raises:
        RefusedError: They did not, or it is above a limit.
    """
    platform, live, pull = judgement.platform, judgement.live, judgement.pull
    before = pinned_commit(platform, live.entry)
    if before is None or ancestry.contains(before, merge):
        return
    refuse_excess(platform, live, before, merge)
    if not may_need_approval(live):
        return
    (commit,) = platform.forge.commits(live.repository, ref=merge, limit=1)
    judgement = replace(judgement, base=str(commit.parents[0]), merged=merge)
    lacking = judgement.verdict().approval
    if lacking and live.kit.approval.bypass == "refuse":
        raise RefusedError(
            f"{live.repository}#{pull.number} is merged and not delivered: it needs approval by"
            f" {lacking}",
            hint=f"once they have approved it: orderkit merge {live.entry.order} {pull.number};"
            f" or take it back: orderkit revert {live.entry.order} {short(merge)}",
        )


def _refuse_by_plan(platform: Platform, live: LiveOrder, pull: PullRequest) -> None:
    """Plan the merge again and refuse by that; a plan that cannot be made stops nothing."""
    repo = live.repository
    # its statuses do not count: whoever may push may set them, too
    judged = plan_open_pull(platform, live, pull).judged
    set_plan_status(platform.forge, repo, pull.head_commit, judged, pull.web_url)
    # an order that would be refused as it is may be changed in any way: a repair may take steps
    was_refused = judged.plan is not None and judged.plan.before.faults
    if judged.refused or (judged.state == "failure" and not was_refused):
        raise RefusedError(
            f"{repo}#{pull.number} is not merged, by its plan: {judged.summary}",
            hint="push a commit that corrects it; the whole plan is shown by"
            f" 'orderkit plan --pull-request {repo}#{pull.number}'",
        )


def merge_unreviewed(
    platform: Platform,
    repo: RepoId,
    pull: PullRequest,
    operation: Operation,
    *,
    style: MergeStyle = MergeStyle.MERGE,
    deadline_s: float = 30.0,
) -> CommitSha:
    """
    Merge what the platform itself proposed, such as its probe, without a second person.

    Raises:
        IncompleteError: It is merged and not delivered yet.
        What ``ports.pulls.ForgePulls.merge_pull`` raises.
    """
    verdict = ReviewVerdict(("the platform itself",), approval="")
    set_review_status(platform.forge, repo, pull, verdict)
    commit = platform.forge.merge_pull(
        repo,
        pull.number,
        head=pull.head_commit,
        style=style,
        operation=operation,
        deadline_s=deadline_s,
    )
    entry = OrderEntry(TeamName(repo.owner), OrderId(repo.name))
    deliver(platform, entry, commit, operation.requester)
    return commit


def set_review_status(
    forge: Forge, repo: RepoId, pull: PullRequest, verdict: ReviewVerdict
) -> None:
    """
    Make sure that the status of a pull request's head says the verdict. Idempotent.

    Raises:
        NotFoundError, RemoteError: The forge.
    """
    text = shorten(verdict.summary, limit=_DESCRIPTION_MAX).strip()
    state = CommitStatus(CONTEXT, "failure" if verdict.refusal else "success", text, pull.web_url)
    forge.set_status(repo, pull.head_commit, state)
    if verdict.approval is not None:
        set_approval_status(forge, repo, pull.head_commit, pull, verdict.approval)


def keep_judged(platform: Platform, repo: RepoId, number: int) -> str:
    """
    Say in a status what an open pull request of an order lacks to be merged. Idempotent.

    Returns what the status says; "" where the kit wants no review.

    Raises:
        NotFoundError: No such order or pull request.
        RefusedError: It is not open, or goes into another branch.
        InProgressError: The forge does not show yet who pushed a commit.
    """
    live = find_living(platform, repo.name)
    if not needs_protection(live.kit):
        return ""
    pull = open_pull(platform.forge, live, number)
    if pull.merge_commit is not None:
        return ""
    verdict = judge_review(platform, live, pull)
    set_review_status(platform.forge, live.repository, pull, verdict)
    return verdict.summary


def judge_review(platform: Platform, live: LiveOrder, pull: PullRequest) -> ReviewVerdict:
    """
    Decide whether an open pull request into ``main`` may be merged at its present head.

    Raises:
        InProgressError: The forge does not show yet who pushed a commit.
        NotFoundError, RemoteError: The forge or the catalog.
    """
    return Judgement(platform, live, pull).verdict()


def _judge_once_pushers_are_known(judgement: Judgement) -> ReviewVerdict:
    for _ in range(_LOOKS):
        try:
            return judgement.verdict()
        except InProgressError:
            # Gitea notes a push after it was answered
            judgement.platform.clock.sleep(_PAUSE_S)
    return judgement.verdict()


def open_pull(forge: Forge, live: LiveOrder, number: int) -> PullRequest:
    """
    Return an open or merged pull request into ``main``.

    Raises:
        NotFoundError: There is none of that number.
        RefusedError: It was closed, or goes into another branch.
    """
    pull = forge.pull(live.repository, number)
    propose = f"open one into {MAIN}: orderkit change {live.entry.order} FIELD=VALUE --pr"
    if pull is None:
        raise NotFoundError(f"{live.repository} has no pull request {number}", hint=propose)
    if pull.base != MAIN or pull.state == "closed":
        why = "was closed" if pull.state == "closed" else f"goes into '{pull.base}'"
        raise RefusedError(
            f"{live.repository}#{number} {why}: merging it delivers nothing",
            hint=propose,
        )
    return pull
