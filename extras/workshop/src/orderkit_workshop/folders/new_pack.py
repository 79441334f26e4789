"""Write a new pack: a folder with all of its files in the first commit, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from ground.errors import OrderkitError
from orderkit.adapters.folders.pack_folder import run_git
from orderkit.adapters.folders.template_folder import write_tree
from softwaretemplates.render import SkeletonFile


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
    run_git(folder, "init", "--quiet", "--initial-branch=main")
    run_git(folder, "add", "--all")
    run_git(folder, *_identity(folder), "commit", "--quiet", "--message", "Start the pack")


def _identity(folder: Path) -> tuple[str, ...]:
    """Return git's options for an author where the machine names none."""
    try:
        run_git(folder, "var", "GIT_AUTHOR_IDENT")
        run_git(folder, "var", "GIT_COMMITTER_IDENT")
    except OrderkitError:
        return "-c", "user.name=orderkit", "-c", "user.email=orderkit@localhost"
    return ()
