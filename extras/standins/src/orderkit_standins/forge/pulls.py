"""
Pull requests as the store keeps them: an issue with a head and a base branch.

Facts of git are read from git each time (``pull_request_git``). Pull requests follow branches that
move or disappear. A merge is recorded before the base branch moves, and finished afterwards. If the
process is killed in between, the base branch decides: if it contains the recorded commit, the pull
request is merged; if not, the merge never happened.

It does not ask who may do what.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ground.errors import ConflictError
from orderkit_standins.forge import git_merge, git_read, pull_request_git
from orderkit_standins.forge.issues import Issues, NewIssue
from orderkit_standins.forge.merge_check_delay import Checks
from orderkit_standins.forge.pull_request_git import MergeRecord, Pull
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.store import Store, load

_SELECT = (
    "SELECT p.*, i.id, i.number, i.closed, i.title, i.poster_id FROM pulls p"
    " JOIN issues i ON i.id = p.issue_id"
)


class Pulls:
    """The pull requests of one forge."""

    def __init__(self, store: Store, issues: Issues, checks: Checks) -> None:
        self._store, self._issues = store, issues
        self.checks = checks
        self._locks: dict[int, threading.RLock] = {}
        self._locks_lock = threading.Lock()

    def lock(self, repo_id: int) -> threading.RLock:
        """Return the lock under which pull requests of a repository are opened and merged."""
        with self._locks_lock:
            return self._locks.setdefault(repo_id, threading.RLock())

    def create(self, repo: Repository, new: NewIssue, *, head: str, base: str) -> Pull:
        """
        Open a pull request.

        Raises:
            ConflictError: An open one from `head` to `base` exists.
        """
        with self.lock(repo.id):
            self._refuse_second(repo, head, base)
            with self._store.transaction():
                issue = self._issues.create(repo.id, new)
                self._store.insert(
                    "pulls", issue_id=issue.id, repo_id=repo.id, head=head, base=base
                )
            pull = self.by_id(issue.id)
            pull_request_git.remember_head(repo.path, pull)
        return pull

    def _refuse_second(self, repo: Repository, head: str, base: str) -> None:
        other = self.open_between(repo.id, head=head, base=base)
        if other is not None:
            raise ConflictError(
                "pull request already exists for these targets"
                f" [id: {other.id}, issue_id: {other.number}, head_repo_id: {repo.id},"
                f" base_repo_id: {repo.id}, head_branch: {head}, base_branch: {base}]"
            )

    def by_id(self, pull_id: int) -> Pull:
        """
        Return a pull request by the id of its issue.

        Raises:
            ValueError: There is none.
        """
        (pull,) = self._select("p.issue_id = ?", pull_id)
        return pull

    def find(self, repo_id: int, number: int) -> Pull | None:
        """Return a pull request by its number, or None."""
        return next(iter(self._select("p.repo_id = ? AND i.number = ?", repo_id, number)), None)

    def open_between(self, repo_id: int, *, head: str, base: str) -> Pull | None:
        """Return the open pull request from `head` to `base`, or None."""
        return next((p for p in self._between(repo_id, head, base) if p.open), None)

    def first_between(self, repo_id: int, *, head: str, base: str) -> Pull | None:
        """Return the oldest pull request from `head` to `base`, whatever its state, or None."""
        return next(iter(self._between(repo_id, head, base)), None)

    def _between(self, repo_id: int, head: str, base: str) -> list[Pull]:
        return self._select("p.repo_id = ? AND p.head = ? AND p.base = ?", repo_id, head, base)

    def listed(self, repo_id: int, *, state: str = "all", base: str = "") -> list[Pull]:
        """Return pull requests, newest first; `state` is ``open``, ``closed`` or anything else."""
        states = {"open": (False,), "closed": (True,)}.get(state, (False, True))
        pulls = self._select("p.repo_id = ?", repo_id)
        return [p for p in pulls[::-1] if p.closed in states and base in ("", p.base)]

    def retarget(self, repo: Repository, pull: Pull, base: str) -> Pull:
        """
        Give a pull request another base branch.

        Raises:
            ConflictError: There is an open one from its head to that base.
        """
        with self.lock(repo.id):
            self._refuse_second(repo, pull.head, base)
            self._update(pull, base=base)
        self.checks.start(pull.id)
        return self.by_id(pull.id)

    def set_closed(self, repo: Repository, pull: Pull, *, closed: bool) -> Pull:
        """Close or reopen; the merge base known until now is kept."""
        with self._store.transaction():
            self._issues.edit(self._issues.by_id(pull.id), closed=closed)
            self.note_merge_base(pull, pull_request_git.merge_base(repo.path, pull))
        if not closed:
            pull_request_git.remember_head(repo.path, pull)
            self.checks.start(pull.id)
        return self.by_id(pull.id)

    def note_merge_base(self, pull: Pull, merge_base: str) -> None:
        """Keep the merge base: when a branch is gone it can no longer be computed."""
        self._update(pull, merge_base=merge_base)

    # What happens to branches

    def branch_moved(self, repo: Repository, branch: str) -> list[Pull]:
        """
        Note the new head of open pull requests, and check again all that it concerns.

        Returns those whose head it is.
        """
        moved = self._open_with(repo.id, "head", branch)
        for pull in moved:
            pull_request_git.remember_head(repo.path, pull)
            self._issues.touch(pull.id)
            self.checks.start(pull.id)
        self.check_matching(repo, lambda base: base == branch)
        return moved

    def check_matching(self, repo: Repository, matches: Callable[[str], bool]) -> None:
        """Check again every open pull request whose base branch `matches`."""
        for pull in self.listed(repo.id, state="open"):
            if matches(pull.base):
                self.checks.start(pull.id)

    def branch_deleted(self, repo: Repository, branch: str) -> list[Pull]:
        """
        Close what came from the branch; point what went to it at the default branch.

        Returns those that were closed.
        """
        closing = self._open_with(repo.id, "head", branch)
        for pull in closing:
            self.set_closed(repo, pull, closed=True)
        for pull in self._open_with(repo.id, "base", branch):
            other = self.open_between(repo.id, head=pull.head, base=repo.default_branch)
            if other is None and pull.head != repo.default_branch != branch:
                self.retarget(repo, pull, repo.default_branch)
        return [self.by_id(pull.id) for pull in closing]

    def retarget_all(self, repo: Repository, base: str, new: str) -> None:
        """Let the open pull requests to a branch go to another."""
        for pull in self._open_with(repo.id, "base", base):
            self.retarget(repo, pull, new)

    def catch_up(self, repo: Repository) -> None:
        """Do for open pull requests what a killed process could not do after a branch moved."""
        branches = pull_request_git.branches(repo.path)
        for pull in self.listed(repo.id, state="open"):
            if pull.head not in branches:
                self.branch_deleted(repo, pull.head)
            elif pull.base not in branches:
                self.branch_deleted(repo, pull.base)
            pull_request_git.remember_head(repo.path, pull)

    # Merges

    def note_merge_in_progress(self, pull: Pull, record: MergeRecord | None) -> None:
        """Keep a merge that is about to happen; None: none is."""
        self._update(pull, landing="" if record is None else json.dumps(record.as_dict()))

    def note_merged(self, pull: Pull, record: MergeRecord) -> Pull:
        """Make a pull request merged and closed, both or nothing."""
        with self._store.transaction():
            self._update(
                pull,
                landing="",
                merge_commit=record.commit,
                merged=record.at,
                merger_id=record.by,
            )
            self._issues.edit(self._issues.by_id(pull.id), closed=True)
        return self.by_id(pull.id)

    def _update(self, pull: Pull, **values: object) -> None:
        self._store.update("pulls", pull.id, **values)

    def _open_with(self, repo_id: int, column: Literal["head", "base"], branch: str) -> list[Pull]:
        return self._select(f"p.repo_id = ? AND p.{column} = ? AND i.closed = ''", repo_id, branch)

    def _select(self, condition: str, *values: object) -> list[Pull]:
        rows = self._store.rows(f"{_SELECT} WHERE {condition} ORDER BY i.number", *values)
        return [_pull(row) for row in rows]


@dataclass(frozen=True, slots=True)
class MergeJournal:
    """Merges in progress: `repair` judges all at start, `settle` one when it is read."""

    pulls: Pulls

    def begin(self, repo: Repository, pull: Pull, record: MergeRecord) -> None:
        """Note what the base branch is about to point to. Hold the repository's lock."""
        self.pulls.note_merge_base(pull, pull_request_git.merge_base(repo.path, pull))
        self.pulls.note_merge_in_progress(pull, record)

    def abandon(self, pull: Pull) -> None:
        """Forget a merge: the base branch did not move."""
        self.pulls.note_merge_in_progress(pull, None)

    def settle(self, repo: Repository, pull: Pull) -> Pull:
        """Finish or forget an interrupted merge, unless one is going on right now."""
        if pull.merge_in_progress is None:
            return pull
        lock = self.pulls.lock(repo.id)
        if not lock.acquire(blocking=False):
            return pull
        try:
            return self._judge(repo, self.pulls.by_id(pull.id))
        finally:
            lock.release()

    def _judge(self, repo: Repository, pull: Pull) -> Pull:
        record = pull.merge_in_progress
        if record is None or pull.merged:
            return pull
        git = git_read.open_repository(repo.path)
        base = git_read.branch_commit(git, pull.base)
        if base is not None and git_merge.is_ancestor(git, record.commit, str(base.id)):
            return self.pulls.note_merged(pull, record)
        self.abandon(pull)
        return self.pulls.by_id(pull.id)

    def repair(self, repo: Repository) -> None:
        """Finish what a killed process left in the middle. Call at start."""
        for pull in self.pulls.listed(repo.id):
            self._judge(repo, pull)
        self.pulls.catch_up(repo)


def _pull(row: sqlite3.Row) -> Pull:
    in_progress = MergeRecord(**json.loads(row["landing"])) if row["landing"] else None
    commit = row["merge_commit"]
    merged = MergeRecord(commit, row["merger_id"], row["merged"]) if commit else None
    return load(Pull, row, merge_in_progress=in_progress, merged=merged)
