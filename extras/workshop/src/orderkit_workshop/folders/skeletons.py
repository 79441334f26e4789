"""
Render the skeleton of a new pack or kit, and write a new pack.

Skeletons lie in ``skeletons/`` beside the reference pack and are cookiecutter's. Rendered without
its prompts, hooks, replay files and user configuration, so the same values give the same files. Not
for what the portal renders: that is ``softwaretemplates.render``. Rendering changes the working
directory for a moment, as cookiecutter does: not for threads. Implements the port
`SkeletonRenderer`.

A new pack is a folder with all of its files in the first commit, or nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from ground.errors import InvalidInputError, NotFoundError, OrderkitError
from orderkit.adapters.folders.pack_folder import reference_pack, run_git
from orderkit.adapters.folders.template_folder import DiskFolder, write_tree
from softwaretemplates.render import SkeletonFile

FOLDER = "skeletons"


def render_skeleton(name: str, values: Mapping[str, Any]) -> dict[PurePosixPath, SkeletonFile]:
    """
    Return the files of a skeleton of this installation, their paths relative to its folder.

    Args:
        values: Over the defaults of the skeleton's ``cookiecutter.json``.

    Raises:
        NotFoundError: The installation lacks it. InvalidInputError: It cannot be rendered.
    """
    from cookiecutter.exceptions import CookiecutterException  # lazy: heavy
    from cookiecutter.generate import generate_files

    skeleton = reference_pack() / FOLDER / name
    if not (skeleton / "cookiecutter.json").is_file():
        raise NotFoundError(f"there is no skeleton {skeleton}", hint="install Orderkit again")
    defaults = json.loads((skeleton / "cookiecutter.json").read_bytes())
    with tempfile.TemporaryDirectory(prefix="orderkit-") as scratch:
        try:
            rendered = generate_files(
                skeleton,
                {"cookiecutter": {**defaults, **values, "folder": "made"}},
                output_dir=scratch,
                accept_hooks=False,
            )
        except CookiecutterException as error:
            raise InvalidInputError(f"skeletons/{name}", dict(values), str(error)) from error
        files = DiskFolder(Path(rendered), trusted=True).tree(PurePosixPath())
        return {path: replace(file, content=file.data) for path, file in files.items()}


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
