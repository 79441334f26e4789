"""
A place in a text where a value is to be written: the layout around it, and how to write there.

`TextLayout` answers questions about lines, columns, indicators and indentation, and changes
nothing. `EditSite` combines the stream, the location, the layout and the style. ``replacing`` and
``entry_edits`` turn it and a value into a `Splicing`, which ``proving`` then checks.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from yamlfiles.edit.edit_operations import EditRefusal
from yamlfiles.edit.locating import CollectionEntry, NodeLocation, children
from yamlfiles.edit.proving import ExpectedEvents
from yamlfiles.edit.stream import EventKind, ParserEvent, Stream
from yamlfiles.edit.writing import Style

_COMMENT = re.compile(r"#.*")
_ANCHOR = re.compile(r"&[^\s,\[\]{}]+[ \t]*")


class TextLayout:
    """The geometry of one text."""

    def __init__(self, stream: Stream) -> None:
        self._stream, self._text, self._events = stream, stream.text, stream.events

    def line_start(self, position: int) -> int:
        """Return the start of the line that contains a position."""
        return self._text.rfind("\n", 0, position) + 1

    def line_end(self, position: int) -> int:
        """Return the end of the line that contains a position, before its line break."""
        at = self._text.find("\n", position)
        if at < 0:
            return len(self._text)
        return at - 1 if at > position and self._text[at - 1] == "\r" else at

    def next_line(self, position: int) -> int:
        """Return the start of the line after a position; the end of the text if there is none."""
        at = self._text.find("\n", position)
        return len(self._text) if at < 0 else at + 1

    def column(self, position: int) -> int:
        """Return a position's column, counted from 0."""
        return position - self.line_start(position)

    def end(self, node: int) -> int:
        """Return the end of a node's characters, without blank lines after it."""
        at = self._stream.end(node)
        event = self._events[at]
        while event.kind is EventKind.END:
            if not self.is_silent(at):
                break  # the bracket of a flow collection
            at -= 1
            event = self._events[at]
        if self.is_block_scalar(at):
            return self._block_scalar_end(at)
        if self.lacks_colon(at):
            return self._stream.stop(at - 1)
        return self._stream.stop(at)

    def lacks_colon(self, at: int) -> bool:
        """
        Return whether event `at` is the empty value of a key as in ``? a``.

        The parser puts such a value where the next token begins, lines below the key.
        """
        event = self._events[at]
        if event.kind is not EventKind.SCALAR or event.value or not event.plain or at == 0:
            return False
        between = self._text[self._stream.stop(at - 1) : self._stream.start(at)]
        key = self._stream.start(at - 1)
        before = self._text[self.line_start(key) : key].rstrip()
        return before.endswith("?") and not _COMMENT.sub("", between).strip()

    def is_block_scalar(self, at: int) -> bool:
        """Return whether event `at` is a block scalar."""
        event = self._events[at]
        return event.kind is EventKind.SCALAR and event.style in ("|", ">")

    def ends_in_block_scalar(self) -> bool:
        """Return whether the text ends inside a block scalar."""
        last = self.last_before(len(self._events))
        return self.is_block_scalar(last) and self._stream.stop(last) == len(self._text)

    def last_before(self, at: int) -> int:
        """Return the last event before `at` that has characters: scalar, alias or bracket."""
        silent = (EventKind.END, EventKind.OTHER, EventKind.DOCUMENT)
        at -= 1
        while at and self._events[at].kind in silent and self.is_silent(at):
            at -= 1
        return at

    def is_silent(self, at: int) -> bool:
        """Return whether an event has no characters."""
        return self._stream.start(at) == self._stream.stop(at)

    def keeps_blank_lines(self, at: int) -> bool:
        """Return whether blank lines after the block scalar at event `at` are part of it."""
        start = self._stream.start(at)
        return "+" in self._text[start : self.line_end(start)].split("#")[0]

    def _block_scalar_end(self, at: int) -> int:
        start = self._stream.start(at)
        ends_blank = self._events[at].value.rstrip("\n").endswith((" ", "\t"))
        if ends_blank or self.keeps_blank_lines(at):
            return self.end_of_blank_lines(at)
        return start + len(self._text[start : self._stream.stop(at)].rstrip())

    def end_of_blank_lines(self, at: int) -> int:
        """Return the end of a block scalar with the blank lines after it, but the last break."""
        start = self._stream.start(at)
        raw = self._text[start : self._stream.stop(at)]
        return start + len(raw.removesuffix("\n").removesuffix("\r"))

    def after_anchor(self, node: int) -> int:
        """Return the end of a node's anchor; the node's start if it has none."""
        start = self._stream.start(node)
        if self._events[node].anchor is None:
            return start
        match = _ANCHOR.match(self._text, start)
        return start + len(match[0].rstrip()) if match else start

    def body(self, node: int) -> int:
        """
        Return the start of a node after its anchor.

        Raises:
            EditRefusedError: Something other than blanks stands between them.
        """
        event = self._events[node]
        start = self._stream.start(node)
        if event.anchor is None:
            return start
        if event.style == "block":
            first = children(self._stream, node)[0]
            return self.entry_start(node, [first], 0)
        match = _ANCHOR.match(self._text, start)
        end = start + len(match[0]) if match else start
        if match is None or self._text[end : end + 1] in ("#", "!"):
            raise self._stream.refuse(EditRefusal.ANCHOR_IN_USE, "an anchor stands apart", node)
        return min(end, self._stream.stop(node))

    def indicator_end(self, target: NodeLocation) -> int:
        """Return the end of the colon or dash before the location's node."""
        parent, child = target.parents[-1]
        if child.key is not None:
            return self._text.index(":", self._stream.stop(child.key)) + 1
        siblings = children(self._stream, parent)
        return self.entry_start(parent, siblings, siblings.index(child)) + 1

    def column_of(self, node: int) -> int:
        """
        Return the column of a block collection's keys or dashes.

        Raises:
            EditRefusedError: They are preceded by tabs.
        """
        entries = children(self._stream, node)
        start = self.entry_start(node, entries, 0)
        if "\t" in self._text[self.line_start(start) : start]:
            raise self._stream.refuse(EditRefusal.TABS, "the lines are indented with tabs", node)
        return self.column(start)

    def entry_start(self, node: int, entries: list[CollectionEntry], at: int) -> int:
        """Return the start of an entry of a block collection: its key, its ``?`` or its dash."""
        child = entries[at]
        start = self._stream.start(child.first)
        if child.key is not None:
            before = self._text[self.line_start(start) : start].rstrip()
            return self.line_start(start) + len(before) - 1 if before.endswith("?") else start
        begin = self.end(entries[at - 1].value) if at else self._stream.start(node)
        return self._dash_before(begin, start)

    def _dash_before(self, begin: int, start: int) -> int:
        """Return the last dash before `start` that is the first character of its line."""
        end = start
        while end > begin:
            line = max(self.line_start(end), begin)
            line_text = self._text[line:end]
            stripped = line_text.lstrip(" ")
            if stripped.startswith("-"):
                return line + len(line_text) - len(stripped)
            end = line - 1
        return begin

    def entry_end(self, child: CollectionEntry) -> int:
        """Return the end of an entry of a flow collection. In ``{a}`` the entry has no value."""
        end = self.end(child.value)
        if child.key is not None and end == self._stream.start(child.value):
            between = self._text[self.end(child.key) : end]
            return self.end(child.key) + len(between.rstrip())
        return end

    def gap_after_dash(self, node: int, items: list[CollectionEntry]) -> str:
        """Return the blanks between the last item and its dash; new items get the same."""
        at = len(items) - 1
        dash = self.entry_start(node, items, at) + 1
        gap = self._text[dash : self._stream.start(items[at].value)]
        return gap if gap and not gap.strip(" ") else " "

    def block_indent(self, node: int) -> int:
        """Return the indentation of a block scalar's lines."""
        lines = self._text[self._stream.start(node) : self._stream.stop(node)].split("\n")[1:]
        event = self._events[node]
        if event.style == "|":  # each of its lines is a line of the value, indented
            for line, text in zip(lines, event.value.split("\n"), strict=False):
                if text:
                    return len(line.rstrip("\r")) - len(text)
        for line in lines:
            if line.strip():
                return len(line) - len(line.lstrip(" "))
        raise self._stream.refuse(EditRefusal.BLOCK_SCALAR, "the block scalar is empty", node)

    def style(self, around: Sequence[int]) -> Style:
        """Return the style for a value on the line of these nodes: line breaks, JSON or not."""
        position = self._stream.start(around[-1])
        at = self._text.find("\n", position)
        at = self._text.rfind("\n", 0, position) if at < 0 else at
        return Style(
            newline="\r\n" if at > 0 and self._text[at - 1] == "\r" else "\n",
            json=any(self._is_json(node) for node in around),
        )

    def block_style(self, style: Style, around: Sequence[int]) -> Style:
        """Return the style for lines near these nodes, including their indentation."""
        return replace(
            style,
            step=self._step(around),
            list_offset=self._list_offset(),
            literal=style.literal and self._text.endswith("\n"),
        )

    def _is_json(self, node: int) -> bool:
        event = self._events[node]
        if event.kind is not EventKind.MAP or event.style != "flow":
            return False
        first = self._events[node + 1]
        return first.kind is EventKind.SCALAR and first.style == '"'

    def _step(self, nodes: Sequence[int]) -> int:
        """Return the indentation step of maps, taken from the nearest one."""
        for above, below in self._nested(reversed(nodes)):
            return below - above
        every = (at for at in sorted(self._stream.ends) if at not in nodes)
        return next((below - above for above, below in self._nested(every)), 2)

    def _nested(self, nodes: Iterable[int]) -> Iterable[tuple[int, int]]:
        """Yield the columns of block maps, each with that of a block map that is a value in it."""
        for node in nodes:
            if not self._is_block_map(node):
                continue
            for child in children(self._stream, node):
                if self._is_block_map(child.value):
                    column = self._key_column(node)
                    nested_column = self._key_column(child.value)
                    if nested_column > column:
                        yield column, nested_column

    def _is_block_map(self, node: int) -> bool:
        event = self._events[node]
        return event.kind is EventKind.MAP and event.style == "block"

    def _key_column(self, node: int) -> int:
        return self.column(self._stream.start(node + 1))

    def _list_offset(self) -> int:
        """Return how far dashes are indented relative to their key, from the first such list."""
        for node in sorted(self._stream.ends):
            if not self._is_block_map(node):
                continue
            for child in children(self._stream, node):
                event = self._events[child.value]
                if event.kind is EventKind.LIST and event.style == "block":
                    dash = self.entry_start(child.value, children(self._stream, child.value), 0)
                    return self.column(dash) - self._key_column(node)
        return 2


@dataclass(frozen=True, slots=True)
class Splice:
    """Replace the characters from `start` up to `end` by `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Splicing:
    """The splices, and the events expected afterwards."""

    splices: tuple[Splice, ...]
    expected: ExpectedEvents

    def apply(self, text: str) -> str:
        """Return the text with all splices applied."""
        parts, at = [], 0
        for splice in sorted(self.splices, key=lambda splice: (splice.start, splice.end)):
            parts += [text[at : splice.start], splice.text]
            at = splice.end
        return "".join([*parts, text[at:]])


class EditSite:
    """
    The node at a location, and how to write there.

    If `literal` is false, multi-line strings are quoted, because the text after them could become
    part of a literal block.
    """

    def __init__(self, stream: Stream, target: NodeLocation, *, literal: bool = True) -> None:
        self.stream, self.target, self.node = stream, target, target.node
        self.text, self.layout = stream.text, TextLayout(stream)
        self._around = [*(node for node, _ in target.parents), target.node]
        self.style = replace(self.layout.style(self._around), literal=literal)
        self.in_flow = any(stream.events[node].style == "flow" for node in self._around[:-1])

    @property
    def event(self) -> ParserEvent:
        """The node's first event."""
        return self.stream.events[self.node]

    @property
    def takes_flow(self) -> bool:
        """Return whether entries of the node stand in brackets."""
        return self.in_flow or self.event.style == "flow"

    @functools.cached_property
    def block_style(self) -> Style:
        """The style for lines of its own. Inspects the whole text."""
        return self.layout.block_style(self.style, self._around)

    def children(self) -> list[CollectionEntry]:
        """Return the entries of the node."""
        return children(self.stream, self.node)

    def joined(self, lines: Iterable[str]) -> str:
        """Return lines joined by the text's line breaks."""
        return self.style.newline.join(lines)

    def below(self, lines: Sequence[str]) -> str:
        """Return lines, each preceded by a line break."""
        return "".join(self.style.newline + line for line in lines)

    def after_line(self, position: int, lines: Sequence[str]) -> Splice:
        """
        Insert whole lines after the line of `position`, preserving how the text ends.

        Raises:
            EditRefusedError: A line break would become part of a block scalar.
        """
        at = self.layout.line_end(position)
        if lines and at == len(self.text) and self.layout.ends_in_block_scalar():
            raise self.stream.refuse(
                EditRefusal.BLOCK_SCALAR, "the text ends in a block scalar without a line break", 0
            )
        return Splice(at, at, self.below(lines))
