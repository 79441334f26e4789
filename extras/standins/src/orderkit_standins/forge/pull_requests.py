"""
Pull requests: what the store keeps of them, what git says now, and whether they can be merged.

The store keeps an issue with a head and a base branch. Facts of git are read from git each time.
Pull requests follow branches that move or disappear. ``refs/pull/<number>/head`` keeps the last
head of a pull request when its branch is gone.

A merge is recorded before the base branch moves, and finished afterwards. If the process is killed
in between, the base branch decides: if it contains the recorded commit, the pull request is merged;
if not, the merge never happened.

Gitea checks in the background after every push to head or base, after a creation and after a failed
merge, for up to two seconds; until then a pull request is not mergeable and a merge request gets
"try again later". Here the result is computed at once but withheld for a fixed time (`Checks`), so
that clients see the same states. A restart forgets the running checks. Tests hold and release it.

It does not ask who may do what.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ground.errors import ConflictError
from orderkit_standins.forge import git_merge, git_read
from orderkit_standins.forge.issues import Issues, NewIssue
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.store import Store, load

DELAY_S = 0.05


class Checks:
    """Which pull requests are being checked, by the id of their issue."""

    def __init__(self, delay_s: float = DELAY_S) -> None:
        self.delay_s = delay_s
        self._until: dict[int, float] = {}
        self._lock = threading.Lock()
        self._held = 0

    def start(self, pull_id: int) -> None:
        """Restart the check."""
        with self._lock:
            self._until[pull_id] = time.monotonic() + self.delay_s

    def running(self, pull_id: int) -> bool:
        """Say whether the check is still going on."""
        with self._lock:
            until = self._until.get(pull_id)
            if until is None or (not self._held and time.monotonic() >= until):
                self._until.pop(pull_id, None)
                return False
            return True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep all checks running inside the block."""
        with self._lock:
            self._held += 1
        try:
            yield
        finally:
            with self._lock:
                self._held -= 1


State = Literal["checking", "mergeable", "conflict", "empty", "ancestor", "error"]
PULL_REF = "refs/pull/{}/head"
_DRAFT = ("wip:", "[wip]")


@dataclass(frozen=True, slots=True)
class MergeRecord:
    """A merge that happened or is about to: which commit, by whose account, when."""

    commit: str
    by: int
    at: str

    def as_dict(self) -> dict[str, str | int]:
        """Return it as it is stored."""
        return {"commit": self.commit, "by": self.by, "at": self.at}


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request; `merge_in_progress` is noted before the base branch moves."""

    id: int
    repo_id: int
    number: int
    title: str
    poster_id: int
    closed: bool
    head: str
    base: str
    merge_base: str
    merge_in_progress: MergeRecord | None
    merged: MergeRecord | None

    @property
    def open(self) -> bool:
        return not self.closed

    @property
    def draft(self) -> bool:
        """Whether the title says that it is work in progress."""
        return self.title.lower().startswith(_DRAFT)


@dataclass(frozen=True, slots=True)
class Tips:
    """The commits of a pull request now; empty where there is none."""

    head: str
    base: str
    head_exists: bool


def branches_of(path: Path) -> frozenset[str]:
    """Return the names of all branches."""
    return frozenset(git_read.branch_names(git_read.open_repository(path)))


def tips(path: Path, pull: Pull) -> Tips:
    """Return the commits that head and base point to now."""
    git = git_read.open_repository(path)
    head = git_read.branch_commit(git, pull.head)
    base = git_read.branch_commit(git, pull.base)
    kept = git.references.get(PULL_REF.format(pull.number)) if head is None else None
    head_id = str(head.id) if head else str(kept.target) if kept else ""
    return Tips(head_id, str(base.id) if base else "", head_exists=head is not None)


def last_head(path: Path, pull: Pull) -> str:
    """Return the last head that the pull request had while it was open."""
    kept = git_read.open_repository(path).references.get(PULL_REF.format(pull.number))
    return str(kept.target) if kept else tips(path, pull).head


def state(path: Path, pull: Pull, checks: Checks) -> State:
    """Say whether the pull request can be merged, as far as the forge knows yet."""
    if pull.merged:
        return "mergeable"
    if pull.open and checks.running(pull.id):
        return "checking"
    now = tips(path, pull)
    if not now.head or not now.base:
        return "error"
    return git_merge.try_merge(path, now.base, now.head).verdict


def merge_base(path: Path, pull: Pull) -> str:
    """Return the merge base of head and base; empty if it was never known."""
    now = tips(path, pull)
    if pull.merged or not now.head or not now.base:
        return pull.merge_base
    return git_merge.try_merge(path, now.base, now.head).merge_base or now.base


def remember_head(path: Path, pull: Pull) -> None:
    """Update the pull request's own reference to its branch."""
    head = git_read.branch_commit(git_read.open_repository(path), pull.head)
    if head is not None:
        keep_head(path, pull, str(head.id))


def keep_head(path: Path, pull: Pull, commit: str) -> None:
    """Point the pull request's own reference to a commit."""
    git = git_read.open_repository(path)
    name = PULL_REF.format(pull.number)
    reference = git.references.get(name)
    if reference is None or str(reference.target) != commit:
        git.references.create(name, commit, force=True)


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
            remember_head(repo.path, pull)
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
            self.note_merge_base(pull, merge_base(repo.path, pull))
        if not closed:
            remember_head(repo.path, pull)
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
            remember_head(repo.path, pull)
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
        branches = branches_of(repo.path)
        for pull in self.listed(repo.id, state="open"):
            if pull.head not in branches:
                self.branch_deleted(repo, pull.head)
            elif pull.base not in branches:
                self.branch_deleted(repo, pull.base)
            remember_head(repo.path, pull)

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
        self.pulls.note_merge_base(pull, merge_base(repo.path, pull))
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
