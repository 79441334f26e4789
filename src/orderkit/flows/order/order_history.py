"""
Show who changed what in an order: every commit of its XR's file, with the fields it changed.

What a commit did is read from the two texts, never from its message; the message only gives
operation, requester and reason, if a flow of ours wrote it. Commits made by hand are included, and
a renamed file is followed. Called by ``orderkit history``, by the revert of a commit, and by a
change that conflicts with another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from orderkit.core.errors import OrderkitError
from orderkit.core.names import CommitSha
from orderkit.core.objects.values import ABSENT, Steps, same, value_at
from orderkit.core.order.change.differences import FieldDifference, differences
from orderkit.flows.order.live_order import LiveOrder, XrFile, find_living, read_xr
from orderkit.flows.platform import Platform
from orderkit.ports.forge import (
    CHANGE_TRAILER,
    OPERATION_TRAILER,
    PROOF_TRAILER,
    REASON_TRAILER,
    REQUESTER_TRAILER,
    Commit,
)

LIMIT = 50


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One commit and what it did to the XR's ``spec``."""

    commit: Commit
    fields: tuple[FieldDifference, ...]
    first: bool
    """Whether it is the commit that placed the order."""
    unreadable: str = ""
    """Why the file, or the one before, cannot be read; then `fields` is empty."""

    def trailer(self, trailer: str) -> str:
        """Return a trailer of the commit's message; empty if it has none."""
        return self.commit.trailers.get(trailer, "")

    @property
    def who(self) -> str:
        """The requester if the message names one, else git's author."""
        return self.trailer(REQUESTER_TRAILER) or self.commit.author

    def to_json(self) -> dict[str, Any]:
        """Return the stable shape of command and service."""
        return {
            "commit": self.commit.id,
            "when": self.commit.when,
            "author": self.commit.author,
            "summary": self.commit.summary,
            "byHand": not self.commit.operation,
            "requester": self.trailer(REQUESTER_TRAILER),
            "requesterProof": self.trailer(PROOF_TRAILER),
            "operation": self.trailer(OPERATION_TRAILER),
            "change": self.trailer(CHANGE_TRAILER),
            "reason": self.trailer(REASON_TRAILER),
            "ordered": self.first,
            "fields": [difference.to_json() for difference in self.fields],
            "unreadable": self.unreadable,
        }


def history(platform: Platform, order: str, *, limit: int = LIMIT) -> list[HistoryEntry]:
    """
    Return what happened to an order's XR, newest first.

    Raises:
        NotFoundError: There is no such order, or its XR is in no file.
        RefusedError: It is ending, or archived.
    """
    live = find_living(platform, order)
    entries = _Reader(platform, live).entries()
    return [entry for _, entry in zip(range(limit), entries, strict=False)]


def last_change_of(
    platform: Platform, live: LiveOrder, steps: Steps, *, since: CommitSha
) -> Commit | None:
    """Return the newest commit after `since` that changed a field; None if there is none."""
    reader = _Reader(platform, live)
    for _, commit in zip(range(LIMIT), reader.commits(), strict=False):
        if commit.id == since:
            return None
        old, new = (
            value_at(xr_file.spec, steps) if isinstance(xr_file, XrFile) else ABSENT
            for xr_file in (reader.parent(commit), reader.at(commit.id))
        )
        if not same(old, new):
            return commit
    return None


def changes_of(platform: Platform, live: LiveOrder, commit: Commit) -> HistoryEntry:
    """Return what one commit did; an added or removed map counts as one value."""
    return _Reader(platform, live).entry(commit, values_whole=True)


class _Reader:
    """Reads the XR of commits, each once."""

    def __init__(self, platform: Platform, live: LiveOrder) -> None:
        self._platform, self._live = platform, live
        self._read: dict[CommitSha, XrFile | OrderkitError] = {}

    def entries(self) -> Iterator[HistoryEntry]:
        return map(self.entry, self.commits())

    def commits(self) -> Iterator[Commit]:
        """Yield the commits of the XR's file, newest first, through renames."""
        ref: str | None = self._platform.forge.head(self._live.repository)
        yielded: set[CommitSha] = set()
        while ref is not None:
            xr_file = self.at(CommitSha(ref))
            path = xr_file.path if isinstance(xr_file, XrFile) else None
            last = None
            for commit in self._all(CommitSha(ref), path):
                last = commit
                if commit.id not in yielded:
                    yielded.add(commit.id)
                    yield commit
            ref = self._earlier(last, path)

    def _all(self, ref: CommitSha, path: PurePosixPath | None) -> Iterator[Commit]:
        """Yield every commit of a path; read further pages only on demand."""
        yielded, limit = 0, _PAGE
        while True:
            commits = self._platform.forge.commits(
                self._live.repository, ref=ref, path=path, limit=limit
            )
            yield from commits[yielded:]
            if len(commits) < limit:
                return
            yielded, limit = len(commits), limit * 2

    def _earlier(self, oldest: Commit | None, path: object) -> CommitSha | None:
        """Return the commit from which the file has another name; None at its beginning."""
        if oldest is None or not oldest.parents:
            return None
        before = self.at(oldest.parents[0])
        if isinstance(before, XrFile) and before.path != path:
            return oldest.parents[0]
        return None

    def entry(self, commit: Commit, *, values_whole: bool = False) -> HistoryEntry:
        old, new = self.parent(commit), self.at(commit.id)
        if isinstance(new, OrderkitError):
            return HistoryEntry(commit, (), first=False, unreadable=str(new))
        if isinstance(old, OrderkitError):
            return HistoryEntry(commit, (), first=False, unreadable=f"before it: {old}")
        fields = differences(ABSENT if old is None else old.spec, new.spec, maps_whole=values_whole)
        return HistoryEntry(commit, fields, first=old is None)

    def parent(self, commit: Commit) -> XrFile | OrderkitError | None:
        """Return the XR before a commit; None if the commit is the first."""
        return self.at(commit.parents[0]) if commit.parents else None

    def at(self, commit: CommitSha) -> XrFile | OrderkitError:
        """Return the XR at a commit, or why there is none to read."""
        if commit not in self._read:
            try:
                self._read[commit] = read_xr(self._platform, self._live, commit)
            except OrderkitError as error:
                if error.retryable:
                    raise
                self._read[commit] = error
        return self._read[commit]


_PAGE = 200
