r"""
Regular expressions in schemas: RE2 syntax, matched by Python's ``re`` with RE2's meaning.

A pattern that Python would read differently is translated (``$`` is the end of the text, ``\z``,
POSIX classes, ASCII-only ``\d \s \w``) or refused. Refused because RE2 refuses it: look-around,
back references, atomic groups, possessive quantifiers. Refused although RE2 accepts it: Unicode
classes (``\p``), ``\Q…\E``, ``\C``, flags in the middle, groups named with ``(?<``.
"""

from __future__ import annotations

import functools
import re
import sys
import warnings
from typing import NoReturn

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
REPEAT_MAX = 1000
"""RE2's limit of a counted repetition."""

_FLAGS = re.compile(r"\(\?([ims]+)\)")
_ESCAPE = re.compile(r"\\(?:x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|[0-7]{3}|[^0-9x])", re.DOTALL)
_POSIX = re.compile(r"\[:([a-z]+):\]")
_GROUP = re.compile(r"\((?:\?(?:P<[A-Za-z_]\w*>|[ims]*:)|(?!\?))")
_REPEAT = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}|[*+?]")
_KNOWN_LETTERS = frozenset("aftnrvdDsSwWbBAz")
_SPACE = r"\t\n\f\r "


class PatternError(ValueError):
    """The pattern is not valid in RE2, or Orderkit cannot read it with RE2's meaning."""


@functools.lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """
    Return a Python expression that matches what RE2 matches.

    Raises:
        PatternError: The pattern is not valid, or has no equivalent in Python.
    """
    flags = re.ASCII
    lead = _FLAGS.match(pattern)
    for letter in lead.group(1) if lead else "":
        flags |= {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}[letter]
    translated = _Translator(pattern, multiline=bool(flags & re.MULTILINE)).translate(
        lead.end() if lead else 0
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Python warns where a set is ambiguous
            return re.compile(translated, flags)
    except (re.error, OverflowError, Warning) as error:
        raise PatternError(f"{pattern!r} is no regular expression: {error}") from error


class _Translator:
    """One pass over a pattern, token by token."""

    def __init__(self, pattern: str, *, multiline: bool) -> None:
        self._pattern, self._multiline = pattern, multiline
        self._at = 0

    def translate(self, start: int) -> str:
        self._at = start
        pieces = []
        while self._at < len(self._pattern):
            pieces.append(self._atom() + self._repetition())
        return "".join(pieces)

    def _atom(self) -> str:
        char = self._pattern[self._at]
        if char == "\\":
            return self._escape(in_set=False)
        if char == "[":
            return self._set()
        if char == "(":
            return self._take(_GROUP, "uses look-around, inner flags or an unknown group")
        if _REPEAT.match(self._pattern, self._at):
            self._refuse("repeats nothing")
        self._at += 1
        if char == "{":
            return r"\{"  # RE2 reads "{,3}" as text, Python as a repetition
        return r"\Z" if char == "$" and not self._multiline else char

    def _repetition(self) -> str:
        match = _REPEAT.match(self._pattern, self._at)
        if not match:
            return ""
        if any(int(number) > REPEAT_MAX for number in re.findall("[0-9]+", match.group())):
            self._refuse(f"repeats more than {REPEAT_MAX} times")
        self._at = match.end()
        lazy = "?" if self._pattern.startswith("?", self._at) else ""
        self._at += len(lazy)
        # RE2 refuses "a**"; Python would read "a*+" as possessive.
        if _REPEAT.match(self._pattern, self._at):
            self._refuse("repeats a repetition")
        return match.group() + lazy

    def _set(self) -> str:
        pieces = ["[^" if self._pattern.startswith("[^", self._at) else "["]
        self._at += len(pieces[0])
        while not self._pattern.startswith("]", self._at) or len(pieces) == 1:
            if self._at >= len(self._pattern):
                self._refuse("does not close a bracket")
            pieces.append(self._set_item())
        self._at += 1
        return "".join(pieces) + "]"

    def _set_item(self) -> str:
        char = self._pattern[self._at]
        if char == "\\":
            return self._escape(in_set=True)
        if _POSIX.match(self._pattern, self._at):
            return self._posix()
        self._at += 1
        # Python warns about these in sets, because it reserves them for set operations.
        return "\\" + char if char in "[]&~|" else char

    def _escape(self, *, in_set: bool) -> str:
        text = self._take(_ESCAPE, "has an escape that RE2 does not know")
        letter = text[1]
        if letter in "x01234567":
            digits, base = (text[2:].strip("{}"), 16) if letter == "x" else (text[1:], 8)
            return self._character(int(digits, base))
        if letter.isalpha() and (letter not in _KNOWN_LETTERS or (in_set and letter in "bBAzS")):
            self._refuse(f"uses {text}")
        if letter in "sS":
            return _SPACE if in_set else f"[{'^' if letter == 'S' else ''}{_SPACE}]"
        return r"\Z" if letter == "z" else text

    def _character(self, code: int) -> str:
        if code > sys.maxunicode:
            self._refuse(f"names a character that does not exist ({code:x})")
        return re.escape(chr(code))

    def _posix(self) -> str:
        text = self._take(_POSIX, "")
        if text[2:-2] not in POSIX_CLASSES:
            self._refuse(f"uses the class {text}")
        return POSIX_CLASSES[text[2:-2]]

    def _take(self, token: re.Pattern[str], otherwise: str) -> str:
        match = token.match(self._pattern, self._at)
        if not match:
            self._refuse(otherwise)
        self._at = match.end()
        return match.group()

    def _refuse(self, why: str) -> NoReturn:
        raise PatternError(f"{self._pattern!r} {why}; Orderkit cannot evaluate it as RE2 does")
