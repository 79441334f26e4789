"""
Match paths against the globs of ``copyWithoutTemplating``: ``* ** ? [abc] {a,b}``.

Dot files match like any others, because Backstage configures its glob library that way. Negated and
extended globs (``!x``, ``+(a|b)``) are refused.
"""

from __future__ import annotations

import functools
import re

from orderkit.core.linear_patterns import LinearPattern, compile_linear
from orderkit.core.portal.render.render_errors import UnsupportedError


@functools.lru_cache(maxsize=256)
def compile_glob(pattern: str) -> LinearPattern:
    """
    Return a pattern for `fullmatch` on relative paths.

    Raises:
        UnsupportedError: The glob is negated, extended or malformed.
    """
    if pattern.startswith("!") or re.search(r"[!+@?*]\(", pattern) or "\\" in pattern:
        raise UnsupportedError(
            f"the glob '{pattern}' is refused", hint="use * ** ? [abc] {a,b} only"
        )
    regex, at, depth = "", 0, 0
    pattern = pattern.removeprefix("./")
    while at < len(pattern):
        piece, step, depth = _piece(pattern, at, depth)
        regex += piece
        at += step
    if depth:
        raise UnsupportedError(f"the glob '{pattern}' has an open brace")
    try:
        return compile_linear(f"(?s){regex}")
    except ValueError as error:
        raise UnsupportedError(f"the glob '{pattern}' is refused: {error}") from error


def _piece(pattern: str, at: int, depth: int) -> tuple[str, int, int]:  # noqa: PLR0911 - one per mark
    char = pattern[at]
    starts = at == 0 or pattern[at - 1] == "/"
    if pattern.startswith("**/", at) and starts:
        return "(?:[^/]+/)*", 3, depth
    if pattern[at:] == "**" and starts:
        return ".*", 2, depth
    if char == "*":
        return "[^/]*", 1, depth
    if char == "?":
        return "[^/]", 1, depth
    if char == "[" and (end := pattern.find("]", at + 2)) > 0:
        inner = pattern[at + 1 : end]
        inner = "^" + inner[1:] if inner[0] in "!^" else inner
        return "[" + inner.replace("[", "\\[") + "]", end - at + 1, depth
    if char == "{":
        return "(?:", 1, depth + 1
    if char == "}" and depth:
        return ")", 1, depth - 1
    if char == "," and depth:
        return "|", 1, depth
    return re.escape(char), 1, depth
