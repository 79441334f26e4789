"""
Split a template into literal text, tags and the tokens inside them, as Nunjucks 3.2 does.

Delimiters of blocks and comments are fixed (``{% %}``, ``{# #}``); those of variables are
configurable (``${{ }}`` in Backstage, ``{{ }}`` in its cookiecutter mode).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from softwaretemplates.render import refusals
from softwaretemplates.render.javascript import SPACE
from softwaretemplates.render.refusals import (
    LimitError,
    Position,
    RenderError,
    UnsupportedConstruct,
    UnsupportedError,
)

__all__ = ["BACKSTAGE", "SOURCE_MAX", "Lexer", "Tag", "TemplateToken", "TokenKind"]

SOURCE_MAX = 1 << 24
"""Longest template, in characters. Of a file, ``TreeOptions.file_max`` allows less."""


@dataclass(frozen=True, slots=True)
class Delimiters:
    """The delimiters of variable tags, and which newlines blocks remove."""

    start: str = "${{"
    end: str = "}}"
    trim_blocks: bool = False
    lstrip_blocks: bool = False
    cookiecutter: bool = False
    """Python's names and methods exist (the input ``cookiecutterCompat``)."""


BACKSTAGE = Delimiters()
COOKIECUTTER = Delimiters(start="{{", cookiecutter=True)


class TokenKind(Enum):
    """The kind of a token inside a tag."""

    NAME = "name"
    TEXT = "text"
    NUMBER = "number"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class TemplateToken:
    """One token inside a tag; `offset` is its start in the template."""

    kind: TokenKind
    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that is printed as it is."""

    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class Tag:
    """A ``${{ … }}`` or ``{% … %}`` and its tokens; `end` is the offset after it."""

    block: bool
    tokens: tuple[TemplateToken, ...]
    offset: int
    end: int
    source: str


_SPACE = " \n\t\r\u00a0"
_DELIMITERS = "()[]{}%*-+~/#,:|.<>=!"
_COMPLEX = ("===", "!==", "==", "!=", "<=", ">=", "//", "**")
RESERVED = frozenset({"constructor", "prototype", "__proto__"})
"""Names that are refused everywhere."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_WORD = re.compile("[^" + re.escape(_SPACE + _DELIMITERS) + "]+")
_RAW_END = re.compile(r"\{%\s*(raw|endraw|verbatim|endverbatim)\s*(?=%\})%\}")


class Lexer:
    """Reads one template from front to back."""

    def __init__(self, source: str, delimiters: Delimiters) -> None:
        if len(source) > SOURCE_MAX:
            raise LimitError(f"a template of more than {SOURCE_MAX} characters")
        self.source, self._delimiters = source, delimiters
        self._at = 0
        self._starts = re.compile(
            "|".join(re.escape(mark) for mark in (delimiters.start, "{%", "{#", "#}"))
        )

    def parts(self) -> Iterator[Literal | Tag]:
        """
        Yield literal text and tags in order.

        Raises:
            RenderError: A tag, text or comment is not closed.
            UnsupportedError: A construct that the engines read differently.
        """
        drop_leading = False
        raw = ""  # text since the last tag other than a raw block, if there was a raw block
        while self._at < len(self.source):
            start = self._at
            match = self._starts.search(self.source, start)
            literal = self.source[start : match.start()] if match else self.source[start:]
            literal = literal.lstrip(SPACE) if drop_leading else literal
            if match is None:
                self._at = len(self.source)
                yield from self._literal(literal, start)
                return
            text = literal
            literal = self._before(text, match)
            self._check_dash(match, raw + text, raw + literal)
            yield from self._literal(literal, start)
            self._at = match.start()
            if match[0] == "#}":
                raise self._error("`#}` ends a comment that was never begun")
            if match[0] == "{#":
                drop_leading, raw = self._comment(), ""
                continue
            tag, drop_leading = self._tag(match[0])
            if tag.block and tag.tokens and tag.tokens[0].text in {"raw", "verbatim"}:
                inside = list(self._raw(tag))
                raw += literal + "".join(literal_.text for literal_ in inside)
                yield from inside
                continue
            raw = ""
            yield tag

    def _check_dash(self, match: re.Match[str], text: str, trimmed: str) -> None:
        """Refuse a dash that Nunjitsu applies to a raw block before it."""
        dashed = self.source[match.end() : match.end() + 1] == "-" and match[0] != "#}"
        if dashed and text.rstrip(SPACE) != trimmed:
            self._at = match.start()
            raise self._refused(refusals.RAW_DASH)

    @staticmethod
    def _literal(text: str, offset: int) -> Iterator[Literal]:
        if text:
            yield Literal(text, offset)

    def _before(self, literal: str, match: re.Match[str]) -> str:
        """Trim the text before a tag, by ``-`` or by lstripBlocks."""
        if self.source[match.end() : match.end() + 1] == "-" and match[0] != "#}":
            return literal.rstrip(SPACE)
        if self._delimiters.lstrip_blocks and match[0] == "{%":
            head, newline, line = literal.rpartition("\n")
            starts_line = bool(newline) or self._at == 0 or self.source[self._at - 1] == "\n"
            if line and not line.strip(SPACE) and starts_line:
                return head + newline
        return literal

    def _comment(self) -> bool:
        end = self.source.find("#}", self._at + 2)
        if end < 0:
            raise self._error("the comment is not closed with `#}`")
        trims = end > self._at + 2 and self.source[end - 1] == "-"
        self._at = end + 2
        return trims

    def _tag(self, mark: str) -> tuple[Tag, bool]:
        offset, block = self._at, mark == "{%"
        self._at += len(mark)
        if self.source.startswith("+", self._at) and block:
            raise self._refused(refusals.PLUS_TAG)
        if self.source.startswith("-", self._at):
            self._at += 1
        tokens: list[TemplateToken] = []
        while True:
            end = self._tag_end(block=block, offset=offset)
            if end is not None:
                break
            tokens.append(self._token())
        trims = end.startswith("-")
        self._at += len(end)
        stop = self._at
        if block and self._delimiters.trim_blocks:
            newline = self.source[self._at : self._at + 2]
            self._at += 2 if newline == "\r\n" else newline.startswith("\n")
        return Tag(block, tuple(tokens), offset, stop, self.source[offset:stop]), trims

    def _tag_end(self, *, block: bool, offset: int) -> str | None:
        """Skip blanks; return the end delimiter of the tag if it follows."""
        while self._at < len(self.source) and self.source[self._at] in _SPACE:
            self._at += 1
        if self._at >= len(self.source):
            self._at = offset
            raise self._error("the tag is not closed")
        own_end, other_end = ("%}", self._delimiters.end) if block else (self._delimiters.end, "%}")
        for mark in (own_end, "-" + own_end):
            if self.source.startswith(mark, self._at):
                return mark
        for mark in (other_end, "-" + other_end):
            if self.source.startswith(mark, self._at):
                hint = "put a blank between two closing braces of maps" if mark == other_end else ""
                raise self._error(f"`{mark}` inside a tag that ends with `{own_end}`", hint=hint)
        return None

    def _token(self) -> TemplateToken:
        offset, char = self._at, self.source[self._at]
        if char in "\"'":
            return TemplateToken(TokenKind.TEXT, self._text(char), offset)
        if self.source.startswith("r/", offset):
            raise self._refused(refusals.REGEX)
        if char in _DELIMITERS:
            operator = next((o for o in _COMPLEX if self.source.startswith(o, offset)), char)
            self._at += len(operator)
            return TemplateToken(TokenKind.OPERATOR, operator, offset)
        word = _WORD.match(self.source, offset)
        if word is None:  # pragma: no cover - every other character is matched above
            raise self._error("unreadable character")
        return self._word(word[0])

    def _word(self, word: str) -> TemplateToken:
        offset = self._at
        self._at += len(word)
        if word.isascii() and word.isdigit():
            fraction = re.compile(r"\.[0-9]+(?![^\s" + re.escape(_DELIMITERS) + "])").match(
                self.source, self._at
            )
            if fraction:
                self._at += len(fraction[0])
                word += fraction[0]
            elif self.source.startswith(".", self._at):
                raise self._refused(refusals.NUMBER_DOT)
            return TemplateToken(TokenKind.NUMBER, word, offset)
        if not _NAME.match(word):
            self._at = offset
            raise self._refused(refusals.NAME, repr(word))
        if word in RESERVED:
            self._at = offset
            raise self._refused(refusals.RESERVED, word)
        return TemplateToken(TokenKind.NAME, word, offset)

    def _text(self, quote: str) -> str:
        start = self._at
        characters: list[str] = []
        self._at += 1
        while self._at < len(self.source):
            char = self.source[self._at]
            self._at += 1
            if char == quote:
                return "".join(characters)
            if char == "\\" and self._at < len(self.source):
                char = self.source[self._at]
                self._at += 1
                char = _ESCAPES.get(char, char)
            characters.append(char)
        self._at = start
        raise self._error("the text is not closed")

    def _raw(self, tag: Tag) -> Iterator[Literal]:
        """Yield the text between raw and endraw."""
        name = tag.tokens[0].text
        if len(tag.tokens) > 1:
            self._at = tag.offset
            raise self._error(f"words behind {name}", hint=f"write {{% {name} %}}")
        level = 1
        for match in _RAW_END.finditer(self.source, self._at):
            level += {name: 1, f"end{name}": -1}.get(match[1], 0)
            if level == 0:
                if "\n" in match[0]:
                    self._at = match.start()
                    raise self._refused(refusals.EMPTY_RAW_BEHIND)
                start, self._at = self._at, match.end()
                yield from self._literal(self.source[start : match.start()], start)
                return
        self._at = tag.offset
        raise self._error(f"{{% {name} %}} without {{% end{name} %}}")

    def _error(self, problem: str, *, hint: str = "") -> RenderError:
        return RenderError(problem, Position.at(self.source, self._at), hint=hint)

    def _refused(self, refusal: UnsupportedConstruct, name: str = "") -> UnsupportedError:
        position = Position.at(self.source, self._at)
        return UnsupportedError(refusal.problem(name), position, hint=refusal.way_out(name))
