"""
Merge a pull request: Gitea's refusals in Gitea's order, then the base branch moves once.

The commit is written first, then the merge is noted, then the base branch is moved by
compare-and-swap, then the pull request is closed (``pull_requests`` says what a kill in between
leaves).

In a merge queue (`MergeQueues`) the pull requests of a branch wait until whoever runs the forge
lets the oldest be merged. GitLab calls it a train. Queues and trains merge with a message of their
own, so that the trailers of who asked are not in it.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime

from orderkit_standins.forge import git_merge, git_read, git_write, pull_requests
from orderkit_standins.forge.accounts import Account, Accounts
from orderkit_standins.forge.api.branch_updates import BranchRules, BranchUpdates
from orderkit_standins.forge.api.calls import ApiError
from orderkit_standins.forge.api.shapes import MERGE_STYLES
from orderkit_standins.forge.git_merge import MergeCommit, MergeError
from orderkit_standins.forge.git_write import Person
from orderkit_standins.forge.pull_requests import MergeJournal, MergeRecord, Pull, Pulls, Tips
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.store import timestamp

LATER = "Please try again later"
"""Gitea's words for a check going on, a conflict and a pull request without commits."""
_TRAILER = re.compile(r"[A-Z][A-Za-z0-9-]*:")


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """How to merge. Empty title: Gitea's own; `head` empty: whatever it is."""

    doer: Account
    style: str
    title: str = ""
    text: str = ""
    head: str = ""
    force: bool = False


@dataclass(frozen=True, slots=True)
class Merging:
    """Merges pull requests."""

    accounts: Accounts
    pulls: Pulls
    journal: MergeJournal
    rules: BranchRules
    updates: BranchUpdates

    def refuse_unmergeable(self, repo: Repository, pull: Pull, request: MergeRequest) -> None:
        """
        Refuse what cannot be merged now, or not by this person.

        Raises:
            ApiError: 404 closed; 405 merged, not allowed, a draft, being checked, conflicting or
                without commits.
        """
        if pull.merged:
            raise ApiError(405, "The PR is already merged")
        if pull.closed:
            raise ApiError(404)
        if not self.rules.may_merge(repo, request.doer, pull.base):
            raise ApiError(405, "User not allowed to merge PR")
        if pull.draft:
            raise ApiError(405, "Work in progress PRs cannot be merged")
        if pull_requests.state(repo.path, pull, self.pulls.checks) not in ("mergeable", "empty"):
            raise ApiError(405, LATER)

    def merge(self, repo: Repository, pull: Pull, request: MergeRequest) -> None:
        """
        Merge, and tell the listeners.

        Raises:
            ApiError: 405 as above; 409 another head, a conflict, a race.
        """
        with self.pulls.lock(repo.id):
            pull = self.journal.settle(repo, self.pulls.by_id(pull.id))
            self.refuse_unmergeable(repo, pull, request)
            tips = pull_requests.tips(repo.path, pull)
            self.rules.refuse_unready(repo, pull, tips, request.doer, force=request.force)
            is_off = request.style == "squash" and not repo.allow_squash_merge
            if is_off or request.style not in MERGE_STYLES:
                text = "is not allowed an allowed merge style for this repository"
                raise ApiError(405, f"{request.style} {text}")
            try:
                commit = self._move_base(repo, pull, request, tips)
            except ApiError:
                # Gitea checks all pull requests of the base anew: the next try is told to come back
                self.pulls.check_matching(repo, lambda base: base == pull.base)
                raise
        doer = request.doer
        self.updates.branch_moved(repo, pull.base, commit, by=doer, before=tips.base)
        self.updates.events.pull_changed(repo, pull.id, "closed", by=doer)

    def _move_base(self, repo: Repository, pull: Pull, request: MergeRequest, tips: Tips) -> str:
        if request.head not in ("", tips.head):
            raise ApiError(409, "head out of date")
        git = git_read.open_repository(repo.path)
        merge = self._merge_commit(pull, request, tips)
        try:
            commit = git_merge.write_merge(git, merge, squash=request.style == "squash")
        except MergeError as error:
            raise ApiError(409) from error  # Gitea cannot write what git says as JSON
        record = MergeRecord(commit, request.doer.id, timestamp())
        pull_requests.keep_head(repo.path, pull, tips.head)
        # before the base branch moves: after a kill in between, that branch decides
        self.journal.begin(repo, pull, record)
        try:
            git_write.move_branch(repo.path, pull.base, tips.base, commit)
        except git_write.WriteError as error:
            self.journal.abandon(pull)
            raise ApiError(409, "merge push out of date") from error
        self.pulls.note_merged(pull, record)
        return commit

    def _merge_commit(self, pull: Pull, request: MergeRequest, tips: Tips) -> MergeCommit:
        """Name the committer, and the author: of squashed work the one who asked for it."""
        squash = request.style == "squash"
        poster = self.accounts.by_id(pull.poster_id) if squash else request.doer
        committer = Person(request.doer.name, request.doer.email, datetime.now(UTC))
        author = Person(poster.name, poster.email, committer.when)
        message = request.title or _default_title(pull, request.style)
        if request.text:
            message += f"\n\n{request.text}"
        if poster.id != request.doer.id:
            message = _with_coauthor(message, f"{poster.name} <{poster.email}>")
        return MergeCommit(tips.base, tips.head, message, author, committer)


def _default_title(pull: Pull, style: str) -> str:
    if style == "squash":
        return f"{pull.title} (#{pull.number})"
    return f"Merge pull request '{pull.title}' (#{pull.number}) from {pull.head} into {pull.base}"


def _with_coauthor(message: str, person: str) -> str:
    """Return the message with the trailer that names the author of squashed work."""
    last = message.rstrip().rpartition("\n")[2]
    joined = "\n" if "\n" in message and "-" in message and _TRAILER.match(last) else "\n\n"
    return f"{message.rstrip()}{joined}Co-authored-by: {person}"


_MERGED_BY_QUEUE = "Pull Request is not mergeable: changes must be made through the merge queue"


@dataclass(frozen=True, slots=True)
class _Entry:
    number: int
    repo: Repository
    pull: Pull
    head: str
    by: Account


@dataclass(slots=True)
class MergeQueues:
    """All queues of one forge. `branches`: which have one, as ``OWNER/NAME`` and branch."""

    merging: Merging
    branches: set[tuple[str, str]] = field(default_factory=set)
    _entries: list[_Entry] = field(default_factory=list)
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def covers(self, repo: Repository, branch: str) -> bool:
        """Say whether pull requests into a branch have to wait."""
        return (repo.full_name, branch) in self.branches

    def refuse_merge(self, repo: Repository, pull: Pull) -> None:
        """
        Refuse a merge past the queue.

        Raises:
            ApiError: 405, the base has a queue.
        """
        if self.covers(repo, pull.base):
            raise ApiError(405, _MERGED_BY_QUEUE)

    def holds(self, pull: Pull) -> bool:
        """Say whether a pull request waits."""
        return any(entry.pull.id == pull.id for entry in self._entries)

    def add(self, repo: Repository, pull: Pull, head: str, by: Account) -> int:
        """
        Put a pull request at the end of its queue; return the entry's number.

        Raises:
            ApiError: 422, it waits already.
        """
        with self._lock:
            if self.holds(pull):
                raise ApiError(422, "Pull request is already in the merge queue")
            self._count += 1
            self._entries.append(_Entry(self._count, repo, pull, head, by))
            return self._count

    def merge_next(self) -> None:
        """Merge the pull request that waits longest."""
        entry = self._entries.pop(0)
        title = f"Merge pull request #{entry.pull.number} from {entry.pull.head}"
        self.merging.merge(
            entry.repo, entry.pull, MergeRequest(entry.by, "merge", title, head=entry.head)
        )

    def drop_next(self) -> None:
        """Take the pull request that waits longest out again: its checks failed."""
        self._entries.pop(0)
