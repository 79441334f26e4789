"""
A plan's graph as Mermaid, which GitHub and Gitea draw in Markdown.

It contains names and counts, never a value of a field. Characters that have a meaning in Mermaid
are written as entities. States are words, because Mermaid reads a label that begins with a sign as
a list. Pure and deterministic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from orderkit.core.plan.graph import ROOT, Graph, GraphNode, NodeState

_OURS = re.compile(r"[^A-Za-z0-9 ./:_-]")
_COLOURS = {
    NodeState.ADDED: "fill:#dafbe1,stroke:#1a7f37,color:#0b4820",
    NodeState.CHANGED: "fill:#fff8c5,stroke:#9a6700,color:#4d3800",
    NodeState.REMOVED: "fill:#ffebe9,stroke:#cf222e,color:#82071e,stroke-dasharray:4 3",
    NodeState.REPLACED: "fill:#ffebe9,stroke:#cf222e,color:#82071e",
    NodeState.UNCHANGED: "fill:#f6f8fa,stroke:#8c959f,color:#424a53",
}
"""Each state also sets its text colour, so that it is readable on light and dark pages."""


def to_mermaid(graph: Graph) -> str:
    """Return a flowchart: lines for composed resources, dashed arrows for references."""
    names = {path: f"n{number}" for number, path in enumerate(graph.nodes)}
    lines = ["flowchart LR", f"  {_box(graph.nodes[ROOT], names)}"]
    lines += [f"  {line}" for line in _group(graph, ROOT, names)]
    lines += [
        f"  {names[source]} -.-> {names[target]}"
        for source, target in graph.references
        if source in names and target in names
    ]
    lines += [f"  classDef {state} {colours}" for state, colours in _COLOURS.items()]
    return "\n".join(lines) + "\n"


def _group(graph: Graph, path: str, names: dict[str, str]) -> Iterator[str]:
    for child in graph.children.get(path, ()):
        if child in graph.children:
            yield f'subgraph g{names[child]}["{_escaped(child)}"]'
            yield f"  {_box(graph.nodes[child], names)}"
            yield from (f"  {line}" for line in _group(graph, child, names))
            yield "end"
        else:
            yield _box(graph.nodes[child], names)
        yield f"{names[path]} --> {names[child]}"


def _box(node: GraphNode, names: dict[str, str]) -> str:
    count = len(node.fields) + node.hidden_fields
    field_count = f": {count} field{'s' if count > 1 else ''}" if count else ""
    rows = [node.kind, node.name, f"{node.state}{field_count}"]
    rows = rows if node.state is not NodeState.UNCHANGED else rows[:2]
    label = "<br/>".join(map(_escaped, rows))
    return f'{names[node.path]}["{label}"]:::{node.state}'


def _escaped(text: str) -> str:
    return _OURS.sub(lambda match: f"#{ord(match[0])};", text)
