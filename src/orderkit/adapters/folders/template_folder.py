"""
A template's folder on disk, read on demand and in pieces, and trees written to disk.

Reading never follows a symbolic link: links are handed on as links, which renderers refuse. Modes
are git's: a file its owner may execute is 100755. Writing makes a whole folder or none: it is built
beside its place and renamed.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from softwaretemplates.render import SkeletonFile
from softwaretemplates.render.tree import EXECUTABLE_MODE, PLAIN_MODE
from softwaretemplates.size_limit import MIB

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
    half = Path(tempfile.mkdtemp(prefix=f".{target_folder.name}.", dir=target_folder.parent))
    try:
        for path, file in files.items():
            target = half / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as stream:
                stream.writelines(file.chunks())
            target.chmod(0o755 if file.mode == EXECUTABLE_MODE else 0o644)
        half.chmod(0o755)
        finish(half)
        half.rename(target_folder)
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise
