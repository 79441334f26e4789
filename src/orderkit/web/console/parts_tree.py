"""
An order's tree for a page: which parts to unfold, how many are ready, what it waits for.

Made from the answers of ``traceOrder`` and ``orderEvents``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Node = dict[str, Any]
_EVENTS_MAX = 5


class PartsTree:
    """`root` is the Application; every node has an `id` and its newest `events`."""

    def __init__(self, trace: Mapping[str, Any], events: Sequence[Mapping[str, Any]] = ()) -> None:
        by_object: dict[str, list[Mapping[str, Any]]] = {}
        for event in events:
            by_object.setdefault(node_id(event["object"]), []).append(event)
        self.root = _node(trace["tree"], by_object)
        self._is_ready = trace["failing"] is None

    def walk(self) -> Iterator[Node]:
        """Yield every node, each before those below it."""
        yield from _walk(self.root)

    def parts(self) -> list[Node]:
        """Return what the order's XR composes, at any depth."""
        return [part for xr in self.root["children"] for part in _walk(xr) if part is not xr]

    def counts(self) -> dict[str, int]:
        """Return how many parts there are, and how many are ready."""
        parts = self.parts()
        return {"ready": sum(not _is_unready(part) for part in parts), "total": len(parts)}

    def waiting(self) -> list[Node]:
        """Return what is not ready, the deepest first: an XR waits for what it composes."""
        if self._is_ready:
            return []
        unready = [node for node in self.walk() if _is_unready(node)]
        deepest = [
            node for node in unready if not any(_is_unready(child) for child in node["children"])
        ]
        return [node for node in deepest if node is not self.root] or unready[:1]

    def open(self) -> list[str]:
        """Return the ids of the nodes to unfold: what leads to a failing one, else the first."""
        ids = [self.root["id"], *(child["id"] for child in self.root["children"])]
        return ids + [
            node["id"] for node in self.walk() if any(_is_unready(part) for part in _walk(node))
        ]


def node_id(key: Mapping[str, Any]) -> str:
    """Return a name for an object that an address can hold."""
    text = "/".join(str(key.get(n) or "") for n in ("apiVersion", "kind", "namespace", "name"))
    return f"part-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _node(node: Mapping[str, Any], events: Mapping[str, Sequence[Any]]) -> Node:
    children = [_node(child, events) for child in node["children"]]
    name = node_id(node)
    return {**node, "id": name, "events": events.get(name, ())[:_EVENTS_MAX], "children": children}


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node["children"]:
        yield from _walk(child)


def _is_unready(node: Node) -> bool:
    return bool(node["reason"]) or "False" in (node["synced"], node["ready"])
