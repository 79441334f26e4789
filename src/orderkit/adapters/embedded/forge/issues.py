"""
What issues and pull requests have in common: a number, a title, a text, labels.

A pull request is an issue with branches (``pulls``). Both draw their numbers from one
sequence per repository; a number is never given twice. Whoever is called here has been
admitted already.

Called by ``pulls`` and by the endpoints of issues and labels.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from orderkit.adapters.embedded.forge.store import Store, timestamp
from orderkit.core.errors import NotFoundError


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue or the issue half of a pull request. `closed` is the time, or empty."""

    id: int
    repo_id: int
    number: int
    is_pull: bool
    poster_id: int
    title: str
    body: str
    version: int
    created: str
    updated: str
    closed: str


@dataclass(frozen=True, slots=True)
class Label:
    """A label of a repository; `color` is six hex digits without ``#``."""

    id: int
    repo_id: int
    name: str
    color: str
    description: str
    exclusive: bool
    archived: bool


@dataclass(frozen=True, slots=True)
class NewIssue:
    """What a caller brings for an issue or pull request."""

    poster_id: int
    title: str
    body: str = ""
    is_pull: bool = False
    label_ids: tuple[int, ...] = ()


class Issues:
    """Issues and labels in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, repo_id: int, new: NewIssue) -> Issue:
        """Create an issue under the next number, with those of its labels that exist."""
        with self._store.transaction():
            number = self.take_number(repo_id)
            now = timestamp()
            issue_id = self._store.insert(
                "INSERT INTO issues"
                " (repo_id, number, is_pull, poster_id, title, body, created, updated)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                repo_id,
                number,
                int(new.is_pull),
                new.poster_id,
                new.title,
                new.body,
                now,
                now,
            )
            self.set_labels(issue_id, self.labels(repo_id, new.label_ids))
        return self.by_id(issue_id)

    def take_number(self, repo_id: int) -> int:
        """Return the next number of a repository and never return it again."""
        with self._store.transaction():
            self._store.change(
                "INSERT INTO numbers VALUES (?, 1)"
                " ON CONFLICT (repo_id) DO UPDATE SET last = last + 1",
                repo_id,
            )
            row = self._store.row("SELECT last FROM numbers WHERE repo_id = ?", repo_id)
        if row is None:
            raise RuntimeError(f"repository {repo_id} has no numbers")
        return int(row["last"])

    def find(self, repo_id: int, number: int) -> Issue | None:
        """Return an issue or pull request by its number, or None."""
        row = self._store.row(
            "SELECT * FROM issues WHERE repo_id = ? AND number = ?", repo_id, number
        )
        return _issue(row) if row else None

    def all(self, repo_id: int) -> list[Issue]:
        """Return the issues and pull requests of a repository, newest first."""
        rows = self._store.rows(
            "SELECT * FROM issues WHERE repo_id = ? ORDER BY number DESC", repo_id
        )
        return [_issue(row) for row in rows]

    def edit(
        self,
        issue: Issue,
        *,
        title: str | None = None,
        body: str | None = None,
        closed: bool | None = None,
    ) -> Issue:
        """
        Change what is given. A new body raises the version.

        Raises:
            NotFoundError: It was deleted meanwhile.
        """
        now = timestamp()
        moment = None if closed is None else (issue.closed or now) if closed else ""
        self._store.change(
            "UPDATE issues SET title = coalesce(?, title), body = coalesce(?, body),"
            " version = version + ?, closed = coalesce(?, closed), updated = ? WHERE id = ?",
            title,
            body,
            int(body is not None),
            moment,
            now,
            issue.id,
        )
        return self.by_id(issue.id)

    def touch(self, issue_id: int) -> None:
        """Say that something about the issue changed now."""
        self._store.change("UPDATE issues SET updated = ? WHERE id = ?", timestamp(), issue_id)

    def labels(self, repo_id: int, ids: Iterable[int] | None = None) -> list[Label]:
        """Return the labels of a repository, or those of `ids` that it has, by name."""
        rows = self._store.rows("SELECT * FROM labels WHERE repo_id = ? ORDER BY name, id", repo_id)
        wanted = None if ids is None else set(ids)
        return [_label(row) for row in rows if wanted is None or row["id"] in wanted]

    def labels_on(self, issue_id: int) -> list[Label]:
        """Return the labels of an issue, by name."""
        rows = self._store.rows(
            "SELECT l.* FROM labels l JOIN issue_labels i ON i.label_id = l.id"
            " WHERE i.issue_id = ? ORDER BY l.name, l.id",
            issue_id,
        )
        return [_label(row) for row in rows]

    def set_labels(self, issue_id: int, labels: Iterable[Label]) -> None:
        """Replace the labels of an issue."""
        with self._store.transaction():
            self._store.change("DELETE FROM issue_labels WHERE issue_id = ?", issue_id)
            for label in labels:
                self._store.insert("INSERT INTO issue_labels VALUES (?, ?)", issue_id, label.id)

    def by_id(self, issue_id: int) -> Issue:
        """
        Return an issue.

        Raises:
            NotFoundError: There is none.
        """
        row = self._store.row("SELECT * FROM issues WHERE id = ?", issue_id)
        if row is None:
            raise NotFoundError(f"no issue {issue_id}")
        return _issue(row)


def _issue(row: sqlite3.Row) -> Issue:
    return Issue(
        id=row["id"],
        repo_id=row["repo_id"],
        number=row["number"],
        is_pull=bool(row["is_pull"]),
        poster_id=row["poster_id"],
        title=row["title"],
        body=row["body"],
        version=row["version"],
        created=row["created"],
        updated=row["updated"],
        closed=row["closed"],
    )


def _label(row: sqlite3.Row) -> Label:
    return Label(
        id=row["id"],
        repo_id=row["repo_id"],
        name=row["name"],
        color=row["color"],
        description=row["description"],
        exclusive=bool(row["exclusive"]),
        archived=bool(row["archived"]),
    )
