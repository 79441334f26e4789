"""
The bytes of ``.diff`` and ``.patch``: what the git program says, as Gitea passes it on.

Output goes through a file on disk, so a large change costs no memory.

Called by ``pages.history`` and ``pages.pulls``.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pygit2
from starlette.background import BackgroundTask
from starlette.responses import Response, StreamingResponse

from orderkit.adapters.embedded.forge.api.calls import ApiError
from orderkit.adapters.embedded.forge.git_program import GitProgram

TIMEOUT_S = 60
_CHUNK_BYTES = 64 * 1024
_CONFIG = {"safe.directory": "*", "diff.algorithm": "histogram", "core.quotePath": "false"}
_FORMAT_PATCH = ("format-patch", "--no-signature", "--stdout")
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
}


def of_commit(git: GitProgram, path: Path, commit: pygit2.Commit, form: str) -> Response:
    """
    Return one commit as ``diff`` or ``patch``.

    Raises:
        ApiError: 500, git failed or took too long.
    """
    id_, parents = str(commit.id), [str(parent) for parent in commit.parent_ids]
    if form == "patch":
        span = [f"{id_}...{parents[0]}"] if parents else ["--root", id_]
        return _run(git, path, *_FORMAT_PATCH, *span)
    if not parents:
        return _run(git, path, "show", id_)
    return _run(git, path, "diff", "--find-renames=50%", parents[0], id_)


def between(git: GitProgram, path: Path, base: str, head: str, form: str) -> Response:
    """
    Return all that `head` has more than `base`, both full ids.

    Raises:
        ApiError: 500, git failed or took too long.
    """
    if form == "patch":
        return _run(git, path, "format-patch", "--binary", "--stdout", f"{base}...{head}")
    return _run(git, path, "diff", "-p", f"{base}...{head}")


def _run(git: GitProgram, path: Path, *arguments: str) -> Response:
    spool = tempfile.TemporaryFile()  # noqa: SIM115  closed by the answer
    try:
        _write(git, spool, "--git-dir", str(path), *arguments, "--")
    except BaseException:
        spool.close()
        raise
    return StreamingResponse(
        _chunks(spool),
        headers=_HEADERS,
        media_type="text/plain; charset=utf-8",
        background=BackgroundTask(spool.close),
    )


def _write(git: GitProgram, spool: IO[bytes], *arguments: str) -> None:
    try:
        git.run(
            *arguments,
            config=_CONFIG,
            environment={},
            stdin=subprocess.DEVNULL,
            stdout=spool,
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
        ).check_returncode()
    except subprocess.SubprocessError as error:
        raise ApiError(500, "git could not compare the commits") from error
    spool.seek(0)


def _chunks(spool: IO[bytes]) -> Iterator[bytes]:
    while chunk := spool.read(_CHUNK_BYTES):
        yield chunk
