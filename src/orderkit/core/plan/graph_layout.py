"""
Positions of the cards in a plan's picture: an XR above, its composed resources in columns below.

A column contains what waits for the column before it; long columns are split. A nested XR is a box
around its own columns. All values in pixels. Pure and deterministic; called by ``graph_svg``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from ground.errors import shorten
from ground.objects.values import shown_pair
from orderkit.core.order.change import FieldDifference
from orderkit.core.plan.graph import ROOT, Graph, GraphNode

CARD_PAD, HEAD, LINE = 14.0, 21.0, 16.0
_PAD, _GAP, _GUTTER = 14.0, 10.0, 34.0
_ROWS_MAX, _RANKS_MAX = 10, 3
"""Longer columns are split; higher ranks share the last one."""
_SANS, _MONO = 7.6, 7.0
"""Width of a letter: in the bold font at 13 px, in the other at 11.5 px."""
_WIDTH_MIN, _TEXT_MAX, _VALUE_MAX = 150.0, 38, 11


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Card:
    """One resource and its position."""

    node: GraphNode
    box: Box

    @property
    def kind(self) -> str:
        """The kind, shortened to fit."""
        return shorten(self.node.kind, limit=_TEXT_MAX)

    @property
    def name(self) -> str:
        """The name, shortened in the middle, because its end distinguishes it best."""
        return _middle_cut(self.node.name)


@dataclass(slots=True)
class GraphLayout:
    """Everything to draw."""

    width: float = 0.0
    height: float = 0.0
    cards: dict[str, Card] = field(default_factory=dict)
    groups: list[Box] = field(default_factory=list)
    """Outer boxes first."""
    tree: list[str] = field(default_factory=list)
    """SVG paths from each XR to its composed resources."""


@dataclass(frozen=True, slots=True)
class _Block:
    """A card, including the cards below it if it is an XR, placed at 0, 0."""

    node: GraphNode
    width: float
    height: float
    card: Box
    columns: tuple[tuple[float, tuple[tuple[float, _Block], ...]], ...] = ()
    """For each column its x, and its blocks with their y."""


def laid_out(graph: Graph) -> GraphLayout:
    """Place every card."""
    layout = GraphLayout()
    block = _block(graph, ROOT)
    layout.width, layout.height = block.width, block.height
    _place(layout, block, 0.0, 0.0)
    return layout


def lines_of(node: GraphNode) -> list[str]:
    """Return the lines of a card below kind and name."""
    more_line = [f"and {node.hidden_fields} more"] if node.hidden_fields else []
    return [*map(_field_cut, node.fields), *more_line]


def _field_cut(difference: FieldDifference) -> str:
    """Shorten a difference so that the end of its path and both values stay visible."""
    if len(str(difference)) <= _TEXT_MAX:
        return str(difference)
    old, new = shown_pair(difference.old, difference.new, limit=_VALUE_MAX)
    values = f" {old} → {new}" if old != new else ": text"
    room = _TEXT_MAX - len(values)
    path = difference.path if len(difference.path) <= room else f"…{difference.path[1 - room :]}"
    return path + values


def _middle_cut(text: str) -> str:
    if len(text) <= _TEXT_MAX:
        return text
    half = _TEXT_MAX // 2
    return f"{text[: half - 1]}…{text[-half:]}"


def _block(graph: Graph, path: str) -> _Block:
    node = graph.nodes[path]
    card = Box(0, 0, _width(node), HEAD + LINE * (1 + len(lines_of(node))) + 8)
    children = graph.children.get(path, ())
    if not children:
        return _Block(node, card.width, card.height, card)
    pad = 0.0 if path == ROOT else _PAD
    card = replace(card, x=pad, y=pad)
    x, top, bottom = pad + _GUTTER, card.y + card.height + 24, 0.0
    columns = []
    for column in _columns(graph, children):
        blocks, y = [], top
        for block in (_block(graph, child) for child in column):
            blocks.append((y, block))
            y += block.height + _GAP
        columns.append((x, tuple(blocks)))
        x += max(block.width for _, block in blocks) + _GUTTER
        bottom = max(bottom, y - _GAP)
    width = max(x - _GUTTER, card.x + card.width) + pad
    return _Block(node, width, bottom + pad, card, tuple(columns))


def _columns(graph: Graph, children: Sequence[str]) -> Iterator[list[str]]:
    """Yield the columns: one per rank, split if too long."""
    for _, column in groupby(
        children, key=lambda path: min(graph.nodes[path].rank, _RANKS_MAX - 1)
    ):
        rank = list(column)
        parts = -(-len(rank) // _ROWS_MAX)
        rows = -(-len(rank) // parts)
        yield from (rank[start : start + rows] for start in range(0, len(rank), rows))


def _width(node: GraphNode) -> float:
    mono = [len(_middle_cut(node.name)), *map(len, lines_of(node))]
    text = max((min(len(node.kind), _TEXT_MAX) + 2) * _SANS, max(mono) * _MONO)
    return max(_WIDTH_MIN, text + 2 * CARD_PAD)


def _place(layout: GraphLayout, block: _Block, x: float, y: float) -> None:
    card = replace(block.card, x=block.card.x + x, y=block.card.y + y)
    if block.columns and block.node.path != ROOT:
        layout.groups.append(Box(x, y, block.width, block.height))
    layout.cards[block.node.path] = Card(block.node, card)
    trunk = card.y + card.height + 12
    for column_x, column in block.columns:
        spine = x + column_x - _GUTTER / 2 + 4
        ends = []
        for top, below in column:
            _place(layout, below, x + column_x, y + top)
            box = layout.cards[below.node.path].box
            end = box.y + HEAD - 4
            ends.append(end)
            layout.tree.append(f"M{spine:.1f} {end:.1f}H{box.x:.1f}")
        layout.tree.append(f"M{spine:.1f} {trunk:.1f}V{ends[-1]:.1f}")
    if block.columns:
        first = x + block.columns[0][0] - _GUTTER / 2 + 4
        last = x + block.columns[-1][0] - _GUTTER / 2 + 4
        bottom = card.y + card.height
        layout.tree.append(f"M{first:.1f} {bottom:.1f}V{trunk:.1f}H{last:.1f}")
