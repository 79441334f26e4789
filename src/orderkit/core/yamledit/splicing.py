"""
Where a text is cut and what is put there: one change of one node, as splices.

Works on positions between the parser's marks and never on patterns in the text. What it returns
is a proposal; ``proving`` judges the result. Called by ``editing``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from orderkit.core.yamledit import writing
from orderkit.core.yamledit.edits import Reason, Value
from orderkit.core.yamledit.layout import Layout
from orderkit.core.yamledit.locating import Child, Place, children
from orderkit.core.yamledit.proving import Expected
from orderkit.core.yamledit.stream import Kind, Stream
from orderkit.core.yamledit.writing import Style


@dataclass(frozen=True, slots=True)
class Splice:
    """Put `text` in place of the characters from `start` up to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """What to splice, and what the events must be afterwards."""

    splices: tuple[Splice, ...]
    expected: Expected

    def apply(self, text: str) -> str:
        """Return the text with all splices made."""
        parts, at = [], 0
        for splice in sorted(self.splices, key=lambda splice: (splice.start, splice.end)):
            parts += [text[at : splice.start], splice.text]
            at = splice.end
        return "".join([*parts, text[at:]])


class Splicer:
    """
    Proposes changes of one text at one place.

    With `literal` false, texts of several lines are put in quotes: what stands behind them could
    become part of a literal block.
    """

    def __init__(self, stream: Stream, place: Place, *, literal: bool = True) -> None:
        self._stream, self._place = stream, place
        self._text, self._events = stream.text, stream.events
        self._layout = Layout(stream)
        around = [node for node, _ in place.parents]
        self._style = replace(self._layout.style((*around, place.node)), literal=literal)
        self._in_flow = any(self._is_flow(node) for node in around)

    def _is_flow(self, node: int) -> bool:
        return self._events[node].style == "flow"

    @functools.cached_property
    def _block_style(self) -> Style:
        """How to write lines of their own; it takes a look at the whole text."""
        around = [node for node, _ in self._place.parents]
        return self._layout.block_style(self._style, (*around, self._place.node))

    def replace(self, value: Value) -> Change:
        """Put a value in place of the node."""
        node = self._place.node
        event = self._events[node]
        expected = Expected(node, self._stream.end(node) + 1, [value], event.anchor)
        if self._in_flow or not self._place.parents:
            splices = [self._inline(node, value)]
        elif event.kind is Kind.SCALAR and event.style in ("|", ">"):
            splices = self._replace_block_scalar(node, value)
        elif event.style == "block":
            splices = self._replace_block(node, value)
        elif writing.is_block(value):
            splices = self._open_block(node, value)
        else:
            splices = [self._inline(node, value)]
        return Change(tuple(splices), expected)

    def _inline(self, node: int, value: Value) -> Splice:
        """Replace a node that stands between its marks, on its line."""
        start, end = self._layout.body(node), self._layout.end(node)
        style = self._style
        event = self._events[node]
        if event.kind is Kind.SCALAR and event.style in ("'", '"'):
            style = replace(style, quote=event.style)
        if isinstance(value, dict | list) or self._in_flow:
            text = writing.flow(value, style)
        else:
            text = writing.scalar(value, style, flow=False)
        return Splice(start, end, self._gap_before(node, start) + text)

    def _gap_before(self, node: int, start: int) -> str:
        """Return what an empty value needs in front of it: a colon in ``{a}``, a blank."""
        if start != self._stream.stop(node):
            return ""
        key = self._place.parents[-1][1].key if self._place.parents else None
        if key is not None and ":" not in self._text[self._layout.end(key) : start]:
            return ": "
        return "" if self._text[start - 1 : start] in (" ", "\t") else " "

    def _replace_block_scalar(self, node: int, value: Value) -> list[Splice]:
        start, end = self._layout.body(node), self._layout.end(node)
        header_end = self._layout.line_end(start)
        header = self._text[start:header_end]
        token = header.split("#")[0].split()[0] if header.strip() else header
        if isinstance(value, str):
            lines = self._kept_block(node, token, value)
            mark = token[0] + ("" if value.endswith("\n") else "-")
            body = self._joined([mark + header[len(token) :].rstrip("\r"), *lines])
            return [Splice(start, end, body)]
        gone = Splice(header_end, end, "")
        if writing.is_block(value):
            at = self._layout.indicator_end(self._place)
            lines = list(writing.block(value, self._indent_for(value), self._block_style))
            rest = header[len(token) :].rstrip("\r")
            return [Splice(at, end, self._joined([rest.rstrip(), *lines]))]
        text = writing.flow(value, self._style)
        return [Splice(start, start + len(token), text), gone]

    def _kept_block(self, node: int, token: str, value: str) -> list[str]:
        """Return the lines of a block scalar with another text, in its style."""
        if any(character.isdigit() for character in token):
            raise self._stream.refuse(
                Reason.BLOCK_SCALAR, "the block scalar says its indentation itself", node
            )
        indent = self._layout.block_indent(node)
        text = value
        if token[0] == ">":
            body = value.rstrip("\n")
            text = body.replace("\n", "\n\n") + value[len(body) :]
        lines = writing.literal(text, indent)
        ends_open = self._layout.end(node) == len(self._text)
        if lines is None or (ends_open and value.endswith("\n")):
            raise self._stream.refuse(
                Reason.BLOCK_SCALAR, "the new text does not fit the block scalar's style", node
            )
        return lines

    def _replace_block(self, node: int, value: Value) -> list[Splice]:
        """Replace a block map or list by something else."""
        start, end = self._layout.body(node), self._layout.end(node)
        at = self._layout.indicator_end(self._place)
        anchored = self._events[node].anchor is not None
        if self._layout.line_start(start) <= at and not anchored:
            lines = self._lines(value, self._layout.column(start))
            return [Splice(start, end, self._joined(lines))]
        at = self._layout.after_anchor(node) if anchored else at
        cut = Splice(self._layout.line_end(at), end, "")
        if writing.is_block(value):
            lines = list(writing.block(value, self._indent_for(value), self._block_style))
            kept = self._own_line_comments(at, start)
            return [replace(cut, text=self._newline_joined([*kept, *lines]))]
        kept = self._own_line_comments(at, start)
        text = " " + writing.flow(value, self._style)
        return [Splice(at, at, text), replace(cut, text=self._newline_joined(kept))]

    def _own_line_comments(self, at: int, start: int) -> list[str]:
        between = self._text[self._layout.line_end(at) : self._layout.line_start(start)]
        lines = [line.rstrip("\r") for line in between.split("\n")]
        return [line for line in lines if line.strip()]

    def _open_block(self, node: int, value: Value) -> list[Splice]:
        """Replace a value on its line by lines of their own."""
        start, end = self._layout.body(node), self._layout.end(node)
        key = self._place.parents[-1][1].key
        if key is None:
            gap = self._gap_before(node, start)
            column = self._layout.column(start) + len(gap)
            first, *rest = self._lines(value, column)
            return [Splice(start, end, gap + first), self._after_line(end, rest)]
        anchored = self._events[node].anchor is not None
        after = self._layout.after_anchor(node)
        at = after if anchored else self._layout.indicator_end(self._place)
        lines = writing.block(value, self._indent_for(value), self._block_style)
        return [Splice(at, end, ""), self._after_line(end, list(lines))]

    def _lines(self, value: Value, column: int) -> list[str]:
        return list(writing.item_lines(value, column, self._block_style))

    def _indent_for(self, value: Value) -> int:
        """Return the column of a block that becomes the value of the place's key or item."""
        parent, child = self._place.parents[-1]
        column = self._layout.column_of(parent)
        if child.key is None:
            return column + 2
        is_list = isinstance(value, list)
        return column + (self._block_style.list_offset if is_list else self._block_style.step)

    def _joined(self, lines: Iterable[str]) -> str:
        return self._style.newline.join(lines)

    def _newline_joined(self, lines: Sequence[str]) -> str:
        return "".join(self._style.newline + line for line in lines)

    def _after_line(self, position: int, lines: Sequence[str]) -> Splice:
        """Insert whole lines after the line of `position`, keeping how the text ends."""
        at = self._layout.line_end(position)
        if lines and at == len(self._text) and self._layout.ends_in_block_scalar():
            raise self._stream.refuse(
                Reason.BLOCK_SCALAR, "the text ends in a block scalar without a line break", 0
            )
        return Splice(at, at, self._newline_joined(lines))

    def insert_key(self, name: str, value: Value) -> Change:
        """Add a key at the end of the map that the node is."""
        node = self._place.node
        last = self._stream.end(node)
        expected = Expected(last, last, [name, value])
        found = children(self._stream, node)
        if self._in_flow or self._is_flow(node):
            style = self._style
            text = f"{writing.key(name, style, flow=True)}: {writing.flow(value, style)}"
            return Change((self._into_flow(node, found, text),), expected)
        column = self._layout.column_of(node)
        lines = writing.entry(name, value, column, self._block_style)
        return Change((self._after_line(self._layout.end(node), list(lines)),), expected)

    def insert_item(self, value: Value) -> Change:
        """Add an item at the end of the list that the node is."""
        node = self._place.node
        last = self._stream.end(node)
        expected = Expected(last, last, [value])
        found = children(self._stream, node)
        quote = self._quote(found)
        if self._in_flow or self._is_flow(node):
            text = writing.flow(value, replace(self._style, quote=quote))
            return Change((self._into_flow(node, found, text),), expected)
        column = self._layout.column_of(node)
        gap = self._layout.gap_after_dash(node, found)
        style = replace(self._block_style, quote=quote)
        first, *rest = writing.item_lines(value, column + 1 + len(gap), style)
        lines = [" " * column + "-" + gap + first, *rest]
        return Change((self._after_line(self._layout.end(node), lines),), expected)

    def _quote(self, found: list[Child]) -> str:
        """Return the quotes of the last item: a new text gets them too."""
        last = self._events[found[-1].value] if found else None
        is_text = last is not None and last.kind is Kind.SCALAR
        return last.style if last is not None and is_text and last.style in ("'", '"') else ""

    def _into_flow(self, node: int, found: list[Child], text: str) -> Splice:
        """Put an entry behind the last one of a flow map or list."""
        if not found:
            inside = self._layout.body(node) + 1
            end = self._stream.start(self._stream.end(node))
            if self._text[inside:end].strip():
                raise self._stream.refuse(Reason.COMMENT, "a comment stands in the brackets", node)
            return Splice(inside, end, text)
        end = self._layout.entry_end(found[-1])
        begin = self._stream.start(found[-1].first)
        lead = self._text[self._layout.line_start(begin) : begin]
        if lead and not lead.strip(" \t"):
            return Splice(end, end, f",{self._style.newline}{lead}{text}")
        return Splice(end, end, f", {text}")

    def remove_child(self, child: Child) -> Change:
        """Take an entry out of the map or list that the node is; it is not the only one."""
        node = self._place.node
        found = children(self._stream, node)
        expected = Expected(child.first, self._stream.end(child.value) + 1, [])
        at = found.index(child)
        if self._in_flow or self._is_flow(node):
            return Change((self._out_of_flow(found, at),), expected)
        start = self._layout.entry_start(node, found, at)
        line = self._layout.line_start(start)
        if not self._text[line:start].strip(" "):
            end = self._layout.next_line(self._layout.end(child.value))
            self._refuse_joining(child, self._layout.column(start), end)
            return Change((Splice(line, end, ""),), expected)
        following = self._layout.entry_start(node, found, at + 1) if at + 1 < len(found) else None
        if following is None:
            raise self._stream.refuse(Reason.UNPROVED, "the entry cannot be cut out", child.first)
        self._refuse_comment(self._layout.end(child.value), following, child)
        return Change((Splice(start, following, ""),), expected)

    def _refuse_joining(self, child: Child, column: int, end: int) -> None:
        """Refuse if a block scalar above would swallow what stands behind the removed lines."""
        above = child.first - 1
        if not self._layout.is_block_scalar(above):
            return
        behind = self._text[end : self._layout.line_end(end)]
        indented = len(behind) - len(behind.lstrip(" ")) > column
        if indented or (not behind.strip() and self._layout.keeps_blank_lines(above)):
            raise self._stream.refuse(
                Reason.BLOCK_SCALAR,
                "what stands behind it would become part of the block scalar above",
                child.first,
            )

    def _out_of_flow(self, found: list[Child], at: int) -> Splice:
        child = found[at]
        start = self._stream.start(child.first)
        end = self._layout.entry_end(child)
        if at + 1 < len(found):
            following = self._stream.start(found[at + 1].first)
            self._refuse_comment(end, following, child)
            return Splice(start, following, "")
        before = self._layout.entry_end(found[at - 1])
        self._refuse_comment(before, start, child)
        return Splice(before, end, "")

    def _refuse_comment(self, start: int, end: int, child: Child) -> None:
        if "#" in self._text[start:end]:
            raise self._stream.refuse(
                Reason.COMMENT, "a comment stands beside what would be removed", child.first
            )
