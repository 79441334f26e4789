"""
Merge a reviewed change: judge its pull request by the kit's rules, then merge it as the platform.

The forge cannot do this. It bars the author of a pull request from approving it, but the author is
our account, not the person who asked. So on a protected branch nobody else may merge, and we merge
what somebody approved who neither asked for it nor pushed to it.

The people behind a pull request are: the requester of each of its commits and of its text, who
opened it, and whoever pushed to it, as the forge authenticated them. Texts can be edited, so they
only ever add people. Nobody leaves this list without a push, which adds the pusher; a commit whose
pusher the forge does not show is not merged. People are compared by the forge's ids: a login can
be changed, and somebody else can take it. So a signed proposal names the requester's id.

Called by ``orderkit merge`` and by the service, which also hears of reviews.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from orderkit.core.errors import (
    InProgressError,
    NotFoundError,
    RefusedError,
    UsageError,
    shorten,
)
from orderkit.core.kit.model import How, KitChange
from orderkit.core.names import MAIN, BlobSha, CommitSha, OrderId, RepoId, TeamName
from orderkit.core.objects.kube_objects import metadata
from orderkit.core.order.change import differences, judge_rules
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.yaml.manifests import parse_documents
from orderkit.flows.argocd.ancestry import Ancestry
from orderkit.flows.argocd.commit_pinning import deliver, pinned_commit
from orderkit.flows.main_protection import CONTEXT, TEAM, needs_protection
from orderkit.flows.order.commit_judging import CommitJudge, published_keys, whole_history
from orderkit.flows.order.live_order import LiveOrder, XrFile, find_living, read_xr
from orderkit.flows.plan.announcing import set_plan_status
from orderkit.flows.plan.pull_requests import plan_pull
from orderkit.flows.platform import Platform
from orderkit.ports.forge import (
    REQUESTER_ACCOUNT_TRAILER,
    Commit,
    CommitStatus,
    ForgeUser,
    MergeStyle,
    Operation,
    PullEvent,
    PullRequest,
    Review,
)
from orderkit.ports.requesters import UNKNOWN

LOGIN_ANNOTATION = "orderkit.dev/forge-login"
"""On a User of the portal's catalog: its login on the forge, if that is not its name."""
_WRITES = ("write", "admin", "owner")
_DESCRIPTION_MAX = 140
_LOOKS, _PAUSE_S = 10, 0.5
"""How often, and how far apart, the forge is asked again who pushed."""


@dataclass(frozen=True, slots=True)
class ReviewVerdict:
    """Whether a pull request may be merged."""

    approvers: tuple[str, ...]
    refusal: str = ""
    """Why it may not be merged; empty: it may."""

    @property
    def summary(self) -> str:
        """Return it on one line."""
        if self.refusal:
            return self.refusal
        names = " and ".join(self.approvers)
        return f"approved by {names}" if names else "the kit asks for no review"


@dataclass(frozen=True, slots=True)
class MergedPull:
    """A pull request and the commit on ``main`` that carries it."""

    order: str
    number: int
    commit: CommitSha
    approvers: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the stable shape that command and service answer with."""
        return {
            "order": self.order,
            "number": self.number,
            "commit": self.commit,
            "approvers": list(self.approvers),
        }


def merge_reviewed(
    platform: Platform, order: str, number: int, *, requester: str, proof: str = ""
) -> MergedPull:
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
    pull = _open_pull(platform, live, number)
    if pull.merge_commit is not None:
        main = platform.forge.head(live.repository) or ""
        if Ancestry(platform.forge, live.repository).contains(main, pull.merge_commit):
            deliver(platform, live.entry, pull.merge_commit, requester, proof)
        return MergedPull(live.entry.order, number, pull.merge_commit, ())
    verdict = _judge_once_pushers_are_known(platform, live, pull)
    set_review_status(platform, live.repository, pull, verdict)
    if verdict.refusal:
        raise RefusedError(
            f"{live.repository}#{number} is not merged: {verdict.refusal}",
            hint="somebody else of the team has to approve its newest commit on the forge",
        )
    _refuse_by_plan(platform, live.repository, pull)
    notes = tuple(("Orderkit-Approved-By", login) for login in verdict.approvers)
    why = Operation(
        f"merge-{number}-{pull.head_commit[:12]}", requester, pull.title, proof, notes=notes
    )
    commit = platform.forge.merge_pull(
        live.repository, number, head=pull.head_commit, style=MergeStyle.MERGE, operation=why
    )
    deliver(platform, live.entry, commit, requester, proof)
    return MergedPull(live.entry.order, number, commit, verdict.approvers)


def _refuse_by_plan(platform: Platform, repo: RepoId, pull: PullRequest) -> None:
    """
    Plan the merge again, since whoever may push may set statuses too, and refuse by that.

    An order that would be refused as it is may be changed in any way: a repair may take steps. A
    plan that cannot be made stops nothing.
    """
    judged = plan_pull(platform, repo, pull.number).judged
    set_plan_status(platform, repo, pull.head_commit, judged, pull.web_url)
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
    set_review_status(platform, repo, pull, ReviewVerdict(("the platform itself",)))
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
    platform: Platform, repo: RepoId, pull: PullRequest, verdict: ReviewVerdict
) -> None:
    """
    Make sure that the status of a pull request's head says the verdict. Idempotent.

    Raises:
        NotFoundError, RemoteError: The forge.
    """
    text = shorten(verdict.summary, limit=_DESCRIPTION_MAX).strip()
    state = CommitStatus(CONTEXT, "failure" if verdict.refusal else "success", text, pull.web_url)
    platform.forge.set_status(repo, pull.head_commit, state)


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
    pull = _open_pull(platform, live, number)
    if pull.merge_commit is not None:
        return ""
    verdict = judge_review(platform, live, pull)
    set_review_status(platform, live.repository, pull, verdict)
    return verdict.summary


def forge_user(platform: Platform, repo: RepoId, requester: str) -> ForgeUser | None:
    """
    Return who a requester is on the forge now; None if nobody has that login.

    Raises:
        RemoteError, NotFoundError: The catalog, or the forge.
    """
    entity = platform.catalog.entity(requester) if ":" in requester else None
    annotations = metadata(entity).get("annotations") or {} if entity else {}
    login = str(annotations.get(LOGIN_ANNOTATION) or requester.rpartition("/")[2])
    user = platform.forge.user_with_right(repo, login)
    return user[0] if user else None


def judge_review(platform: Platform, live: LiveOrder, pull: PullRequest) -> ReviewVerdict:
    """
    Decide whether an open pull request into ``main`` may be merged at its present head.

    Raises:
        InProgressError: The forge does not show yet who pushed a commit.
        NotFoundError, RemoteError: The forge or the catalog.
    """
    return _Judgement(platform, live, pull).verdict()


def _judge_once_pushers_are_known(
    platform: Platform, live: LiveOrder, pull: PullRequest
) -> ReviewVerdict:
    for _ in range(_LOOKS):
        try:
            return judge_review(platform, live, pull)
        except InProgressError:
            platform.clock.sleep(_PAUSE_S)
    return judge_review(platform, live, pull)


def _open_pull(platform: Platform, live: LiveOrder, number: int) -> PullRequest:
    pull = platform.forge.pull(live.repository, number)
    if pull is None:
        raise NotFoundError(f"{live.repository} has no pull request {number}")
    if pull.base != MAIN or pull.state == "closed":
        why = "was closed" if pull.state == "closed" else f"goes into '{pull.base}'"
        raise RefusedError(
            f"{live.repository}#{number} {why}: merging it delivers nothing",
            hint=f"only open pull requests into {MAIN} can be merged",
        )
    return pull


@dataclass(frozen=True, slots=True)
class _Judgement:
    platform: Platform
    live: LiveOrder
    pull: PullRequest

    def verdict(self) -> ReviewVerdict:
        forge, repo, pull = self.platform.forge, self.live.repository, self.pull
        commits = forge.compare(repo, MAIN, pull.head_commit)
        events = forge.pull_events(repo, pull.number)
        reviews = forge.reviews(repo, pull.number)
        me = forge.user_with_right(repo, forge.user())
        my_id = me[0].id if me else 0
        others = {user.id: user.login for user in self._on_forge(events) if user.id != my_id}
        try:
            self._refuse_unknown_pushers(commits, events)
            changes, is_whole = self._changes(commits)
            _refuse_who(changes, set(others.values()))
            if is_whole and all(change.how is How.DIRECT for change in changes):
                return ReviewVerdict(())
            ours = self._ours(commits, events, my_id)
            people = {*others, *self._requester_ids(commits, ours, my_id), my_id}
            return ReviewVerdict(self._approvers(reviews, people))
        except (RefusedError, UsageError) as error:
            return ReviewVerdict((), "; ".join(map(str, error.problems)))

    def _on_forge(self, events: Sequence[PullEvent]) -> Iterator[ForgeUser]:
        """Yield who opened it and who pushed to it."""
        yield self.pull.author
        yield from (event.by for event in events if event.kind == "push")

    def _ours(
        self, commits: Sequence[Commit], events: Sequence[PullEvent], my_id: int
    ) -> list[Commit]:
        """
        Return the commits that Orderkit wrote for this pull request.

        Not those that were delivered before, which a repair brings back.

        The forge notes who opened a pull request as the pusher of all that its branch holds. So
        what somebody pushed to our branch just before would pass for ours without a signature.

        Raises:
            RefusedError: Such a commit is not signed, and the platform signs its commits.
        """
        by_others = {c for event in events if event.by.id != my_id for c in event.commits}
        ours = [commit for commit in commits if commit.id not in by_others]
        delivered = pinned_commit(self.platform, self.live.entry)
        if delivered and any(REQUESTER_ACCOUNT_TRAILER not in commit.trailers for commit in ours):
            history = self._history(delivered)
            ours = [commit for commit in ours if commit.id not in history]
        if published_keys(self.platform):
            judge = CommitJudge(self.platform, self.live.repository, self.pull.head_commit)
            for commit in ours:
                if not judge.is_proved(commit):
                    raise RefusedError(
                        f"nothing proves who wrote {commit.id[:8]}: it has no valid signature of"
                        " the platform; close the request and ask the service for the change again"
                    )
        return ours

    def _requester_ids(
        self, commits: Sequence[Commit], ours: Sequence[Commit], my_id: int
    ) -> Iterator[int]:
        """Yield the ids of everybody that the request's text or a commit names as requester."""
        texts = {self.pull.requester, *(commit.requester for commit in commits)} - {""}
        if UNKNOWN in texts or (self.pull.author.id == my_id and not texts):
            raise RefusedError("nothing says who asked for it")
        accounts = [(commit, commit.trailers.get(REQUESTER_ACCOUNT_TRAILER, "")) for commit in ours]
        recorded = {commit.requester for commit, account in accounts if account.isdecimal()}
        for requester in sorted(texts):
            user = forge_user(self.platform, self.live.repository, requester)
            if user is not None:
                yield user.id
            elif requester not in recorded:
                raise RefusedError(
                    f"'{requester}' asked for it, who is not a user of the forge, so nobody can"
                    " tell whose approval counts: name the login in the annotation"
                    f" {LOGIN_ANNOTATION} of the User in the portal's catalog"
                )
        for commit, account in accounts:
            if not account.isdecimal():
                raise RefusedError(
                    f"{commit.id[:8]} does not record which account of the forge"
                    f" '{commit.requester}' had: close the request and ask for the change again"
                )
            yield int(account)

    def _changes(self, commits: Sequence[Commit]) -> tuple[tuple[KitChange, ...], bool]:
        """Return the kit's changes that it consists of, and whether it changes nothing else."""
        live, head = self.live, self.pull.head_commit
        new, after = read_xr(self.platform, live, head), self._files(head)
        changes: list[KitChange] = []
        is_whole = True
        for base in self._merge_bases(commits):
            old, before = read_xr(self.platform, live, base), self._files(base)
            changes += judge_rules(live.kit, differences(old.spec, new.spec)).changes
            paths = {path for path in {*before, *after} if before.get(path) != after.get(path)}
            is_whole = is_whole and paths <= {new.path} and _rest(old) == _rest(new)
        return tuple(changes), is_whole

    def _files(self, commit: CommitSha) -> Mapping[PurePosixPath, BlobSha]:
        return self.platform.forge.tree(self.live.repository, commit)

    def _merge_bases(self, commits: Sequence[Commit]) -> list[CommitSha]:
        """Return the newest commits that main and the branch share; a crafted merge has several."""
        ids = {commit.id for commit in commits}
        if self.pull.head_commit not in ids:
            raise RefusedError("it has no commit that main lacks")
        shared = {parent for commit in commits for parent in commit.parents} - ids
        bases = [
            commit
            for commit in sorted(shared)
            if not any(commit in self._history(other) for other in shared - {commit})
        ]
        if not bases:
            raise RefusedError("it shares no commit with main")
        return bases

    def _history(self, commit: CommitSha) -> set[CommitSha]:
        return {older.id for older in whole_history(self.platform, self.live.repository, commit)}

    def _refuse_unknown_pushers(
        self, commits: Sequence[Commit], events: Sequence[PullEvent]
    ) -> None:
        """
        Refuse commits of which the forge does not say who pushed them.

        Gitea notes a push after it was answered. It forgets all pushers when the base changes, and
        before 1.27 approvals survive that (GO-2026-6080).

        Raises:
            RefusedError: Somebody changed the base.
            InProgressError: A push has not been noted yet.
        """
        if any(event.kind == "retarget" for event in events):
            raise RefusedError("somebody changed its base: close it and ask for the change again")
        pushed = {commit for event in events for commit in event.commits}
        for commit in commits:
            if commit.id not in pushed:
                raise InProgressError(
                    f"{self.live.repository}#{self.pull.number}: the forge does not show who pushed"
                    f" {commit.id[:8]}",
                    hint="repeat the command; if it stays, ask for the change again",
                )

    def _approvers(self, reviews: Sequence[Review], people: set[int]) -> tuple[str, ...]:
        """
        Return who approved this head and is none of the people behind it.

        Raises:
            RefusedError: Nobody did, or somebody who may write rejected it.
        """
        last = {review.reviewer.id: review for review in reviews if review.official}
        approvers: list[str] = []
        own: list[str] = []
        for user_id, review in sorted(last.items(), key=lambda item: item[1].reviewer.login):
            login = review.reviewer.login
            now = self.platform.forge.user_with_right(self.live.repository, login)
            if now is None or now[0].id != user_id or now[1] not in _WRITES:
                continue
            if review.state == "rejected":
                raise RefusedError(f"{login} asked for changes")
            if review.commit == self.pull.head_commit:
                (own if user_id in people else approvers).append(login)
        if not approvers:
            names = f"; {', '.join(own)} is behind the change and does not count" if own else ""
            raise RefusedError(f"nobody else has approved {self.pull.head_commit[:8]}{names}")
        return tuple(approvers)


def _rest(xr_file: XrFile) -> list[object]:
    """Return every document of the XR's file, without the XR's ``spec``."""
    documents = [document for document, _ in parse_documents(str(xr_file.path), xr_file.data)]
    xr: Any = documents[xr_file.document]
    for step in xr_file.steps:
        xr = xr[step]
    xr.pop("spec", None)
    return documents


def _refuse_who(changes: Sequence[KitChange], others: set[str]) -> None:
    """Refuse what not everybody of the team may ask for, if somebody but us wrote a part of it."""
    for change in changes:
        if TEAM not in change.who and others:
            names = ", ".join(sorted(others))
            raise RefusedError(
                f"only {' or '.join(change.who)} may ask for '{change.name}', and {names} opened it"
                " or pushed to it: ask with 'orderkit change'"
            )
