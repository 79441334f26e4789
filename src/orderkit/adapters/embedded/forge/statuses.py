"""
What robots said of commits: append only, the last word of each context counts.

Called by the endpoints and by ``api.merging``, which asks whether required checks passed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orderkit.adapters.embedded.forge.store import Store, timestamp
from orderkit.adapters.embedded.globs import compile_glob
from orderkit.core.errors import InvalidInputError

_BAD = ("error", "failure", "warning")
_GOOD = ("success", "skipped")


@dataclass(frozen=True, slots=True)
class NewStatus:
    """What somebody says of a commit. Gitea takes any text as state, an empty one too."""

    context: str
    state: str
    description: str
    target_url: str


@dataclass(frozen=True, slots=True)
class Status:
    """What somebody said of a commit; `index` counts per commit from 1."""

    id: int
    index: int
    repo_id: int
    sha: str
    said: NewStatus
    creator_id: int
    created: str


class Statuses:
    """The commit statuses of one forge."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, repo_id: int, sha: str, said: NewStatus, *, by: int) -> Status:
        """Note a status; none is ever replaced."""
        new_id = self._store.insert(
            "INSERT INTO statuses"
            " (repo_id, sha, context, state, description, target_url, creator_id, created)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            repo_id,
            sha,
            said.context.strip(),
            said.state,
            said.description.strip(),
            said.target_url.strip(),
            by,
            timestamp(),
        )
        return next(each for each in self.of(repo_id, sha) if each.id == new_id)

    def of(self, repo_id: int, sha: str) -> list[Status]:
        """Return every status of a commit, oldest first."""
        rows = self._store.rows(
            "SELECT * FROM statuses WHERE repo_id = ? AND sha = ? ORDER BY id", repo_id, sha
        )
        return [_status(row, index) for index, row in enumerate(rows, 1)]

    def latest(self, repo_id: int, sha: str) -> list[Status]:
        """Return the last status of each context, the newest first."""
        last = {each.said.context: each for each in self.of(repo_id, sha)}
        return sorted(last.values(), key=lambda each: -each.index)


def combined(states: Iterable[str]) -> str:
    """Return what all of them together say: a bad one is a failure, an open one pending."""
    found = list(states)
    if any(state in _BAD for state in found):
        return "failure"
    return "success" if found and all(state in _GOOD for state in found) else "pending"


def required(latest: Sequence[Status], contexts: Sequence[str]) -> str:
    """Return what the statuses say of `contexts` (globs): one without a status is pending."""
    if not latest or not contexts:
        return combined(each.said.state for each in latest)
    matched = [_matching(latest, context) for context in contexts]
    state = combined(each.said.state for found in matched for each in found)
    return state if all(matched) or state == "failure" else "pending"


def _matching(latest: Sequence[Status], context: str) -> list[Status]:
    try:
        pattern = compile_glob(context)
    except InvalidInputError:
        return []
    return [each for each in latest if pattern.fullmatch(each.said.context)]


def _status(row: sqlite3.Row, index: int) -> Status:
    said = NewStatus(row["context"], row["state"], row["description"], row["target_url"])
    return Status(
        id=row["id"],
        index=index,
        repo_id=row["repo_id"],
        sha=row["sha"],
        said=said,
        creator_id=row["creator_id"],
        created=row["created"],
    )
