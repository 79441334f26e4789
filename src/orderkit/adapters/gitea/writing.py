"""
Commit files on Gitea: one request, each entry with the blob id that it replaces.

``forges.writing`` has the rounds. A request that Gitea carries out late, after it was sent a second
time, makes no second commit: whichever comes second finds other blobs (422) or a moved branch (403
or 409), and our commit is then found. One case cannot be excluded: a late request is carried out a
second time if its files were changed in between and changed back to the very bytes it expects.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ground.errors import (
    AccessError,
    ConflictError,
    MovedError,
    OrderkitError,
    RemoteError,
    UnreachableError,
)
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import (
    RACE,
    ForgeResponse,
    LostAnswerError,
    ServerError,
    missing_scope,
    refusal,
)
from orderkit.adapters.forges.calls import CONFLICT, FORBIDDEN, INVALID, MISSING, UNAUTHORIZED
from orderkit.adapters.forges.retries import turn
from orderkit.adapters.forges.writing import Write, WriteFailure, check_paths
from orderkit.adapters.gitea.first_commit import push_again_after_first_commit
from orderkit.adapters.gitea.reading import DEFAULT_BRANCH
from orderkit.adapters.gitea.repositories import Repositories
from orderkit.ports.forge import FileChange, Operation, Written
from orderkit.ports.signatures import Signatures

_DENIED = re.compile(
    r"required scope|cannot commit to repo|permission|not allowed|owner", re.IGNORECASE
)
_FILE_CONFLICT = re.compile(r"sha does not match|already exists|repo is empty", re.IGNORECASE)


class Writing(Repositories):
    """The part of the port that commits files."""

    signatures: Signatures | None

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
        check_paths(changes)
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


@dataclass(slots=True)
class _Write(Write[Writing]):
    """One write to Gitea."""

    def _send(self, changes: Sequence[FileChange], *, last: bool) -> Written | WriteFailure:
        path = self.forge._path(self.repo, "contents")  # noqa: SLF001  one module
        self.request_sent, self.refused = True, False
        self.doubtful.append(frozenset(change.path for change in changes))
        try:
            answer = self.forge._http.send("POST", path, body=self._body(changes))  # noqa: SLF001
        except LostAnswerError as error:
            return self._find_commit() or WriteFailure(error, again=True)
        except UnreachableError as error:
            self.doubtful.pop()  # it was never sent
            return WriteFailure(error, again=True)
        except MovedError as error:
            self.doubtful.pop()  # a redirect instead of carrying it out
            return WriteFailure(error, again=False)
        if answer.status == UNAUTHORIZED:  # then reads would fail too
            self.doubtful.pop()
            return WriteFailure(refusal(answer, f"write to {self.repo}"), again=False)
        # A proxy may have refused although the forge carried the request out: always read.
        if not last and (RACE.search(answer.text) or (not self.head_read and _is_stale(answer))):
            self.refused = True  # the next round reads
            return WriteFailure(ConflictError(f"{self.repo}: {answer.text}"), again=True)
        commit_result = _commit_in(answer)
        if commit_result is not None:
            self._remember_files(answer, commit_result.commit)
        return commit_result or self._find_commit() or self._judge(answer)

    def _remember_files(self, answer: ForgeResponse, commit: CommitSha) -> None:
        """Cache the new commit's files if those of its only parent are cached; saves a request."""
        parents = answer.json()["commit"].get("parents")
        if isinstance(parents, list) and len(parents) == 1 and isinstance(parents[0], dict):
            parent = CommitSha(str(parents[0].get("sha")))
            self.forge._trees.follow(self.repo, parent, commit, self.changes)  # noqa: SLF001  one module

    def _judge(self, answer: ForgeResponse) -> WriteFailure:
        """Return what an unsuccessful answer means after our commit was not found."""
        text, status = answer.text, answer.status
        if answer.ok:
            doing = f"write to {self.repo}: {status} names no commit: {text}"
            return WriteFailure(ServerError(doing), again=True)
        problem = self._protected(answer) or refusal(answer, f"write to {self.repo}")
        if status >= 500 and not _is_own(answer):  # noqa: PLR2004  the forge may still be working
            return WriteFailure(problem, again=True)
        self.doubtful.pop()
        # 403, or 500 from a gateway; 404 if somebody has just deleted one of our files
        may_be_race = status in (FORBIDDEN, MISSING) or status >= 500  # noqa: PLR2004
        if _is_lost(answer) or (may_be_race and self._is_race(text)):
            return WriteFailure(ConflictError(f"{self.repo}: {text}"), again=True)
        return WriteFailure(problem, again=status >= 500)  # noqa: PLR2004

    def _protected(self, answer: ForgeResponse) -> AccessError | None:
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

    def _body(self, changes: Sequence[FileChange]) -> dict[str, Any]:
        at = datetime.now(UTC)
        now = at.isoformat(timespec="seconds").replace("+00:00", "Z")
        return {
            "branch": self.branch,
            "message": self._message({change.path for change in changes}, int(at.timestamp())),
            "dates": {"author": now, "committer": now},
            "files": [_entry(change) for change in changes],
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


def _is_lost(answer: ForgeResponse) -> bool:
    """Say whether the forge found another blob or another branch head than we expect."""
    if answer.status == CONFLICT:
        return True
    return answer.status == INVALID and bool(_FILE_CONFLICT.search(answer.text))


def _is_stale(answer: ForgeResponse) -> bool:
    """Say whether to read again: a file, branch or repository changed or is gone."""
    return answer.status == MISSING or _is_lost(answer)


def _is_own(answer: ForgeResponse) -> bool:
    """Say whether the forge itself, not a gateway, made this 500: then it has finished."""
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        return False
    is_error_object = isinstance(document, dict) and {"message", "url"} <= set(document)
    return answer.status == 500 and is_error_object  # noqa: PLR2004


def _commit_in(answer: ForgeResponse) -> Written | None:
    if not answer.ok:
        return None
    try:
        document = answer.json()
    except RemoteError:
        return None
    commit = document.get("commit") if isinstance(document, dict) else None
    sha = commit.get("sha") if isinstance(commit, dict) else None
    return Written(CommitSha(sha), changed=True) if isinstance(sha, str) and sha else None
