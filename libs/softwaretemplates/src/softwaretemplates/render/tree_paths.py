"""Paths of a tree that stay below its root on every system."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterator
from pathlib import PurePosixPath

from ground.errors import RefusedError

NAME_BYTES_MAX, PATH_BYTES_MAX = 255, 1024
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul"}
    | {f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)}
)


class TakenPaths:
    """The paths in use, as files or folders, by case-folded name."""

    def __init__(self) -> None:
        self._files: dict[str, PurePosixPath] = {}
        self._folders: dict[str, PurePosixPath] = {}

    def claim(self, target: PurePosixPath, origin: PurePosixPath) -> RefusedError | None:
        """Claim a path, or return the error that names the file that has it."""
        key = folded(str(target))
        parents = [key[:at] for at, char in enumerate(key) if char == "/"]
        other = self._files.get(key)
        if other is not None:
            return RefusedError(
                f"{origin}: renders to '{target}', which {other} renders to already",
                hint="give the files names that differ by more than case",
            )
        other = self._folders.get(key) or next(
            (self._files[parent] for parent in parents if parent in self._files), None
        )
        if other is not None:
            return RefusedError(
                f"{origin}: '{target}' and what {other} renders to are file and folder of one path",
                hint="rename one of them",
            )
        self._files[key] = origin
        for parent in parents:
            self._folders.setdefault(parent, origin)
        return None


@functools.lru_cache(maxsize=4096)
def folded(path: str) -> str:
    """Return the path as systems see it that ignore case or Unicode normalization."""
    return path.casefold() if path.isascii() else unicodedata.normalize("NFC", path).casefold()


def check_path(path: str, *, origin: str) -> PurePosixPath:
    """
    Return a relative path that stays below its root on every system.

    Raises:
        RefusedError: It is absolute, climbs, or has a part that some system cannot store.
    """
    reason, relative_path = _checked(path)
    if reason:
        path_text = path if len(path) <= 80 else f"{path[:79]}…"  # noqa: PLR2004 - a line of a terminal
        raise RefusedError(
            f"{origin}: the path {path_text!r} {reason}",
            hint="change the value that is in the name",
        )
    return relative_path


@functools.lru_cache(maxsize=4096)
def _checked(path: str) -> tuple[str | None, PurePosixPath]:
    return next(_path_problems(path), None), PurePosixPath(path)


def _path_problems(path: str) -> Iterator[str]:
    if path.startswith("/") or not path:
        yield "is absolute or empty"
    if len(path.encode("utf-8", "replace")) > PATH_BYTES_MAX:
        yield f"is longer than {PATH_BYTES_MAX} bytes"
    for segment in path.split("/"):
        if segment == "..":
            yield "leaves its folder"
        if segment.casefold() in {".git", "git~1"}:
            yield "would write into git's own folder"
        if "\\" in segment or any(unicodedata.category(c) in {"Cc", "Cf", "Cs"} for c in segment):
            yield "has a control, format or backslash character"
        if len(segment.encode("utf-8", "replace")) > NAME_BYTES_MAX:
            yield f"has a name longer than {NAME_BYTES_MAX} bytes"
        if segment.partition(".")[0].casefold() in _DEVICES:
            yield "has the name of a device"
