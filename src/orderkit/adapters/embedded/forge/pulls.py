"""
Pull requests as the store keeps them: an issue with a head and a base branch.

What git can say is asked of git each time (``pullgit``); a merge in progress and its end
are ``landings``. Branches that move, vanish or get another name are followed here.

Called by ``landings``, ``merging`` and the endpoints. It does not ask who may do what.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from orderkit.adapters.embedded.forge import pullgit
from orderkit.adapters.embedded.forge.checks import Checks
from orderkit.adapters.embedded.forge.issues import Issues, NewIssue
from orderkit.adapters.embedded.forge.pullgit import Landed, Pull
from orderkit.adapters.embedded.forge.registry import RepoRow
from orderkit.adapters.embedded.forge.store import Store
from orderkit.core.errors import ConflictError

_SELECT = (
    "SELECT p.*, i.number, i.closed, i.title, i.poster_id FROM pulls p"
    " JOIN issues i ON i.id = p.issue_id"
)


@dataclass(frozen=True, slots=True)
class PullFilter:
    """What a list of pull requests is narrowed to; empty means any."""

    state: str = ""
    base: str = ""
    poster_id: int = 0
    label_ids: tuple[int, ...] = ()
    oldest_first: bool = False


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

    def create(self, repo: RepoRow, new: NewIssue, *, head: str, base: str) -> Pull:
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
                    "INSERT INTO pulls (issue_id, repo_id, head, base) VALUES (?, ?, ?, ?)",
                    issue.id,
                    repo.id,
                    head,
                    base,
                )
            pull = self.by_id(issue.id)
            pullgit.remember_head(repo.path, pull)
        return pull

    def _refuse_second(self, repo: RepoRow, head: str, base: str) -> None:
        found = self.open_between(repo.id, head=head, base=base)
        if found is not None:
            raise ConflictError(
                "pull request already exists for these targets"
                f" [id: {found.id}, issue_id: {found.number}, head_repo_id: {repo.id},"
                f" base_repo_id: {repo.id}, head_branch: {head}, base_branch: {base}]"
            )

    def by_id(self, pull_id: int) -> Pull:
        """
        Return a pull request by the id of its issue.

        Raises:
            RuntimeError: There is none.
        """
        row = self._store.row(f"{_SELECT} WHERE p.issue_id = ?", pull_id)
        if row is None:
            raise RuntimeError(f"pull request {pull_id} vanished")
        return _pull(row)

    def find(self, repo_id: int, number: int) -> Pull | None:
        """Return a pull request by its number, or None."""
        row = self._store.row(f"{_SELECT} WHERE p.repo_id = ? AND i.number = ?", repo_id, number)
        return _pull(row) if row else None

    def open_between(self, repo_id: int, *, head: str, base: str) -> Pull | None:
        """Return the open pull request from `head` to `base`, or None."""
        found = [pull for pull in self._between(repo_id, head, base) if pull.open]
        return found[0] if found else None

    def first_between(self, repo_id: int, *, head: str, base: str) -> Pull | None:
        """Return the oldest pull request from `head` to `base`, whatever its state, or None."""
        found = self._between(repo_id, head, base)
        return found[0] if found else None

    def _between(self, repo_id: int, head: str, base: str) -> list[Pull]:
        sql = f"{_SELECT} WHERE p.repo_id = ? AND p.head = ? AND p.base = ? ORDER BY i.number"
        return [_pull(row) for row in self._store.rows(sql, repo_id, head, base)]

    def index(self, repo_id: int, wanted: PullFilter) -> list[Pull]:
        """Return pull requests, newest first unless wanted otherwise."""
        rows = self._store.rows(f"{_SELECT} WHERE p.repo_id = ? ORDER BY i.number DESC", repo_id)
        found = [
            pull
            for pull in map(_pull, rows)
            if _matches(pull, wanted) and self._has_labels(pull, wanted.label_ids)
        ]
        return found[::-1] if wanted.oldest_first else found

    def _has_labels(self, pull: Pull, label_ids: tuple[int, ...]) -> bool:
        if not label_ids:
            return True
        return set(label_ids) <= {label.id for label in self._issues.labels_on(pull.id)}

    def retarget(self, repo: RepoRow, pull: Pull, base: str) -> Pull:
        """
        Give a pull request another base branch.

        Raises:
            ConflictError: There is an open one from its head to that base.
        """
        with self.lock(repo.id):
            self._refuse_second(repo, pull.head, base)
            self._store.change("UPDATE pulls SET base = ? WHERE issue_id = ?", base, pull.id)
        self.checks.start(pull.id)
        return self.by_id(pull.id)

    def set_closed(self, repo: RepoRow, pull: Pull, *, closed: bool) -> Pull:
        """Close or reopen; what was known of the merge base is kept."""
        issue = self._issues.find(repo.id, pull.number)
        with self._store.transaction():
            if issue is not None:
                self._issues.edit(issue, closed=closed)
            self.note_merge_base(pull, pullgit.merge_base(repo.path, pull))
        if not closed:
            pullgit.remember_head(repo.path, pull)
            self.checks.start(pull.id)
        return self.by_id(pull.id)

    def note_merge_base(self, pull: Pull, merge_base: str) -> None:
        """Keep the merge base: when a branch is gone it can no longer be computed."""
        sql = "UPDATE pulls SET merge_base = ? WHERE issue_id = ?"
        self._store.change(sql, merge_base, pull.id)

    # What happens to branches

    def branch_moved(self, repo: RepoRow, branch: str) -> list[Pull]:
        """
        Note the new head of open pull requests, and check again all that it concerns.

        Returns those whose head it is.
        """
        moved = self._open_with(repo.id, "head", branch)
        for pull in moved:
            pullgit.remember_head(repo.path, pull)
            self._issues.touch(pull.id)
            self.checks.start(pull.id)
        self.check_base(repo, branch)
        return moved

    def check_base(self, repo: RepoRow, branch: str) -> None:
        """Check again every open pull request that goes to the branch."""
        for pull in self._open_with(repo.id, "base", branch):
            self.checks.start(pull.id)

    def check_matching(self, repo: RepoRow, matches: Callable[[str], bool]) -> None:
        """Check again what goes to a branch that `matches`, as after a change of its rule."""
        for pull in self.index(repo.id, PullFilter(state="open")):
            if matches(pull.base):
                self.checks.start(pull.id)

    def is_head_of_open(self, repo_id: int, branch: str) -> bool:
        """Say whether an open pull request comes from the branch."""
        return bool(self._open_with(repo_id, "head", branch))

    def branch_deleted(self, repo: RepoRow, branch: str) -> list[Pull]:
        """
        Close what came from the branch; point what went to it at the default branch.

        Returns those that were closed.
        """
        gone = self._open_with(repo.id, "head", branch)
        for pull in gone:
            self.set_closed(repo, pull, closed=True)
        for pull in self._open_with(repo.id, "base", branch):
            taken = self.open_between(repo.id, head=pull.head, base=repo.default_branch)
            if taken is None and pull.head != repo.default_branch != branch:
                self.retarget(repo, pull, repo.default_branch)
        return [self.by_id(pull.id) for pull in gone]

    def branch_renamed(self, repo_id: int, old: str, new: str) -> None:
        """Let unmerged pull requests follow a branch to its new name."""
        with self._store.transaction():
            for column in ("head", "base"):
                self._store.change(
                    f"UPDATE pulls SET {column} = ?"  # noqa: S608  one of two column names
                    f" WHERE repo_id = ? AND {column} = ? AND merge_commit = ''",
                    new,
                    repo_id,
                    old,
                )

    def catch_up(self, repo: RepoRow) -> None:
        """Do for open pull requests what a killed process could not do after a branch moved."""
        heads = pullgit.branches(repo.path)
        for pull in self.index(repo.id, PullFilter(state="open")):
            if pull.head not in heads:
                self.branch_deleted(repo, pull.head)
            elif pull.base not in heads:
                self.branch_deleted(repo, pull.base)
            pullgit.remember_head(repo.path, pull)

    def _open_with(self, repo_id: int, column: Literal["head", "base"], branch: str) -> list[Pull]:
        sql = f"{_SELECT} WHERE p.repo_id = ? AND p.{column} = ? AND i.closed = ''"
        return [_pull(row) for row in self._store.rows(sql, repo_id, branch)]


def _matches(pull: Pull, wanted: PullFilter) -> bool:
    return (
        (wanted.state not in ("open", "closed") or pull.closed == (wanted.state == "closed"))
        and wanted.base in ("", pull.base)
        and wanted.poster_id in (0, pull.poster_id)
    )


def _pull(row: sqlite3.Row) -> Pull:
    landing = json.loads(row["landing"]) if row["landing"] else None
    merged = row["merge_commit"]
    return Pull(
        id=row["issue_id"],
        repo_id=row["repo_id"],
        number=row["number"],
        title=row["title"],
        poster_id=row["poster_id"],
        closed=bool(row["closed"]),
        head=row["head"],
        base=row["base"],
        merge_base=row["merge_base"],
        landing=Landed(landing["commit"], landing["by"], landing["at"]) if landing else None,
        merged=Landed(merged, row["merger_id"], row["merged"]) if merged else None,
    )
