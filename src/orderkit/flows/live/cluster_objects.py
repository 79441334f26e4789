"""
The Applications, XRs and composed objects that the live model knows, and whose they are.

An object counts as part of an XR only if the XR refers to it and its controller is that XR (its
uid): whoever pushes an XR may write references to objects of others into it. Thread-safe.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from ground.objects.kube_objects import Kind, Manifest, ObjectKey, metadata
from orderkit.core.order.added_documents import Delivered, delivered_by_team
from orderkit.core.order.order_view import PartState
from orderkit.core.order.part_states import MISSING
from orderkit.flows.live.kept_objects import KeptObject, application_text, is_composed, kept_object
from orderkit.flows.order.activity import Delivery

DEPTH_MAX = 10
"""Of nested XRs."""
PARTS_MAX = 2_000
"""Of one order."""


class ClusterObjects:
    """What was seen of the cluster. Calls `on_change` with the id of each order that changed."""

    def __init__(self, on_change: Callable[[str], None]) -> None:
        self._lock = threading.RLock()
        self._on_change = on_change
        self._applications: dict[str, bytes] = {}
        self._deliveries: dict[str, Delivery | None] = {}
        self._of_teams: dict[str, Delivered] = {}
        self._objects: dict[ObjectKey, KeptObject] = {}
        self._by_uid: dict[str, ObjectKey] = {}
        self._references: Counter[Kind] = Counter()

    def put_application(self, application: Manifest) -> bool:
        """Take an Application as it is now. Return whether it is new or differs."""
        name, data = str(metadata(application)["name"]), application_text(application)
        delivery, of_team = Delivery.of(application), delivered_by_team(application)
        with self._lock:
            if of_team is not None:
                self._of_teams[name] = of_team
            if self._applications.get(name) == data:
                return False
            self._applications[name] = data
            self._deliveries[name] = delivery
        self._on_change(name)
        return True

    def remove_application(self, name: str) -> None:
        """Forget an Application. Idempotent."""
        with self._lock:
            was_there = self._applications.pop(name, None) is not None
            self._deliveries.pop(name, None)
            self._of_teams.pop(name, None)
        if was_there:
            self._on_change(name)

    def application_names(self) -> set[str]:
        """Return the names of all Applications."""
        with self._lock:
            return set(self._applications)

    def application(self, name: str) -> Manifest | None:
        """Return what is kept of an Application."""
        with self._lock:
            return _parsed(self._applications.get(name))

    def deliveries(self) -> list[Delivery]:
        """Return when each order was delivered last."""
        with self._lock:
            return [delivery for delivery in self._deliveries.values() if delivery]

    def delivered_by_teams(self) -> dict[str, Delivered]:
        """Return what each team's Application delivers, by its name."""
        with self._lock:
            return dict(self._of_teams)

    def put(self, manifest: Manifest, *, is_kits: bool) -> None:
        """
        Take an object as it is now.

        Args:
            manifest: As the cluster has it; nothing of it is kept but `kept_object`.
            is_kits: Its kind is a kit's.

        Raises:
            ValueError: It has no kind or no name.
        """
        if not is_kits and not is_composed(manifest):
            return self.remove(ObjectKey.of(manifest))
        kept = kept_object(manifest, is_kits=is_kits)
        with self._lock:
            former = self._objects.get(kept.state.key)
            if former == kept:
                return None
            orders = self._forgotten(former) if former else set()
            self._objects[kept.state.key] = kept
            if kept.uid:
                self._by_uid[kept.uid] = kept.state.key
            self._references.update(key.kind for key in kept.composed)
            orders |= self._orders_of(kept)
        return self._tell(orders)

    def remove(self, key: ObjectKey) -> None:
        """Forget an object. Idempotent."""
        with self._lock:
            former = self._objects.get(key)
            orders = self._forgotten(former) if former else set()
        self._tell(orders)

    def keys(self, kind: Kind) -> set[ObjectKey]:
        """Return the keys of all objects of a kind."""
        with self._lock:
            return {key for key in self._objects if key.kind == kind}

    def composed_kinds(self) -> set[Kind]:
        """Return the kinds that XRs refer to."""
        with self._lock:
            return {kind for kind, count in self._references.items() if count > 0}

    def xr(self, key: ObjectKey) -> Manifest | None:
        """Return what is kept of an XR of a kit's kind."""
        with self._lock:
            kept = self._objects.get(key)
            return _parsed(kept.data) if kept else None

    def parts(self, key: ObjectKey, unknown: Callable[[Kind], str | None]) -> tuple[PartState, ...]:
        """
        Return the state of everything that an XR, and XRs below it, compose.

        Args:
            key: Of the XR.
            unknown: Returns None for a kind whose objects are all known; the reason to show, or ""
                to leave the object out, for another.
        """
        with self._lock:
            root = self._objects.get(key)
            if root is None:
                return ()
            found: dict[ObjectKey, PartState] = {}
            for part in self._below(root, unknown, 0):
                found.setdefault(part.key, part)
                if len(found) >= PARTS_MAX:
                    break
            return tuple(found.values())

    def _below(
        self, xr: KeptObject, unknown: Callable[[Kind], str | None], depth: int
    ) -> Iterator[PartState]:
        for key in xr.composed:
            kept = self._objects.get(key)
            if kept is None:
                why = unknown(key.kind)
                if why is None:
                    yield PartState(key, "-", "-", MISSING)
                elif why:
                    yield PartState(key, "-", "Unknown", why)
            elif kept.owner_uid == xr.uid:
                yield kept.state
                if depth < DEPTH_MAX:
                    yield from self._below(kept, unknown, depth + 1)

    def _forgotten(self, former: KeptObject) -> set[str]:
        """Forget an object; return the orders that it was of. The caller holds the lock."""
        orders = self._orders_of(former)
        del self._objects[former.state.key]
        if former.uid and self._by_uid.get(former.uid) == former.state.key:
            del self._by_uid[former.uid]
        self._references.subtract(key.kind for key in former.composed)
        return orders

    def _orders_of(self, kept: KeptObject) -> set[str]:
        """Return the orders whose row an object may change. The caller holds the lock."""
        orders = set()
        current: KeptObject | None = kept
        for _ in range(DEPTH_MAX + 1):
            if current is None:
                break
            if current.order:
                orders.add(current.order)
            owner = self._by_uid.get(current.owner_uid) if current.owner_uid else None
            current = self._objects.get(owner) if owner else None
        return orders

    def _tell(self, orders: set[str]) -> None:
        for order in orders:
            self._on_change(order)


def _parsed(data: bytes | None) -> Manifest | None:
    if not data:
        return None
    manifest: Any = json.loads(data)
    return manifest if isinstance(manifest, dict) else None
