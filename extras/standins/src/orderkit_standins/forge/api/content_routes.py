"""
Endpoints of file contents, of git data, and of commit statuses.

Contents: read a file, a folder or raw bytes; create, update, many at once. Observed on Gitea
1.26.0: a stale sha is 422, a missing path 404, a lost race 403, identical content an empty commit.
Moves, ``new_branch`` and other authors are refused as unsupported.

Git data: trees, commits, references, archives.

Statuses: set one, list all, combine the newest of each context. As in Gitea the state is called
``state`` when it is sent and ``status`` in what is answered.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import json
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO

import pygit2
from pygit2.enums import FileMode
from starlette.background import BackgroundTask
from starlette.responses import Response, StreamingResponse

from orderkit_standins.forge import git_read, git_write
from orderkit_standins.forge.accounts import Account
from orderkit_standins.forge.api.access import Access, Right
from orderkit_standins.forge.api.branch_updates import BranchRules, BranchUpdates
from orderkit_standins.forge.api.calls import (
    PAGE_DEFAULT,
    ApiError,
    Call,
    Fields,
    json_answer,
    paged,
    window,
)
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
from orderkit_standins.forge.statuses import TEXTS, Statuses, combined

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
        shapes = self._shapes(git, commit, entries, with_content=not is_folder)
        return json_answer(shapes if is_folder else shapes[0])

    @route("GET", f"{REPO}/file-contents", "repository")
    def read_many(self, call: Call) -> Response:
        """Return files, null for each that is missing; at most a page of them."""
        repo = self.access.repository(call)
        git = git_read.open_repository(repo.path)
        commit = commit_at(git, call.query("ref") or repo.default_branch)
        try:
            paths = json.loads(call.query("body"))["files"]
        except (ValueError, KeyError, TypeError) as error:
            raise ApiError(400, "invalid body parameter") from error
        found = [git_read.entry_at(commit.tree, str(path)) for path in paths[:PAGE_DEFAULT]]
        entries = [entry for entry in found if entry is not None]
        shapes = {shape["path"]: shape for shape in self._shapes(git, commit, entries)}
        return json_answer([entry and shapes[entry.path] for entry in found])

    def _shapes(
        self,
        git: pygit2.Repository,
        commit: pygit2.Commit,
        entries: Sequence[git_read.Entry],
        *,
        with_content: bool = True,
    ) -> list[Json]:
        last = git_read.last_commits(git, commit, {entry.path: entry.id for entry in entries})
        return [
            self.shapes.content(
                entry,
                last[entry.path],
                blob=git_read.blob(git, entry.id),
                with_content=with_content,
            )
            for entry in entries
        ]

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
        # a browser never runs what a repository holds
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


TREE_PAGE_MAX = 1000
"""Gitea's, as it is installed (`default_git_trees_per_page`)."""
ARCHIVE_IN_MEMORY_BYTES = 8 * 1024 * 1024
_TREE_TYPES = {int(FileMode.TREE): "tree", int(FileMode.COMMIT): "commit"}


@dataclass(frozen=True, slots=True)
class GitRoutes:
    """Endpoints that show what git holds."""

    access: Access
    shapes: Shapes

    @route("GET", f"{REPO}/git/trees/{{sha:path}}", "repository")
    def tree(self, call: Call) -> Response:
        """Return one page of a tree; an unknown sha is 400."""
        repo = self.access.repository(call)
        git = git_read.open_repository(repo.path)
        tree = _tree_of(git, call.param("sha"))
        recursive = call.query("recursive").lower() in ("1", "t", "true")
        items = list(git_read.walk_items(tree, recursive=recursive))
        size = min(call.query_number("per_page", TREE_PAGE_MAX) or TREE_PAGE_MAX, TREE_PAGE_MAX)
        page = max(call.query_number("page", 1), 1)
        api = f"{self.shapes.api(repo)}/git"
        return json_answer(
            {
                "sha": str(tree.id),
                "url": f"{api}/trees/{tree.id}",
                "tree": [
                    _tree_entry(git, git_read.entry_of(folder, item), api)
                    for folder, item in items[(page - 1) * size : page * size]
                ],
                "truncated": len(items) > size,
                "page": page,
                "total_count": len(items),
            }
        )

    @route("GET", f"{REPO}/git/commits/{{sha:path}}", "repository")
    def commit(self, call: Call) -> Response:
        repo = self.access.repository(call)
        commit = commit_at(git_read.open_repository(repo.path), call.param("sha"), as_git=True)
        return json_answer(self.shapes.commit(repo, commit))

    @route("GET", f"{REPO}/commits", "repository")
    def commits(self, call: Call) -> Response:
        """Return the history of a branch or path; an empty repository is 409."""
        repo = self.access.repository(call)
        git = git_read.open_repository(repo.path)
        if not git_read.branch_names(git):
            raise ApiError(409, "Git Repository is empty.")
        start = commit_at(git, call.query("sha") or repo.default_branch, as_git=True)
        ids = git_read.commits_of(repo.path, git, start, call.query("path").strip("/"))
        if not ids:
            raise ApiError(404, "FileCommitsCount")
        page = window(call)
        commits = [git[id_].peel(pygit2.Commit) for id_ in ids[page.part]]
        shapes = [self.shapes.commit(repo, commit) for commit in commits]
        return json_answer(shapes, headers=page.headers(call, len(ids)))

    @route("GET", f"{REPO}/git/refs/{{ref:path}}", "repository")
    @route("GET", f"{REPO}/git/refs", "repository")
    def references(self, call: Call) -> Response:
        """Return references by prefix: always a list; none is 404."""
        repo = self.access.repository(call)
        git, api = git_read.open_repository(repo.path), f"{self.shapes.api(repo)}/git"
        prefix = "refs/" + call.request.path_params.get("ref", "")
        names = sorted(name for name in git.listall_references() if name.startswith(prefix))
        if not names:
            raise ApiError(404)
        return paged(call, names, lambda name: _reference(git, name, api))

    @route("GET", f"{REPO}/archive/{{name:path}}", "repository")
    def archive(self, call: Call) -> Response:
        """Return ``{ref}.tar.gz``, everything below ``<repo>/``; Backstage reads trees so."""
        repo, name = self.access.repository(call), call.param("name")
        if not name.endswith(".tar.gz"):
            raise ApiError(400, f"Unknown archive type: {name}")
        git = git_read.open_repository(repo.path)
        commit = commit_at(git, name.removesuffix(".tar.gz"))
        spool = tempfile.SpooledTemporaryFile(max_size=ARCHIVE_IN_MEMORY_BYTES)  # noqa: SIM115  closed by the answer
        try:
            _pack(git, commit, repo.repo.name.lower(), spool)
        except BaseException:
            spool.close()
            raise
        headers = {"Content-Disposition": f'attachment; filename="{repo.repo.name}.tar.gz"'}
        return StreamingResponse(
            _chunks(spool),
            media_type="application/gzip",
            headers=headers,
            background=BackgroundTask(spool.close),
        )


def _tree_of(git: pygit2.Repository, ref: str) -> pygit2.Tree:
    commit = git_read.resolve_as_git(git, ref)
    if commit is not None:
        return commit.tree
    tree = git.get(ref) if git_read.FULL_ID.match(ref) else None
    if not isinstance(tree, pygit2.Tree):
        raise ApiError(400, f"sha not found [{ref}]")
    return tree


def _tree_entry(git: pygit2.Repository, entry: git_read.Entry, api: str) -> Json:
    kind = _TREE_TYPES.get(entry.mode, "blob")
    return {
        "path": entry.path,
        "mode": f"{entry.mode:06o}",
        "type": kind,
        "size": git_read.size_bytes(git, entry.id) if kind == "blob" else 0,
        "sha": entry.id,
        "url": "" if kind == "commit" else f"{api}/{kind}s/{entry.id}",
    }


def _reference(git: pygit2.Repository, name: str, api: str) -> Json:
    target = git.references[name].resolve().target
    kind = "tag" if isinstance(git.get(target), pygit2.Tag) else "commit"
    target_shape = {"type": kind, "sha": str(target), "url": f"{api}/{kind}s/{target}"}
    return {"ref": name, "url": f"{api}/{name}", "object": target_shape}


def _pack(git: pygit2.Repository, commit: pygit2.Commit, prefix: str, stream: IO[bytes]) -> None:
    """Write the same bytes for the same commit: its time stands at every entry."""
    with (
        gzip.GzipFile(fileobj=stream, mode="wb", mtime=commit.commit_time, filename="") as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for folder, item in git_read.walk_items(commit.tree, recursive=True):
            entry = git_read.entry_of(folder, item)
            _add(git, tar, entry, f"{prefix}/{entry.path}", commit.commit_time)
    stream.seek(0)


def _add(
    git: pygit2.Repository, tar: tarfile.TarFile, entry: git_read.Entry, name: str, mtime: int
) -> None:
    info = tarfile.TarInfo(name)
    info.mtime = mtime
    blob = git_read.blob(git, entry.id)
    data = blob.data if blob is not None else b""
    match entry.type:
        case "dir" | "submodule":
            info.type, info.mode = tarfile.DIRTYPE, 0o775
        case "symlink":
            info.type, info.linkname = tarfile.SYMTYPE, data.decode(errors="surrogateescape")
        case _:
            info.size = len(data)
            info.mode = 0o775 if entry.mode == FileMode.BLOB_EXECUTABLE else 0o664
    tar.addfile(info, io.BytesIO(data) if info.size else None)


def _chunks(spool: IO[bytes]) -> Iterator[bytes]:
    while chunk := spool.read(64 * 1024):
        yield chunk


_STATUS_PATH = f"{REPO}/statuses/{{sha:path}}"


@dataclass(frozen=True, slots=True)
class StatusRoutes:
    """Endpoints of commit statuses."""

    access: Access
    statuses: Statuses
    shapes: Shapes

    @route("POST", _STATUS_PATH, "repository")
    def create(self, call: Call) -> Response:
        """Set a status, also in an archive."""
        user, repo = call.user, self.access.repository(call)
        if self.access.right_on(call.actor, repo) < Right.WRITE:
            raise ApiError(403, "user should have a permission to write to a repo")
        body, sha = call.fields(), call.param("sha")
        texts = {key: body.text(key) for key in TEXTS}
        git = git_read.open_repository(repo.path)
        try:
            commit = commit_at(git, sha, short_ids=True)
        except ApiError as error:
            # a 500 in Gitea, too
            text = f"GetCommit[{sha}]: object does not exist [id: {sha}, rel_path: ]"
            raise ApiError(500, text) from error
        status = self.statuses.add(repo.id, str(commit.id), texts, creator_id=user.id)
        return json_answer(self.shapes.status(repo, status), 201)

    @route("GET", _STATUS_PATH, "repository")
    def list_statuses(self, call: Call) -> Response:
        """Return the statuses of a full commit id, newest first; an unknown one has none."""
        repo = self.access.repository(call)
        statuses = self.statuses.of_commit(repo.id, call.param("sha"))
        return paged(call, statuses[::-1], lambda status: self.shapes.status(repo, status))

    @route("GET", f"{REPO}/commits/{{ref:path}}/status", "repository")
    def combine(self, call: Call) -> Response:
        """Return one page of the newest statuses; their common state is that of the page."""
        repo = self.access.repository(call)
        commit = commit_at(git_read.open_repository(repo.path), call.param("ref"), short_ids=True)
        latest, page = self.statuses.latest(repo.id, str(commit.id)), window(call)
        statuses = sorted(latest[page.part], key=lambda status: status.index)
        body = {
            "state": combined(status.state for status in statuses),
            "sha": str(commit.id),
            "total_count": len(statuses),
            "statuses": [self.shapes.status(repo, status) for status in statuses] or None,
        }
        return json_answer(body, headers=page.headers(call, len(latest)))
