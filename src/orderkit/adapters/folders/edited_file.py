"""
Read a file to edit and put the new text in its place.

Writing is atomic: a new file of the same mode replaces the old one, so that nobody reads half of
it. A symbolic link stays: its target is replaced. A file that changed between reading and writing
is not touched.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from ground.errors import ConflictError, NotFoundError, OrderkitError, UsageError
from yamlfiles.assignments import EditedText
from yamlfiles.edit import LIMITS


def read_file(path: Path) -> bytes:
    """
    Return a file's bytes, one more than the editor takes at most.

    Raises:
        NotFoundError: It is not there, or may not be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(LIMITS.size_bytes + 1)
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror}", hint="check the path") from error


def write_file(path: Path, edited: EditedText) -> None:
    """
    Put the new text in the file's place at once, with its mode.

    Raises:
        ConflictError: The file changed after it was read. Nothing was written.
        UsageError: It is not a regular file.
        OrderkitError: It cannot be written.
    """
    # a symbolic link stays: its target is replaced
    target = path.resolve()
    file_stat = target.stat()
    if not stat.S_ISREG(file_stat.st_mode):
        raise UsageError(
            f"{path} is not a regular file", hint="edit standard input with FILE '-' instead"
        )
    try:
        _replace(path, target, file_stat, edited)
    except OSError as error:
        raise OrderkitError(f"{path}: {error.strerror}; nothing was written") from error


def _replace(path: Path, target: Path, file_stat: os.stat_result, edited: EditedText) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(edited.after)
            _take_over(handle, file_stat)
            file.flush()
            # on the disk before it takes the place: a crash leaves the old file or the new one
            os.fsync(handle)
        # as late as possible: an edit that comes after this look is lost
        _check_unchanged(path, edited)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _check_unchanged(path: Path, edited: EditedText) -> None:
    if read_file(path) != edited.before:
        raise ConflictError(
            f"{path} changed while it was edited; nothing was written",
            hint="run the same command again",
        )


def _take_over(handle: int, file_stat: os.stat_result) -> None:
    """Give the new file the mode and the owner of the old one; who may not, fails here."""
    if (file_stat.st_uid, file_stat.st_gid) != (os.getuid(), os.getgid()):
        # who may not give it away fails here, before anything is replaced
        os.fchown(handle, file_stat.st_uid, file_stat.st_gid)
    os.fchmod(handle, stat.S_IMODE(file_stat.st_mode))
