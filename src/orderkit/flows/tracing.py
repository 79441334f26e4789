"""
Trace an order: Application, XR, everything composed, nested XRs included, and what fails first.

What ``crossplane resource trace`` shows for an XR, beginning one step earlier, at Git.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from orderkit.core import orderstate
from orderkit.core.objects import Manifest, ObjectKey, condition, dig, metadata
from orderkit.flows.orders import OrderReport, status
from orderkit.flows.platform import Platform, get_object
from orderkit.flows.refreshing import application_key


@dataclass(frozen=True, slots=True)
class Node:
    """One object of the tree. `synced` and `ready` are "True", "False", "Unknown" or "-"."""

    key: ObjectKey
    synced: str
    ready: str
    reason: str
    children: tuple[Node, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return this node and all below it."""
        return {
            **self.key.to_json(),
            "synced": self.synced,
            "ready": self.ready,
            "reason": self.reason,
            "children": [child.to_json() for child in self.children],
        }

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Node]]:
        """Yield this node and all below it, with their depth."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


@dataclass(frozen=True, slots=True)
class Trace:
    """`failing` is the deepest first thing that says why, None when all is well."""

    report: OrderReport
    root: Node
    failing: Node | None = None


def trace(platform: Platform, order: str) -> Trace:
    """
    Read an order's whole tree from the cluster.

    Raises:
        NotFoundError: The ledger has no such order.
    """
    report = status(platform, order)
    key = application_key(report.entry.order)
    application = platform.cluster.get(key)
    children = (_node(platform, report.xr, frozenset()),) if report.xr else ()
    root = _application_node(key, application, children)
    return Trace(report, root, _first_failing(root))


def _application_node(
    key: ObjectKey, application: Manifest | None, children: tuple[Node, ...]
) -> Node:
    if application is None:
        return Node(key, "-", "-", "not in the cluster", children)
    health = dig(application, "status", "health", "status", default="Unknown")
    waiting = orderstate.undelivered(application, None)
    return Node(
        key,
        synced="False" if waiting else "True",
        ready="True" if health == "Healthy" else "False",
        reason=orderstate.delivery_failure(application) or waiting,
        children=children,
    )


def _node(platform: Platform, key: ObjectKey, above: frozenset[ObjectKey]) -> Node:
    found = get_object(platform, key)
    if found is None:
        return Node(key, "-", "-", "not in the cluster")
    children = tuple(
        _node(platform, child, above | {key}) for child in _composed(found) if child not in above
    )
    return Node(key, _status(found, "Synced"), _status(found, "Ready"), _reason(found), children)


def _composed(found: Manifest) -> Iterator[ObjectKey]:
    """Yield what an XR composes; what a namespaced one composes is in its own namespace."""
    references = dig(found, "spec", "crossplane", "resourceRefs") or dig(
        found, "spec", "resourceRefs", default=()
    )
    own = str(metadata(found).get("namespace") or "")
    for reference in references:
        yield ObjectKey.from_json({**reference, "namespace": own or reference.get("namespace", "")})


def _status(found: Manifest, type_: str) -> str:
    entry = condition(found, type_)
    return str(entry["status"]) if entry else "-"


def _reason(found: Manifest) -> str:
    if metadata(found).get("deletionTimestamp"):
        return "is being deleted"
    if condition(found, "Synced") or condition(found, "Ready"):
        return orderstate.xr_failure(found) or orderstate.xr_unready(found)
    return ""


def _first_failing(node: Node) -> Node | None:
    """Prefer the deepest: an XR is unready *because* of what it composes."""
    for child in node.children:
        found = _first_failing(child)
        if found:
            return found
    return node if node.reason else None
