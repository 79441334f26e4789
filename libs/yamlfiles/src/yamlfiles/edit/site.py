"""
A place in a text where a value is to be written, with everything that decides how.

Combines the stream, the location, the layout and the style. ``replacing``, ``inserting`` and
``removing`` turn it and a value into a ``Splicing``, which ``proving`` then checks.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from yamlfiles.edit.edit_operations import EditRefusal
from yamlfiles.edit.layout import TextLayout
from yamlfiles.edit.locating import CollectionEntry, NodeLocation, children
from yamlfiles.edit.proving import ExpectedEvents
from yamlfiles.edit.stream import ParserEvent, Stream
from yamlfiles.edit.writing import Style


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
