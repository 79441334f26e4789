"""
Write a new pack: a folder with all of its files in the first commit, or nothing.

Called by ``orderkit init``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from orderkit.adapters.folders.template_folder import write_tree
from orderkit.core.errors import NotFoundError, OrderkitError, shorten
from orderkit.core.portal.render import SkeletonFile

_GIT_S = 30


def write_pack(files: Mapping[PurePosixPath, SkeletonFile], folder: Path, *, git: bool) -> None:
    """
    Make `folder` hold exactly these files; with `git` it becomes a repository.

    Raises:
        RefusedError: Something is in the folder already.
        NotFoundError: git is missing. OrderkitError: git refuses.
    """
    write_tree(files, folder, finish=_commit if git else lambda _: None)


def _commit(folder: Path) -> None:
    """Make the folder a repository with everything in its first commit."""
    _git(folder, "init", "--quiet", "--initial-branch=main")
    _git(folder, "add", "--all")
    _git(folder, *_identity(folder), "commit", "--quiet", "--message", "Start the pack")


def _identity(folder: Path) -> tuple[str, ...]:
    """Return git's options for an author where the machine names none."""
    try:
        _git(folder, "var", "GIT_AUTHOR_IDENT")
        _git(folder, "var", "GIT_COMMITTER_IDENT")
    except OrderkitError:
        return "-c", "user.name=orderkit", "-c", "user.email=orderkit@localhost"
    return ()


def _git(folder: Path, *arguments: str) -> None:
    try:
        subprocess.run(  # noqa: S603 - our own arguments
            ["git", "-C", str(folder), *arguments],  # noqa: S607 - git from PATH
            capture_output=True,
            text=True,
            check=True,
            timeout=_GIT_S,
        )
    except FileNotFoundError as error:
        raise NotFoundError("git is not on PATH", hint="install git, or give --no-git") from error
    except subprocess.SubprocessError as error:
        stderr = error.stderr if isinstance(error, subprocess.CalledProcessError) else ""
        problem = shorten(stderr.strip() or str(error))
        raise OrderkitError(f"git {arguments[0]}: {problem}", hint="or give --no-git") from error
