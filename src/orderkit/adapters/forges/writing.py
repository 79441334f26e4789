"""
Write several files in one commit so that no edit is lost and none is made twice: what forges share.

The first request contains all files, each with the blob id that the caller saw, and the operation
id as a trailer. The forge compares and swaps, so nothing needs to be read before. Any answer but a
success is verified, be it a time-out or a refusal, because a proxy may have made it: the files at
the head are read, and if they changed, the history is searched for the trailer. Files that already
have their content are left out, a file that is not as the caller saw it is a conflict, and the rest
is sent again, for a bounded number of rounds with growing random pauses. A `LostAnswerError` or a
`ServerError` leaves the outcome open; after any other error nothing was written, and no request is
still running that could write.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ground.errors import (
    AccessError,
    ConflictError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    RemoteError,
    TooFastError,
)
from ground.names import MAIN, BlobSha, CommitSha, RepoId, blob_sha
from orderkit.adapters.forges.answers import ROUNDS, LostAnswerError, ServerError, pauses, turn
from orderkit.adapters.forges.calls import ForgeCalls, hidden
from orderkit.ports.forge import Commit, FileChange, Operation, Repository, Written
from orderkit.ports.signatures import (
    CommitReader,
    Signatures,
    is_signed_by,
    read_changes,
    signed_message,
)

FILE_DEPTH, SEARCH_DEPTH = 50, 200
"""Commits searched for our trailer: in the history of one file, and of the branch."""


class WritableForge(CommitReader, Protocol):
    """What a write asks of its forge; see ``ports.forge``."""

    @property
    def signatures(self) -> Signatures | None:
        """What signs commits; None: they are not signed."""
        ...

    def head(self, repo: RepoId, branch: str = "main") -> CommitSha | None: ...

    def repo(self, repo: RepoId) -> Repository | None: ...

    def blocking_rule(self, repo: RepoId, branch: str) -> str:
        """Return the rule that keeps us from pushing to a branch, "" if none does."""
        ...

    def blobs(
        self, repo: RepoId, commit: CommitSha, paths: Sequence[PurePosixPath]
    ) -> Mapping[PurePosixPath, BlobSha]: ...

    def commits(
        self, repo: RepoId, *, ref: str = "main", path: PurePosixPath | None = None, limit: int = 50
    ) -> Sequence[Commit]: ...


logger = logging.getLogger(__name__)
ForgeT = TypeVar("ForgeT", bound=WritableForge)


class SharedWriting(ForgeCalls):
    """The part of the port that commits files."""

    @abstractmethod
    def _new_write(
        self, repo: RepoId, changes: Sequence[FileChange], operation: Operation, branch: str
    ) -> Write[Any]: ...

    def write(
        self,
        repo: RepoId,
        changes: Sequence[FileChange],
        operation: Operation,
        *,
        branch: str = MAIN,
    ) -> Written:
        """
        Commit several files at once, or nothing. Idempotent by ``operation.id``. See the port.

        One write per repository is in flight per process.

        Raises:
            ConflictError: A file lacks its `expected_sha`, or another writer won every round.
            NotFoundError: No such repository or branch.
            RefusedError: The repository is archived.
            IncompleteError: It was written, and replaced what another writer wrote just before.
        """
        check_paths(changes)
        with turn(self.base_url, repo):
            return self._new_write(repo, changes, operation, branch).run()


@dataclass(frozen=True, slots=True)
class WriteFailure:
    """How a round failed, and whether another one may help."""

    problem: Exception
    again: bool


@dataclass(slots=True)
class Write(ABC, Generic[ForgeT]):
    """One write; `run` repeats rounds until the outcome is clear. Each forge has its `_send`."""

    way_past: ClassVar[str] = "add our account to those who may push"

    forge: ForgeT
    repo: RepoId
    changes: Sequence[FileChange]
    operation: Operation
    branch: str
    request_sent: bool = False
    """Whether a request was sent."""
    doubtful: list[frozenset[PurePosixPath]] = field(default_factory=list)
    """The paths of each request without a clear answer, which may still be carried out."""
    refused: bool = False
    """Whether the last of them was answered as a lost race; the next read must confirm it."""
    head: CommitSha | None = None
    """The head that the last round read."""
    head_read: bool = False
    """Whether a round has read the head; None alone may mean an empty repository."""

    def run(self) -> Written:
        waits = pauses()
        for number in range(1, ROUNDS + 1):
            outcome = self._round(last=number == ROUNDS)
            if isinstance(outcome, Written):
                self._log(outcome)
                return outcome
            if number == ROUNDS or not outcome.again:
                raise self._final(outcome) from outcome.problem
            time.sleep(next(waits))
        raise AssertionError("unreachable")

    @property
    def reads_first(self) -> bool:
        """Whether the forge compares the head of the branch, which has to be read before."""
        return False

    def _log(self, written: Written) -> None:
        if written.changed:
            details = {
                "operation": self.operation.id,
                "requester": self.operation.requester,
                "repository": str(self.repo),
                "commit": written.commit,
            }
            logger.info("wrote %s", self.operation.summary, extra=details)

    def _round(self, *, last: bool) -> Written | WriteFailure:
        try:
            is_first = not self.request_sent and not self.reads_first
            # the first request needs no read: the forge compares the blob ids that the caller saw
            if is_first and not any(
                is_done(change, change.expected_sha) for change in self.changes
            ):
                return self._send(self.changes, last=last)
            self.head, self.head_read = self._head(), True
            entries = self._entries(self.head)
            if not isinstance(entries, list):
                return entries
            if self.refused:  # every file is unchanged: the refusal was real
                self.doubtful.pop()
            return self._send(entries, last=last)
        except NotFoundError as error:
            if self.refused:  # no branch: the refusal was real
                self.doubtful.pop()
            return WriteFailure(error, again=False)
        except OrderkitError as error:
            # Reading failed, which does not tell whether our request was carried out: read again.
            again = self.request_sent and isinstance(error, (RemoteError, RefusedError))
            again = again and not isinstance(error, TooFastError)
            return WriteFailure(error, again=again)

    def _final(self, failure: WriteFailure) -> Exception:
        """Return the error to raise; a LostAnswerError if a request may still be carried out."""
        problem = failure.problem
        if self.doubtful and not isinstance(problem, (LostAnswerError, ServerError)):
            return LostAnswerError(
                f"{self.repo}: a request without an answer may still be carried out; {problem}",
                hint="repeat the command: what was carried out is found and not done again",
            )
        if failure.again and isinstance(problem, ConflictError):
            return ConflictError(
                f"{self.repo}: another writer won all {ROUNDS} rounds; nothing was written",
                hint="run the command again",
            )
        return problem

    def _head(self) -> CommitSha | None:
        """Return the head, or None for an empty repository."""
        head = self.forge.head(self.repo, self.branch)
        if head is not None:
            return head
        repository = self.forge.repo(self.repo)
        if repository is None:
            raise hidden(self.repo)
        if repository.empty:
            return None
        head = self.forge.head(self.repo, self.branch)  # the first commit may have just been made
        if head is None:
            raise NotFoundError(f"{self.repo} has no branch {self.branch}")
        return head

    def _entries(self, head: CommitSha | None) -> list[FileChange] | Written | WriteFailure:
        """Return the changes to send, or the outcome if there is nothing to send."""
        blobs = self._blobs(head) if head else {}
        entries = []
        for change in self.changes:
            now = blobs.get(change.path)
            if is_done(change, now):
                continue
            if now != change.expected_sha:
                return self._find_commit(change.path) or self._conflict(change, now)
            entries.append(change)
        if entries:
            return entries
        if head is None:
            raise NotFoundError(f"{self.repo} is empty and nothing was to be written")
        # done already: by our request whose answer was lost, or by somebody else
        return (self._find_commit() if self.request_sent else None) or Written(head, changed=False)

    def _blobs(self, commit: CommitSha) -> Mapping[PurePosixPath, BlobSha]:
        return self.forge.blobs(self.repo, commit, [change.path for change in self.changes])

    @abstractmethod
    def _send(self, changes: Sequence[FileChange], *, last: bool) -> Written | WriteFailure:
        """
        Send the changes once, note in `request_sent` and `doubtful` what may be carried out.

        Returns:
            The commit, or why not and whether another round may help.
        """

    def _find_commit(self, changed: PurePosixPath | None = None) -> Written | None:
        """Find our commit: it has our trailer and signature, and every file has our content."""
        only = self.changes[0].path if len(self.changes) == 1 else changed
        # the history of the changed file comes first, because it is short
        for path in [only] if len(self.changes) == 1 or only is None else [only, None]:
            depth = SEARCH_DEPTH if path is None else FILE_DEPTH
            history = self.forge.commits(self.repo, ref=self.branch, path=path, limit=depth)
            for commit in history:
                # The trailer alone is not enough: a command that is repeated after others changed
                # its result has the same operation id but must make a new commit.
                if commit.operation == self.operation.id and self._is_ours(commit):
                    return Written(commit.id, changed=True)
        return None

    def _is_ours(self, commit: Commit) -> bool:
        """Say whether we wrote a commit; without a signing key, its content has to do."""
        blobs = self._blobs(commit.id)
        if not all(is_done(change, blobs.get(change.path)) for change in self.changes):
            return False
        signatures = self.forge.signatures
        if signatures is None or not signatures.can_sign or signatures.public_key is None:
            return True
        changes = read_changes(self.forge, self.repo, commit)
        return is_signed_by(signatures, signatures.public_key, self.repo, commit, changes)

    def _conflict(self, change: FileChange, now: BlobSha | None) -> WriteFailure:
        """Return the conflict of a file that is not as the caller saw it."""
        # a running request that contains this file cannot succeed either
        self.doubtful = [paths for paths in self.doubtful if change.path not in paths]
        expected = change.expected_sha[:8] if change.expected_sha else "no file"
        error = ConflictError(
            f"{self.repo} {change.path} changed: expected {expected},"
            f" found {now[:8] if now else 'no file'}; nothing was written",
            hint="read it again and repeat the edit",
        )
        return WriteFailure(error, again=False)

    def _protected(self, told: object) -> AccessError | None:
        """Return the error for a branch that a rule of the forge closes to us, else None."""
        try:
            rule = self.forge.blocking_rule(self.repo, self.branch)
        except OrderkitError:
            return None  # the refusal itself says more
        return self._closed_by(rule, told) if rule else None

    def _closed_by(self, rule: str, told: object) -> AccessError:
        return AccessError(
            f"no right: {self.branch} of {self.repo} is protected on the forge by the rule"
            f" '{rule}', which does not let our account push: {told}",
            hint=f"remove that rule, or {self.way_past}; until then, changes can go by pull request"
            " (--pr)",
        )

    def _message(self, paths: set[PurePosixPath], at: int) -> str:
        """Return the commit message for the changes of these paths, signed if we can."""
        signatures = self.forge.signatures
        if signatures is None:
            return self.operation.message
        changes = {
            change.path: (change.expected_sha, _new_blob(change))
            for change in self.changes
            if change.path in paths
        }
        return signed_message(signatures, self.repo, self.branch, self.operation, changes, at=at)


def _new_blob(change: FileChange) -> BlobSha | None:
    return None if change.data is None else blob_sha(change.data, change.expected_sha or "")


def is_done(change: FileChange, now: BlobSha | None) -> bool:
    """Say whether a path has its new content already."""
    if change.data is None:
        return now is None
    return now is not None and now == blob_sha(change.data, now)


def check_paths(changes: Sequence[FileChange]) -> None:
    """
    Check the paths of one write.

    Raises:
        ValueError: A path twice, or outside the repository.
    """
    paths = [change.path for change in changes]
    if len(set(paths)) != len(paths):
        raise ValueError("a path appears twice in one write")
    for path in paths:
        if path.is_absolute() or not path.parts or ".." in path.parts:
            raise ValueError(f"{path} is not a path inside a repository")
