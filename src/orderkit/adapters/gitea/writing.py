"""
Write several files in one commit so that no edit is lost and none is made twice.

It begins with one request: all files, each with the blob id that the caller saw, and the
operation id as a trailer. The forge compares and swaps, so nothing has to be read before.
Whatever comes back that is no success is not believed, neither a time-out nor a refusal (a
proxy may have made it): the files at the head and, if they are not as they were, the history
are read, for the trailer. What already has its content is dropped, what is not as the caller
saw it is a conflict, the rest is sent again: a bounded number of rounds, with a growing random
pause between them. An error that leaves the outcome open is
a `LostAnswerError` or a `ServerError`; after every other one nothing was written, and nothing
that is still under way can be.

Why a request that is carried out late, after it was sent a second time, makes no second
commit: each entry carries the blob id it replaces, or is a create. Whichever of the two comes
second finds other blobs (422) or a moved branch (403 or 409), and our
commit is then found. One thing a forge cannot be asked: a request that it carries out late,
after its files were changed and changed back to the very bytes it saw, is carried out a
second time.

Called by ``client`` for ``Forge.write``.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from orderkit.adapters.gitea.answers import (
    RACE,
    GiteaResponse,
    LostAnswerError,
    ServerError,
    refusal,
)
from orderkit.adapters.gitea.calls import (
    CONFLICT,
    FORBIDDEN,
    INVALID,
    MISSING,
    UNAUTHORIZED,
)
from orderkit.adapters.gitea.firstcommit import push_again_after_first_commit
from orderkit.adapters.gitea.reading import DEFAULT_BRANCH
from orderkit.adapters.gitea.repositories import Repositories
from orderkit.adapters.gitea.turns import ROUNDS, pauses, turn
from orderkit.core.errors import (
    ConflictError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    RemoteError,
    UnreachableError,
)
from orderkit.core.names import BlobSha, CommitSha, RepoId, blob_sha
from orderkit.ports.forge import FileChange, Operation, Written

FILE_DEPTH, SEARCH_DEPTH = 50, 200
"""How many commits are searched for our trailer: of one file, and of the branch."""

_DENIED = re.compile(
    r"required scope|cannot commit to repo|permission|not allowed|owner", re.IGNORECASE
)
_FILE_CONFLICT = re.compile(r"sha does not match|already exists|repo is empty", re.IGNORECASE)


class Writing(Repositories):
    """The part of the port that commits files."""

    def write(
        self,
        repo: RepoId,
        changes: Sequence[FileChange],
        operation: Operation,
        *,
        branch: str = DEFAULT_BRANCH,
    ) -> Written:
        """
        Commit several files at once, or nothing. Idempotent by ``operation.id``. See the port.

        One write per repository is in flight per process.

        Raises:
            ConflictError: A file is not what `seen` says, or another writer won every round.
            NotFoundError: No such repository or branch.
            RefusedError: The repository is archived.
        """
        _check_paths(changes)
        with turn(self.base_url, repo):
            try:
                return _Write(self, repo, changes, operation, branch).run()
            except OrderkitError:
                if not self._push_again_after_first_commit(repo, branch, operation):
                    raise
            return _Write(self, repo, changes, operation, branch).run()

    def _push_again_after_first_commit(
        self, repo: RepoId, branch: str, operation: Operation
    ) -> bool:
        """Say whether the write failed because the first commit was cut off, and mend that."""
        with suppress(OrderkitError):  # what made the write fail says more
            return push_again_after_first_commit(self, repo, branch, operation)
        return False


@dataclass(frozen=True, slots=True)
class _Failure:
    """How a round failed, and whether another one may help."""

    problem: Exception
    again: bool


@dataclass(slots=True)
class _Write:
    """One write with what it needs; `run` repeats rounds until the answer is clear."""

    forge: Writing
    repo: RepoId
    changes: Sequence[FileChange]
    operation: Operation
    branch: str
    request_sent: bool = False
    """Whether a request went out."""
    doubtful: list[frozenset[PurePosixPath]] = field(default_factory=list)
    """The paths of each request that may still be carried out: nobody said what became of it."""
    refused: bool = False
    """Whether the last of them was answered as lost to another, which reading must confirm."""
    head: CommitSha | None = None
    """The head that this round read."""
    head_read: bool = False
    """Whether this round read it."""

    def run(self) -> Written:
        waits = pauses()
        for number in range(1, ROUNDS + 1):
            outcome = self._round(last=number == ROUNDS)
            if isinstance(outcome, Written):
                return outcome
            if number == ROUNDS or not outcome.again:
                raise self._final(outcome) from outcome.problem
            time.sleep(next(waits))
        raise RuntimeError("unreachable")

    def _round(self, *, last: bool) -> Written | _Failure:
        try:
            if not self.request_sent and not any(
                _is_done(change, change.expected_sha) for change in self.changes
            ):
                return self._send([_entry(change) for change in self.changes], last=last)
            self.head, self.head_read = self._head(), True
            entries = self._entries(self.head)
            if not isinstance(entries, list):
                return entries
            if self.refused:  # every file is as it was: the refusal was true
                self.doubtful.pop()
            return self._send(entries, last=last)
        except NotFoundError as error:
            if self.refused:  # no branch: the refusal was true
                self.doubtful.pop()
            return _Failure(error, again=False)
        except OrderkitError as error:
            # Reading failed. After a request of ours that says nothing of what became of it.
            again = self.request_sent and isinstance(error, (RemoteError, RefusedError))
            return _Failure(error, again=again)

    def _final(self, failure: _Failure) -> Exception:
        """Return the error to end with: one that says so if something is still under way."""
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
            raise NotFoundError(f"there is no repository {self.repo}, or it is hidden from us")
        if repository.empty:
            return None
        head = self.forge.head(self.repo, self.branch)  # the first commit may just have come
        if head is None:
            raise NotFoundError(f"{self.repo} has no branch {self.branch}")
        return head

    def _entries(self, head: CommitSha | None) -> list[dict[str, str]] | Written | _Failure:
        """Return what to send, or how it ended if there is nothing to send."""
        blobs = self._blobs(head) if head else {}
        entries = []
        for change in self.changes:
            now = blobs.get(change.path)
            if _is_done(change, now):
                continue
            if now != change.expected_sha:
                return self._find_commit(change.path) or self._conflict(change, now)
            entries.append(_entry(change))
        if entries:
            return entries
        if head is None:
            raise NotFoundError(f"{self.repo} is empty and nothing was to be written")
        return (self._find_commit() if self.request_sent else None) or Written(head, changed=False)

    def _blobs(self, commit: CommitSha) -> Mapping[PurePosixPath, BlobSha]:
        return self.forge.blobs(self.repo, commit, [change.path for change in self.changes])

    def _send(self, entries: list[dict[str, str]], *, last: bool) -> Written | _Failure:
        path = self.forge._path(self.repo, "contents")  # noqa: SLF001  one module
        self.request_sent, self.refused = True, False
        self.doubtful.append(frozenset(PurePosixPath(entry["path"]) for entry in entries))
        try:
            answer = self.forge._http.send("POST", path, body=self._body(entries))  # noqa: SLF001
        except LostAnswerError as error:
            return self._find_commit() or _Failure(error, again=True)
        except UnreachableError as error:
            self.doubtful.pop()  # it never went out
            return _Failure(error, again=True)
        if answer.status == UNAUTHORIZED:  # then we could not look either
            self.doubtful.pop()
            return _Failure(refusal(answer, f"write to {self.repo}"), again=False)
        # A proxy may refuse in the forge's place what the forge carried out: look, always.
        if not last and (RACE.search(answer.text) or (not self.head_read and _is_stale(answer))):
            self.refused = True  # the next round looks
            return _Failure(ConflictError(f"{self.repo}: {answer.text}"), again=True)
        commit_result = _commit_in(answer)
        if commit_result is not None:
            self._remember_files(answer, commit_result.commit)
        return commit_result or self._find_commit() or self._judge(answer)

    def _remember_files(self, answer: GiteaResponse, commit: CommitSha) -> None:
        """Know the new commit's files without asking, where those of its one parent are known."""
        parents = answer.json()["commit"].get("parents")
        if isinstance(parents, list) and len(parents) == 1 and isinstance(parents[0], dict):
            changed_files = {
                change.path: None if change.data is None else blob_sha(change.data, commit)
                for change in self.changes
            }
            parent = CommitSha(str(parents[0].get("sha")))
            self.forge._trees.follow(self.repo, parent, commit, changed_files)  # noqa: SLF001  one module

    def _judge(self, answer: GiteaResponse) -> _Failure:
        """Say what an answer means that is no success, when our commit is not there."""
        text, status = answer.text, answer.status
        if answer.ok:
            doing = f"write to {self.repo}: {status} names no commit: {text}"
            return _Failure(ServerError(doing), again=True)
        problem = refusal(answer, f"write to {self.repo}")
        if status >= 500 and not _is_own(answer):  # noqa: PLR2004  the forge may be at it still
            return _Failure(problem, again=True)
        self.doubtful.pop()
        # 403, or 500 from a gateway; 404 if somebody just deleted a file of ours
        may_be_race = status in (FORBIDDEN, MISSING) or status >= 500  # noqa: PLR2004
        if _is_lost(answer) or (may_be_race and self._is_race(text)):
            return _Failure(ConflictError(f"{self.repo}: {text}"), again=True)
        return _Failure(problem, again=status >= 500)  # noqa: PLR2004

    def _is_race(self, text: str) -> bool:
        """Tell a lost race from a missing right: by the text, else by reading again."""
        if RACE.search(text):
            return True
        if _DENIED.search(text):
            return False
        # Without a head to compare with: perhaps. The next round will know.
        return not self.head_read or self.forge.head(self.repo, self.branch) != self.head

    def _find_commit(self, changed: PurePosixPath | None = None) -> Written | None:
        """
        Look for our commit: our trailer, and every file as we want it.

        It is looked for in the history of the file that is no longer as it was, since that is
        short, and then in the branch's.

        The trailer alone is not enough: a command that is given a second time after others
        changed what it did has the same operation id and means another commit.
        """
        only = self.changes[0].path if len(self.changes) == 1 else changed
        for path in [only] if len(self.changes) == 1 or only is None else [only, None]:
            depth = SEARCH_DEPTH if path is None else FILE_DEPTH
            history = self.forge.commits(self.repo, ref=self.branch, path=path, limit=depth)
            for commit in history:
                if commit.operation == self.operation.id and self._is_ours(commit.id):
                    return Written(commit.id, changed=True)
        return None

    def _is_ours(self, commit: CommitSha) -> bool:
        blobs = self._blobs(commit)
        return all(_is_done(change, blobs.get(change.path)) for change in self.changes)

    def _conflict(self, change: FileChange, now: BlobSha | None) -> _Failure:
        """Say that a file changed; what is under way and has this file cannot succeed either."""
        self.doubtful = [paths for paths in self.doubtful if change.path not in paths]
        expected = change.expected_sha[:8] if change.expected_sha else "no file"
        error = ConflictError(
            f"{self.repo} {change.path} changed: expected {expected},"
            f" found {now[:8] if now else 'no file'}; nothing was written",
            hint="read it again and repeat the edit",
        )
        return _Failure(error, again=False)

    def _body(self, entries: list[dict[str, str]]) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return {
            "branch": self.branch,
            "message": self.operation.message,
            "dates": {"author": now, "committer": now},
            "files": entries,
        }


def _entry(change: FileChange) -> dict[str, str]:
    entry = {"path": str(change.path)}
    if change.data is None:
        entry["operation"] = "delete"
    else:
        entry["operation"] = "update" if change.expected_sha else "create"
        entry["content"] = base64.b64encode(change.data).decode()
    if change.expected_sha:
        entry["sha"] = change.expected_sha
    return entry


def _is_done(change: FileChange, now: BlobSha | None) -> bool:
    if change.data is None:
        return now is None
    return now is not None and now == blob_sha(change.data, now)


def _is_lost(answer: GiteaResponse) -> bool:
    """Say whether the forge says that a file or the branch is not as we think."""
    if answer.status == CONFLICT:
        return True
    return answer.status == INVALID and bool(_FILE_CONFLICT.search(answer.text))


def _is_stale(answer: GiteaResponse) -> bool:
    """Say whether we may just have to look: at a file, a branch or a repository that is gone."""
    return answer.status == MISSING or _is_lost(answer)


def _is_own(answer: GiteaResponse) -> bool:
    """Say whether the forge itself made this 500: it has finished, and not a gateway before it."""
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        return False
    is_error_object = isinstance(document, dict) and {"message", "url"} <= set(document)
    return answer.status == 500 and is_error_object  # noqa: PLR2004


def _commit_in(answer: GiteaResponse) -> Written | None:
    if not answer.ok:
        return None
    try:
        document = answer.json()
    except RemoteError:
        return None
    commit = document.get("commit") if isinstance(document, dict) else None
    sha = commit.get("sha") if isinstance(commit, dict) else None
    return Written(CommitSha(sha), changed=True) if isinstance(sha, str) and sha else None


def _check_paths(changes: Sequence[FileChange]) -> None:
    paths = [change.path for change in changes]
    if len(set(paths)) != len(paths):
        raise ValueError("a path appears twice in one write")
    for path in paths:
        if path.is_absolute() or not path.parts or ".." in path.parts:
            raise ValueError(f"{path} is no path inside a repository")
