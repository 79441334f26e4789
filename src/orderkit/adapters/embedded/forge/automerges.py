"""
Merges that wait until the required checks of a pull request pass.

Only what was ordered is kept here; ``api.merging`` tries it when something changed.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from orderkit.adapters.embedded.forge.store import Store
from orderkit.core.errors import ConflictError


@dataclass(frozen=True, slots=True)
class AutoMerge:
    """An ordered merge of a pull request; no head is kept, as in Gitea."""

    pull_id: int
    doer_id: int
    style: str
    message: str
    delete_branch: bool


class AutoMerges:
    """The waiting merges of one forge. A merged pull request's is removed by ``landings``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, order: AutoMerge) -> None:
        """
        Keep an order.

        Raises:
            ConflictError: The pull request has one already.
        """
        try:
            self._store.insert(
                "INSERT INTO auto_merges VALUES (?, ?, ?, ?, ?)",
                order.pull_id,
                order.doer_id,
                order.style,
                order.message,
                int(order.delete_branch),
            )
        except sqlite3.IntegrityError as error:
            raise ConflictError(
                "pull request is already scheduled to auto merge when checks succeed"
                f" [pull_id: {order.pull_id}]"
            ) from error

    def of(self, pull_id: int) -> AutoMerge | None:
        """Return the order of a pull request, or None."""
        row = self._store.row("SELECT * FROM auto_merges WHERE issue_id = ?", pull_id)
        return _order(row) if row else None

    def in_repository(self, repo_id: int) -> list[AutoMerge]:
        """Return all orders of a repository."""
        sql = (
            "SELECT a.* FROM auto_merges a JOIN pulls p ON p.issue_id = a.issue_id"
            " WHERE p.repo_id = ?"
        )
        return [_order(row) for row in self._store.rows(sql, repo_id)]

    def remove(self, pull_id: int) -> bool:
        """Forget an order. True if it was there."""
        return self._store.change("DELETE FROM auto_merges WHERE issue_id = ?", pull_id) > 0


def _order(row: sqlite3.Row) -> AutoMerge:
    return AutoMerge(
        row["issue_id"], row["doer_id"], row["style"], row["message"], bool(row["delete_branch"])
    )
