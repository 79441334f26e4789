r"""
Regular expressions in schemas: what Go's ``regexp`` accepts and matches.

RE2 has the same syntax and meaning, except ``\C``, which Go refuses.
"""

from __future__ import annotations

import re

from ground.regular_expressions import LinearPattern, compile_linear

__all__ = ["POSIX_CLASSES", "PatternError", "compile_pattern"]

POSIX_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}

_QUOTED = re.compile(r"\\Q.*?(?:\\E|\Z)", re.DOTALL)
_ONE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")


class PatternError(ValueError):
    """The pattern is not valid in RE2."""


def compile_pattern(pattern: str) -> LinearPattern:
    """
    Compile a pattern with RE2's meaning.

    Raises:
        PatternError: The pattern is not valid.
        TypeError: It is not text.
    """
    if _ONE_BYTE.search(_QUOTED.sub("", pattern)):
        raise PatternError(f"{pattern!r} uses \\C, a single byte, which Go does not support")
    try:
        return compile_linear(pattern)
    except ValueError as error:
        raise PatternError(f"{pattern!r} is not a regular expression: {error}") from error
