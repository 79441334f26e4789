"""
Folders of templates on disk: read in pieces, and written or rendered as a whole.

`read_values` reads the values for a skeleton. `DiskFolder` reads a template's folder on demand and
in pieces, `read_skeleton` every file of a skeleton when it is needed. Neither follows a symbolic
link: links are handed on as links, which renderers refuse. Modes are git's: a file its owner may
execute is 100755.

Writing is all or nothing: `write_tree` and `write_rendered` build the folder beside its place,
which it then takes in one step.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from softwaretemplates.render import FileOutcome, SkeletonFile
from softwaretemplates.render.tree import EXECUTABLE_MODE, LINK_MODE, PLAIN_MODE
from softwaretemplates.size_limit import MIB
from yamlfiles import yaml12

_NOT_TEMPLATES = {".git"}
_PIECE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class DiskContent:
    """The content of a file on this machine, which is read when it is needed."""

    path: Path
    size: int

    def chunks(self) -> Iterator[bytes]:
        """Yield the content in pieces; a link that took the file's place is not followed."""
        with open(self.path, "rb", opener=_unfollowed) as stream:
            while piece := stream.read(_PIECE_BYTES):
                yield piece


def _unfollowed(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


class DiskFolder:
    """The folder of a template.yaml on this machine, in a checkout of its repository or in none."""

    def __init__(self, root: Path, *, trusted: bool, checkout: Path | None = None) -> None:
        self._root, self.trusted, self._checkout = root, trusted, checkout

    def repository(self) -> tuple[DiskFolder, PurePosixPath] | None:
        """
        Return the checkout as a folder, and this folder's path in it.

        Raises:
            InvalidInputError: The folder is not in the checkout.
        """
        if self._checkout is None:
            return None
        checkout, root = self._checkout.resolve(), self._root.resolve()
        if not root.is_relative_to(checkout):
            raise InvalidInputError(
                "--repository",
                str(self._checkout),
                f"does not contain {self._root}",
                hint="--repository DIR, a folder above the template",
            )
        return DiskFolder(checkout, trusted=self.trusted), PurePosixPath(root.relative_to(checkout))

    def tree(self, folder: PurePosixPath) -> Mapping[PurePosixPath, SkeletonFile]:
        """
        Return every file below a folder by its path relative to it; empty if none.

        Raises:
            RefusedError: The folder is a link, or a file is not a plain file.
        """
        start = self._inside(folder)
        files: dict[PurePosixPath, SkeletonFile] = {}
        for path in _files(start) if start.is_dir() else ():
            files[PurePosixPath(path.relative_to(start))] = self._file(path)
        return files

    def read(self, path: PurePosixPath) -> SkeletonFile | None:
        """
        Return one file, None if it is not there.

        Raises:
            RefusedError: It is not a plain file.
        """
        file = self._inside(path)
        return self._file(file) if file.is_symlink() or file.is_file() else None

    def _inside(self, path: PurePosixPath) -> Path:
        """Return a place below the root that is reached without any link."""
        target = self._root
        if any(name.casefold() in _NOT_TEMPLATES for name in path.parts):
            raise RefusedError(f"{path}: is in git's own folder")
        for name in path.parts:
            if target.is_symlink() and target != self._root:
                raise RefusedError(f"{path}: '{target.name}' is a symbolic link")
            target /= name
        if target.is_symlink() and target.is_dir():
            raise RefusedError(f"{path}: is a symbolic link", hint="put a folder there")
        return target

    def _file(self, path: Path) -> SkeletonFile:
        name = path.relative_to(self._root)
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return SkeletonFile(b"", symlink=str(path.readlink()))
        if not stat.S_ISREG(status.st_mode):
            raise RefusedError(f"{name}: is not a plain file")
        mode = EXECUTABLE_MODE if status.st_mode & stat.S_IXUSR else PLAIN_MODE
        return SkeletonFile(DiskContent(path, status.st_size), mode)


def _files(start: Path) -> Iterator[Path]:
    """Yield files and links below a folder, sorted; git's own folder is none of them."""
    for folder, folders, files in os.walk(start):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = sorted(set(folders) - set(links) - _NOT_TEMPLATES)
        for name in sorted([*files, *links]):
            yield Path(folder, name)


def template_path(text: str) -> Path | None:
    """
    Return the template.yaml that a path means, None if nothing is there.

    Raises:
        NotFoundError: It is a folder without a template.yaml.
    """
    path = Path(text)
    if path.is_dir():
        if not (path / "template.yaml").is_file():
            raise NotFoundError(
                f"{text}: the folder has no template.yaml", hint="orderkit run FOLDER/template.yaml"
            )
        return path / "template.yaml"
    return path if path.is_file() else None


def read_limited(path: Path, *, field: str) -> bytes:
    """
    Read a small file.

    Raises:
        NotFoundError: It cannot be read. InvalidInputError: it is larger than 1 MB.
    """
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= MIB else b""
    except OSError as error:
        message = f"{field}: {path} cannot be read ({error.strerror})"
        raise NotFoundError(message, hint="check the path") from error
    if size > MIB:
        raise InvalidInputError(field, str(path), f"is larger than {MIB} bytes")
    return data


def check_free(folder: Path) -> None:
    """
    Check that a tree can be written there.

    Raises:
        RefusedError: Something is there already, or there is no folder above it.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise RefusedError(f"{folder}: is not a folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise RefusedError(f"{folder}: is not empty", hint="name a new or an empty folder")
    if not folder.absolute().parent.is_dir():
        raise RefusedError(
            f"{folder}: the folder above it does not exist",
            hint="create that folder first: mkdir -p",
        )


def write_tree(
    files: Mapping[PurePosixPath, SkeletonFile],
    folder: Path,
    *,
    finish: Callable[[Path], None] = lambda _: None,
) -> None:
    """
    Make `folder` hold exactly these files, with their modes. All of them or nothing.

    Args:
        finish: Called with the folder before it gets its name; if it raises, nothing is left.

    Raises:
        RefusedError: Something is there already.
    """
    check_free(folder)
    target_folder = folder.absolute()
    # beside its place, because a rename is one step only within a file system
    half = Path(tempfile.mkdtemp(prefix=f".{target_folder.name}.", dir=target_folder.parent))
    try:
        for path, file in files.items():
            target = half / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as stream:
                stream.writelines(file.chunks())
            target.chmod(0o755 if file.mode == EXECUTABLE_MODE else 0o644)
        # mkdtemp makes a folder that is its owner's only
        half.chmod(0o755)
        finish(half)
        half.rename(target_folder)
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise


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
    # O_NOFOLLOW: a link there could lead the files out of the target folder
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
    # a link that took the place since the look above is not followed
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(name, flags, mode, dir_fd=folder), "wb") as stream:
        stream.writelines(file.chunks())
    return True


_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
"""Of linux/fcntl.h and linux/fs.h."""


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
