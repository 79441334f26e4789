"""
Files of a tree: paths that stay below its root, globs that match them, and which are binary.

Globs are those of ``copyWithoutTemplating``: ``* ** ? [abc] {a,b}``. The rules are those of globby
11 with fast-glob 3.3, which Backstage uses: dot files match like any others, a folder's path stands
for its contents, a glob without a mark is a path and not a pattern. Whatever these libraries read
as something else than it looks like is refused.

Binary files are told from text as Backstage does (npm isbinaryfile 5.0.7, first 512 bytes). A byte
order mark means text; ``%PDF-``, a NUL or more than ten per cent of suspicious bytes mean binary.
Left out: the final guess at Protocol Buffers, which matters only for files that are not valid
UTF-8, and those are refused as templates anyway.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath

from ground.errors import RefusedError
from ground.regular_expressions import LinearPattern, compile_linear
from softwaretemplates.render.refusals import UnsupportedError

__all__ = ["matching"]

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


_MARKS = re.compile(r"[*?\[]")
_CLASS = re.compile(r"\[(?:[!^]?[A-Za-z0-9_]+|[!^]?[A-Za-z0-9]-[A-Za-z0-9])\]")
_BRACES = re.compile(r"\{([^{}]*)\}")
_NAME_BYTES_MAX = 255
_EXPANDED_MAX = 1000


def matching(globs: Sequence[str], paths: Collection[PurePosixPath]) -> set[PurePosixPath]:
    """
    Return the files that one of the globs matches.

    Args:
        paths: All files of the tree.

    Raises:
        UnsupportedError: A glob is negated, extended, malformed, or means nothing in Backstage.
    """
    folders = {parent for path in paths for parent in path.parents}
    matched: set[PurePosixPath] = set()
    for glob in globs:
        _refuse(glob, next(_problems(glob), ""))
        folder = PurePosixPath(glob)
        patterns = [str(folder / "**")] if folder in folders else [glob]
        for pattern in {glob, *_expanded(glob, patterns)}:
            _refuse(glob, _misuse(pattern, paths))
        for pattern in _expanded(glob, patterns):
            if not _MARKS.search(pattern):
                matched |= {PurePosixPath(pattern)} & set(paths)
            elif not pattern.endswith("/"):
                regex = _compiled(pattern.removeprefix("./"))
                matched |= {path for path in paths if regex.fullmatch(str(path))}
    return matched


def _refuse(glob: str, reason: str) -> None:
    if reason:
        raise UnsupportedError(
            f"the glob '{glob}' is refused: {reason}", hint="use * ** ? [abc] {a,b} only"
        )


def _misuse(pattern: str, paths: Collection[PurePosixPath]) -> str:
    """Say why Backstage fails at a pattern without alternatives, or finds nothing by it."""
    path = PurePosixPath(pattern)
    folders = [path, *path.parents] if pattern.endswith("/") else path.parents
    if file := next((folder for folder in folders if folder in paths), None):
        return f"'{file}' is a file and no folder, so Backstage fails"
    if path in paths and pattern.startswith("./"):
        return f"Backstage finds no file by '{pattern}'; write '{path}'"
    if path.name == "**" and path.parent.name not in {"", "*", "**"} and _MARKS.search(pattern):
        before = _compiled(str(path.parent))
        if file := next((other for other in paths if before.fullmatch(str(other))), None):
            return f"the part before '/**' matches '{file}', which is a file"
    return ""


def _problems(glob: str) -> Iterator[str]:
    if glob.startswith("!"):
        yield "it is negated"
    if "${{" in glob:
        yield "its braces are marks too; write * for the expression in the name"
    if strange := re.search(r"[()|\\\"^]", _CLASS.sub("", glob)):
        yield f"'{strange[0]}' is not a plain character in it"
    segments = glob.split("/")
    if glob.startswith(("/", "../")) or {".", ".."} & set(segments[1:]) or glob == "..":
        yield "Backstage matches paths as they stand in the skeleton, without '/' before, '.', '..'"
    if any("**" in segment and segment != "**" for segment in segments):
        yield "'**' is not a whole part of the path"
    if re.search(r"[\[\]]", _CLASS.sub("", glob)) or "]+" in glob:
        yield "'[' and ']' hold letters, digits, '_' or one range such as a-z, and no '+' follows"
    if re.search(r"\{[^{}]*\.\.", glob) or re.search(r"[{}]", _without_braces(glob)):
        yield "a brace has no alternatives, as in {a,b}"
    if any(len(segment.encode()) > _NAME_BYTES_MAX for segment in segments):
        yield f"a part of it is longer than {_NAME_BYTES_MAX} bytes, so Backstage fails"


def _without_braces(glob: str) -> str:
    """Return what remains when every list of alternatives is taken out."""
    while (inner := _BRACES.search(glob)) and "," in inner[1]:
        glob = glob[: inner.start()] + glob[inner.end() :]
    return glob


def _expanded(glob: str, texts: list[str]) -> list[str]:
    """Return a pattern for each combination of alternatives; repeated slashes are one."""
    texts, patterns = [*texts], set[str]()
    while texts:
        text = texts.pop()
        inner = _BRACES.search(text)
        if inner is None:
            patterns.add(re.sub(r"(?!^)/{2,}", "/", text))
        else:
            texts += [text[: inner.start()] + o + text[inner.end() :] for o in inner[1].split(",")]
        if len(texts) + len(patterns) > _EXPANDED_MAX:
            raise UnsupportedError(f"the glob '{glob}' has more than {_EXPANDED_MAX} alternatives")
    return sorted(patterns - {""})


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> LinearPattern:
    parts = re.split(r"(\*\*/|\*\*$|\*+|\?|\[[^\]]+\])", pattern)
    literals, marks = parts[::2], [*parts[1::2], ""]
    pieces = zip(map(re.escape, literals), map(_mark, marks), strict=True)
    return compile_linear("(?s)" + "".join(itertools.chain.from_iterable(pieces)))


def _mark(mark: str) -> str:
    fixed = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]", "": ""}
    if mark in fixed:
        return fixed[mark]
    inner = mark[1:-1]
    if inner[0] in "!^":
        return f"[^/{inner[1:]}]"
    # A class without a range also matches as it is written: a[1].txt matches itself.
    return mark if "-" in inner else f"(?:{mark}|{re.escape(mark)})"


CHECKED_BYTES = 512
_RESERVE = 3  # so many bytes may follow the last one in its UTF-8 sequence
HEAD_BYTES = CHECKED_BYTES + _RESERVE
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\x00\x00\xfe\xff", b"\xff\xfe\x00\x00", b"\x84\x31\x95\x33")
_UTF16_MARKS = (b"\xfe\xff", b"\xff\xfe")
_ORDINARY = bytes((*range(7, 15), *range(32, 128)))
_LEADS = ((0xC0, 0xDF, 1), (0xE0, 0xEF, 2), (0xF0, 0xF7, 3))


def is_binary(data: bytes) -> bool:
    """Return whether Backstage would copy the file unchanged."""
    head = data[:HEAD_BYTES]
    if not head or head.startswith(_BYTE_ORDER_MARKS):
        return False
    if head.startswith(b"%PDF-"):
        return True
    if head.startswith(_UTF16_MARKS):
        return False
    return _suspicious(head)


def _suspicious(head: bytes) -> bool:
    # most files: one pass in C
    if not head.translate(None, _ORDINARY):
        return False
    checked = min(len(head), CHECKED_BYTES)
    suspicious, at = 0, 0
    while at < checked:
        byte = head[at]
        if byte == 0:
            return True
        if not (7 <= byte <= 14 or 32 <= byte <= 127):  # noqa: PLR2004 - ASCII text
            step, valid = _sequence(head, at)
            at += step
            if not valid:
                suspicious += 1
                if at >= 32 and suspicious * 100 / checked > 10:  # noqa: PLR2004 - isbinaryfile's
                    return True
        at += 1
    return suspicious * 100 / checked > 10  # noqa: PLR2004


def _sequence(head: bytes, at: int) -> tuple[int, bool]:
    """Return how many bytes to skip inside a UTF-8 sequence, and whether it is one."""
    for low, high, size in _LEADS:
        if low <= head[at] <= high and at + size < len(head):
            following = head[at + 1 : at + 1 + size]
            valid = all(0x80 <= byte <= 0xBF for byte in following)  # noqa: PLR2004
            return (size if valid else 1), valid
    return 0, False
