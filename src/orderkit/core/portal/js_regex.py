r"""
Translate a JavaScript regular expression to Python, or refuse it.

The form in the browser and the portal's backend check ``pattern`` with JavaScript's flag ``u``.
Accepted are patterns that mean the same in both languages after a translation (``$`` never matches
before a final newline, ``\d`` and ``\w`` are ASCII, ``\s`` is not, ``[^]`` is any character). All
others are refused, including those that are invalid with that flag (``\_``, a lone ``{``), on which
the form would fail. A pattern that two engines read differently would accept values in one place
that are refused in another.

No timeouts: patterns come from reviewed packs, not from users.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

SPACE = r"\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""The characters that ``\\s`` matches, for use inside brackets."""
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
_OUTSIDE = {
    r"\s": f"[{SPACE}]",
    r"\S": f"[^{SPACE}]",
    "$": r"\Z",
    ".": r"[^\n\r\u2028\u2029]",
    "#": r"\#",
}
_LOOKING = ("(?=", "(?!", "(?<=", "(?<!")
_MAY_SKIP = re.compile(r"[|?*]|\{0|\(\?[=!<]")
"""Syntax that may leave a group unmatched. JavaScript treats a back reference to it as empty."""


@functools.lru_cache(maxsize=256)
def compile_pattern(source: str) -> re.Pattern[str]:
    """
    Return the pattern for `re.search`.

    Raises:
        ValueError: Python and JavaScript would read it differently, or it is malformed.
    """
    try:
        return re.compile("".join(_pieces(source)), re.ASCII)
    except (re.error, OverflowError) as error:
        raise ValueError(str(error)) from error


def _pieces(source: str) -> Iterator[str]:
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
            yield text
            continue
        if kind == "group":
            groups.append(piece)
        # With the flag u JavaScript refuses a counted look-around, which Python accepts.
        elif kind == "close" and groups and groups.pop() in _LOOKING and _counted(source, at):
            raise _refused(source, at)
        # "a*+" is possessive in Python and an error in JavaScript.
        elif (kind == "count" and _counted(source, at)) or (
            kind == "back" and _MAY_SKIP.search(source)
        ):
            raise _refused(source, match.start())
        yield _OUTSIDE.get(piece, piece)


def _counted(source: str, at: int) -> bool:
    match = _PIECE.match(source, at)
    return match is not None and match.lastgroup == "count"


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
        if first["set"] or last["set"]:
            raise _refused(source, first.start())
        at = last.end()
        pieces.append(f"{_atom(first, source)}-{_atom(last, source)}")
    if not pieces:
        return (r"(?s:.)" if negated else r"(?!)"), at + 1
    return f"[{'^' if negated else ''}{''.join(pieces)}]", at + 1


def _atom(match: re.Match[str], source: str) -> str:
    text = match[0]
    if text == r"\S":
        raise _refused(source, match.start())
    if text == r"\s":
        return SPACE
    return text if text.startswith("\\") or text.isalnum() else f"\\{text}"


def _refused(source: str, at: int) -> ValueError:
    return ValueError(
        f"'{source[at : at + 4]}' (character {at + 1}) is no pattern in JavaScript, or another one"
    )
