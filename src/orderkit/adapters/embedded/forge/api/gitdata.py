"""
Endpoints of git data: trees, blobs, commits, references, archives.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

import base64
import gzip
import io
import tarfile
import tempfile
from collections.abc import Iterator
from typing import IO

import pygit2
from pygit2.enums import DeltaStatus, FileMode
from starlette.background import BackgroundTask
from starlette.responses import Response, StreamingResponse

from orderkit.adapters.embedded.forge import gitread, histories
from orderkit.adapters.embedded.forge.api import access
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    json_answer,
    page_headers,
    paged,
    window,
)
from orderkit.adapters.embedded.forge.api.shapes import (
    BLOB_MAX_BYTES,
    Json,
    commit_shape,
)
from orderkit.adapters.embedded.forge.registry import RepoRow

TREE_PAGE_MAX = 1000
ARCHIVE_IN_MEMORY_BYTES = 8 * 1024 * 1024
_CHANGES = {
    DeltaStatus.ADDED: "added",
    DeltaStatus.DELETED: "removed",
    DeltaStatus.MODIFIED: "modified",
}


def tree(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/git/trees/{sha}, one page; an unknown sha is 400."""
    repo = access.repository(call)
    git = gitread.open_repository(repo.path)
    found = _tree_of(git, call.param("sha"))
    items = list(gitread.walk_items(found, recursive=call.flag("recursive", default=False)))
    size = min(call.number("per_page", TREE_PAGE_MAX) or TREE_PAGE_MAX, TREE_PAGE_MAX)
    page = max(call.number("page", 1), 1)
    api = f"{call.forge.base_url}/api/v1/repos/{repo.full_name}/git"
    return json_answer(
        {
            "sha": str(found.id),
            "url": f"{api}/trees/{found.id}",
            "tree": [
                _tree_entry(git, gitread.entry_of(folder, item), api)
                for folder, item in items[(page - 1) * size : page * size]
            ],
            "truncated": len(items) > size,
            "page": page,
            "total_count": len(items),
        }
    )


def _tree_of(git: pygit2.Repository, ref: str) -> pygit2.Tree:
    commit = gitread.resolve(git, ref)
    if commit is not None:
        return commit.tree
    found = git.get(ref) if gitread.FULL_ID.match(ref) else None
    if not isinstance(found, pygit2.Tree):
        raise ApiError(400, f"sha not found [{ref}]")
    return found


def _tree_entry(git: pygit2.Repository, entry: gitread.Entry, api: str) -> Json:
    types = {int(FileMode.TREE): "tree", int(FileMode.COMMIT): "commit"}
    kind = types.get(entry.mode, "blob")
    return {
        "path": entry.path,
        "mode": f"{entry.mode:06o}",
        "type": kind,
        "size": gitread.size_bytes(git, entry.id) if kind == "blob" else 0,
        "sha": entry.id,
        "url": "" if kind == "commit" else f"{api}/{kind}s/{entry.id}",
    }


def blob(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/git/blobs/{sha}; an unknown one is 400."""
    repo, sha = access.repository(call), call.param("sha")
    found = gitread.blob(gitread.open_repository(repo.path), sha)
    if found is None:
        raise ApiError(400, f"object does not exist [id: {sha}, rel_path: ]")
    shown = found.size <= BLOB_MAX_BYTES
    return json_answer(
        {
            "content": base64.b64encode(found.data).decode() if shown else None,
            "encoding": "base64" if shown else None,
            "url": f"{call.forge.base_url}/api/v1/repos/{repo.full_name}/git/blobs/{sha}",
            "sha": sha,
            "size": found.size,
        }
    )


def commit(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/git/commits/{sha}: a full id, a branch or a tag."""
    repo, ref = access.repository(call), call.param("sha")
    git = gitread.open_repository(repo.path)
    found = gitread.resolve(git, ref)
    if found is None:
        raise ApiError(404, errors=[f"object does not exist [id: {ref}, rel_path: ]"])
    files = _files(found) if call.flag("files", default=True) else None
    return json_answer(commit_shape(repo, found, call.forge.base_url, files=files))


def commits(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/commits?sha=&path=; an empty repository is 409."""
    repo = access.repository(call)
    git = gitread.open_repository(repo.path)
    if not gitread.branch_names(git):
        raise ApiError(409, "Git Repository is empty.")
    ref = call.query("sha") or repo.default_branch
    start = gitread.resolve(git, ref)
    if start is None:
        raise ApiError(404, errors=[f"object does not exist [id: {ref}, rel_path: ]"])
    found = histories.commits_of(repo.path, git, start, call.query("path").strip("/"))
    if not found:
        raise ApiError(404, "FileCommitsCount")
    wanted = window(call)
    with_files = call.flag("files", default=True)
    chosen = [git[id_].peel(pygit2.Commit) for id_ in found[wanted.part]]
    shapes = [
        commit_shape(repo, each, call.forge.base_url, files=_files(each) if with_files else None)
        for each in chosen
    ]
    return json_answer(shapes, headers=page_headers(call, wanted, len(found)))


def _files(commit: pygit2.Commit) -> list[Json]:
    parents = commit.parents
    base = parents[0].tree if parents else None
    diff = base.diff_to_tree(commit.tree) if base else commit.tree.diff_to_tree(swap=True)
    return [
        {"filename": delta.new_file.path, "status": _CHANGES.get(delta.status, "modified")}
        for delta in diff.deltas
    ]


def references(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/git/refs[/{prefix}]: always a list; none is 404."""
    repo = access.repository(call)
    git = gitread.open_repository(repo.path)
    prefix = "refs/" + call.request.path_params.get("ref", "")
    names = sorted(name for name in git.listall_references() if name.startswith(prefix))
    if not names:
        raise ApiError(404)
    return paged(call, names, lambda name: _reference(call, repo, git, name))


def _reference(call: Call, repo: RepoRow, git: pygit2.Repository, name: str) -> Json:
    api = f"{call.forge.base_url}/api/v1/repos/{repo.full_name}/git"
    target = git.references[name].resolve().target
    kind = "tag" if isinstance(git.get(target), pygit2.Tag) else "commit"
    return {
        "ref": name,
        "url": f"{api}/{name}",
        "object": {"type": kind, "sha": str(target), "url": f"{api}/{kind}s/{target}"},
    }


def archive(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/archive/{ref}.tar.gz, everything below ``<repo>/``."""
    repo, name = access.repository(call), call.param("name")
    if not name.endswith(".tar.gz"):
        raise ApiError(400, f"Unknown archive type: {name}")
    git = gitread.open_repository(repo.path)
    found = gitread.resolve(git, name.removesuffix(".tar.gz"))
    if found is None:
        raise ApiError(404, errors=[f"unrecognized repository reference: {name}"])
    spool = tempfile.SpooledTemporaryFile(max_size=ARCHIVE_IN_MEMORY_BYTES)  # noqa: SIM115  closed by the answer
    try:
        _pack(git, found, repo.repo.name.lower(), spool)
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


def _pack(git: pygit2.Repository, commit: pygit2.Commit, prefix: str, out: IO[bytes]) -> None:
    """Write the same bytes for the same commit: its time stands at every entry."""
    with (
        gzip.GzipFile(fileobj=out, mode="wb", mtime=commit.commit_time, filename="") as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for entry in gitread.walk_tree(git, str(commit.tree_id)):
            _add(git, tar, entry, f"{prefix}/{entry.path}", commit.commit_time)
    out.seek(0)


def _add(
    git: pygit2.Repository, tar: tarfile.TarFile, entry: gitread.Entry, name: str, mtime: int
) -> None:
    info = tarfile.TarInfo(name)
    info.mtime = mtime
    found = gitread.blob(git, entry.id)
    data = found.data if found is not None else b""
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
