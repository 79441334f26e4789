"""
Ensure one forge per folder, and remove the locks that a dead one left.

The forge holds an advisory lock on ``forge.lock`` while it lives; the git processes it starts
inherit it. So the holder of the lock knows that no other process writes here, and may remove the
files that killed writers left: git's ``*.lock`` files, which would block every later writer, and
half-written objects, which only take space.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from ground.errors import OrderkitError

log = logging.getLogger(__name__)

WAIT_S = 5.0
"""How long git processes of a killed forge may take to end."""
_PAUSE_S = 0.05


class FolderInUseError(OrderkitError):
    """Another forge process works in this folder."""


class FolderLock:
    """An advisory lock on a folder, held until `release` and by the processes started."""

    def __init__(self, folder: Path) -> None:
        self.fd = os.open(folder / "forge.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + WAIT_S
        while not _try_lock(self.fd):
            if time.monotonic() > deadline:
                os.close(self.fd)
                raise FolderInUseError(
                    f"another forge is running in {folder}",
                    hint="stop the other `orderkit up`, or choose another state folder",
                )
            time.sleep(_PAUSE_S)

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def remove_leftovers(repository: Path) -> list[Path]:
    """
    Remove what killed writers left in a bare repository; return what was removed.

    Call only while holding the `FolderLock`: then every lock file's owner is dead.
    """
    removed = list(_leftovers(repository))
    for path in removed:
        log.warning("removing left-over of a dead writer: %s", path)
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return removed


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _leftovers(repository: Path) -> Iterator[Path]:
    yield from repository.glob("*.lock")
    yield from (repository / "refs").rglob("*.lock")
    objects = repository / "objects"
    yield from objects.glob("*.lock")
    yield from objects.glob("tmp_object_git2_*")
    yield from objects.glob("??/tmp_object_git2_*")
    yield from objects.glob("??/tmp_obj_*")
    yield from objects.glob("pack/tmp_*")
    yield from objects.glob("tmp_objdir-incoming-*")
    yield from objects.glob("incoming-*")
