"""
Skeletons and their values on this machine, and the folders into which they are rendered.

The result is all or nothing: the tree is written into a folder beside the target, which then takes
its place in one step.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from orderkit.adapters.folders.template_folder import DiskContent
from softwaretemplates.render import FileOutcome, SkeletonFile
from softwaretemplates.render.tree import EXECUTABLE_MODE, LINK_MODE, PLAIN_MODE
from yamlfiles import yaml12

VALUES_BYTES_MAX = 1 << 20


# --- reading


def read_values(path: Path) -> dict[str, Any]:
    """
    Read values from a JSON or YAML file.

    Raises:
        NotFoundError: There is no such file.
        InvalidInputError: It is not a map, or cannot be read.
    """
    if not path.is_file():
        raise NotFoundError(
            f"the file {path} does not exist", hint="--values FILE, a file that exists"
        )
    with path.open("rb") as stream:
        data = stream.read(VALUES_BYTES_MAX + 1)
    if len(data) > VALUES_BYTES_MAX:
        raise InvalidInputError("values", str(path), f"is larger than {VALUES_BYTES_MAX} bytes")
    try:
        values = json.loads(data) if path.suffix == ".json" else yaml12.load(data, name=path.name)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError("values", str(path), f"is not valid JSON: {error}") from error
    if not isinstance(values, dict):
        raise InvalidInputError(
            "values",
            str(path),
            "is not a map of names to values",
            hint='write a map, for example {"name": "cart"}',
        )
    return values


def read_skeleton(folder: Path) -> dict[PurePosixPath, SkeletonFile]:
    """
    Return every file below a folder, read when needed; links are read, never followed.

    Raises:
        NotFoundError: There is no such folder, or no file in it.
        RefusedError: It holds a device, a pipe or a socket.
    """
    if not folder.is_dir():
        raise NotFoundError(f"the folder {folder} does not exist", hint="name a folder that exists")
    files: dict[PurePosixPath, SkeletonFile] = {}
    for path in _files_below(folder):
        name = PurePosixPath(path.relative_to(folder).as_posix())
        files[name] = _read_file(path, name)
    if not files:
        raise NotFoundError(f"{folder} holds no file", hint="name a folder with template files")
    return files


def _files_below(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        sorted_entries = sorted(entries, key=lambda entry: entry.name)
    for entry in sorted_entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _files_below(Path(entry.path))
        else:
            yield Path(entry.path)


def _read_file(path: Path, name: PurePosixPath) -> SkeletonFile:
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode):
        return SkeletonFile(b"", LINK_MODE, os.readlink(path))  # noqa: PTH115 - Path tidies the target up
    if not stat.S_ISREG(info.st_mode):
        raise RefusedError(f"{name}: is neither file, folder nor link")
    mode = EXECUTABLE_MODE if info.st_mode & 0o100 else PLAIN_MODE
    return SkeletonFile(DiskContent(path, info.st_size), mode)


# --- writing


def check_target(target_folder: Path) -> None:
    """
    Check that a skeleton can be rendered there.

    Raises:
        RefusedError: Something other than a folder is there.
    """
    if target_folder.is_symlink() or (target_folder.exists() and not target_folder.is_dir()):
        raise RefusedError(f"{target_folder} is not a folder", hint="name a folder, or a new name")


def write_rendered(
    outcomes: Sequence[FileOutcome], target_folder: Path, *, replace: bool
) -> set[PurePosixPath]:
    """
    Write what was rendered into a folder beside `target_folder`, then put it in its place.

    Args:
        replace: Replace files that exist in `target_folder`; otherwise they stay unchanged.

    Returns:
        The targets that exist and stay unchanged.

    Raises:
        RefusedError: A folder or a link is in a file's way.
    """
    parent = target_folder.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target_folder.name[:100]}.", dir=parent))
    fresh = scratch / "new"
    try:
        if target_folder.exists():
            shutil.copytree(target_folder, fresh, symlinks=True)
        else:
            fresh.mkdir()
        kept = {
            outcome.target
            for outcome in outcomes
            if outcome.file is not None
            and outcome.target is not None
            and not _write(fresh, outcome.target, outcome.file, replace=replace)
        }
        _exchange(fresh, target_folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return kept


def _write(root: Path, target: PurePosixPath, file: SkeletonFile, *, replace: bool) -> bool:
    """Write one file below a folder; say whether it was written."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in target.parts[:-1]:
            folder = _stepped(folder, name, target)
        return _created(folder, target, file, replace=replace)
    finally:
        os.close(folder)


def _stepped(folder: int, name: str, target: PurePosixPath) -> int:
    """Open a subfolder, created if needed, without following links."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    try:
        subfolder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        raise RefusedError(
            f"{target}: '{name}' is a link or a file in the target folder",
            hint="remove it, or render into another folder",
        ) from error
    os.close(folder)
    return subfolder


def _created(folder: int, target: PurePosixPath, file: SkeletonFile, *, replace: bool) -> bool:
    """Write one file or link; say whether it was written."""
    name = target.name
    try:
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        info = None
    if info is not None:
        if not replace:
            return False
        if stat.S_ISDIR(info.st_mode):
            raise RefusedError(f"{target}: is a folder in the target folder")
        os.unlink(name, dir_fd=folder)
    if file.symlink is not None:
        os.symlink(file.symlink, name, dir_fd=folder)
        return True
    mode = 0o755 if file.mode == EXECUTABLE_MODE else 0o644
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(name, flags, mode, dir_fd=folder), "wb") as stream:
        stream.writelines(file.chunks())
    return True


_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def _exchange(fresh: Path, target_folder: Path) -> None:
    """Swap `fresh` and `target_folder` in one step, so the old tree ends up at `fresh`."""
    if not target_folder.exists():
        fresh.rename(target_folder)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    swap = getattr(libc, "renameat2", None)
    names = (os.fsencode(fresh), os.fsencode(target_folder.absolute()))
    swapped = swap is not None and (
        swap(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0
    )
    if (
        not swapped
    ):  # this system has no swap call: two renames, the old tree is kept until the second
        old = fresh.with_name("old")
        target_folder.rename(old)
        fresh.rename(target_folder)
