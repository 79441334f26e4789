"""Text of strangers on pages: what hides or reorders is shown, the rest is as it was."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orderkit_standins.forge.pages.repository_pages import LINES_MAX, text_page
from orderkit_standins.forge.pages.shown_commits import split_trailers
from orderkit_standins.markdown_html import plain, reorders, visible

_MARK = re.compile(r'<span class="hidden-char" title="[^"]*">U\+([0-9A-F]{4,6})</span>')


def unmarked(markup: str) -> str:
    """Return the text that a marked one was made of."""
    parts, end = [], 0
    for found in _MARK.finditer(markup):
        parts += [html.unescape(markup[end : found.start()]), chr(int(found[1], 16))]
        end = found.end()
    return "".join([*parts, html.unescape(markup[end:])])


@given(st.text())
def test_nothing_is_lost_and_nothing_becomes_markup(text: str) -> None:
    shown = visible(text)

    assert unmarked(str(shown)) == text
    rest = _MARK.sub("", str(shown))
    assert not set(rest) & set("<>\"'")


@given(st.text())
def test_no_character_reorders_or_controls_what_is_shown(text: str) -> None:
    for shown in (str(visible(text)), plain(text)):
        assert not reorders(shown)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028\u2029\ufeff]", shown)


@pytest.mark.parametrize(
    ("text", "shown", "reason"),
    [
        ("a\tb", "a\tb", "a tab is whitespace"),
        ("<b>&", "<b>&", "markup is text here; the template escapes it"),
        ("x\u202ey", "x[U+202E]y", "an override"),
        ("a\u2066b\u2069", "a[U+2066]b[U+2069]", "isolates"),
        ("\x1b[31m", "[U+001B][31m", "a terminal's escape"),
        ("zero\u200bwidth", "zero[U+200B]width", "an invisible space"),
        ("ad\u200dmin", "ad[U+200D]min", "a joiner between ASCII letters makes another name"),
        ("\U0001f469\u200d\U0001f467", "\U0001f469\u200d\U0001f467", "emoji need joiners"),
        ("\u0645\u06cc\u200c\u062e\u0648", "\u0645\u06cc\u200c\u062e\u0648", "so does Persian"),
        ("tag\U000e0041", "tag[U+E0041]", "tag characters carry hidden text"),
        ("\ufeffx", "[U+FEFF]x", "a byte order mark"),
    ],
)
def test_hidden_characters(text: str, shown: str, reason: str) -> None:
    assert plain(text) == shown, reason


@pytest.mark.parametrize(
    ("text", "body", "trailers", "reason"),
    [
        ("", "", (), "nothing"),
        ("why\n\nOrderkit-Operation: 1", "why", (("Operation", "1"),), "our own has a plain name"),
        ("A-B: c\nD: e", "", (("A-B", "c"), ("D", "e")), "trailers alone"),
        ("A: b\nno trailer", "A: b\nno trailer", (), "one other line makes it a paragraph"),
        ("A: b\n\nbody", "A: b\n\nbody", (), "trailers stand last"),
        ("x\n\nA:b", "x\n\nA:b", (), "a space belongs behind the colon"),
        ("x\n\nCo-By: y\r\nZ: w", "x", (("Co-By", "y"), ("Z", "w")), "line ends of Windows"),
    ],
)
def test_trailers(text: str, body: str, trailers: tuple[tuple[str, str], ...], reason: str) -> None:
    assert split_trailers(text) == (body, trailers), reason


def test_each_line_is_on_one_page() -> None:
    source = [f"line {number}" for number in range(2 * LINES_MAX + 1)]
    data = "\n".join(source).encode()

    pages = [text_page(data, number) for number in (1, 2, 3)]

    assert [each.pages for each in pages] == [3, 3, 3]
    assert [line for each in pages for line in each.lines] == source
    assert [each.first for each in pages] == [1, LINES_MAX + 1, 2 * LINES_MAX + 1]
    assert text_page(data, 99) == pages[2]
    assert text_page(data, -1) == pages[0]


@pytest.mark.parametrize(
    ("data", "lines", "crlf", "final_newline", "reason"),
    [
        (b"", (), False, True, "an empty file has no line"),
        (b"a\n", ("a",), False, True, "the newline ends the line"),
        (b"a", ("a",), False, False, "an open line"),
        (b"\n\n", ("", ""), False, True, "empty lines count"),
        (b"a\r\nb\r\n", ("a", "b"), True, True, "line ends of Windows"),
        (b"a\r\nb\n", ("a\r", "b"), False, True, "mixed ones are shown as they are"),
        (b"caf\xe9\n", ("caf\ufffd",), False, True, "no UTF-8"),
    ],
)
def test_lines(
    data: bytes, lines: tuple[str, ...], *, crlf: bool, final_newline: bool, reason: str
) -> None:
    found = text_page(data, 1)

    assert (found.lines, found.crlf, found.final_newline) == (lines, crlf, final_newline), reason
