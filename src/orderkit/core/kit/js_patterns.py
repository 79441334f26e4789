r"""
Translate a schema's pattern from RE2, which the API server reads, to JavaScript for the form.

Constructs that differ but have an equivalent are rewritten (``\s``, ``.``, POSIX classes, ``\z``,
escapes unknown to JavaScript). Other differences are refused, because the form would accept values
that the server refuses, or the reverse.

Called by ``core.generate.form_fields``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from orderkit.core.portal import js_regex
from orderkit.core.schema.structural.re2_patterns import (
    POSIX_CLASSES,
    PatternError,
    compile_pattern,
)

_SPACE = r"\t\n\f\r "
_COMMON = r"\\x\{(?P<code>[0-9A-Fa-f]+)\}|\\(?P<octal>[0-7]{3})|\\(?P<escape>.)"
_OUTSIDE = re.compile(
    rf"{_COMMON}|(?P<group>\(\?P<\w+>)|(?P<open>\[\^?\]?)|(?P<plain>.)", re.DOTALL
)
_INSIDE = re.compile(rf"{_COMMON}|\[:(?P<posix>\w+):\]|(?P<close>\])|(?P<plain>.)", re.DOTALL)
_SAME_ESCAPES = frozenset("dDwWbBtnrfv^$\\.*+?()[]{}|/")
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_KNOWN = {
    f"^{_LABEL}$": "lower-case letters, digits and '-', a letter or digit at both ends",
    r"^[a-z]([-a-z0-9]*[a-z0-9])?$": "lower-case letters, digits and '-', beginning with a letter, "
    "a letter or digit at the end",
    rf"^{_LABEL}(\.{_LABEL})*$": "lower-case letters, digits, '-' and '.', as a DNS name",
    "^[0-9]+$": "digits only",
    r"^\d+$": "digits only",
    "^[a-z]+$": "lower-case letters only",
    "^[a-z0-9]+$": "lower-case letters and digits only",
}


def to_javascript(pattern: str) -> str:
    """
    Return the pattern for JavaScript (flag ``u``) that is equivalent to `pattern` in RE2.

    Raises:
        ValueError: There is no certain equivalent, or `pattern` is invalid.
    """
    compile_pattern(pattern)
    js_pattern = "".join(_pieces(pattern))
    js_regex.compile_pattern(js_pattern)
    return js_pattern


def described(pattern: str) -> str:
    """Describe a pattern in words, or quote it if no description is known."""
    words = _KNOWN.get(
        pattern.replace(r"[a-z0-9\-]", "[-a-z0-9]").replace("[a-z0-9-]", "[-a-z0-9]")
    )
    return f"must be {words}" if words else f"must match {pattern}"


def _pieces(pattern: str) -> Iterator[str]:
    if re.match(r"\(\?[ims]+\)", pattern):
        raise PatternError(
            f"{pattern!r} begins with flags, which JavaScript does not support there"
        )
    at, inside = 0, False
    while at < len(pattern):
        match = (_INSIDE if inside else _OUTSIDE).match(pattern, at)
        if match is None:
            raise PatternError(f"{pattern!r} is not a valid pattern")
        at = match.end()
        kind = match.lastgroup
        if kind in ("open", "close"):
            inside = kind == "open"
            yield match[0].replace("[]", r"[\]").replace("^]", r"^\]")  # an item, to RE2
        elif kind == "escape":
            yield _escape(match["escape"], inside=inside)
        else:
            yield _piece(match[0], match, inside=inside)


def _piece(text: str, match: re.Match[str], *, inside: bool) -> str:
    if match["code"] or match["octal"]:
        return _character(int(match["code"] or match["octal"], 16 if match["code"] else 8))
    if inside:
        posix = match["posix"]
        return POSIX_CLASSES.get(posix, text) if posix else text.replace("[", r"\[")
    if match["group"]:
        return "("
    return text.replace(".", r"[^\n]")


_WRITTEN = {"A": "^", "z": "$", "a": r"\x07"}


def _escape(letter: str, *, inside: bool) -> str:
    if letter in "sS" and not inside:
        return f"[{'^' if letter == 'S' else ''}{_SPACE}]"
    if letter == "s":
        return _SPACE
    if letter in _WRITTEN:
        return _WRITTEN[letter]
    if letter in _SAME_ESCAPES or letter.isalnum() or (inside and letter == "-"):
        return f"\\{letter}"
    return letter


def _character(code: int) -> str:
    if code < 0x100:  # noqa: PLR2004 - two hexadecimal digits
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else chr(code)  # noqa: PLR2004 - four digits
