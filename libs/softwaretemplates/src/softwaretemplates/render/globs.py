"""
Match paths against the globs of ``copyWithoutTemplating``: ``* ** ? [abc] {a,b}``.

The rules are those of globby 11 with fast-glob 3.3, which Backstage uses: dot files match like any
others, a folder's path stands for its contents, a glob without a mark is a path and not a pattern.
Whatever these libraries read as something else than it looks like is refused.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath

from ground.linear_patterns import LinearPattern, compile_linear
from softwaretemplates.render.render_errors import UnsupportedError

__all__ = ["matching"]

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
