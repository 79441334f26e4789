"""
Which XRs depend on which objects, so that a change of one wakes the others.

An XR depends on what it composes (by name) and on what its functions require (by name or
labels). Kept in memory only: every XR is reconciled once after a start, which fills it again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from compositions.station import Selector
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, labels_of, metadata


@dataclass(frozen=True, slots=True)
class _Dependencies:
    composed: frozenset[ObjectKey]
    required: tuple[Selector, ...]


class Tracker:
    """The dependencies of one kind of XR. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[ObjectKey, _Dependencies] = {}

    def track(
        self, xr: ObjectKey, composed: Iterable[ObjectKey], required: Iterable[Selector]
    ) -> None:
        """Replace the dependencies of an XR."""
        with self._lock:
            self._known[xr] = _Dependencies(frozenset(composed), tuple(required))

    def forget(self, xr: ObjectKey) -> None:
        with self._lock:
            self._known.pop(xr, None)

    def kinds(self) -> frozenset[Kind]:
        """Return every kind that an XR depends on."""
        with self._lock:
            tracked = tuple(self._known.values())
        composed = {key.kind for dependencies in tracked for key in dependencies.composed}
        required = {Kind.parse(s.api_version, s.kind) for d in tracked for s in d.required}
        return frozenset(composed | required)

    def dependants(self, changed: Manifest) -> tuple[ObjectKey, ...]:
        """Return the XRs that depend on this object."""
        key = ObjectKey.of(changed)
        with self._lock:
            tracked = tuple(self._known.items())
        return tuple(
            xr
            for xr, dependencies in tracked
            if key in dependencies.composed
            or any(_selects(selector, key, changed) for selector in dependencies.required)
        )


def _selects(selector: Selector, key: ObjectKey, manifest: Manifest) -> bool:
    if Kind.parse(selector.api_version, selector.kind) != key.kind:
        return False
    if selector.namespace is not None and selector.namespace != key.namespace:
        return False
    if selector.name:
        return selector.name == metadata(manifest).get("name")
    labels = labels_of(manifest)
    return all(labels.get(name) == value for name, value in selector.labels.items())
