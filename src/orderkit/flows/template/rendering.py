"""
Render a skeleton on disk into a folder, or check it, for ``orderkit render``.

The result is all or nothing: the tree is written into a folder beside the target, which then
takes its place in one step. Skeletons of the installed pack are trusted and rendered in this
process; all others in a child process with limits (``flows.confinement``).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from orderkit.core.errors import InvalidInputError, NotFoundError, OrderkitError, RefusedError
from orderkit.core.portal.render import (
    FileOutcome,
    LimitError,
    RenderError,
    SkeletonFile,
    Tree,
    TreeOptions,
    judge_tree,
    lint_tree,
)
from orderkit.core.portal.render.tree import (
    EXECUTABLE_MODE,
    FILE_BYTES_MAX,
    FILES_MAX,
    LINK_MODE,
    PLAIN_MODE,
    TREE_BYTES_MAX,
)
from orderkit.core.yaml import yaml12
from orderkit.ports.processes import ConfinedRenderer

VALUES_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class FileResult:
    """The outcome of one file: written, skipped, refused, or (when only checked) fits."""

    path: str
    outcome: str
    how: str
    target: str | None = None
    error: OrderkitError | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the entry as the command prints it."""
        fields: dict[str, Any] = {
            "path": self.path,
            "outcome": self.outcome,
            "how": self.how,
            "target": self.target,
        }
        if self.error is None:
            return fields
        problem, line, column = str(self.error), None, None
        if isinstance(self.error, RenderError):
            problem = self.error.problem
            if self.error.position is not None:
                line, column = self.error.position.line, self.error.position.column
        reason = {"problem": problem, "line": line, "column": column, "hint": self.error.hint}
        return {**fields, "error": reason}


@dataclass(frozen=True, slots=True)
class SkeletonReport:
    """The outcome of every file of a skeleton."""

    folder: Path | None
    entries: list[FileResult] = field(default_factory=list)

    def count(self, outcome: str) -> int:
        """Return how many files had this outcome."""
        return sum(entry.outcome == outcome for entry in self.entries)

    @property
    def refused(self) -> list[FileResult]:
        return [entry for entry in self.entries if entry.outcome == "refused"]


# --- reading


def read_values(path: Path) -> dict[str, Any]:
    """
    Read values from a JSON or YAML file.

    Raises:
        NotFoundError: There is no such file.
        InvalidInputError: It is not a map, or cannot be read.
    """
    if not path.is_file():
        raise NotFoundError(f"the file {path} does not exist")
    with path.open("rb") as stream:
        data = stream.read(VALUES_BYTES_MAX + 1)
    if len(data) > VALUES_BYTES_MAX:
        raise InvalidInputError("values", str(path), f"is larger than {VALUES_BYTES_MAX} bytes")
    try:
        values = json.loads(data) if path.suffix == ".json" else yaml12.load(data, name=path.name)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError("values", str(path), f"is no readable JSON: {error}") from error
    if not isinstance(values, dict):
        raise InvalidInputError("values", str(path), "is no map of names to values")
    return values


def read_skeleton(folder: Path) -> dict[PurePosixPath, SkeletonFile]:
    """
    Read every file below a folder; links are read, never followed.

    Raises:
        NotFoundError: There is no such folder, or no file in it.
        LimitError: It has more files or bytes than the limits allow.
        RefusedError: It holds a device, a pipe or a socket.
    """
    if not folder.is_dir():
        raise NotFoundError(f"the folder {folder} does not exist")
    files: dict[PurePosixPath, SkeletonFile] = {}
    total = 0
    for path in _files_below(folder):
        name = PurePosixPath(path.relative_to(folder).as_posix())
        files[name] = _read_file(path, name)
        total += len(files[name].data)
        if len(files) > FILES_MAX or total > TREE_BYTES_MAX:
            raise LimitError(f"more than {FILES_MAX} files or {TREE_BYTES_MAX} bytes in {folder}")
    if not files:
        raise NotFoundError(f"{folder} holds no file")
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
    if info.st_size > FILE_BYTES_MAX:
        raise LimitError(f"{name}: {info.st_size} bytes; at most {FILE_BYTES_MAX}")
    with open(path, "rb", opener=_unfollowed) as stream:
        data = stream.read(FILE_BYTES_MAX + 1)
    return SkeletonFile(data, EXECUTABLE_MODE if info.st_mode & 0o100 else PLAIN_MODE)


def _unfollowed(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


# --- rendering


def check(folder: Path, options: TreeOptions, confined: ConfinedRenderer | None) -> SkeletonReport:
    """
    Compile every file and path of a skeleton, without values.

    Args:
        confined: Checks an untrusted skeleton in a confined child; None: it is trusted.

    Raises:
        NotFoundError: There is no such folder. LimitError: It is too large.
    """
    outcomes = _judged(read_skeleton(folder), None, options, confined)
    return SkeletonReport(None, [_entry(outcome, "fits") for outcome in outcomes])


def render(
    folder: Path,
    values: Mapping[str, Any],
    options: TreeOptions,
    target_folder: Path,
    *,
    confined: ConfinedRenderer | None,
    replace: bool = False,
    keep_going: bool = False,
) -> SkeletonReport:
    """
    Render a skeleton into a folder, all or nothing.

    Args:
        confined: Renders an untrusted skeleton in a confined child; None: it is trusted.
        replace: Replace files that exist in `target_folder`; otherwise they stay unchanged.
        keep_going: Write the files that render even if others are refused.

    Raises:
        OrderkitError: The first file that is refused, unless `keep_going`.
        RefusedError: `target_folder` is not a folder, or a link in it leads outside.
    """
    if target_folder.is_symlink() or (target_folder.exists() and not target_folder.is_dir()):
        raise RefusedError(f"{target_folder} is not a folder", hint="name a folder, or a new name")
    outcomes = _judged(read_skeleton(folder), values, options, confined)
    failed = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
    if failed is not None and not keep_going:
        raise failed
    entries = _write_all(outcomes, target_folder, replace=replace)
    return SkeletonReport(target_folder, entries)


def _judged(
    files: Tree,
    values: Mapping[str, Any] | None,
    options: TreeOptions,
    confined: ConfinedRenderer | None,
) -> list[FileOutcome]:
    """Judge trusted skeletons in this process, all others in a child."""
    if confined is not None:
        return confined(files, values, options)
    return lint_tree(files, options) if values is None else judge_tree(files, values, options)


def _entry(outcome: FileOutcome, word: str) -> FileResult:
    target = None if outcome.target is None else str(outcome.target)
    if outcome.error is not None:
        return FileResult(str(outcome.path), "refused", outcome.how, target, outcome.error)
    skipped = outcome.how.startswith("skipped")
    return FileResult(str(outcome.path), "skipped" if skipped else word, outcome.how, target)


# --- writing


def _write_all(
    outcomes: list[FileOutcome], target_folder: Path, *, replace: bool
) -> list[FileResult]:
    """Write into a folder beside `target_folder`, then put it in its place."""
    parent = target_folder.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target_folder.name[:100]}.", dir=parent))
    fresh = scratch / "new"
    try:
        if target_folder.exists():
            shutil.copytree(target_folder, fresh, symlinks=True)
        else:
            fresh.mkdir()
        entries = [_write_outcome(outcome, fresh, replace=replace) for outcome in outcomes]
        _exchange(fresh, target_folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return entries


def _write_outcome(outcome: FileOutcome, root: Path, *, replace: bool) -> FileResult:
    entry = _entry(outcome, "written")
    if outcome.file is None or outcome.target is None:
        return entry
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in outcome.target.parts[:-1]:
            folder = _stepped(folder, name, outcome.target)
        if not _created(folder, outcome.target, outcome.file, replace=replace):
            return FileResult(entry.path, "skipped", "skipped: it exists", entry.target)
    finally:
        os.close(folder)
    return entry


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
        stream.write(file.data)
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
