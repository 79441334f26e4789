"""
Judge whether a pull request of an order may be merged: by the kit's rules and who agreed.

The people behind a pull request are: the requester of each of its commits and of its text, who
opened it, and whoever pushed to it, as the forge authenticated them. Texts can be edited, so they
only ever add people. Nobody leaves this list without a push, which adds the pusher; a commit whose
pusher the forge does not show is not merged. People are compared by the forge's ids: a login can be
changed, and somebody else can take it. So a signed proposal names the requester's id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ground.errors import InProgressError, RefusedError, UsageError
from ground.names import MAIN, BlobSha, CommitSha
from orderkit.core.kit.approval_rules import Need, sentence
from orderkit.core.kit.kit_file import How, KitChange
from orderkit.core.order.change import differences, judge_rules
from orderkit.core.order.change.differences import merged
from orderkit.flows.argocd.commit_pinning import pinned_commit
from orderkit.flows.forge_protection import TEAM
from orderkit.flows.order.agreements import (
    NOT_ON_THE_FORGE,
    UNKNOWN_HINT,
    WRITES,
    agreed,
    forge_user,
    missing,
    objection,
)
from orderkit.flows.order.approvals import Asking, may_need_approval, needs_of_step
from orderkit.flows.order.commit_judging import CommitJudge, whole_history
from orderkit.flows.order.live_order import LiveOrder, XrFile, main_head, read_xr
from orderkit.flows.platform import Platform
from orderkit.ports.forge import (
    PROOF_TRAILER,
    REQUESTER_ACCOUNT_TRAILER,
    Commit,
    ForgeUser,
    PullEvent,
    PullRequest,
    Review,
)
from orderkit.ports.requesters import UNKNOWN
from yamlfiles.manifests import parse_documents


@dataclass(frozen=True, slots=True)
class ReviewVerdict:
    """Whether a pull request may be merged."""

    approvers: tuple[str, ...]
    refusal: str = ""
    """Why it may not be merged; empty: it may."""
    approval: str | None = None
    """Who still has to agree; empty: everybody did; None: its kit has no rules of approval."""
    hint: str = ""
    """What lets it be merged, if an approval does not."""

    @property
    def summary(self) -> str:
        """Return it on one line."""
        if self.refusal:
            return self.refusal
        names = " and ".join(self.approvers)
        return f"approved by {names}" if names else "the kit asks for no review"


@dataclass(frozen=True, slots=True)
class Judgement:
    platform: Platform
    live: LiveOrder
    pull: PullRequest
    base: str = MAIN
    """What it is compared with; of a merged one, the commit that was delivered before."""
    merged: CommitSha | None = None
    """The commit on main that carries it; None: it is open."""
    own_id: int | None = None
    """The forge's id of our account; None: it was not asked yet."""

    def verdict(self) -> ReviewVerdict:
        forge, repo, pull = self.platform.forge, self.live.repository, self.pull
        commits = forge.compare(repo, self.base, pull.head_commit)
        events = forge.pull_events(repo, pull.number)
        reviews = forge.reviews(repo, pull.number)
        others = {user.id: user.login for user in self._on_forge(events)}
        # our account opens what people ask for: it is not behind the pull request
        others.pop(my_id := self.my_id(), None)
        needs: tuple[Need, ...] = ()
        try:
            self._refuse_unknown_pushers(commits, events)
            changes, is_whole = self._changes(commits)
            _refuse_who(changes, set(others.values()))
            needs = self._needs(commits)
            is_free = is_whole and all(change.how is How.DIRECT for change in changes)
            if is_free and not needs:
                return ReviewVerdict((), approval=self._approval(""))
            people = self._people(commits, events, my_id)
            agreed_ = agreed(self.platform, self.live.entry, repo, pull, people, reviews=reviews)
            hint = ""
            refusal = objection(self.platform, self.live.entry, needs, agreed_)
            lacking = missing(self.platform, self.live.entry, needs, agreed_)
            if lacking:
                refusal = f"it needs approval by {lacking}"
                hint = f"ask them for: {self._approve}"
            names = tuple(user.login for user in agreed_.people if needs)
            if not is_free:
                names = (*self._approvers(reviews, people, agreed_.recorded), *names)
            names = tuple(sorted(set(names)))
            return ReviewVerdict(() if refusal else names, refusal, self._approval(lacking), hint)
        except (RefusedError, UsageError) as error:
            text = "; ".join(map(str, error.problems))
            lacking = sentence(needs) or f"another member of team {self.live.entry.team}: {text}"
            return ReviewVerdict((), text, self._approval(lacking), error.hint)

    @property
    def _start_again(self) -> str:
        order = self.live.entry.order
        return f"close it, and propose it again: orderkit change {order} FIELD=VALUE --pr"

    @property
    def _approve(self) -> str:
        return f"orderkit approve {self.live.entry.order} --pull {self.pull.number}"

    def parties(self) -> tuple[tuple[Need, ...], set[int]]:
        """
        Return who has to agree, and the forge's ids of the people behind it.

        Raises:
            RefusedError: It proposes what cannot be agreed to, or who is behind it is not known.
            InProgressError: The forge does not show yet who pushed a commit.
        """
        forge, repo = self.platform.forge, self.live.repository
        commits = forge.compare(repo, self.base, self.pull.head_commit)
        events = forge.pull_events(repo, self.pull.number)
        self._refuse_unknown_pushers(commits, events)
        return self._needs(commits), self._people(commits, events, self.my_id())

    def needs(self) -> tuple[Need, ...]:
        """Return who has to agree; raises RefusedError as `parties` does."""
        forge, repo = self.platform.forge, self.live.repository
        return self._needs(forge.compare(repo, self.base, self.pull.head_commit))

    def my_id(self) -> int:
        """Return the forge's id of our account."""
        if self.own_id is not None:
            return self.own_id
        forge = self.platform.forge
        me = forge.user_with_right(self.live.repository, forge.user())
        return me[0].id if me else 0

    def _people(
        self, commits: Sequence[Commit], events: Sequence[PullEvent], my_id: int
    ) -> set[int]:
        _refuse_machines(events, my_id)
        ours = self._ours(commits, events, my_id)
        on_forge = (user.id for user in self._on_forge(events))
        return {*on_forge, *self._requester_ids(commits, ours, my_id), my_id}

    def _approval(self, lacking: str) -> str | None:
        return lacking if may_need_approval(self.live) else None

    def _needs(self, commits: Sequence[Commit]) -> tuple[Need, ...]:
        """Return who has to agree to what would be delivered: to the XR as merging it makes it."""
        platform, live = self.platform, self.live
        if not may_need_approval(live):
            return ()
        newest = commits[0]
        requester = newest.requester or f"user:default/{self.pull.author.login}"
        asking = Asking(requester, newest.trailers.get(PROOF_TRAILER, ""))
        if self.merged is not None:
            return needs_of_step(platform, live, read_xr(platform, live, self.merged).xr, asking)
        head = main_head(platform, live.repository)
        main, theirs = read_xr(platform, live, head), read_xr(platform, live, self.pull.head_commit)
        needs: list[Need] = []
        for base in self._merge_bases(commits):
            xr, _ = merged(read_xr(platform, live, base).xr, main.xr, theirs.xr)
            needs += needs_of_step(platform, live, xr, asking)
        return tuple(dict.fromkeys(needs))

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

        Raises:
            RefusedError: Such a commit is not signed, and the platform signs its commits.
        """
        by_others = {c for event in events if event.by.id != my_id for c in event.commits}
        ours = [commit for commit in commits if commit.id not in by_others]
        delivered = pinned_commit(self.platform, self.live.entry)
        if delivered and any(REQUESTER_ACCOUNT_TRAILER not in commit.trailers for commit in ours):
            history = self._history(delivered)
            ours = [commit for commit in ours if commit.id not in history]
        # the forge notes who opened a pull request as the pusher of all that its branch holds: what
        # somebody pushed to our branch just before would pass for ours without a signature
        judge = CommitJudge(self.platform, self.live.repository, self.pull.head_commit)
        if judge.keys:
            for commit in ours:
                if not judge.is_proved(commit):
                    raise RefusedError(
                        f"nothing proves who wrote {commit.id[:8]}: it has no valid signature of"
                        " the platform",
                        hint=self._start_again,
                    )
        return ours

    def _requester_ids(
        self, commits: Sequence[Commit], ours: Sequence[Commit], my_id: int
    ) -> Iterator[int]:
        """Yield the ids of everybody that the request's text or a commit names as requester."""
        texts = {self.pull.requester, *(commit.requester for commit in commits)} - {""}
        if UNKNOWN in texts or (self.pull.author.id == my_id and not texts):
            raise RefusedError("nothing says who asked for it", hint=self._start_again)
        accounts = [(commit, commit.trailers.get(REQUESTER_ACCOUNT_TRAILER, "")) for commit in ours]
        recorded = {commit.requester for commit, account in accounts if account.isdecimal()}
        for requester in sorted(texts):
            user = forge_user(self.platform, self.live.repository, requester)
            if user is not None:
                yield user.id
            elif requester not in recorded:
                raise RefusedError(
                    f"'{requester}' asked for it, who {NOT_ON_THE_FORGE}", hint=UNKNOWN_HINT
                )
        for commit, account in accounts:
            if not account.isdecimal():
                raise RefusedError(
                    f"{commit.id[:8]} does not record which account of the forge"
                    f" '{commit.requester}' had",
                    hint=self._start_again,
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
            hint = f"close it; {MAIN} has its commits: orderkit history {self.live.entry.order}"
            raise RefusedError("it has no commit that main lacks", hint=hint)
        shared = {parent for commit in commits for parent in commit.parents} - ids
        bases = [
            commit
            for commit in sorted(shared)
            if not any(commit in self._history(other) for other in shared - {commit})
        ]
        if not bases:
            raise RefusedError("it shares no commit with main", hint=self._start_again)
        return bases

    def _history(self, commit: CommitSha) -> set[CommitSha]:
        return {
            older.id for older in whole_history(self.platform.forge, self.live.repository, commit)
        }

    def _refuse_unknown_pushers(
        self, commits: Sequence[Commit], events: Sequence[PullEvent]
    ) -> None:
        """
        Refuse commits of which the forge does not say who pushed them.

        Raises:
            RefusedError: Somebody changed the base.
            InProgressError: A push has not been noted yet.
        """
        # Gitea forgets all pushers when the base changes, and before 1.27 approvals survive that:
        # see GO-2026-6080
        if any(event.kind == "retarget" for event in events):
            raise RefusedError("someone changed its base", hint=self._start_again)
        pushed = {commit for event in events for commit in event.commits}
        for commit in commits:
            if commit.id not in pushed:
                # Gitea notes a push after it was answered
                raise InProgressError(
                    f"{self.live.repository}#{self.pull.number}: the forge does not show who pushed"
                    f" {commit.id[:8]}",
                    hint=f"repeat the command; if it stays: {self._start_again}",
                )

    def _approvers(
        self, reviews: Sequence[Review], people: set[int], recorded: Sequence[ForgeUser]
    ) -> tuple[str, ...]:
        """
        Return who approved this head, may write, and is none of the people behind it.

        Args:
            recorded: Whose agreement the ledger has, as it is now.

        Raises:
            RefusedError: Nobody did, or somebody who may write rejected it.
        """
        last = {review.reviewer.id: review for review in reviews if review.official}
        approvers: list[str] = []
        own: list[str] = []
        for user_id, review in sorted(last.items(), key=lambda item: item[1].reviewer.login):
            login = review.reviewer.login
            now = self.platform.forge.user_with_right(self.live.repository, login)
            if now is None or now[0].id != user_id or now[1] not in WRITES:
                continue
            if now[0].is_machine:
                continue
            if review.state == "rejected":
                hint = f"push a commit, then {login} can approve: {self._approve}"
                raise RefusedError(f"{login} asked for changes", hint=hint)
            if review.commit == self.pull.head_commit:
                (own if user_id in people else approvers).append(login)
        for user in recorded:
            now = self.platform.forge.user_with_right(self.live.repository, user.login)
            if now is not None and now[1] in WRITES:
                (own if user.id in people else approvers).append(user.login)
        if not approvers:
            names = f"; {', '.join(own)} is behind the change and does not count" if own else ""
            hint = f"ask another member of the team for: {self._approve}"
            message = f"nobody else has approved {self.pull.head_commit[:8]}{names}"
            raise RefusedError(message, hint=hint)
        return tuple(approvers)


def _rest(xr_file: XrFile) -> list[object]:
    """Return every document of the XR's file, without the XR's ``spec``."""
    documents = [document for document, _ in parse_documents(str(xr_file.path), xr_file.data)]
    xr: Any = documents[xr_file.document]
    for step in xr_file.steps:
        xr = xr[step]
    xr.pop("spec", None)
    return documents


def _refuse_machines(events: Sequence[PullEvent], my_id: int) -> None:
    """
    Refuse what an App, an access token or a pipeline pushed: the person behind it is not known.

    Raises:
        RefusedError: Such an account pushed, other than ours.
    """
    for event in events:
        if event.kind == "push" and event.by.is_machine and event.by.id != my_id:
            raise RefusedError(
                f"{event.by.login} pushed to it, which is no person, so whose approval counts is"
                " not known",
                hint="propose it again with orderkit change, or push it with an account of yours",
            )


def _refuse_who(changes: Sequence[KitChange], others: set[str]) -> None:
    """Refuse what not everybody of the team may ask for, if somebody but us wrote a part of it."""
    for change in changes:
        if TEAM not in change.who and others:
            names = ", ".join(sorted(others))
            raise RefusedError(
                f"only {' or '.join(change.who)} may ask for '{change.name}', and {names} opened it"
                " or pushed to it",
                hint="one of them can start again: orderkit change ORDER FIELD=VALUE --pr",
            )
