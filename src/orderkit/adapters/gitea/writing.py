"""
Write to Gitea: commits of files, organisations and repositories.

`Writing` commits files by one request, each entry with the blob id that it replaces.
``forges.writing`` has the rounds. A request that Gitea carries out late, after it was sent a second
time, makes no second commit: whichever comes second finds other blobs (422) or a moved branch (403
or 409), and our commit is then found. One case cannot be excluded: a late request is carried out a
second time if its files were changed in between and changed back to the very bytes it expects.

`Repositories` creates, finds, archives and deletes organisations and repositories.

`ports.forge.Forge` documents the contract.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from ground.errors import (
    ConflictError,
    InvalidInputError,
    MovedError,
    NotFoundError,
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
    settle,
)
from orderkit.adapters.forges.calls import (
    CONFLICT,
    FORBIDDEN,
    INVALID,
    MISSING,
    UNAUTHORIZED,
    Found,
    checked,
    done,
    hidden,
    object_in,
)
from orderkit.adapters.forges.repositories import SharedRepositories
from orderkit.adapters.forges.writing import SharedWriting, Write, WriteFailure
from orderkit.adapters.gitea.calls import push_again_after_first_commit
from orderkit.adapters.gitea.reading import DEFAULT_BRANCH, GiteaReading
from orderkit.ports.forge import FileChange, Operation, Repository, Written


class Repositories(GiteaReading, SharedRepositories):
    """The part of the port about organisations and repositories."""

    no_squash: ClassVar[Found] = {
        "allow_squash_merge": False,
        "allow_merge_commits": True,
        "default_merge_style": "merge",
    }

    def ensure_org(self, name: str) -> bool:
        """
        Make sure the organisation exists. Idempotent. See the port.

        Raises:
            InvalidInputError: The forge refuses the name.
        """

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            return attempted if self.has_org(name) else None

        def create() -> bool:
            answer = self._http.send("POST", "/orgs", body={"username": name})
            if answer.status == INVALID:
                rule = f"is refused by the forge: {answer.text}"
                raise InvalidInputError("organisation", name, rule)
            return done(answer, f"create organisation {name}")

        return settle(look, create, f"create organisation {name}")

    def _new_repo(
        self,
        repo: RepoId,
        description: str,
        doing: str,
        *,
        private: bool,
        may_squash: bool,  # noqa: ARG002  Gitea takes it in a change only
    ) -> Repository:
        body = {
            "name": repo.name,
            "description": description,
            "private": private,
            "default_branch": DEFAULT_BRANCH,
        }
        return self._repository(self._post_repo(repo, body, doing), repo)

    def missing_rights(self, repo: RepoId) -> tuple[str, ...]:
        """
        Return what we lack to change the repository. Writes nothing. See the port.

        Sends changes with an empty body.

        Raises:
            NotFoundError: No such repository, or hidden from us.
        """
        repository = self.repo(repo)
        if repository is None:
            raise hidden(repo)
        missing = []
        for path in (self._path(repo, "contents"), self._path(repo, "issues"), "/orgs"):
            # Gitea checks the token's scopes before the body: a missing scope is a 403, and
            # everything else a refusal that changes nothing
            answer = self._http.send("POST", path, body={})
            if scope := missing_scope(answer):
                missing.append(f"scope {scope}")
        if not repository.can_write:
            missing.append(f"write access to {repo}")
        return tuple(missing)

    def _make_default(self, repo: RepoId, branch: str, doing: str) -> bool:
        answer = self._http.send("PATCH", self._path(repo), body={"default_branch": branch})
        is_unknown = answer.status == INVALID
        # Gitea passes over a branch that does not exist (1.27, routers/api/v1/repo/repo.go)
        if is_unknown or object_in(checked(answer, doing), doing)["default_branch"] != branch:
            raise NotFoundError(f"{doing}: there is no such branch")
        return True


_DENIED = re.compile(
    r"required scope|cannot commit to repo|permission|not allowed|owner", re.IGNORECASE
)
_FILE_CONFLICT = re.compile(r"sha does not match|already exists|repo is empty", re.IGNORECASE)


class Writing(Repositories, SharedWriting):
    """The part of the port that commits files."""

    def _new_write(
        self, repo: RepoId, changes: Sequence[FileChange], operation: Operation, branch: str
    ) -> _Write:
        return _Write(self, repo, changes, operation, branch)

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

    def run(self) -> Written:
        """
        Write; once more if Gitea had missed the repository's first commit, which is repaired once.

        Raises:
            OrderkitError: As the port says.
        """
        place = self.repo, self.branch, self.operation
        try:
            return Write.run(self)  # a slotted class has no plain super()
        except OrderkitError:
            if not self.forge._push_again_after_first_commit(*place):  # noqa: SLF001  one module
                raise
        return Write.run(_Write(self.forge, self.repo, self.changes, self.operation, self.branch))

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
        commit = _commit_in(answer)
        written = self._remembered(answer, commit) if commit else None
        return written or self._find_commit() or self._judge(answer)

    def _remembered(self, answer: ForgeResponse, commit: CommitSha) -> Written:
        """Cache the new commit's files if those of its parent are cached; saves requests."""
        parents, parent = answer.json()["commit"].get("parents"), None
        if isinstance(parents, list) and all(isinstance(entry, dict) for entry in parents[:1]):
            parent = CommitSha(str(parents[0].get("sha"))) if parents else None
            self.forge.trees.follow(self.repo, parent, commit, self.changes)
        return Written(commit, changed=True, parent=parent)

    def _judge(self, answer: ForgeResponse) -> WriteFailure:
        """Return what an unsuccessful answer means after our commit was not found."""
        text, status = answer.text, answer.status
        if answer.ok:
            doing = f"write to {self.repo}: {status} names no commit: {text}"
            return WriteFailure(ServerError(doing), again=True)
        is_clear = missing_scope(answer) or RACE.search(text)
        may_be_rule = status == FORBIDDEN and not is_clear
        rule = self._protected(text) if may_be_rule else None
        problem = rule or refusal(answer, f"write to {self.repo}")
        if status >= 500 and not _is_own(answer):  # noqa: PLR2004  the forge may still be working
            return WriteFailure(problem, again=True)
        self.doubtful.pop()
        # 403, or 500 from a gateway; 404 if somebody has just deleted one of our files
        may_be_race = status in (FORBIDDEN, MISSING) or status >= 500  # noqa: PLR2004
        if _is_lost(answer) or (may_be_race and self._is_race(text)):
            return WriteFailure(ConflictError(f"{self.repo}: {text}"), again=True)
        return WriteFailure(problem, again=status >= 500)  # noqa: PLR2004

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


def _commit_in(answer: ForgeResponse) -> CommitSha | None:
    if not answer.ok:
        return None
    try:
        document = answer.json()
    except RemoteError:
        return None
    commit = document.get("commit") if isinstance(document, dict) else None
    sha = commit.get("sha") if isinstance(commit, dict) else None
    return CommitSha(sha) if isinstance(sha, str) and sha else None
