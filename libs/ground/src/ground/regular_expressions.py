r"""
Match regular expressions of others: RE2 in linear time, and JavaScript's by translation.

Kubernetes and CEL read patterns with Go's ``regexp``, which has RE2's syntax and meaning. A
backtracking engine needs exponential time for some patterns, so `compile_linear` is called for
every pattern that meets a value from outside.

The form in the browser and the portal's backend check ``pattern`` with JavaScript's flag ``u``.
Accepted are patterns that mean the same after a translation (``$`` never matches before a final
newline, ``\d`` and ``\w`` are ASCII, ``\s`` is not, ``[^]`` is any character). All others are
refused, including those that are invalid with that flag (``\_``, a lone ``{``), on which the form
would fail. A pattern that two engines read differently would accept values in one place that are
refused in another. What RE2 does not support (look-around, back references, counts beyond 1,000) is
matched by backtracking with a time limit.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from ground.errors import InvalidInputError

__all__ = ["SPACE", "LinearPattern", "compile_linear", "compile_pattern", "program_size"]


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
    options.log_errors = False  # RE2 would write refused patterns to stderr
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(text) from error


def whole_characters(text: str) -> str:
    """Replace what is half a surrogate pair, which has no UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


MATCH_S = 0.2
"""Time limit of one match by backtracking. RE2 needs none."""
SPACE = "\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""The characters that ``\\s`` matches, for use inside brackets."""
# no surrogates: with the flag u two of them are one character
_CHARACTER = r"[tnrfv]|0(?![0-9])|x[0-9A-Fa-f]{2}|u(?![dD][89A-Fa-f])[0-9A-Fa-f]{4}"
_SYNTAX = r"[\^$\\.*+?()\[\]{}|/]"
_PIECE = re.compile(
    rf"""
    (?P<class>\[\^?)
    | (?P<group>\((?:\?(?::|=|!|<=|<!))?(?!\?))
    | (?P<close>\))
    | (?P<count>(?:[*+?]|\{{[0-9]+(?:,[0-9]*)?\}})\??)
    | (?P<back>\\[1-9][0-9]*)
    | (?P<escape>\\(?:[dDwWsSb]|{_CHARACTER}|{_SYNTAX}))
    | (?P<plain>[|^$.]|[^\\\]{{}}()])
    """,
    re.VERBOSE | re.DOTALL,
)
_ATOM = re.compile(
    rf"(?P<set>\\[dDwWsS])|(?P<char>\\(?:[b-]|{_CHARACTER}|{_SYNTAX})|[^\\\]])", re.DOTALL
)
END = r"\Z"
_OUTSIDE = {
    r"\s": f"[{SPACE}]",
    r"\S": f"[^{SPACE}]",
    "$": END,
    ".": "[^\n\r\u2028\u2029]",
    "#": r"\#",
}
_NOTHING, _ANYTHING = "[^\0-\U0010ffff]", "(?s:.)"
_CODE = re.compile(r"\\(?:0|[xu](?P<digits>[0-9A-Fa-f]+))")
_ASSERTIONS = frozenset({"^", "$", r"\b"})
LOOKING = ("(?=", "(?!", "(?<=", "(?<!")
_MAY_SKIP = re.compile(r"[|?*]|\{0|\(\?[=!<]")
"""Syntax that may leave a group unmatched. JavaScript treats a back reference to it as empty."""


class Searchable(Protocol):
    """A compiled pattern."""

    def search(self, text: str) -> Any:
        """Return a match, or None."""


class _TimedPattern:
    """A pattern matched by backtracking, other threads running meanwhile, with a time limit."""

    def __init__(self, source: str, translated: str) -> None:
        import regex  # lazy: heavy

        self._source, self._compiled = source, regex.compile(translated, regex.ASCII)

    def search(self, text: str) -> Any:
        """
        Return a match, or None.

        Raises:
            InvalidInputError: The time limit ended the search.
        """
        try:
            # concurrent: other threads go on meanwhile
            return self._compiled.search(text, timeout=MATCH_S, concurrent=True)
        except TimeoutError as error:
            raise InvalidInputError(
                "pattern",
                self._source,
                f"needs more than {MATCH_S:g} s for '{text[:40]}'",
                hint="give a shorter value; 'orderkit kit check' shows how to correct the pattern",
            ) from error


@functools.lru_cache(maxsize=256)
def compile_pattern(source: str) -> Searchable:
    """
    Compile a pattern.

    Raises:
        ValueError: JavaScript would read it differently, or it is malformed.
    """
    translated = to_python(source)
    try:
        return compile_linear("".join(_to_re2(token.text) for token in tokens(source)))
    except ValueError:
        return _TimedPattern(source, translated)  # RE2 has no look-around and no back references


def to_python(source: str) -> str:
    """
    Translate a pattern to one for `re.search` with `re.ASCII`.

    Raises:
        ValueError: JavaScript would read it differently, or it is malformed.
    """
    translated = "".join(token.text for token in tokens(source))
    try:
        re.compile(translated, re.ASCII)
    except (re.error, OverflowError) as error:  # the latter: a count is too large
        raise ValueError(str(error)) from error
    return translated


def _to_re2(text: str) -> str:
    return r"\z" if text == END else text


class TokenKind(StrEnum):
    """What a part of a pattern is; most values are names of groups of the token pattern."""

    ATOM = "atom"
    """Matches one character."""
    ASSERTION = "assertion"
    OR = "or"
    GROUP = "group"
    CLOSE = "close"
    COUNT = "count"
    BACK = "back"


@dataclass(frozen=True, slots=True)
class Token:
    """A part of a pattern, in the syntax of Python's ``re``."""

    kind: TokenKind
    text: str


def tokens(source: str) -> Iterator[Token]:
    """
    Yield the parts of a pattern, from the left.

    Raises:
        ValueError: JavaScript would read a part differently.
    """
    at = 0
    groups: list[str] = []
    while at < len(source):
        match = _PIECE.match(source, at)
        if match is None:
            raise _refused(source, at)
        piece, kind = match[0], match.lastgroup
        at = match.end()
        if kind == "class":
            text, at = _class(source, at, negated=piece == "[^")
            yield Token(TokenKind.ATOM, text)
            continue
        if kind == "group":
            groups.append(piece)
        # With the flag u JavaScript refuses a counted look-around, which Python accepts.
        elif kind == "close" and groups and groups.pop() in LOOKING and _counted(source, at):
            raise _refused(source, at)
        # "a*+" is possessive in Python and an error in JavaScript.
        elif (kind == "count" and _counted(source, at)) or (
            kind == "back" and _MAY_SKIP.search(source)
        ):
            raise _refused(source, match.start())
        yield Token(_kind_of(piece, kind), _OUTSIDE.get(piece) or _character(piece))


def _kind_of(piece: str, name: str | None) -> TokenKind:
    if name in {"group", "close", "count", "back"}:
        return TokenKind(name)
    if piece == "|":
        return TokenKind.OR
    return TokenKind.ASSERTION if piece in _ASSERTIONS else TokenKind.ATOM


def _counted(source: str, at: int) -> bool:
    match = _PIECE.match(source, at)
    return match is not None and match.lastgroup == "count"


def _character(piece: str) -> str:
    """Write out a character that is given by its number: RE2 and Python number it differently."""
    match = _CODE.fullmatch(piece)
    return re.escape(chr(int(match["digits"] or "0", 16))) if match else piece


def _class(source: str, at: int, *, negated: bool) -> tuple[str, int]:
    """Return the content of brackets in Python's syntax, and the offset after it."""
    pieces: list[str] = []
    while not source.startswith("]", at):
        first = _ATOM.match(source, at)
        if first is None:
            raise _refused(source, at)
        at = first.end()
        last = _ATOM.match(source, at + 1) if source.startswith("-", at) else None
        if last is None:
            pieces.append(_atom(first, source))
            continue
        # with the flag u JavaScript refuses a class as the end of a range
        if first["set"] or last["set"]:
            raise _refused(source, first.start())
        at = last.end()
        pieces.append(f"{_atom(first, source)}-{_atom(last, source)}")
    if not pieces:
        return (_ANYTHING if negated else _NOTHING), at + 1
    return f"[{'^' if negated else ''}{''.join(pieces)}]", at + 1


def _atom(match: re.Match[str], source: str) -> str:
    text = match[0]
    if text == r"\S":
        raise _refused(source, match.start())
    if text == r"\s":
        return SPACE
    if text == r"\b":
        return "\b"
    if text.startswith("\\"):
        return _character(text)
    return f"\\{text}" if text.isascii() and not text.isalnum() else text


def _refused(source: str, at: int) -> ValueError:
    return ValueError(
        f"'{source[at : at + 4]}' (character {at + 1}) is not a JavaScript pattern, or another one"
    )
