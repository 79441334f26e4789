"""
Write several files in one commit so that no edit is lost and none is made twice.

The first request contains all files, each with the blob id that the caller saw, and the operation
id as a trailer. The forge compares and swaps, so nothing is read before. Any answer but a success
is verified, be it a time-out or a refusal, because a proxy may have made it: the files at the head
are read, and if they changed, the history is searched for the trailer. Files that already have
their content are left out, a file that is not as the caller saw it is a conflict, and the rest is
sent again, for a bounded number of rounds with growing random pauses. A `LostAnswerError` or a
`ServerError` leaves the outcome open; after any other error nothing was written, and no request is
still running that could write.

A request that the forge carries out late, after it was sent a second time, makes no second commit:
each entry carries the blob id it replaces, or is a create. Whichever request comes second finds
other blobs (422) or a moved branch (403 or 409), and our commit is then found. One case cannot be
excluded: a late request is carried out a second time if its files were changed in between and
changed back to the very bytes it expects.
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

from ground.errors import (
    AccessError,
    ConflictError,
    MovedError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    RemoteError,
    UnreachableError,
)
from ground.names import BlobSha, CommitSha, RepoId, blob_sha
from orderkit.adapters.gitea.answers import (
    RACE,
    GiteaResponse,
    LostAnswerError,
    ServerError,
    missing_scope,
    refusal,
)
from orderkit.adapters.gitea.calls import CONFLICT, FORBIDDEN, INVALID, MISSING, UNAUTHORIZED
from orderkit.adapters.gitea.first_commit import push_again_after_first_commit
from orderkit.adapters.gitea.reading import DEFAULT_BRANCH
from orderkit.adapters.gitea.repositories import Repositories
from orderkit.adapters.gitea.retries import ROUNDS, pauses, turn
from orderkit.ports.forge import Commit, FileChange, Operation, Written
from orderkit.ports.signatures import Signatures, is_signed_by, read_changes, signed_message

FILE_DEPTH, SEARCH_DEPTH = 50, 200
"""Commits searched for our trailer: in the history of one file, and of the branch."""

_DENIED = re.compile(
    r"required scope|cannot commit to repo|permission|not allowed|owner", re.IGNORECASE
)
_FILE_CONFLICT = re.compile(r"sha does not match|already exists|repo is empty", re.IGNORECASE)


class Writing(Repositories):
    """The part of the port that commits files."""

    _signatures: Signatures | None

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
            ConflictError: A file lacks its `expected_sha`, or another writer won every round.
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
        """Repair an interrupted first commit; False if that is not why the write failed."""
        with suppress(OrderkitError):  # the error of the write is more informative
            return push_again_after_first_commit(self, repo, branch, operation)
        return False


@dataclass(frozen=True, slots=True)
class _Failure:
    """How a round failed, and whether another one may help."""

    problem: Exception
    again: bool


@dataclass(slots=True)
class _Write:
    """One write; `run` repeats rounds until the outcome is clear."""

    forge: Writing
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
            if self.refused:  # every file is unchanged: the refusal was real
                self.doubtful.pop()
            return self._send(entries, last=last)
        except NotFoundError as error:
            if self.refused:  # no branch: the refusal was real
                self.doubtful.pop()
            return _Failure(error, again=False)
        except OrderkitError as error:
            # Reading failed, which does not tell whether our request was carried out: read again.
            again = self.request_sent and isinstance(error, (RemoteError, RefusedError))
            return _Failure(error, again=again)

    def _final(self, failure: _Failure) -> Exception:
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
            raise NotFoundError(f"there is no repository {self.repo}, or it is hidden from us")
        if repository.empty:
            return None
        head = self.forge.head(self.repo, self.branch)  # the first commit may have just been made
        if head is None:
            raise NotFoundError(f"{self.repo} has no branch {self.branch}")
        return head

    def _entries(self, head: CommitSha | None) -> list[dict[str, str]] | Written | _Failure:
        """Return the entries to send, or the outcome if there is nothing to send."""
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
            self.doubtful.pop()  # it was never sent
            return _Failure(error, again=True)
        except MovedError as error:
            self.doubtful.pop()  # a redirect instead of carrying it out
            return _Failure(error, again=False)
        if answer.status == UNAUTHORIZED:  # then reads would fail too
            self.doubtful.pop()
            return _Failure(refusal(answer, f"write to {self.repo}"), again=False)
        # A proxy may have refused although the forge carried the request out: always read.
        if not last and (RACE.search(answer.text) or (not self.head_read and _is_stale(answer))):
            self.refused = True  # the next round reads
            return _Failure(ConflictError(f"{self.repo}: {answer.text}"), again=True)
        commit_result = _commit_in(answer)
        if commit_result is not None:
            self._remember_files(answer, commit_result.commit)
        return commit_result or self._find_commit() or self._judge(answer)

    def _remember_files(self, answer: GiteaResponse, commit: CommitSha) -> None:
        """Cache the new commit's files if those of its only parent are cached; saves a request."""
        parents = answer.json()["commit"].get("parents")
        if isinstance(parents, list) and len(parents) == 1 and isinstance(parents[0], dict):
            changed_files = {
                change.path: None if change.data is None else blob_sha(change.data, commit)
                for change in self.changes
            }
            parent = CommitSha(str(parents[0].get("sha")))
            self.forge._trees.follow(self.repo, parent, commit, changed_files)  # noqa: SLF001  one module

    def _judge(self, answer: GiteaResponse) -> _Failure:
        """Return what an unsuccessful answer means after our commit was not found."""
        text, status = answer.text, answer.status
        if answer.ok:
            doing = f"write to {self.repo}: {status} names no commit: {text}"
            return _Failure(ServerError(doing), again=True)
        problem = self._protected(answer) or refusal(answer, f"write to {self.repo}")
        if status >= 500 and not _is_own(answer):  # noqa: PLR2004  the forge may still be working
            return _Failure(problem, again=True)
        self.doubtful.pop()
        # 403, or 500 from a gateway; 404 if somebody has just deleted one of our files
        may_be_race = status in (FORBIDDEN, MISSING) or status >= 500  # noqa: PLR2004
        if _is_lost(answer) or (may_be_race and self._is_race(text)):
            return _Failure(ConflictError(f"{self.repo}: {text}"), again=True)
        return _Failure(problem, again=status >= 500)  # noqa: PLR2004

    def _protected(self, answer: GiteaResponse) -> AccessError | None:
        """Return the error for a branch that a rule of the forge closes to us, else None."""
        text = answer.text
        if answer.status != FORBIDDEN or missing_scope(text) or RACE.search(text):
            return None
        try:
            rule = self.forge.blocking_rule(self.repo, self.branch)
        except OrderkitError:
            return None  # the refusal itself says more
        if not rule:
            return None
        return AccessError(
            f"no right: {self.branch} of {self.repo} is protected on the forge by the rule"
            f" '{rule}', which does not let our account push: {text}",
            hint="remove that rule, or add our account to those who may push; until then, changes"
            " can go by pull request (--pr)",
        )

    def _is_race(self, text: str) -> bool:
        """Tell a lost race from a missing right: by the text, else by reading again."""
        if RACE.search(text):
            return True
        if _DENIED.search(text):
            return False
        # Without a head to compare with, assume a race; the next round reads one.
        return not self.head_read or self.forge.head(self.repo, self.branch) != self.head

    def _find_commit(self, changed: PurePosixPath | None = None) -> Written | None:
        """
        Find our commit: it has our trailer and signature, and every file has our content.

        Searches the history of the changed file first, because it is short, and then that of the
        branch.

        The trailer alone is not enough: a command that is repeated after others changed its
        result has the same operation id but must make a new commit.
        """
        only = self.changes[0].path if len(self.changes) == 1 else changed
        for path in [only] if len(self.changes) == 1 or only is None else [only, None]:
            depth = SEARCH_DEPTH if path is None else FILE_DEPTH
            history = self.forge.commits(self.repo, ref=self.branch, path=path, limit=depth)
            for commit in history:
                if commit.operation == self.operation.id and self._is_ours(commit):
                    return Written(commit.id, changed=True)
        return None

    def _is_ours(self, commit: Commit) -> bool:
        """Say whether we wrote a commit; without a signing key, its content has to do."""
        blobs = self._blobs(commit.id)
        if not all(_is_done(change, blobs.get(change.path)) for change in self.changes):
            return False
        signatures = self.forge._signatures  # noqa: SLF001  one module
        if signatures is None or not signatures.can_sign or signatures.public_key is None:
            return True
        changes = read_changes(self.forge, self.repo, commit)
        return is_signed_by(signatures, signatures.public_key, self.repo, commit, changes)

    def _conflict(self, change: FileChange, now: BlobSha | None) -> _Failure:
        """Return the conflict; a running request that contains this file cannot succeed either."""
        self.doubtful = [paths for paths in self.doubtful if change.path not in paths]
        expected = change.expected_sha[:8] if change.expected_sha else "no file"
        error = ConflictError(
            f"{self.repo} {change.path} changed: expected {expected},"
            f" found {now[:8] if now else 'no file'}; nothing was written",
            hint="read it again and repeat the edit",
        )
        return _Failure(error, again=False)

    def _body(self, entries: list[dict[str, str]]) -> dict[str, Any]:
        at = datetime.now(UTC)
        now = at.isoformat(timespec="seconds").replace("+00:00", "Z")
        return {
            "branch": self.branch,
            "message": self._message({entry["path"] for entry in entries}, int(at.timestamp())),
            "dates": {"author": now, "committer": now},
            "files": entries,
        }

    def _message(self, paths: set[str], at: int) -> str:
        """Return the commit message for the changes of these paths, signed if we can."""
        signatures = self.forge._signatures  # noqa: SLF001  one module
        if signatures is None:
            return self.operation.message
        changes = {
            change.path: (change.expected_sha, _new_blob(change))
            for change in self.changes
            if str(change.path) in paths
        }
        return signed_message(signatures, self.repo, self.branch, self.operation, changes, at=at)


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


def _new_blob(change: FileChange) -> BlobSha | None:
    return None if change.data is None else blob_sha(change.data, change.expected_sha or "")


def _is_done(change: FileChange, now: BlobSha | None) -> bool:
    if change.data is None:
        return now is None
    return now is not None and now == blob_sha(change.data, now)


def _is_lost(answer: GiteaResponse) -> bool:
    """Say whether the forge found another blob or another branch head than we expect."""
    if answer.status == CONFLICT:
        return True
    return answer.status == INVALID and bool(_FILE_CONFLICT.search(answer.text))


def _is_stale(answer: GiteaResponse) -> bool:
    """Say whether to read again: a file, branch or repository changed or is gone."""
    return answer.status == MISSING or _is_lost(answer)


def _is_own(answer: GiteaResponse) -> bool:
    """Say whether the forge itself, not a gateway, made this 500: then it has finished."""
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
            raise ValueError(f"{path} is not a path inside a repository")
