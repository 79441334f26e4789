"""
Show text of strangers as HTML: what hides or reorders is made visible, the rest is escaped.

Control characters, bidirectional overrides, invisible spaces and tag characters can make a file or
a name look like another one. They appear as their code points. Joiners stay where scripts and emoji
need them: between characters that are no ASCII.

Pure.
"""

from __future__ import annotations

import unicodedata

from markupsafe import Markup, escape

from ground.visible_text import HIDDEN

LINE_MAX_CHARS = 2_000
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def visible(text: object) -> Markup:
    """Return safe HTML in which hidden characters are marked with their name."""
    return mark_hidden(escape(str(text)))


def mark_hidden(html: str) -> Markup:
    """Return HTML, which must be safe already, with hidden characters marked with their name."""
    return Markup(HIDDEN.sub(lambda match: _mark(match[0]), html))  # noqa: S704 - safe already


def path(text: object) -> Markup:
    """Return a file or branch name as HTML that reads from left to right, as addresses do."""
    return Markup('<bdi dir="ltr">{}</bdi>').format(visible(text))


def words(text: object) -> Markup:
    """Return words of a person as HTML whose direction does not leak into what follows."""
    return Markup("<bdi>{}</bdi>").format(visible(text))


def plain(text: object) -> str:
    """Return text for places without markup (titles, labels); not yet escaped."""
    return HIDDEN.sub(lambda match: f"[{_code(match[0])}]", str(text))


def reorders(text: str) -> bool:
    """Say whether a text holds characters that change the order in which others appear."""
    return not _BIDI.isdisjoint(text)


def cut(line: str, limit: int = LINE_MAX_CHARS) -> tuple[str, int]:
    """Return the start of a line and how many characters follow it."""
    return line[:limit], max(len(line) - limit, 0)


def decode(data: bytes) -> str:
    """Return text; what is not UTF-8 becomes replacement characters."""
    return data.decode(errors="replace")


def _mark(char: str) -> Markup:
    return Markup('<span class="hidden-char" title="{}">{}</span>').format(_name(char), _code(char))


def _code(char: str) -> str:
    return f"U+{ord(char):04X}"


def _name(char: str) -> str:
    return unicodedata.name(char, "control character").lower()
