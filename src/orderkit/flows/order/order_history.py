"""
Show who changed what in an order: every commit of its XR's file, with the fields it changed.

What a commit did is read from the two texts, never from its message. The message gives operation,
requester and reason only if a signature proves that Orderkit wrote it; otherwise these are claims.
Commits made by hand are included, and a renamed file is followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePosixPath
from typing import ClassVar

from ground.errors import NotFoundError, OrderkitError
from ground.names import BlobSha, CommitSha
from ground.objects.values import ABSENT, Steps, same, value_at
from ground.shapes import Answer
from orderkit.core.order.change import Difference
from orderkit.core.order.change.differences import FieldDifference, differences, in_group
from orderkit.core.order.order_file import MANIFESTS
from orderkit.flows.order.activity import is_lease_note
from orderkit.flows.order.commit_judging import CommitJudge, SignatureVerdict
from orderkit.flows.order.live_order import LiveOrder, XrFile, find_living, read_xr
from orderkit.flows.platform import Platform
from orderkit.ports.forge import (
    AGENT_TRAILER,
    CHANGE_TRAILER,
    OPERATION_TRAILER,
    PROOF_TRAILER,
    REASON_TRAILER,
    REQUESTER_TRAILER,
    Commit,
)

LIMIT = 50
_TRAILERS = (
    OPERATION_TRAILER, REQUESTER_TRAILER, PROOF_TRAILER, CHANGE_TRAILER, REASON_TRAILER,
    AGENT_TRAILER,
)  # fmt: skip


class HistoryAnswer(Answer, frozen=True, kw_only=True):
    """A commit of an order's history, as command and service answer it."""

    component: ClassVar[str] = "HistoryEntry"
    commit: str
    when: str
    author: str
    summary: str
    by_hand: bool
    """Nothing proves that Orderkit wrote the commit."""
    merge: bool
    """Whether it joins two histories. No merge is signed, not even one by ``orderkit merge``."""
    lease_note: bool
    """Whether it only writes down when the order's lease ends."""
    signature: SignatureVerdict
    claims: Mapping[str, str]
    requester: str
    requester_proof: str
    operation: str
    change: str
    reason: str
    ordered: bool
    fields: tuple[Difference, ...]
    unreadable: str


class History(Answer, frozen=True):
    """What happened to an order, newest first."""

    order: str
    entries: tuple[HistoryAnswer, ...]


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One commit and what it did to the XR's ``spec``."""

    commit: Commit
    fields: tuple[FieldDifference, ...]
    first: bool
    """Whether it is the commit that placed the order."""
    unreadable: str = ""
    """Why the file, or the one before, cannot be read; then `fields` is empty."""
    signature: SignatureVerdict = SignatureVerdict.NONE
    """What proves the trailers; only `history` judges it."""

    @property
    def proved(self) -> bool:
        """Whether Orderkit wrote the commit, so that its trailers can be trusted."""
        return self.signature is SignatureVerdict.VALID

    def trailer(self, trailer: str) -> str:
        """Return a trailer of the commit's message; empty if it has none, or if it proves none."""
        return self.commit.trailers.get(trailer, "") if self.proved else ""

    @property
    def is_lease_note(self) -> bool:
        """Whether it only writes down when the order's lease ends."""
        return self.proved and is_lease_note(self.commit) and not self.fields

    @property
    def claims(self) -> Mapping[str, str]:
        """The trailers of Orderkit's that nothing proves: whoever pushed the commit chose them."""
        trailers = {} if self.proved else self.commit.trailers
        return {key: text for key, text in trailers.items() if key in _TRAILERS}

    @property
    def who(self) -> str:
        """The requester if the commit proves one, else git's author."""
        return self.trailer(REQUESTER_TRAILER) or self.commit.author

    @property
    def answer(self) -> HistoryAnswer:
        """What command and service say of it."""
        return HistoryAnswer(
            commit=self.commit.id,
            when=self.commit.when,
            author=self.commit.author,
            summary=self.commit.summary,
            by_hand=not self.proved,
            merge=self.commit.is_merge,
            lease_note=self.is_lease_note,
            signature=self.signature,
            claims=self.claims,
            requester=self.trailer(REQUESTER_TRAILER),
            requester_proof=self.trailer(PROOF_TRAILER),
            operation=self.trailer(OPERATION_TRAILER),
            change=self.trailer(CHANGE_TRAILER),
            reason=self.trailer(REASON_TRAILER),
            ordered=self.first,
            fields=tuple(difference.answer for difference in self.fields),
            unreadable=self.unreadable,
        )


def history(platform: Platform, order: str, *, limit: int = LIMIT) -> list[HistoryEntry]:
    """
    Return what happened to an order's XR, newest first.

    Raises:
        NotFoundError: There is no such order, or its XR is in no file.
        RefusedError: It is ending, or archived.
    """
    return history_of(platform, find_living(platform, order), limit=limit)


def history_of(
    platform: Platform, live: LiveOrder, *, limit: int = LIMIT, notes: bool = True
) -> list[HistoryEntry]:
    """
    Return what happened to the XR of an order that was read before, newest first.

    Args:
        notes: Whether the lease's notes count; files are not read for them if not.
    """
    head = platform.forge.head(live.repository)
    if head is None:
        return []
    reader, judge = _Reader(platform, live), CommitJudge(platform, live.repository, head)
    found = reader.commits(head)
    if not notes:
        found = (commit for commit in found if not _is_proved_note(commit, judge))
    commits = list(islice(found, limit))
    return [
        replace(reader.entry(commit), signature=judge.verdict(commit))
        for commit in _with_merges(commits, judge.history, reader)[:limit]
    ]


def _is_proved_note(commit: Commit, judge: CommitJudge) -> bool:
    return is_lease_note(commit) and judge.verdict(commit) is SignatureVerdict.VALID


def _with_merges(commits: list[Commit], history: Sequence[Commit], reader: _Reader) -> list[Commit]:
    """
    Add the merges that decided the XR, in the order of the whole history.

    The history of a file omits a merge whose file is the same as in one parent. So a merge of an
    old commit could undo newer ones unseen.
    """
    shown = {commit.id for commit in commits}
    oldest = max((n for n, commit in enumerate(history) if commit.id in shown), default=-1)
    return [
        commit
        for commit in history[: oldest + 1]
        if commit.id in shown or (commit.is_merge and reader.decided(commit))
    ]


def last_change_of(
    platform: Platform, live: LiveOrder, steps: Steps, *, since: CommitSha
) -> Commit | None:
    """Return the newest commit after `since` that changed a field; None if there is none."""
    reader = _Reader(platform, live)
    commits = reader.commits(platform.forge.head(live.repository))
    for _, commit in zip(range(LIMIT), commits, strict=False):
        if commit.id == since:
            return None
        old, new = (
            value_at(xr_file.spec, steps) if isinstance(xr_file, XrFile) else ABSENT
            for xr_file in (reader.parent(commit), reader.at(commit.id))
        )
        if not same(old, new):
            return commit
    return None


def entry_of(platform: Platform, live: LiveOrder, commit: Commit) -> HistoryEntry:
    """
    Return what one commit of ``main`` did, as `history` shows it.

    Raises:
        NotFoundError: It touched no manifest.
    """
    reader = _Reader(platform, live)
    if commit.parents and not reader.decided(commit):
        raise NotFoundError(f"{commit.id[:8]} did not touch what {live.entry.order} is")
    head = platform.forge.head(live.repository) or commit.id
    judge = CommitJudge(platform, live.repository, head)
    return replace(reader.entry(commit), signature=judge.verdict(commit))


def changes_of(platform: Platform, live: LiveOrder, commit: Commit) -> HistoryEntry:
    """Return what one commit did; an added or removed map counts as one value."""
    return _Reader(platform, live).entry(commit, values_whole=True)


class _Reader:
    """Reads the XR of commits, each once."""

    def __init__(self, platform: Platform, live: LiveOrder) -> None:
        self._platform, self._live = platform, live
        self._read: dict[CommitSha, XrFile | OrderkitError] = {}

    def commits(self, head: CommitSha | None) -> Iterator[Commit]:
        """Yield the commits of the XR's file up to `head`, newest first, through renames."""
        ref: str | None = head
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
        fields = in_group(fields, self._live.kit.unfold)
        return HistoryEntry(commit, fields, first=old is None)

    def decided(self, merge: Commit) -> bool:
        """Say whether the manifests of a merge differ from those of one of its parents."""
        files = self._manifests(merge.id)
        return any(self._manifests(parent) != files for parent in merge.parents)

    def _manifests(self, commit: CommitSha) -> dict[PurePosixPath, BlobSha]:
        files = self._platform.forge.tree(self._live.repository, commit)
        return {path: blob for path, blob in files.items() if path.is_relative_to(MANIFESTS)}

    def parent(self, commit: Commit) -> XrFile | OrderkitError | None:
        """
        Return the XR before a commit; None if the commit is the first.

        Of a merge: in the first parent that has other manifests.
        """
        if not commit.parents:
            return None
        parents = commit.parents
        if commit.is_merge:
            files = self._manifests(commit.id)
            parents = (*(p for p in parents if self._manifests(p) != files), *parents)
        return self.at(parents[0])

    def at(self, commit: CommitSha) -> XrFile | OrderkitError:
        """Return the XR at a commit, or why there is none to read."""
        if commit not in self._read:
            try:
                self._read[commit] = read_xr(self._platform, self._live, commit)
            except OrderkitError as error:
                # what passes is not remembered
                if error.retryable:
                    raise
                self._read[commit] = error
        return self._read[commit]


_PAGE = 200
