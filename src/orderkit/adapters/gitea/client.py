"""
`ports.forge.Forge` on Gitea: each method is one or two calls of its API.

Reading needs no care; the care that writing needs stands in ``writing``.

Called by the flows through the port, and made by the CLI and the service.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Self

from orderkit.adapters.gitea.transport import (
    Answer,
    Credentials,
    LostAnswerError,
    Transport,
    path_of,
    refusal,
)
from orderkit.adapters.gitea.writing import Writer
from orderkit.adapters.http import READ_TIMEOUT_S
from orderkit.core.errors import InvalidInputError, NotFoundError, RemoteError
from orderkit.core.names import BlobSha, CommitSha, RepoId
from orderkit.ports.forge import Commit, FileChange, FileRevision, Operation, Repository, Written

PAGE = 50
TREE_PAGE = 1000
DEFAULT_BRANCH = "main"
_OK, _CREATED, _NO_CONTENT, _BAD, _FORBIDDEN, _MISSING, _CONFLICT, _INVALID = (
    200, 201, 204, 400, 403, 404, 409, 422,
)  # fmt: skip


class GiteaForge:
    """A Gitea (or the embedded forge) behind the `Forge` port. Safe to use from threads."""

    def __init__(
        self,
        base_url: str,
        *,
        token: str = "",
        user: str = "",
        password: str = "",
        ca_bundle: Path | None = None,
        allow_http: bool = False,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        """
        Prepare; nothing is sent.

        Args:
            base_url: Where Gitea is, without ``/api/v1``.
            token: An access token; else `user` and `password` are used.
            user: Login name for basic authentication.
            password: Its password.
            ca_bundle: Certificates to trust instead of the usual ones.
            allow_http: Send credentials over plain HTTP to other machines too (a lab).
            read_timeout_s: How long an answer may pause.

        Raises:
            InvalidInputError: A bad address, or no credentials.
            RefusedError: Plain HTTP to another machine without `allow_http`.
        """
        if not token and not (user and password):
            raise InvalidInputError("credentials", "", "need a token, or a user and password")
        self._http = Transport(
            base_url,
            Credentials(token, user, password),
            ca_bundle=str(ca_bundle) if ca_bundle else None,
            allow_http=allow_http,
            read_timeout_s=read_timeout_s,
        )
        self._writer = Writer(self._http, self)

    def __repr__(self) -> str:
        return f"GiteaForge({self.base_url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close idle connections. Idempotent; the client stays usable."""
        self._http.close()

    @property
    def base_url(self) -> str:
        return self._http.base_url

    def version(self) -> str:
        """Return the server's version text; see `ports.forge.Forge` for what may be raised."""
        return _text(self._object("/version", "read the version"), "version")

    def user(self) -> str:
        """Return the login name behind our credentials; see the port."""
        return _text(self._object("/user", "read who we are"), "login")

    def ensure_org(self, name: str) -> bool:
        """
        Make sure the organisation exists. Idempotent. See the port.

        Raises:
            InvalidInputError: The forge refuses the name.
        """
        if self.has_org(name):
            return False
        try:
            answer = self._http.send("POST", "/orgs", body={"username": name})
        except LostAnswerError:
            if self.has_org(name):
                return True
            raise
        if answer.status == _CREATED:
            return True
        if answer.status == _INVALID and self.has_org(name):
            return False
        if answer.status == _INVALID:
            raise InvalidInputError("organisation", name, f"is refused by the forge: {answer.text}")
        raise refusal(answer, f"create organisation {name}")

    def has_org(self, name: str) -> bool:
        """Say whether the organisation exists and is visible to us; see the port."""
        return self._optional(path_of("orgs", name), f"look for organisation {name}") is not None

    def ensure_repo(self, repo: RepoId, *, description: str, private: bool = False) -> Repository:
        """
        Make sure the repository exists. Idempotent. See the port.

        Raises:
            NotFoundError: The organisation does not exist.
            InvalidInputError: The forge refuses the name.
        """
        found = self.repo(repo)
        if found is not None:
            return found
        body = {
            "name": repo.name,
            "description": description,
            "private": private,
            "default_branch": DEFAULT_BRANCH,
        }
        doing = f"create repository {repo}"
        try:
            answer = self._http.send("POST", path_of("orgs", repo.owner, "repos"), body=body)
        except LostAnswerError:
            found = self.repo(repo)
            if found is not None:
                return found
            raise
        if answer.status == _CREATED:
            return _repository(repo, answer.json(), self.base_url)
        if answer.status == _CONFLICT:
            found = self.repo(repo)
            if found is not None:
                return found
        if answer.status == _INVALID:
            raise InvalidInputError("repository", repo.name, f"is refused: {answer.text}")
        if answer.status == _MISSING:
            raise NotFoundError(
                f"{doing}: there is no organisation {repo.owner}",
                hint=f"create it first: orderkit team add {repo.owner}",
            )
        raise refusal(answer, doing)

    def repo(self, repo: RepoId) -> Repository | None:
        """Return the repository, or None if missing or hidden; see the port."""
        found = self._optional(self._path(repo), f"read repository {repo}")
        return _repository(repo, found, self.base_url) if found is not None else None

    def repos(self, owner: str) -> Iterator[Repository]:
        """Yield every repository of an organisation; see the port."""
        page, seen, total = 1, 0, 1
        while seen < total:
            answer = self._http.get(path_of("orgs", owner, "repos"), {"page": page, "limit": PAGE})
            if answer.status == _MISSING:
                return
            if not answer.ok:
                raise refusal(answer, f"list repositories of {owner}")
            items = _list(answer.json())
            if not items:
                return
            for item in items:
                name = _text(item, "name")
                yield _repository(RepoId(owner, name), item, self.base_url)
            page, seen = page + 1, seen + len(items)
            total = _total(answer.headers, at_least=seen + (len(items) >= PAGE))

    def head(self, repo: RepoId, branch: str = DEFAULT_BRANCH) -> CommitSha | None:
        """Return the commit a branch points to, or None; see the port."""
        path = self._path(repo, "branches") + path_of(branch)
        found = self._optional(path, f"read branch {branch} of {repo}")
        if found is None:
            return None
        commit = found.get("commit")
        return CommitSha(_text(commit, "id"))

    def tree(self, repo: RepoId, commit: CommitSha) -> Mapping[PurePosixPath, BlobSha]:
        """
        Return every file of a commit with its blob id; see the port.

        Raises:
            NotFoundError: No such repository or commit.
        """
        return {
            PurePosixPath(_text(entry, "path")): BlobSha(_text(entry, "sha"))
            for entry in self._blobs(repo, commit)
        }

    def modes(self, repo: RepoId, commit: CommitSha) -> Mapping[PurePosixPath, int]:
        """
        Return git's mode of every file of a commit; see the port.

        Raises:
            NotFoundError: No such repository or commit.
        """
        return {
            PurePosixPath(_text(entry, "path")): int(_text(entry, "mode"), 8)
            for entry in self._blobs(repo, commit)
        }

    def _blobs(self, repo: RepoId, commit: CommitSha) -> Iterator[Mapping[str, Any]]:
        page, more = 1, True
        while more:
            answer = self._http.get(
                self._path(repo, "git", "trees", commit),
                {"recursive": 1, "page": page, "per_page": TREE_PAGE},
            )
            if answer.status in (_BAD, _MISSING):
                raise NotFoundError(f"{repo} has no commit {commit}")
            if not answer.ok:
                raise refusal(answer, f"read the tree of {repo}")
            found = answer.json()
            entries = _list(found.get("tree"))
            yield from (entry for entry in entries if entry.get("type") == "blob")
            more = bool(entries) and page * TREE_PAGE < int(found.get("total_count") or 0)
            page += 1

    def read(self, repo: RepoId, path: PurePosixPath, ref: str) -> FileRevision | None:
        """Return a file at a branch or full commit id, or None; see the port."""
        where = self._path(repo, "contents", *path.parts)
        answer = self._http.get(where, {"ref": ref})
        if answer.status == _MISSING:
            return None
        if not answer.ok:
            raise refusal(answer, f"read {path} of {repo}")
        found = answer.json()
        if not isinstance(found, dict) or found.get("type") != "file":
            return None
        sha = BlobSha(_text(found, "sha"))
        content = found.get("content")
        data = _decoded(content) if isinstance(content, str) else self._blob(repo, path, ref)
        return FileRevision(path, data, sha)

    def _blob(self, repo: RepoId, path: PurePosixPath, ref: str) -> bytes:
        """Read a file that is too large for the contents call."""
        answer = self._http.get(self._path(repo, "raw", *path.parts), {"ref": ref})
        if not answer.ok:
            raise refusal(answer, f"read {path} of {repo}")
        return answer.body

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

        Raises:
            ConflictError: A file is not what `seen` says, or another writer won every round.
            NotFoundError: No such repository or branch.
            RefusedError: The repository is archived.
        """
        return self._writer.write(repo, changes, operation, branch)

    def commits(
        self,
        repo: RepoId,
        *,
        ref: str = DEFAULT_BRANCH,
        path: PurePosixPath | None = None,
        limit: int = 50,
    ) -> Sequence[Commit]:
        """Return the newest commits first; see the port."""
        found: list[Commit] = []
        query: dict[str, str | int] = {
            "sha": ref, "stat": "false", "files": "false", "verification": "false", "limit": PAGE,
        }  # fmt: skip
        if path is not None:
            query["path"] = str(path)
        page = 1
        while len(found) < limit:
            answer = self._http.get(self._path(repo, "commits"), {**query, "page": page})
            if answer.status == _MISSING or _is_empty(answer):
                break
            if not answer.ok:
                raise refusal(answer, f"read the history of {repo}")
            items = _list(answer.json())
            found += [_commit(item) for item in items]
            if len(items) < PAGE:
                break
            page += 1
        return found[:limit]

    def archive(self, repo: RepoId) -> None:
        """
        Make the repository read-only. Idempotent. See the port.

        Raises:
            NotFoundError: It does not exist.
        """
        answer = self._http.send("PATCH", self._path(repo), body={"archived": True})
        if not answer.ok:
            raise refusal(answer, f"archive {repo}")

    def delete_repo(self, repo: RepoId) -> bool:
        """Remove the repository for good. Idempotent. See the port."""
        try:
            answer = self._http.send("DELETE", self._path(repo))
        except LostAnswerError:
            if self.repo(repo) is None:
                return True
            raise
        if answer.status == _MISSING:
            return False
        if not answer.ok:
            raise refusal(answer, f"delete {repo}")
        return True

    def _path(self, repo: RepoId, *rest: str) -> str:
        return path_of("repos", repo.owner, repo.name, *rest)

    def _object(self, path: str, doing: str) -> Mapping[str, Any]:
        found = self._optional(path, doing)
        if found is None:
            raise NotFoundError(f"{doing}: 404", hint="does the base URL point to Gitea?")
        return found

    def _optional(self, path: str, doing: str) -> Mapping[str, Any] | None:
        answer = self._http.get(path)
        if answer.status == _MISSING:
            return None
        if not answer.ok:
            raise refusal(answer, doing)
        found = answer.json()
        if not isinstance(found, dict):
            raise RemoteError(f"{doing}: the forge answered no object")
        return found


def _is_empty(answer: Answer) -> bool:
    """Say whether the forge says that there are no commits yet; another 409 is none of its."""
    return answer.status == _CONFLICT and "empty" in answer.text.lower()


def _repository(repo: RepoId, found: Mapping[str, Any], base_url: str) -> Repository:
    web_url = f"{base_url}{path_of(repo.owner, repo.name)}"
    return Repository(
        id=repo,
        default_branch=str(found.get("default_branch") or DEFAULT_BRANCH),
        empty=bool(found.get("empty")),
        archived=bool(found.get("archived")),
        private=bool(found.get("private")),
        description=str(found.get("description") or ""),
        web_url=web_url,
        clone_url=f"{web_url}.git",
    )


def _commit(found: Mapping[str, Any]) -> Commit:
    inner = found.get("commit")
    message = inner.get("message") if isinstance(inner, dict) else ""
    parents = tuple(CommitSha(_text(parent, "sha")) for parent in _list(found.get("parents") or []))
    return Commit(CommitSha(_text(found, "sha")), str(message or ""), parents)


def _text(found: Any, key: str) -> str:
    value = found.get(key) if isinstance(found, dict) else None
    if not isinstance(value, str) or not value:
        raise RemoteError(f"the forge's answer has no {key}", hint="is this a Gitea?")
    return value


def _list(found: Any) -> list[Mapping[str, Any]]:
    if not isinstance(found, list):
        raise RemoteError("the forge's answer is no list", hint="is this a Gitea?")
    return found


def _decoded(content: str) -> bytes:
    try:
        return base64.b64decode(content)
    except binascii.Error as error:
        raise RemoteError("the forge's answer holds no base64") from error


def _total(headers: Mapping[str, str], *, at_least: int) -> int:
    value = headers.get("x-total-count", "")
    return int(value) if value.isascii() and value.isdigit() else at_least
