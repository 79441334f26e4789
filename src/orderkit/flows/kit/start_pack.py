"""
Start a platform team's own pack: a git repository with the rooms of a pack and no kits yet.

What every pack shares (the delivery tree, the rooms' READMEs) is taken from the reference pack of
this installation, without its kits; the rest is rendered from ``skeletons/pack``. Called by
``orderkit init``.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.adapters.folders.skeletons import render_skeleton
from orderkit.adapters.folders.template_folder import check_free, write_tree
from orderkit.core.errors import NotFoundError, OrderkitError, shorten
from orderkit.core.kit.generated_mark import is_generated
from orderkit.core.kit.pack import read_pack
from orderkit.core.names import check_label
from orderkit.core.portal.render import SkeletonFile
from orderkit.core.yaml.documents import Files
from orderkit.flows.kit import generate_kits

_GIT_S = 30


@dataclass(frozen=True, slots=True)
class PackRequest:
    """What to start, and where."""

    folder: Path
    name: str = ""
    """Empty: from the folder's name."""
    title: str = ""
    """Empty: from the name."""
    orderkit: str = "orderkit"
    """The line of requirements.txt by which the pack's CI installs Orderkit."""
    git: bool = True


@dataclass(frozen=True, slots=True)
class PackStarted:
    """A pack that was started."""

    folder: Path
    name: str
    files: tuple[PurePosixPath, ...]
    repository: bool


def start_pack(request: PackRequest) -> PackStarted:
    """
    Create the complete, committed folder, or nothing.

    Raises:
        RefusedError: Something is in the folder already.
        InvalidInputError: The name is no RFC 1123 label.
        NotFoundError: git is missing. OrderkitError: git refuses.
    """
    check_free(request.folder)
    name = request.name or _name_of(request.folder)
    check_label("name", name)
    title = request.title or f"The pack of {name}"
    ours = read_folder(reference_pack())
    values = {
        "name": name,
        "title": title,
        "orderkit": request.orderkit,
        "versions": dict(read_pack(ours).versions),
    }
    files = {**_shared(ours), **render_skeleton("pack", values)}
    write_tree(files, request.folder, finish=_finished(git=request.git))
    paths = tuple(sorted({*files, *read_folder(request.folder)}))
    return PackStarted(request.folder, name, paths, request.git)


def _finished(*, git: bool) -> Callable[[Path], None]:
    """Return what is left to do in the folder: write generated files, commit everything."""

    def finish(folder: Path) -> None:
        generate_kits.apply_generation(folder, generate_kits.plan_generation(folder))
        if git:
            _committed(folder)

    return finish


def _name_of(folder: Path) -> str:
    return re.sub(r"[^a-z0-9]+", "-", folder.absolute().name.lower()).strip("-")[:40]


def _shared(files: Files) -> Mapping[PurePosixPath, SkeletonFile]:
    """Return the reference pack without its kits and what is generated from them."""
    names = set(read_pack(files).kit_names)
    kept = {
        path: data
        for path, data in files.items()
        if names.isdisjoint(path.parts) and not is_generated(data)
    }
    return {path: SkeletonFile(data) for path, data in kept.items()}


def _committed(folder: Path) -> None:
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
