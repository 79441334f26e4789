"""Commit statuses: append only, the newest of each context counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ground.errors import InvalidInputError
from orderkit_standins.forge.store import Store, load, timestamp
from orderkit_standins.globs import compile_glob

TEXTS = ("context", "state", "description", "target_url")
_BAD = ("error", "failure", "warning")
_GOOD = ("success", "skipped")


@dataclass(frozen=True, slots=True)
class Status:
    """A status of a commit; `index` counts per commit from 1."""

    id: int
    index: int
    sha: str
    context: str
    state: str
    description: str
    target_url: str
    creator_id: int
    created: str


class Statuses:
    """The commit statuses of one forge."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, repo_id: int, sha: str, texts: Mapping[str, str], *, creator_id: int) -> Status:
        """Add a status; none is ever replaced. Gitea takes any text as state, an empty one too."""
        fields = {key: texts.get(key, "").strip() for key in TEXTS}
        ids = {"repo_id": repo_id, "sha": sha, "creator_id": creator_id}
        with self._store.transaction():
            self._store.insert("statuses", **ids, **fields, created=timestamp())
            return self.of_commit(repo_id, sha)[-1]

    def of_commit(self, repo_id: int, sha: str) -> list[Status]:
        """Return every status of a commit, oldest first."""
        sql = "SELECT * FROM statuses WHERE repo_id = ? AND sha = ? ORDER BY id"
        rows = self._store.rows(sql, repo_id, sha)
        return [load(Status, row, index=index) for index, row in enumerate(rows, 1)]

    def latest(self, repo_id: int, sha: str) -> list[Status]:
        """Return the last status of each context, the newest first."""
        newest = {status.context: status for status in self.of_commit(repo_id, sha)}
        return sorted(newest.values(), key=lambda status: -status.index)


def combined(states: Iterable[str]) -> str:
    """Return the common state: one bad state is a failure, one open state is pending."""
    state_list = list(states)
    if any(state in _BAD for state in state_list):
        return "failure"
    return "success" if state_list and all(state in _GOOD for state in state_list) else "pending"


def required(latest: Sequence[Status], contexts: Sequence[str]) -> str:
    """Return the common state of the required `contexts` (globs); a missing one is pending."""
    if not latest or not contexts:
        return combined(status.state for status in latest)
    matching = [_matching(latest, context) for context in contexts]
    state = combined(status.state for statuses in matching for status in statuses)
    return state if all(matching) or state == "failure" else "pending"


def _matching(latest: Sequence[Status], context: str) -> list[Status]:
    try:
        pattern = compile_glob(context)
    except InvalidInputError:
        return []
    return [status for status in latest if pattern.fullmatch(status.context)]
