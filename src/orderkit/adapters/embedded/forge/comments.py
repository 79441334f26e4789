"""
Comments on issues and pull requests, in the store.

Whoever is called here has been admitted already (``api.issues`` decides who may).
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from orderkit.adapters.embedded.forge.issues import Issue
from orderkit.adapters.embedded.forge.store import Store, timestamp

_SELECT = "SELECT c.*, i.repo_id FROM comments c JOIN issues i ON i.id = c.issue_id"


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment."""

    id: int
    issue_id: int
    poster_id: int
    body: str
    created: str
    updated: str


class Comments:
    """The comments of one forge."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, issue: Issue, poster_id: int, body: str) -> Comment:
        """Add a comment."""
        now = timestamp()
        new_id = self._store.insert(
            "INSERT INTO comments (issue_id, poster_id, body, created, updated)"
            " VALUES (?, ?, ?, ?, ?)",
            issue.id,
            poster_id,
            body,
            now,
            now,
        )
        return Comment(new_id, issue.id, poster_id, body, now, now)

    def find(self, repo_id: int, comment_id: int) -> Comment | None:
        """Return a comment of a repository, or None."""
        row = self._store.row(f"{_SELECT} WHERE i.repo_id = ? AND c.id = ?", repo_id, comment_id)
        return _comment(row) if row else None

    def on_issue(self, issue_id: int) -> list[Comment]:
        """Return the comments of an issue, oldest first."""
        rows = self._store.rows(f"{_SELECT} WHERE c.issue_id = ? ORDER BY c.id", issue_id)
        return [_comment(row) for row in rows]

    def in_repository(self, repo_id: int) -> list[Comment]:
        """Return the comments of a repository, oldest first."""
        rows = self._store.rows(f"{_SELECT} WHERE i.repo_id = ? ORDER BY c.id", repo_id)
        return [_comment(row) for row in rows]

    def edit(self, comment: Comment, body: str) -> None:
        """Replace the text."""
        self._store.change(
            "UPDATE comments SET body = ?, updated = ? WHERE id = ?", body, timestamp(), comment.id
        )

    def delete(self, comment: Comment) -> None:
        """Remove it."""
        self._store.change("DELETE FROM comments WHERE id = ?", comment.id)


def _comment(row: sqlite3.Row) -> Comment:
    return Comment(
        id=row["id"],
        issue_id=row["issue_id"],
        poster_id=row["poster_id"],
        body=row["body"],
        created=row["created"],
        updated=row["updated"],
    )
