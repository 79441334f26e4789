"""
Endpoints of file contents: read one, a folder or raw bytes; create, update, many at once.

Observed on Gitea 1.26.0: a stale sha is 422, a missing path 404, a lost race 403, identical
content an empty commit. Moves, ``new_branch`` and other authors are refused as unsupported.

Called through their routes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pygit2
from starlette.responses import Response

from orderkit_standins.forge import git_read, git_write
from orderkit_standins.forge.accounts import Account
from orderkit_standins.forge.api.access import Access
from orderkit_standins.forge.api.branch_rules import BranchRules
from orderkit_standins.forge.api.branch_updates import BranchUpdates
from orderkit_standins.forge.api.calls import ApiError, Call, Fields, json_answer
from orderkit_standins.forge.api.routes import REPO, route
from orderkit_standins.forge.api.shapes import Json, Shapes
from orderkit_standins.forge.git_write import (
    CommitRequest,
    CommitResult,
    FileOperation,
    OperationName,
    Person,
    Problem,
)
from orderkit_standins.forge.media_types import media_type
from orderkit_standins.forge.repositories import Repositories, Repository

PATH_MAX = 500
VERBS: Mapping[OperationName, str] = {"create": "Add", "update": "Update", "delete": "Delete"}
_STATUSES: Mapping[Problem, int] = {"missing": 404, "no_branch": 404, "race": 403, "outside": 500}
_INVALID = 422
_ROLES = ("author", "committer")
_FILE = f"{REPO}/contents/{{path:path}}"


@dataclass(frozen=True, slots=True)
class ContentRoutes:
    """Endpoints that read and write files."""

    access: Access
    repositories: Repositories
    rules: BranchRules
    updates: BranchUpdates
    shapes: Shapes

    @route("GET", _FILE, "repository")
    @route("GET", f"{REPO}/contents", "repository")
    def read(self, call: Call) -> Response:
        """Return a file, or the list of a folder."""
        repo = self.access.repository(call)
        git = git_read.open_repository(repo.path)
        commit = commit_at(git, call.query("ref") or repo.default_branch)
        path = call.request.path_params.get("path", "").strip("/")
        entry = git_read.entry_at(commit.tree, path)
        if entry is None:
            text = f"object does not exist [id: , rel_path: {path}]"
            raise ApiError(404, "GetContentsOrList", errors=[text])
        is_folder = entry.type == "dir"
        entries = git_read.children(git, entry.id, path) if is_folder else [entry]
        last = git_read.last_commits(git, commit, {entry.path: entry.id for entry in entries})
        shapes = [
            self.shapes.content(
                entry,
                last[entry.path],
                blob=git_read.blob(git, entry.id),
                with_content=not is_folder,
            )
            for entry in entries
        ]
        return json_answer(shapes if is_folder else shapes[0])

    @route("GET", f"{REPO}/raw/{{path:path}}", "repository")
    def raw(self, call: Call) -> Response:
        repo = self.access.repository(call)
        git = git_read.open_repository(repo.path)
        commit = commit_at(git, call.query("ref") or repo.default_branch)
        return raw_answer(git, commit, call.param("path"))

    @route("POST", _FILE, "repository")
    def create(self, call: Call) -> Response:
        repo, body = self._editable(call), call.fields()
        operation = FileOperation("create", call.param("path"), _content(body))
        return self._commit_one(call.user, repo, body, operation, 201)

    @route("PUT", _FILE, "repository")
    def update(self, call: Call) -> Response:
        """Update a file; without ``sha`` create it."""
        repo, body = self._editable(call), call.fields()
        sha, content = body.text("sha"), _content(body)
        operation = FileOperation("update" if sha else "create", call.param("path"), content, sha)
        return self._commit_one(call.user, repo, body, operation, 200 if sha else 201)

    @route("POST", f"{REPO}/contents", "repository")
    def change_many(self, call: Call) -> Response:
        """Commit several files at once; an empty list is an empty commit."""
        repo, body = self._editable(call), call.fields()
        files = body.get("files")
        if not isinstance(files, list):
            raise ApiError(422, "[Files]: Required")
        return json_answer(self._commit(call.user, repo, body, [_operation(f) for f in files]), 201)

    def _editable(self, call: Call) -> Repository:
        return self.access.writable(call, refusal="is not allowed to edit")

    def _commit_one(
        self, user: Account, repo: Repository, body: Fields, operation: FileOperation, status: int
    ) -> Response:
        body.refuse_unsupported("from_path")
        answer = self._commit(user, repo, body, [operation])
        files = answer.pop("files")
        return json_answer({"content": files[0], **answer}, status)

    def _commit(
        self, user: Account, repo: Repository, body: Fields, files: Sequence[FileOperation]
    ) -> Json:
        branch = body.text("branch") or repo.default_branch
        body.refuse_unsupported("new_branch", "author", "committer", "signoff")
        author, committer = (_person(user, body.mapping("dates"), k) for k in _ROLES)
        request = CommitRequest(branch, _message(body, files), author, committer, files)
        self.rules.refuse_commit(repo, user, branch)
        try:
            result = git_write.commit_files(repo.path, request)
        except git_write.WriteError as error:
            raise ApiError(_STATUSES.get(error.kind, _INVALID), str(error)) from error
        if not result.before:
            repo = self.repositories.adopt_first_branch(repo)
        self.updates.branch_moved(repo, branch, result.commit, by=user, before=result.before)
        return self._commit_answer(repo, result)

    def _commit_answer(self, repo: Repository, result: CommitResult) -> Json:
        git = git_read.open_repository(repo.path)
        commit = commit_at(git, result.commit)
        files = [
            self.shapes.content(entry, commit, blob=git_read.blob(git, entry.id)) if entry else None
            for entry in result.entries
        ]
        return {"files": files or None, "commit": self.shapes.file_commit(repo, commit)}


def commit_at(
    git: pygit2.Repository, ref: str, *, short_ids: bool = False, as_git: bool = False
) -> pygit2.Commit:
    """
    Return the commit that a branch, a tag or a full id names; also a short id if `short_ids`.

    `as_git`: in git's order, where an id comes first and a branch last.

    Raises:
        ApiError: 404, there is none.
    """
    find = git_read.resolve_as_git if as_git else git_read.resolve
    commit = find(git, ref) or (git_read.by_short_id(git, ref) if short_ids else None)
    if commit is None:
        raise ApiError(404, errors=[f"object does not exist [id: {ref}, rel_path: ]"])
    return commit


def raw_answer(git: pygit2.Repository, commit: pygit2.Commit, path: str) -> Response:
    """
    Return the bytes of a file, never as something a browser would run.

    Raises:
        ApiError: 404, no file there.
    """
    entry = git_read.entry_at(commit.tree, path.strip("/"))
    blob = git_read.blob(git, entry.id) if entry else None
    if entry is None or blob is None:
        raise ApiError(404, errors=[f"object does not exist [id: , rel_path: {path}]"])
    headers = {
        "X-Gitea-Object-Type": "blob",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "ETag": f'"{entry.id}"',
        "Content-Type": media_type(blob.data),
    }
    return Response(blob.data, headers=headers)


def _operation(value: object) -> FileOperation:
    if not isinstance(value, dict):
        raise ApiError(422, "json: cannot unmarshal into a file operation")
    entry = Fields(value)
    name, path = entry.required("operation"), entry.required("path")
    if len(path) > PATH_MAX:
        raise ApiError(422, f"[Path]: MaxSize {PATH_MAX}")
    entry.refuse_unsupported("from_path")
    operation = next((verb for verb in VERBS if verb == name), None)
    if operation is None:
        raise ApiError(500, f"invalid file operation: {name} {path}")
    content = b"" if operation == "delete" else _content(entry)
    # Gitea has no such field; GitLab's face asks by it.
    is_executable = entry.get("executable") is True
    return FileOperation(operation, path, content, entry.text("sha"), is_executable)


def _message(body: Fields, files: Sequence[FileOperation]) -> str:
    text = body.text("message").strip()
    return text or "\n".join(f"{VERBS[file.operation]} {file.path}" for file in files)


def _person(user: Account, dates: Fields, key: str) -> Person:
    """Return the caller as author or committer, at the time that the request names."""
    text = dates.text(key)
    try:
        moment = datetime.fromisoformat(text) if text else datetime.now(UTC)
    except ValueError as error:
        raise ApiError(422, f"[Dates]: {key} is not an RFC 3339 time") from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return Person(user.name, user.email, moment)


def _content(body: Fields) -> bytes:
    try:
        return base64.b64decode(body.text("content"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ApiError(422, f"illegal base64 data: {error}") from error
