"""
Which XRs depend on which objects, so that a change of one wakes the others.

An XR depends on what it composes (by name) and on what its functions require (by name or
labels). Kept in memory only: every XR is reconciled once after a start, which fills it again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from compositions.station import Selector
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, labels_of, metadata


class Tracker:
    """The dependencies of one kind of XR. Thread-safe; a question does not walk through all XRs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._composed: dict[ObjectKey, frozenset[ObjectKey]] = {}
        self._composers: dict[ObjectKey, set[ObjectKey]] = {}
        self._required: dict[Kind, dict[ObjectKey, list[Selector]]] = {}

    def track(
        self, xr: ObjectKey, composed: Iterable[ObjectKey], required: Iterable[Selector]
    ) -> frozenset[Kind]:
        """Replace the dependencies of an XR; return their kinds."""
        composed = frozenset(composed)
        by_kind: dict[Kind, list[Selector]] = {}
        for selector in required:
            by_kind.setdefault(Kind.parse(selector.api_version, selector.kind), []).append(selector)
        with self._lock:
            self._unlink(xr)
            self._composed[xr] = composed
            for key in composed:
                self._composers.setdefault(key, set()).add(xr)
            for kind, selectors in by_kind.items():
                self._required.setdefault(kind, {})[xr] = selectors
        return frozenset({key.kind for key in composed} | by_kind.keys())

    def forget(self, xr: ObjectKey) -> None:
        with self._lock:
            self._unlink(xr)

    def _unlink(self, xr: ObjectKey) -> None:
        for key in self._composed.pop(xr, ()):
            composers = self._composers[key]
            composers.discard(xr)
            if not composers:
                del self._composers[key]
        for xrs in self._required.values():
            xrs.pop(xr, None)

    def dependants(self, changed: Manifest) -> tuple[ObjectKey, ...]:
        """Return the XRs that depend on this object."""
        key = ObjectKey.of(changed)
        with self._lock:
            found = set(self._composers.get(key, ()))
            requiring = tuple(self._required.get(key.kind, {}).items())
        for xr, selectors in requiring:
            if any(_selects(selector, key, changed) for selector in selectors):
                found.add(xr)
        return tuple(found)


def _selects(selector: Selector, key: ObjectKey, manifest: Manifest) -> bool:
    if selector.namespace is not None and selector.namespace != key.namespace:
        return False
    if selector.name:
        return selector.name == metadata(manifest).get("name")
    labels = labels_of(manifest)
    return all(labels.get(name) == value for name, value in selector.labels.items())
