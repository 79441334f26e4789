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
from typing import Any

from ground.errors import (
    AccessError,
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
    turn,
)
from orderkit.adapters.forges.calls import (
    CONFLICT,
    CREATED,
    FORBIDDEN,
    INVALID,
    MISSING,
    UNAUTHORIZED,
    checked,
    done,
    object_in,
)
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.forges.writing import Write, WriteFailure, check_paths
from orderkit.adapters.gitea.calls import push_again_after_first_commit
from orderkit.adapters.gitea.reading import DEFAULT_BRANCH, GiteaReading
from orderkit.ports.forge import FileChange, Operation, Removal, Repository, Written
from orderkit.ports.signatures import Signatures

_NO_SQUASH = {
    "allow_squash_merge": False,
    "allow_merge_commits": True,
    "default_merge_style": "merge",
}


class Repositories(GiteaReading):
    """The part of the port about organisations and repositories."""

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

    def has_org(self, name: str) -> bool:
        """Say whether the organisation exists and is visible to us; see the port."""
        return self._optional(path_of("orgs", name), f"look for organisation {name}") is not None

    def ensure_repo(
        self,
        repo: RepoId,
        *,
        description: str,
        private: bool = False,
        may_squash: bool = True,  # noqa: ARG002  Gitea takes it in a change only
    ) -> Repository:
        """
        Make sure the repository exists. Idempotent. See the port.

        Raises:
            NotFoundError: The organisation does not exist.
            InvalidInputError: The forge refuses the name.
        """
        doing = f"create repository {repo}"
        body = {
            "name": repo.name,
            "description": description,
            "private": private,
            "default_branch": DEFAULT_BRANCH,
        }

        def create() -> Repository:
            answer = self._http.send("POST", path_of("orgs", repo.owner, "repos"), body=body)
            if answer.status == CREATED:
                return self._repository(object_in(answer, doing), repo)
            if answer.status == INVALID:
                raise InvalidInputError("repository", repo.name, f"is refused: {answer.text}")
            if answer.status == MISSING:
                raise NotFoundError(
                    f"{doing}: there is no organisation {repo.owner}",
                    hint=f"create it first: orderkit team add {repo.owner}",
                )
            raise refusal(answer, doing)

        return settle(lambda _: self.repo(repo), create, doing)

    def missing_rights(self, repo: RepoId) -> tuple[str, ...]:
        """
        Return what we lack to change the repository. Writes nothing. See the port.

        Sends changes with an empty body.

        Raises:
            NotFoundError: No such repository, or hidden from us.
        """
        repository = self.repo(repo)
        if repository is None:
            raise NotFoundError(f"there is no repository {repo}, or it is hidden from us")
        missing = []
        for path in (self._path(repo, "contents"), self._path(repo, "issues"), "/orgs"):
            # Gitea checks the token's scopes before the body: a missing scope is a 403, and
            # everything else a refusal that changes nothing
            answer = self._http.send("POST", path, body={})
            if answer.status == FORBIDDEN and (scope := missing_scope(answer.text)):
                missing.append(f"scope {scope}")
        if not repository.can_write:
            missing.append(f"write access to {repo}")
        return tuple(missing)

    def archive(self, repo: RepoId, *, undo: bool = False) -> None:
        """
        Make the repository read-only, or writable again. Idempotent. See the port.

        Raises:
            NotFoundError: It does not exist.
        """
        doing = f"{'unarchive' if undo else 'archive'} {repo}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            repository = self.repo(repo) if attempted else None
            return True if repository and repository.archived != undo else None

        def patch() -> bool:
            answer = self._http.send("PATCH", self._path(repo), body={"archived": not undo})
            return done(answer, doing)

        settle(look, patch, doing)

    def forbid_squash(self, repo: RepoId, seen: Repository | None = None) -> bool:
        """
        Switch off the style *squash*, and what would make it the default. See the port.

        Raises:
            NotFoundError: It does not exist.
        """
        doing = f"forbid squash merges in {repo}"
        known = [seen] if seen else []

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            repository = known.pop() if known else self.repo(repo)
            if repository is None:
                raise NotFoundError(f"there is no repository {repo}, or it is hidden from us")
            return None if repository.may_squash else attempted

        def patch() -> bool:
            return done(self._http.send("PATCH", self._path(repo), body=_NO_SQUASH), doing)

        return settle(look, patch, doing)

    def set_default_branch(self, repo: RepoId, branch: str) -> None:
        """
        Make a branch the default. Idempotent. See the port.

        Raises:
            NotFoundError: Repository or branch do not exist.
        """
        doing = f"make {branch} the default branch of {repo}"

        def look(_: bool) -> bool | None:  # noqa: FBT001  settle's shape
            repository = self.repo(repo)
            return True if repository and repository.default_branch == branch else None

        def patch() -> bool:
            answer = self._http.send("PATCH", self._path(repo), body={"default_branch": branch})
            is_unknown = answer.status == INVALID
            # Gitea passes over a branch that does not exist (1.27, routers/api/v1/repo/repo.go)
            if is_unknown or object_in(checked(answer, doing), doing)["default_branch"] != branch:
                raise NotFoundError(f"{doing}: there is no such branch")
            return True

        settle(look, patch, doing)

    def rename_repo(self, repo: RepoId, name: str) -> None:
        """
        Give the repository another name. Idempotent. See the port.

        Raises:
            NotFoundError: It does not exist.
            ConflictError: Another repository has that name.
        """
        doing, new = f"rename {repo} to {name}", RepoId(repo.owner, name)

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            try:
                old = self.repo(repo)
            except MovedError as error:
                return True if error.place == str(new) else None
            return True if attempted and old is None and self.repo(new) else None

        def patch() -> bool:
            answer = self._http.send("PATCH", self._path(repo), body={"name": name})
            if answer.status == INVALID:
                raise ConflictError(f"{doing}: {answer.text}")
            return done(answer, doing)

        settle(look, patch, doing)

    def delete_repo(self, repo: RepoId) -> Removal:
        """Remove the repository for good. Idempotent. See the port."""
        doing = f"delete {repo}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            return True if attempted and self.repo(repo) is None else None

        def delete() -> bool:
            answer = self._http.send("DELETE", self._path(repo))
            return answer.status != MISSING and done(answer, doing)

        return Removal(settle(look, delete, doing))


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
            # Gitea may have missed the repository's first commit, which is repaired once
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
        commit = _commit_in(answer)
        written = self._remembered(answer, commit) if commit else None
        return written or self._find_commit() or self._judge(answer)

    def _remembered(self, answer: ForgeResponse, commit: CommitSha) -> Written:
        """Cache the new commit's files if those of its parent are cached; saves requests."""
        parents, parent = answer.json()["commit"].get("parents"), None
        if isinstance(parents, list) and all(isinstance(entry, dict) for entry in parents[:1]):
            parent = CommitSha(str(parents[0].get("sha"))) if parents else None
            self.forge._trees.follow(self.repo, parent, commit, self.changes)  # noqa: SLF001  one module
        return Written(commit, changed=True, parent=parent)

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
