"""
Match regular expressions in time linear in the text: Google's RE2.

Kubernetes and CEL read patterns with Go's ``regexp``, which has RE2's syntax and meaning. Patterns
of forms are translated to it (``js_regex``), because a backtracking engine needs exponential time
for some patterns. Called for every pattern that meets a value from outside.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

__all__ = ["LinearPattern", "compile_linear", "program_size"]


class LinearPattern:
    """A compiled pattern. Half a surrogate pair in a text counts as U+FFFD, as in Go."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    @property
    def groups(self) -> int:
        """How many groups the pattern has."""
        return int(self._compiled.groups)

    def search(self, text: str) -> Any:
        """Return the leftmost match (like `re.Match`), or None."""
        return self._compiled.search(whole_characters(text))

    def fullmatch(self, text: str) -> Any:
        """Return a match of the whole text, or None."""
        return self._compiled.fullmatch(whole_characters(text))

    def finditer(self, text: str) -> Iterator[Any]:
        """Yield the matches that do not overlap, from the left."""
        matches: Iterator[Any] = self._compiled.finditer(whole_characters(text))
        return matches

    def removed_from(self, text: str) -> str:
        """Return the text without what matches."""
        return str(self._compiled.sub("", whole_characters(text)))


@functools.lru_cache(maxsize=512)
def compile_linear(pattern: str) -> LinearPattern:
    """
    Compile a pattern in RE2's syntax.

    Raises:
        ValueError: RE2 refuses it.
    """
    return LinearPattern(_compiled(pattern))


@functools.lru_cache(maxsize=4096)
def program_size(pattern: str) -> float:
    """Return how many steps RE2 makes of a pattern; infinite if it refuses the pattern."""
    try:
        return int(_compiled(pattern).programsize)
    except ValueError:
        return math.inf


def _compiled(pattern: str) -> Any:
    import re2  # lazy: heavy

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(text) from error


def whole_characters(text: str) -> str:
    """Replace what is half a surrogate pair, which has no UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
