"""
Endpoints of file contents: read one, a folder or raw bytes; create, update, delete, many.

Status codes come from the forge's ``behaviour``: in Gitea 1.26.0 a stale sha is 422, a missing
path 404, a lost race 403. Identical content is an empty commit everywhere.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pygit2
from starlette.responses import Response

from orderkit.adapters.embedded.forge import gitread, gitwrite
from orderkit.adapters.embedded.forge.api import access, fields, guarding
from orderkit.adapters.embedded.forge.api.calls import ApiError, Call, json_answer
from orderkit.adapters.embedded.forge.api.shapes import (
    UNSIGNED,
    Json,
    content_shape,
    file_commit_shape,
)
from orderkit.adapters.embedded.forge.behaviour import Behaviour
from orderkit.adapters.embedded.forge.gitwrite import (
    CommitRequest,
    CommitResult,
    FileOperation,
    OperationName,
    Person,
)
from orderkit.adapters.embedded.forge.mediatypes import media_type
from orderkit.adapters.embedded.forge.registry import RepoRow
from orderkit.core.names import CommitSha

PATH_MAX = 500
VERBS = {
    "create": "Add",
    "update": "Update",
    "upload": "Upload",
    "rename": "Rename",
    "delete": "Delete",
}


def read(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/contents[/{path}]: a file, or the list of a folder."""
    repo = access.repository(call)
    git = gitread.open_repository(repo.path)
    ref = call.query("ref") or repo.default_branch
    commit = _commit_at(git, ref)
    path = call.request.path_params.get("path", "").strip("/")
    entry = gitread.entry_at(commit.tree, path)
    if entry is None:
        raise ApiError(
            404,
            "GetContentsOrList",
            errors=[f"object does not exist [id: , rel_path: {path}]"],
        )
    listed = gitread.children(git, entry.id, path) if entry.type == "dir" else [entry]
    last = gitread.last_commits(commit, {each.path: each.id for each in listed})
    shapes = [
        content_shape(
            repo,
            each,
            last[each.path],
            call.forge.base_url,
            ref=ref,
            blob=gitread.blob(git, each.id),
            with_content=entry.type != "dir",
        )
        for each in listed
    ]
    return json_answer(shapes if entry.type == "dir" else shapes[0])


def _commit_at(git: pygit2.Repository, ref: str) -> pygit2.Commit:
    commit = gitread.resolve(git, ref)
    if commit is None:
        raise ApiError(404, errors=[f"object does not exist [id: {ref}, rel_path: ]"])
    return commit


def raw(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/raw/{path}: the bytes."""
    repo = access.repository(call)
    git = gitread.open_repository(repo.path)
    commit = _commit_at(git, call.query("ref") or repo.default_branch)
    return raw_answer(git, commit, call.param("path"))


def raw_answer(git: pygit2.Repository, commit: pygit2.Commit, path: str) -> Response:
    """
    Return the bytes of a file, never as something a browser would run.

    Raises:
        ApiError: 404, no file there.
    """
    entry = gitread.entry_at(commit.tree, path.strip("/"))
    found = gitread.blob(git, entry.id) if entry else None
    if entry is None or found is None:
        raise ApiError(404, errors=[f"object does not exist [id: , rel_path: {path}]"])
    data = found.data
    headers = {
        "X-Gitea-Object-Type": "blob",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "ETag": f'"{entry.id}"',
        "Content-Type": media_type(data),
    }
    return Response(data, headers=headers)


def _editable(call: Call) -> RepoRow:
    return access.writable(call, refusal="is not allowed to edit")


def create(call: Call) -> Response:
    """POST /repos/{owner}/{repo}/contents/{path}."""
    repo, body = _editable(call), call.json()
    operation = FileOperation("create", call.param("path"), _content(body))
    return _one(call, repo, body, operation, 201)


def update(call: Call) -> Response:
    """PUT /repos/{owner}/{repo}/contents/{path}; without ``sha`` it creates (1.26 only)."""
    repo, body = _editable(call), call.json()
    sha, rules = fields.text(body, "sha"), call.forge.behaviour
    if not sha and not rules.put_without_sha_creates:
        raise ApiError(422, "[SHA]: Required")
    if not rules.put_fills_empty_repository and not gitread.heads(repo.path):
        raise ApiError(422, "repo is empty")
    operation = FileOperation(
        "update" if sha else "create",
        call.param("path"),
        _content(body),
        sha,
        fields.text(body, "from_path"),
    )
    return _one(call, repo, body, operation, 200 if sha else 201)


def delete(call: Call) -> Response:
    """DELETE /repos/{owner}/{repo}/contents/{path} with ``sha`` in the body."""
    repo, body = _editable(call), call.json()
    sha = fields.text(body, "sha")
    if not sha:
        raise ApiError(422, "[SHA]: Required")
    operation = FileOperation("delete", call.param("path"), sha=sha)
    return _one(call, repo, body, operation, 200)


def change_many(call: Call) -> Response:
    """POST /repos/{owner}/{repo}/contents: several files, one commit; ``[]`` is empty."""
    repo, body = _editable(call), call.json()
    files = body.get("files")
    if not isinstance(files, list):
        raise ApiError(422, "[Files]: Required")
    operations = [_operation(each, call.forge.behaviour) for each in files]
    rules = call.forge.behaviour
    return json_answer(_commit(call, repo, body, operations, rules.edit_refusals), 201)


def _one(call: Call, repo: RepoRow, body: Json, operation: FileOperation, status: int) -> Response:
    rules = call.forge.behaviour
    deletes = operation.operation == "delete"
    refusals = rules.delete_refusals if deletes else rules.edit_refusals
    answer = _commit(call, repo, body, [operation], refusals)
    content = answer.pop("files")[0]
    return json_answer({"content": content, **answer}, status)


def _operation(entry: object, rules: Behaviour) -> FileOperation:
    if not isinstance(entry, dict):
        raise ApiError(422, "json: cannot unmarshal into a file operation")
    name, path = fields.text(entry, "operation"), fields.text(entry, "path")
    if not name:
        raise ApiError(422, "[Operation]: Required")
    if not path or len(path) > PATH_MAX:
        raise ApiError(422, "[Path]: Required" if not path else f"[Path]: MaxSize {PATH_MAX}")
    if name not in rules.operations:
        raise ApiError(500, f"invalid file operation: {name} {path}")
    known: OperationName = name  # type: ignore[assignment]  # checked above
    content = b"" if name in ("delete", "rename") else _content(entry)
    return FileOperation(
        known, path, content, fields.text(entry, "sha"), fields.text(entry, "from_path")
    )


def _commit(
    call: Call,
    repo: RepoRow,
    body: Json,
    files: Sequence[FileOperation],
    refusals: Mapping[gitwrite.Problem, int],
    *,
    tells: bool = True,
) -> Json:
    branch = fields.text(body, "branch") or repo.default_branch
    author, committer = _people(call, body)
    request = CommitRequest(
        branch=branch,
        new_branch=fields.text(body, "new_branch"),
        message=_message(body, files, committer),
        author=author,
        committer=committer,
        files=files,
        needs_sha=call.forge.behaviour.many_need_sha,
    )
    _refuse_protected(call, repo, request, refusals["race"])
    try:
        result = gitwrite.commit_files(repo.path, request)
    except gitwrite.WriteError as error:
        raise ApiError(refusals[error.kind], str(error)) from error
    if result.root:
        call.forge.registry.adopt_first_branch(repo)
    call.forge.pushed(
        repo.repo,
        result.branch,
        CommitSha(result.commit),
        by=call.user if tells else None,
        before=result.before,
    )
    return _written(call, repo, result)


def _written(call: Call, repo: RepoRow, result: CommitResult) -> Json:
    git = gitread.open_repository(repo.path)
    commit = _commit_at(git, result.commit)
    files = [
        content_shape(
            repo,
            entry,
            commit,
            call.forge.base_url,
            ref=result.branch,
            blob=gitread.blob(git, entry.id),
            with_content=True,
        )
        if entry
        else None
        for entry in result.entries
    ]
    shown = file_commit_shape(repo, commit, call.forge.base_url)
    return {"files": files or None, "commit": shown, "verification": UNSIGNED}


def _refuse_protected(call: Call, repo: RepoRow, request: CommitRequest, declined: int) -> None:
    """Ask the rule of the branch that would move; a new one is asked for as git's hook does."""
    paths = {each for file in request.files for each in (file.path, file.from_path) if each}
    if request.new_branch in ("", request.branch):
        guarding.refuse_write(call.forge, repo, call.user, request.branch, sorted(paths))
        return
    guarding.refuse_new_branch(
        call.forge, repo, call.user, request.new_branch, sorted(paths), status=declined
    )


def make_first_commit(call: Call, repo: RepoRow) -> None:
    """Write the README that ``auto_init`` asks for. Webhooks are not told of it."""
    text = f"# {repo.repo.name}\n" + (f"\n{repo.description}\n" if repo.description else "")
    body = {"message": "Initial commit", "branch": repo.default_branch}
    operation = FileOperation("create", "README.md", text.encode())
    _commit(call, repo, body, [operation], call.forge.behaviour.edit_refusals, tells=False)


def _message(body: Json, files: Sequence[FileOperation], committer: Person) -> str:
    text = fields.text(body, "message").strip()
    if not text:
        text = "\n".join(f"{VERBS[each.operation]} {each.path}" for each in files)
    if body.get("signoff") is True:
        text += f"\n\nSigned-off-by: {committer.name} <{committer.email}>"
    return text


def _people(call: Call, body: Json) -> tuple[Person, Person]:
    user, dates = call.user, body.get("dates")
    dates = dates if isinstance(dates, dict) else {}
    author, committer = _identity(body, "author"), _identity(body, "committer")
    fallback = (user.name, user.email)
    a, c = author or committer or fallback, committer or author or fallback
    return (
        Person(a[0] or user.name, a[1] or user.email, _date(dates, "author")),
        Person(c[0] or user.name, c[1] or user.email, _date(dates, "committer")),
    )


def _identity(body: Json, key: str) -> tuple[str, str] | None:
    found = body.get(key)
    if not isinstance(found, dict):
        return None
    name, email = (_plain(fields.text(found, part)) for part in ("name", "email"))
    return (name, email) if name or email else None


def _plain(text: str) -> str:
    """Drop what git does not keep in a name or address."""
    return "".join(char for char in text if char not in "<>\n\0").strip()


def _date(dates: Mapping[str, Any], key: str) -> datetime:
    value = dates.get(key)
    if not value:
        return datetime.now(UTC)
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError as error:
        raise ApiError(422, f"[Dates]: {key} is no RFC 3339 time") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _content(body: Mapping[str, Any]) -> bytes:
    try:
        return base64.b64decode(fields.text(body, "content"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ApiError(422, f"illegal base64 data: {error}") from error
