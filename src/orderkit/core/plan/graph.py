"""
The graph of an order before and after a change: what composes what, what names what.

One graph for both sides: each resource stands in it once, with what happens to it. A nested XR is
a group of what it composes. ``mermaid`` and ``svg`` draw it. Pure and deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from orderkit.core.objects.kube_objects import Kind, Manifest, metadata
from orderkit.core.order.change import FieldDifference
from orderkit.core.plan.comparison import Plan, ResourceChange
from orderkit.core.plan.graph_references import references, rooms

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
        """How it is marked, so that colour says nothing alone."""
        return {"added": "+", "changed": "~", "removed": "-", "replaced": "±"}.get(self.value, " ")


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One resource of the order."""

    path: str
    kind: str
    name: str
    """With its namespace."""
    state: NodeState
    fields: tuple[FieldDifference, ...] = ()
    """The first that differ."""
    more: int = 0
    """How many differences are not told."""
    rank: int = 0
    """How many of its siblings have to be there one after the other before it."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Every resource of an order, on whichever side of the change it is."""

    title: str
    summary: str
    nodes: Mapping[str, GraphNode]
    """By path; the order's XR is `ROOT` and the first."""
    references: tuple[tuple[str, str], ...]
    """Pairs of paths: the first names the second."""
    children: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By path of an XR: what it composes, as it is read: by rank, then by name."""


def graph_of(plan: Plan) -> Graph:
    """Return the graph of a plan. Deterministic."""
    resources = {**plan.before.resources, **plan.after.resources}
    edges = {each for each in references(resources) if not _is_kin(*each)}
    family = _families(sorted(resources))
    ranks = _ranks(family, edges | rooms(resources))
    changes = {each.path: each for each in plan.changes}
    nodes = {ROOT: _root(plan)}
    for path in sorted(resources):
        nodes[path] = _node(path, resources[path], changes.get(path), ranks[path])
    children = {
        parent: tuple(sorted(own, key=lambda path: (ranks[path], path)))
        for parent, own in family.items()
    }
    title = f"{nodes[ROOT].kind} {nodes[ROOT].name}"
    return Graph(title, plan.summary, nodes, tuple(sorted(edges)), children)


def _root(plan: Plan) -> GraphNode:
    told = plan.fields
    state = NodeState.CHANGED if told else NodeState.UNCHANGED
    return _told(ROOT, plan.after.xr, state, told, 0)


def _node(path: str, manifest: Manifest, change: ResourceChange | None, rank: int) -> GraphNode:
    state = NodeState(change.action.value) if change else NodeState.UNCHANGED
    told = state in {NodeState.CHANGED, NodeState.REPLACED}
    fields = change.fields if change and told else ()
    return _told(path, manifest, state, fields, rank)


def _told(
    path: str, manifest: Manifest, state: NodeState, fields: Sequence[FieldDifference], rank: int
) -> GraphNode:
    meta = metadata(manifest)
    home = f"{meta['namespace']}/" if meta.get("namespace") else ""
    name = f"{home}{meta.get('name', '')}"
    shown = tuple(fields[:_FIELDS_MAX])
    return GraphNode(
        path, Kind.of(manifest).kind, name, state, shown, len(fields) - len(shown), rank
    )


def _is_kin(one: str, other: str) -> bool:
    """Say whether one is composed for the other: that is another kind of edge."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _families(paths: Sequence[str]) -> dict[str, list[str]]:
    """Return what each XR composes itself, by the longest path above that is a resource."""
    known, found = set(paths), dict[str, list[str]]({ROOT: []})
    for path in paths:
        found.setdefault(parent_of(path, known), []).append(path)
    return found


def parent_of(path: str, known: set[str]) -> str:
    """Return the XR that composes a resource."""
    return next((above for above in _above(path) if above in known), ROOT)


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _ranks(family: Mapping[str, Sequence[str]], edges: set[tuple[str, str]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for own in family.values():
        waits: dict[str, set[str]] = {path: set() for path in own}
        for source, target in edges:
            one, other = _within(source, waits), _within(target, waits)
            if one and other and one != other:
                waits[one].add(other)
        found |= _ranked(waits)
    return found


def _within(path: str, own: Mapping[str, object]) -> str | None:
    """Return the sibling that a resource is, or is composed below."""
    return path if path in own else next((above for above in _above(path) if above in own), None)


def _ranked(waits: Mapping[str, set[str]]) -> dict[str, int]:
    """Rank each after what it waits for; of those that wait for each other the first goes first."""
    ranks: dict[str, int] = {}
    left = sorted(waits)
    while left:
        free = [path for path in left if waits[path] <= ranks.keys()] or left[:1]
        told = {
            path: 1 + max((ranks[each] for each in waits[path] if each in ranks), default=-1)
            for path in free
        }
        ranks |= told
        left = [path for path in left if path not in ranks]
    return ranks
