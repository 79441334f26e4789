"""
Show Markdown and other text of strangers as HTML.

Markdown goes through a parser that takes no HTML (`in_html`). What it makes passes nh3, which keeps
a list of elements, and of addresses those of this forge, http, https and mailto. Pictures become
links. Collapsed sections are kept in the one form that plans have. A text that would take seconds
to parse is shown as text.

In any other text (`visible`) what hides or reorders is made visible, and the rest is escaped.
Control characters, bidirectional overrides, invisible spaces and tag characters can make a file or
a name look like another one. They appear as their code points. Joiners stay where scripts and emoji
need them: between characters that are no ASCII.

Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from urllib.parse import urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token
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


TEXT_MAX_CHARS, PAGE_MAX_CHARS = 65_536, 150_000
"""How much of a text is shown; how much of all texts of a page is parsed."""
BRACKETS_MAX, CELLS_MAX = 1_500, 15_000
"""The parser takes quadratic time for nested brackets, and fills up the rows of a table."""
_HEADING_MIN, _HEADING_MAX = 3, 6
_SCHEMES = {"http", "https", "mailto"}
_TAGS = {
    *("a", "blockquote", "br", "code", "em", "hr", "li", "ol", "p", "pre", "s", "strong", "ul"),
    *("details", "summary", "h3", "h4", "h5", "h6"),
    *("table", "tbody", "td", "th", "thead", "tr"),
}
_FOLD = re.compile(r"<details>\s*<summary>(.*)</summary>|</details>")


def _image(_: object, tokens: Sequence[Token], index: int, *__: object) -> str:
    image = tokens[index]
    return f'<a href="{escape(image.attrs["src"])}">{escape(image.content)}</a>'


_PARSER = MarkdownIt("js-default")  # no HTML, no guessed links
_PARSER.add_render_rule("image", _image)


def in_html(texts: Iterable[str], base: str) -> Iterator[Markup]:
    """
    Yield the texts of one page as HTML.

    Args:
        texts: Markdown, bounded here; HTML comments are for programs and left out.
        base: The address that relative links follow.
    """
    room = PAGE_MAX_CHARS
    for text in texts:
        source = _without_comments(text[:TEXT_MAX_CHARS].replace("\r\n", "\n"))
        room -= len(source)
        if room < 0 or _is_slow(source):
            html = Markup('<pre class="prose">{}</pre>').format(visible(source))
        else:
            html = Markup('<div class="markdown">{}</div>').format(_html(source, base))
        cut = len(text) - TEXT_MAX_CHARS
        more = Markup('<p class="note">{:,} more characters.</p>').format(cut)
        yield html + more if cut > 0 else html


def _without_comments(text: str) -> str:
    first, *others = text.split("<!--")
    return (first + "".join(other.partition("-->")[2] for other in others)).strip()


def _is_slow(text: str) -> bool:
    cells = [line.count("|") for line in text.splitlines() if "|" in line]
    return text.count("[") > BRACKETS_MAX or max(cells, default=0) * len(cells) > CELLS_MAX


@lru_cache(maxsize=256)
def _html(text: str, base: str) -> Markup:
    tokens = _PARSER.parse(text)
    level, folded = _HEADING_MIN - 1, False
    for number, token in enumerate(tokens):
        if token.type == "heading_open":  # below the page's own, and none left out
            level = min(int(token.tag[1]) + 2, level + 1, _HEADING_MAX)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{level}"
        fold = _FOLD.fullmatch(token.content) if token.type == "inline" else None
        if fold and token.level == 1 and (fold[1] is None) == folded:
            folded = not folded
            summary = nh3.clean(fold[1] or "", tags={"code"})
            token.type, token.content = (
                "html_block",
                f"<details><summary>{summary}</summary>" if folded else "</details>",
            )
            tokens[number - 1].hidden = tokens[number + 1].hidden = True
    html = _PARSER.renderer.render(tokens, _PARSER.options, {})
    return mark_hidden(
        nh3.clean(
            html,
            tags=_TAGS,
            attributes={"*": set(), "a": {"href"}, "ol": {"start"}, "th": {"scope"}},
            attribute_filter=_address_filter(base),
            set_tag_attribute_values={"th": {"scope": "col"}},
            link_rel="external nofollow noreferrer",
            url_schemes=_SCHEMES,
        )
    )


def _address_filter(base: str) -> Callable[[str, str, str], str | None]:
    def keep(_tag: str, attribute: str, value: str) -> str | None:
        if attribute != "href":
            return value
        try:
            scheme = urlsplit(value).scheme
        except ValueError:
            return None
        if scheme:
            return value if scheme in _SCHEMES else None
        if value.startswith(("//", "#")) or "\\" in value:
            return None
        return value if value.startswith("/") else f"{base}/{value}"

    return keep
