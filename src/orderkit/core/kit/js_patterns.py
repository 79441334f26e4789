r"""
Translate a schema's pattern from RE2, which the API server reads, to JavaScript for the form.

Constructs that differ but have an equivalent are rewritten (``\s``, ``.``, POSIX classes, ``\z``,
the flags ``(?i)`` and ``(?s)`` anywhere, escapes unknown to JavaScript). Other differences are
refused, because the form would accept values that the server refuses, or the reverse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ground import js_regex
from kubeschema.re2_patterns import POSIX_CLASSES, PatternError, compile_pattern

_SPACE = r"\t\n\f\r "
_COMMON = (
    r"\\x(?:\{(?P<code>[0-9A-Fa-f]+)\}|(?P<hex>[0-9A-Fa-f]{2}))"
    r"|\\(?P<octal>[0-7]{3})|\\(?P<escape>.)"
)
_OUTSIDE = re.compile(
    rf"{_COMMON}|\(\?(?P<flags>[a-zA-Z]*-?[a-zA-Z]+)(?P<scope>[:)])|(?P<group>\((?:\?P?<\w+>|\?:)?)"
    r"|(?P<end>\))|(?P<open>\[\^?\]?)|(?P<plain>.)",
    re.DOTALL,
)
_INSIDE = re.compile(
    rf"{_COMMON}|\[:(?P<posix>\w+):\]|(?P<close>\])|(?P<range>[0-9A-Za-z]-[0-9A-Za-z])|(?P<plain>.)",
    re.DOTALL,
)
_CASES = {"k": "\u212a", "s": "\u017f"}
"""Letters beyond ASCII that RE2 takes for these when it ignores case."""
_CASED = {"alpha", "alnum", "word", "lower", "upper"}
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
    at, inside = 0, False
    flags = ""
    outer: list[str] = []
    while at < len(pattern):
        match = (_INSIDE if inside else _OUTSIDE).match(pattern, at)
        if match is None:
            raise PatternError(f"{pattern!r} is not a valid pattern")
        at = match.end()
        kind = match.lastgroup
        if kind in ("open", "close"):
            inside = kind == "open"
            yield match[0].replace("[]", r"[\]").replace("^]", r"^\]")  # an item, to RE2
        elif kind == "scope":
            outer += [flags] if match["scope"] == ":" else []
            flags = _flags(pattern, flags, match["flags"])
            yield "(?:" if match["scope"] == ":" else ""
        elif kind == "group":
            outer.append(flags)
            yield "(?:" if match[0] == "(?:" else "("
        elif kind == "end":
            flags = outer.pop() if outer else flags
            yield ")"
        elif kind == "escape":
            yield _escape(match["escape"], flags, inside=inside)
        else:
            yield _piece(match, flags, inside=inside)


def _flags(pattern: str, flags: str, changes: str) -> str:
    """Return the flags that hold after ``(?i)``, ``(?-s)`` and the like."""
    added, _, removed = changes.partition("-")
    if set(added) - {"i", "s"}:
        raise PatternError(
            f"{pattern!r} has the flags {changes}, which JavaScript does not support"
        )
    return "".join(sorted({*flags, *added} - {*removed}))


def _piece(match: re.Match[str], flags: str, *, inside: bool) -> str:
    digits = match["code"] or match["hex"] or match["octal"]
    if digits:
        code = int(digits, 8 if match["octal"] else 16)
        letter = chr(code)
        return _any_case(letter, inside=inside) if _folds(letter, flags) else _character(code)
    return _within(match, flags) if inside else _without(match[0], flags)


def _without(text: str, flags: str) -> str:
    """Return a character outside of brackets."""
    if text == ".":
        return "[^]" if "s" in flags else r"[^\n]"
    return _any_case(text, inside=False) if _folds(text, flags) else text


def _within(match: re.Match[str], flags: str) -> str:
    """Return a character, a range or a POSIX class inside of brackets."""
    text, name = match[0], match["posix"]
    if name and "i" in flags:
        name = "alpha" if name in {"lower", "upper"} else name
        return POSIX_CLASSES.get(name, text) + _beyond_ascii(name)
    if name:
        return POSIX_CLASSES.get(name, text)
    if match["range"] and "i" in flags:
        letters = map(chr, range(ord(text[0]), ord(text[2]) + 1))
        cases = (_any_case(letter, inside=True)[1:] for letter in letters if letter.isalpha())
        return text + "".join(cases)
    return _any_case(text, inside=True) if _folds(text, flags) else text.replace("[", r"\[")


def _folds(letter: str, flags: str) -> bool:
    """
    Return whether a character stands for its other cases, too.

    Raises:
        PatternError: It does, and they are not known here.
    """
    if "i" not in flags or letter.upper() == letter.lower():
        return False
    if not letter.isascii():
        raise PatternError(f"{letter!r} after (?i) has no certain equivalent in JavaScript")
    return True


def _any_case(letter: str, *, inside: bool) -> str:
    cases = f"{letter}{letter.swapcase()}{_CASES.get(letter.lower(), '')}"
    return cases if inside else f"[{cases}]"


def _beyond_ascii(posix: str) -> str:
    return "".join(_CASES.values()) if posix in _CASED else ""


_WRITTEN = {"A": "^", "z": "$", "a": r"\x07"}


def _escape(letter: str, flags: str, *, inside: bool) -> str:
    if "i" in flags and letter == "w":
        return rf"\w{_beyond_ascii('word')}" if inside else rf"[\w{_beyond_ascii('word')}]"
    if "i" in flags and letter == "W":
        raise PatternError(r"\W after (?i) has no certain equivalent in JavaScript")
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
