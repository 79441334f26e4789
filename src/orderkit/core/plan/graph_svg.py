"""
A plan's graph as SVG: one self-contained file, readable on light and dark pages.

Colour is never the only mark: signs say the same. Text widths are estimated, not measured, so texts
are shortened a little more than necessary.

`laid_out` places the cards: an XR above, its composed resources in columns below. A column contains
what waits for the column before it; long columns are split. A nested XR is a box around its own
columns. All values are in pixels.

Pure and deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import groupby

from ground.errors import shorten
from ground.objects.values import shown_pair
from orderkit.core.order.change import FieldDifference
from orderkit.core.plan.graph import ROOT, Graph, GraphNode, NodeState

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


_MARGIN = 20.0
_TITLE = 58.0
_LEGEND = 36.0
_STYLE = """
  :root{color-scheme:light dark}
  .page{fill:#ffffff;stroke:#d0d7de}.group{fill:#f6f8fa;stroke:#d0d7de}
  .card{fill:#ffffff;stroke:#d0d7de}.t{fill:#1f2328}.s{fill:#59636e}
  .tree{stroke:#afb8c1}.ref{stroke:#59636e}.tip{fill:#59636e}
  .added{fill:#1a7f37}.changed{fill:#9a6700}.removed{fill:#cf222e}
  .replaced{fill:#cf222e}.unchanged{fill:#afb8c1}
  .card.is-added{fill:#effcf2;stroke:#4ac26b}.card.is-changed{fill:#fffbe6;stroke:#d4a72c}
  .card.is-removed{fill:#fff1f0;stroke:#ff8182;stroke-dasharray:5 3}
  .card.is-replaced{fill:#fff1f0;stroke:#ff8182}
  @media (prefers-color-scheme:dark){
  .page{fill:#0d1117;stroke:#30363d}.group{fill:#131920;stroke:#30363d}
  .card{fill:#161b22;stroke:#3d444d}.t{fill:#f0f6fc}.s{fill:#9198a1}
  .tree{stroke:#4b535d}.ref{stroke:#9198a1}.tip{fill:#9198a1}
  .added{fill:#3fb950}.changed{fill:#d29922}.removed{fill:#f85149}
  .replaced{fill:#f85149}.unchanged{fill:#656c76}
  .card.is-added{fill:#12261e;stroke:#2ea043}.card.is-changed{fill:#272115;stroke:#9e6a03}
  .card.is-removed{fill:#25171c;stroke:#da3633}.card.is-replaced{fill:#25171c;stroke:#da3633}}
  text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;font-size:13px}
  .h{font-size:17px;font-weight:650}.k{font-weight:600}
  .m{font-family:ui-monospace,SFMono-Regular,Menlo,'DejaVu Sans Mono',monospace;font-size:11.5px}
  .tree,.ref{fill:none;stroke-width:1.3}.ref{stroke-dasharray:4 3}
"""


def to_svg(graph: Graph) -> str:
    """Return the picture: the order's XR, composed resources below, references as dashed lines."""
    layout = laid_out(graph)
    width = max(layout.width, 420.0) + 2 * _MARGIN
    height = layout.height + _TITLE + _LEGEND + _MARGIN
    size = f'viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" height="{_n(height)}"'
    label = _text(f"{graph.title}: {graph.summary}")
    room = int((width - 2 * _MARGIN) / 7.5)
    page = Box(0.5, 0.5, width - 1, height - 1)
    title, summary = (shorten(text, limit=room) for text in (graph.title, graph.summary))
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="t d">',
        f'<title id="t">Plan of {_text(graph.title)}</title><desc id="d">{label}</desc>',
        f"<style>{_STYLE}</style>",
        f'<rect class="page" {_placed_at(page)} rx="10"/>',
        f'<text class="t h" x="{_n(_MARGIN)}" y="28">{_text(title)}</text>',
        f'<text class="s" x="{_n(_MARGIN)}" y="47">{_text(summary)}</text>',
        f'<g transform="translate({_n(_MARGIN)} {_n(_TITLE)})">',
        *_drawn(graph, layout),
        "</g>",
        *_legend(graph, height - _MARGIN),
        "</svg>",
    ]
    return "\n".join(rows) + "\n"


def _drawn(graph: Graph, layout: GraphLayout) -> Iterator[str]:
    yield from (_group(group) for group in layout.groups)
    yield from (f'<path class="tree" d="{path}"/>' for path in layout.tree)
    for source, target in graph.references:
        yield from _reference(layout.cards[source], layout.cards[target])
    for card in layout.cards.values():
        yield from _card(card)


def _group(box: Box) -> str:
    return f'<rect class="group" {_placed_at(box)} rx="10"/>'


def _placed_at(box: Box) -> str:
    return f'x="{_n(box.x)}" y="{_n(box.y)}" width="{_n(box.width)}" height="{_n(box.height)}"'


def _card(card: Card) -> Iterator[str]:
    node, box = card.node, card.box
    x, y = box.x + CARD_PAD, box.y + HEAD
    yield f"<g><title>{_text(node.path or 'the order')}: {node.state}</title>"
    yield f'<rect class="card is-{node.state}" {_placed_at(box)} rx="6"/>'
    bar = Box(box.x, box.y + 6, 3, box.height - 12)
    yield f'<rect class="{node.state}" {_placed_at(bar)} rx="1.5"/>'
    sign = ""
    if node.state is not NodeState.UNCHANGED:
        sign = f'<tspan class="k {node.state}">{node.state.sign} </tspan>'
    yield f'<text class="t k" x="{_n(x)}" y="{_n(y)}">{sign}{_text(card.kind)}</text>'
    yield f'<text class="s m" x="{_n(x)}" y="{_n(y + LINE)}">{_text(card.name)}</text>'
    for number, line in enumerate(lines_of(node)):
        position = f'x="{_n(x)}" y="{_n(y + LINE * (number + 2))}"'
        yield f'<text class="t m" {position}>{_text(line)}</text>'
    yield "</g>"


def _reference(source: Card, target: Card) -> Iterator[str]:
    """Draw a dashed line from a resource to the one it refers to."""
    from_box, to_box = source.box, target.box
    y1, y2 = from_box.y + from_box.height / 2, to_box.y + to_box.height / 2
    if to_box.x + to_box.width <= from_box.x:
        x1, x2, bend = from_box.x, to_box.x + to_box.width, -1
    elif from_box.x + from_box.width <= to_box.x:
        x1, x2, bend = from_box.x + from_box.width, to_box.x, 1
    else:
        x1, x2, bend = from_box.x + from_box.width, to_box.x + to_box.width, 0
    reach = max(24.0, abs(x2 - x1) / 2) if bend else 26.0
    first, second = x1 + (bend or 1) * reach, x2 - bend * reach if bend else x2 + reach
    curve = f"M{_n(x1)} {_n(y1)}C{_n(first)} {_n(y1)} {_n(second)} {_n(y2)} {_n(x2)} {_n(y2)}"
    yield f'<path class="ref" d="{curve}"/>'
    yield f'<circle class="tip" cx="{_n(x2)}" cy="{_n(y2)}" r="3"/>'


def _legend(graph: Graph, y: float) -> Iterator[str]:
    x = _MARGIN
    counts = dict.fromkeys(NodeState, 0)
    for path, node in graph.nodes.items():
        counts[node.state] += bool(path)
    for state, count in counts.items():
        if count:
            label = f"{count} {state}"
            yield f'<rect class="{state}" {_placed_at(Box(x, y - 9, 10, 10))} rx="2"/>'
            yield f'<text class="s" x="{_n(x + 16)}" y="{_n(y)}">{label}</text>'
            x += 34 + len(label) * 6.8
    if graph.references:
        yield f'<path class="ref" d="M{_n(x)} {_n(y - 4)}h22"/>'
        yield f'<circle class="tip" cx="{_n(x + 24)}" cy="{_n(y - 4)}" r="3"/>'
        yield f'<text class="s" x="{_n(x + 34)}" y="{_n(y)}">names</text>'


def _text(text: str) -> str:
    """Escape a text for XML. Characters that XML does not allow are left out."""
    kept = "".join(char for char in text if char >= " " and char not in "\ufffe\uffff")
    return escape(kept.encode(errors="replace").decode())


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
