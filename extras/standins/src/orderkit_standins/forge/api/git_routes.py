"""
Endpoints of git data: trees, commits, references, archives.

Called through their routes.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import pygit2
from pygit2.enums import FileMode
from starlette.background import BackgroundTask
from starlette.responses import Response, StreamingResponse

from orderkit_standins.forge import git_read, histories
from orderkit_standins.forge.api.access import Access
from orderkit_standins.forge.api.calls import ApiError, Call, json_answer, paged, window
from orderkit_standins.forge.api.content_routes import commit_at
from orderkit_standins.forge.api.routes import REPO, route
from orderkit_standins.forge.api.shapes import Json, Shapes

TREE_PAGE_MAX = 1000
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
        ids = histories.commits_of(repo.path, git, start, call.query("path").strip("/"))
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
