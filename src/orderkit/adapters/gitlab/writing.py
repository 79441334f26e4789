"""
Commit files on GitLab: one request, each entry with the commit that changed its file last.

GitLab compares a file's last commit, not its content (doc/api/commits.md, ``last_commit_id``), so
that is read together with the blob id that the caller saw. A file that is to be created is refused
if its path exists. A refusal is a 400, whatever its cause: the files are read again, and they
decide, never the text.

GitLab compares first and writes then. Should another commit come in between, ours may replace a
file that no one saw. So the parent of our commit is compared as well: it is the head that was read,
or has the same files; otherwise the error names what was replaced, and nothing is hidden.

Background work is pushed: a push names the head, so this window is not there.

``forges.writing`` has the rounds.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from ground.errors import (
    ConflictError,
    IncompleteError,
    MovedError,
    OrderkitError,
    RefusedError,
    RemoteError,
    TooFastError,
    UnreachableError,
)
from ground.names import BlobSha, CommitSha, RepoId
from orderkit.adapters.forges.answers import (
    UNARCHIVE,
    ForgeResponse,
    LostAnswerError,
    ServerError,
    missing_scope,
)
from orderkit.adapters.forges.calls import BAD, FORBIDDEN, MISSING, UNAUTHORIZED, checked
from orderkit.adapters.forges.pushing import PushedWrite
from orderkit.adapters.forges.writing import SharedWriting, WriteFailure, is_done
from orderkit.adapters.gitlab.repositories import GitLabRepositories
from orderkit.ports.forge import Commit, FileChange, Operation, Written
from orderkit.ports.urgency import is_pushed


class GitLabWriting(GitLabRepositories, SharedWriting):
    """The part of the port that commits files."""

    def _new_write(
        self, repo: RepoId, changes: Sequence[FileChange], operation: Operation, branch: str
    ) -> _Write:
        return _Write(self, repo, changes, operation, branch)

    def note_write(self, repo: RepoId, branch: str, old: CommitSha, new: CommitSha) -> None:
        """Do nothing: GitLab shows the new head at once."""

    def post_commit(self, repo: RepoId, body: Mapping[str, Any]) -> ForgeResponse:
        """
        Send a commit, once.

        Raises:
            OrderkitError: As the transport.
        """
        path = self._path(repo, "repository", "commits")
        return self._http.send("POST", path, body=dict(body))

    def last_commit(
        self, repo: RepoId, path: PurePosixPath, ref: str
    ) -> tuple[BlobSha, str] | None:
        """Return a file's blob id and the commit that changed it last; None without a file."""
        entry = self._file(repo, path, ref)
        if entry is None:
            return None
        return BlobSha(str(entry.get("blob_id"))), str(entry.get("last_commit_id"))

    def follow_commit(self, repo: RepoId, commit: Commit, changes: Sequence[FileChange]) -> None:
        """Cache the files of our own new commit, if those of its parent are cached."""
        self.trees.follow(repo, next(iter(commit.parents), None), commit.id, changes)


@dataclass(slots=True)
class _Write(PushedWrite[GitLabWriting]):
    """One write to GitLab."""

    seen_at: CommitSha | None = None
    """The head at which all files were seen as the caller expects them."""
    last_commits: dict[PurePosixPath, str] = field(default_factory=dict)

    @property
    def reads_first(self) -> bool:
        """Whether it may be a push, which names the head of the branch."""
        return is_pushed()

    def _send(self, changes: Sequence[FileChange], *, last: bool) -> Written | WriteFailure:
        if (outcome := self._push(changes)) is not None:
            return outcome
        if not self._look_up(changes):
            self.request_sent = True  # the next round reads, and says which file it is
            return WriteFailure(ConflictError(f"{self.repo}: a file changed"), again=not last)
        self.request_sent, self.refused = True, False
        self.doubtful.append(frozenset(change.path for change in changes))
        try:
            answer = self.forge.post_commit(self.repo, self._body(changes))
        except LostAnswerError as error:
            return self._find_commit() or WriteFailure(error, again=True)
        except (UnreachableError, MovedError, TooFastError) as error:
            self.doubtful.pop()  # it was never sent, or not carried out
            return WriteFailure(error, again=isinstance(error, UnreachableError))
        return self._outcome(answer, changes, last=last)

    def _outcome(
        self, answer: ForgeResponse, changes: Sequence[FileChange], *, last: bool
    ) -> Written | WriteFailure:
        """Return what an answer means; any but a success is compared with the history."""
        if answer.status == UNAUTHORIZED:  # then reads would fail too
            self.doubtful.pop()
            return WriteFailure(self._refusal(answer), again=False)
        if not last and answer.status == BAD:
            self.refused = True  # the next round reads: files tell a lost race from a bad request
            return self._find_commit() or self._after_bad(answer)
        commit = self._commit_in(answer)
        if commit is not None:
            self.doubtful.pop()
            self._check_parent(commit, changes)
            self.forge.follow_commit(self.repo, commit, changes)
            return Written(commit.id, changed=True, parent=next(iter(commit.parents), None))
        return self._find_commit() or self._judge(answer)

    def _commit_in(self, answer: ForgeResponse) -> Commit | None:
        if not answer.ok:
            return None
        try:
            return self.forge._commit_of(answer.json())  # noqa: SLF001  one module
        except (RemoteError, AttributeError):
            return None

    def _look_up(self, changes: Sequence[FileChange]) -> bool:
        """Read the last commit of each file that exists; False if one is not as expected."""
        existing = [change for change in changes if change.expected_sha is not None]
        head = self.head if self.head_read else None
        if existing and head is None:
            head = self.forge.head(self.repo, self.branch)
        self.seen_at, self.last_commits = head, {}
        for change in existing:
            found = self.forge.last_commit(self.repo, change.path, head or self.branch)
            if found is None or found[0] != change.expected_sha:
                return False
            self.last_commits[change.path] = found[1]
        return True

    def _after_bad(self, answer: ForgeResponse) -> WriteFailure:
        """Return what a 400 means while every file is as the caller saw it: nothing was written."""
        if self.head_read and self.forge.head(self.repo, self.branch) == self.head:
            blobs = self._blobs(self.head) if self.head else {}
            unchanged = all(blobs.get(c.path) == c.expected_sha for c in self.changes)
            if unchanged:  # no other writer: the forge refuses the request itself
                self.doubtful.pop()
                self.refused = False
                text = f"write to {self.repo}: {answer.status} {answer.text}"
                return WriteFailure(RemoteError(text), again=False)
        return WriteFailure(ConflictError(f"{self.repo}: {answer.text}"), again=True)

    def _judge(self, answer: ForgeResponse) -> WriteFailure:
        """Return what an unsuccessful answer means after our commit was not found."""
        if answer.ok:
            doing = f"write to {self.repo}: {answer.status} names no commit: {answer.text}"
            return WriteFailure(ServerError(doing), again=True)
        problem = self._refusal(answer)
        if answer.status >= 500:  # noqa: PLR2004  the forge may still be working
            return WriteFailure(problem, again=True)
        self.doubtful.pop()
        if answer.status == BAD:
            return WriteFailure(ConflictError(f"{self.repo}: {answer.text}"), again=True)
        return WriteFailure(problem, again=False)

    def _refusal(self, answer: ForgeResponse) -> Exception:
        """Return the error for a refusal: archived, protected, or as the shared calls say."""
        doing = f"write to {self.repo}"
        try:
            if answer.status == FORBIDDEN and not missing_scope(answer):
                repository = self.forge.repo(self.repo)
                if repository is not None and repository.archived:
                    return RefusedError(f"{doing}: archived, hence read-only", hint=UNARCHIVE)
                if repository is not None and repository.can_write:
                    rule = self.forge.blocking_rule(self.repo, self.branch)
                    return self._closed_by(rule, answer.text)
            if answer.status == MISSING:
                self._head()  # raises what is missing
            checked(answer, doing)
        except OrderkitError as error:
            return error
        return RemoteError(f"{doing}: {answer.status} {answer.text}")

    def _check_parent(self, commit: Commit, changes: Sequence[FileChange]) -> None:
        """
        Check that our commit replaced what the caller saw.

        Raises:
            IncompleteError: Another commit came between GitLab's comparison and ours.
        """
        parent = commit.parents[0] if commit.parents else None
        # made on the head at which all files were as the caller saw them
        if parent is None or (parent == self.seen_at and self.last_commits):
            return
        if not self.last_commits and all(change.data is not None for change in changes):
            return  # only new files, which GitLab makes only where nothing is
        blobs = self.forge.blobs(self.repo, parent, [change.path for change in changes])
        for change in changes:
            now = blobs.get(change.path)
            if now != change.expected_sha and not is_done(change, now):
                raise IncompleteError(
                    f"{self.repo}: commit {commit.id[:8]} is written, and replaced what another"
                    f" commit, {parent[:8]}, had just made of {change.path}",
                    hint=f"compare {parent[:8]} with {commit.id[:8]}, and write again what is lost",
                )

    def _body(self, changes: Sequence[FileChange]) -> dict[str, Any]:
        paths = {change.path for change in changes}
        return {
            "branch": self.branch,
            "commit_message": self._message(paths, int(time.time())),
            "actions": [self._action(change) for change in changes],
            "stats": False,
        }

    def _action(self, change: FileChange) -> dict[str, Any]:
        action: dict[str, Any] = {"file_path": str(change.path)}
        if change.expected_sha is not None:
            # GitLab compares a file's last commit, not its content (doc/api/commits.md)
            action["last_commit_id"] = self.last_commits[change.path]
        if change.data is None:
            return {"action": "delete", **action}
        content = base64.b64encode(change.data).decode()
        verb = "update" if change.expected_sha else "create"
        action |= {"execute_filemode": True} if change.executable else {}
        return {"action": verb, "encoding": "base64", "content": content, **action}
