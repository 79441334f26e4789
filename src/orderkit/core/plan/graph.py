"""
The graph of an order before and after a change, and the graph as Mermaid.

It shows what composes what, and what refers to what. One graph is for both sides: each resource is
in it once, with what happens to it. A nested XR is a group with its composed resources.
``graph_svg`` draws it too.

Mermaid is what GitHub and Gitea draw in Markdown. It contains names and counts, never a value of a
field. Characters that have a meaning in Mermaid are written as entities. States are words, because
Mermaid reads a label that begins with a sign as a list. Pure and deterministic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ground.objects.kube_objects import Kind, Manifest, metadata
from orderkit.core.order.change import FieldDifference
from orderkit.core.plan.assembly import namespace_edges, references
from orderkit.core.plan.comparison import Plan, ResourceChange

ROOT = ""
"""The path of the order's own XR."""
_FIELDS_MAX = 3


class NodeState(StrEnum):
    """What happens to a node; the values are those of `Action`, and one more."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"

    @property
    def sign(self) -> str:
        """A sign for the state, so that colour is never the only mark."""
        return {"added": "+", "changed": "~", "removed": "-", "replaced": "±"}.get(self.value, " ")


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One resource of the order."""

    path: str
    kind: str
    name: str
    """Includes the namespace."""
    state: NodeState
    fields: tuple[FieldDifference, ...] = ()
    """The first differences."""
    hidden_fields: int = 0
    """Number of differences not shown."""
    rank: int = 0
    """Number of siblings that must exist one after the other before this one."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Every resource of an order, before or after the change."""

    title: str
    summary: str
    nodes: Mapping[str, GraphNode]
    """By path. The order's XR is `ROOT` and comes first."""
    references: tuple[tuple[str, str], ...]
    """Pairs of paths: the first refers to the second."""
    children: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By path of an XR: the paths it composes, by rank, then by name."""


def graph_of(plan: Plan) -> Graph:
    """Return the graph of a plan. Deterministic."""
    resources = {**plan.before.resources, **plan.after.resources}
    edges = {edge for edge in references(resources) if not _is_kin(*edge)}
    family = _families(sorted(resources))
    ranks = _ranks(family, edges | namespace_edges(resources))
    changes = {change.path: change for change in plan.changes}
    nodes = {ROOT: _root(plan)}
    for path in sorted(resources):
        nodes[path] = _node(path, resources[path], changes.get(path), ranks[path])
    children = {
        parent: tuple(sorted(composed, key=lambda path: (ranks[path], path)))
        for parent, composed in family.items()
    }
    title = f"{nodes[ROOT].kind} {nodes[ROOT].name}"
    return Graph(title, plan.summary, nodes, tuple(sorted(edges)), children)


def _root(plan: Plan) -> GraphNode:
    fields = plan.fields
    state = NodeState.CHANGED if fields else NodeState.UNCHANGED
    return _node_of(ROOT, plan.after.xr, state, fields, 0)


def _node(path: str, manifest: Manifest, change: ResourceChange | None, rank: int) -> GraphNode:
    state = NodeState(change.action.value) if change else NodeState.UNCHANGED
    shows_fields = state in {NodeState.CHANGED, NodeState.REPLACED}
    fields = change.fields if change and shows_fields else ()
    return _node_of(path, manifest, state, fields, rank)


def _node_of(
    path: str, manifest: Manifest, state: NodeState, fields: Sequence[FieldDifference], rank: int
) -> GraphNode:
    meta = metadata(manifest)
    home = f"{meta['namespace']}/" if meta.get("namespace") else ""
    name = f"{home}{meta.get('name', '')}"
    shown_fields = tuple(fields[:_FIELDS_MAX])
    return GraphNode(
        path,
        Kind.of(manifest).kind,
        name,
        state,
        shown_fields,
        len(fields) - len(shown_fields),
        rank,
    )


def _is_kin(path: str, other_path: str) -> bool:
    """Return whether one is composed for the other; the graph has another edge for that."""
    return f"{path}/".startswith(f"{other_path}/") or f"{other_path}/".startswith(f"{path}/")


def _families(paths: Sequence[str]) -> dict[str, list[str]]:
    """Return the children of each XR, found by the longest path prefix that is a resource."""
    known_paths, families = set(paths), dict[str, list[str]]({ROOT: []})
    for path in paths:
        families.setdefault(parent_of(path, known_paths), []).append(path)
    return families


def parent_of(path: str, known_paths: set[str]) -> str:
    """Return the XR that composes a resource."""
    return next((above for above in _above(path) if above in known_paths), ROOT)


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _ranks(family: Mapping[str, Sequence[str]], edges: set[tuple[str, str]]) -> dict[str, int]:
    ranks: dict[str, int] = {}
    for siblings in family.values():
        waits: dict[str, set[str]] = {path: set() for path in siblings}
        for source, target in edges:
            waiting, awaited = _sibling(source, waits), _sibling(target, waits)
            if waiting and awaited and waiting != awaited:
                waits[waiting].add(awaited)
        ranks |= _ranks_of_siblings(waits)
    return ranks


def _sibling(path: str, siblings: Mapping[str, object]) -> str | None:
    """Return the sibling that a resource is, or below which it is composed."""
    return (
        path
        if path in siblings
        else next((above for above in _above(path) if above in siblings), None)
    )


def _ranks_of_siblings(waits: Mapping[str, set[str]]) -> dict[str, int]:
    """Rank each sibling after those it waits for."""
    ranks: dict[str, int] = {}
    unranked = sorted(waits)
    while unranked:
        # in a cycle, the first by name does not wait for the others
        free = [path for path in unranked if waits[path] <= ranks.keys()] or unranked[:1]
        new_ranks = {
            path: 1
            + max(
                (ranks[dependency] for dependency in waits[path] if dependency in ranks), default=-1
            )
            for path in free
        }
        ranks |= new_ranks
        unranked = [path for path in unranked if path not in ranks]
    return ranks


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
