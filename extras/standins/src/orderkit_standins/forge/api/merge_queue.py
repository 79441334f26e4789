"""
Merge queues: pull requests of a branch wait until whoever runs the forge lets the oldest be merged.

GitLab calls them trains. Both merge with a message of their own, so that the trailers of who asked
are not in it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from orderkit_standins.forge.accounts import Account
from orderkit_standins.forge.api.calls import ApiError
from orderkit_standins.forge.api.merging import MergeRequest, Merging
from orderkit_standins.forge.pull_request_git import Pull
from orderkit_standins.forge.repositories import Repository

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
