"""
The Applications, XRs and composed objects that the live model knows, and whose they are.

An object counts as part of an XR only if the XR refers to it and its controller is that XR (its
uid): whoever pushes an XR may write references to objects of others into it. Thread-safe.

Of each object of the cluster as little is kept as rows need (`kept_object`, `application_text`).
Ten thousand orders of twenty objects each have to fit into memory, and no single object may fill
it, whatever somebody pushed. Applications and XRs become JSON texts without what no row shows; of
composed objects only their state stays. No value of a Secret is kept. Pure.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from compositions.composed import COMPOSITE_LABEL, composed_keys
from ground.argocd.delivery_obstacles import tracker
from ground.errors import shorten
from ground.objects.kube_objects import (
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    controller,
    dig,
    labels_of,
    metadata,
)
from orderkit.core.order.added_documents import Delivered, delivered_by_team
from orderkit.core.order.order_view import PartState
from orderkit.core.order.part_failures import MISSING, part_state
from orderkit.core.secret_values import APPLIED
from orderkit.flows.order.activity import Delivery

KEPT_BYTES_MAX = 64_000
"""Of one Application or XR; of a larger one only metadata and conditions stay."""
_METADATA = (
    "name", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp",
    "labels", "annotations", "finalizers",
)  # fmt: skip
_RESOURCES_MAX = 50
_COMPOSED_MAX = 1_000
_CONDITIONS_MAX = 10
_TEXT_MAX, _SHORT_TEXT_MAX = 1_000, 500


@dataclass(frozen=True, slots=True)
class KeptObject:
    """An XR or a composed object."""

    state: PartState
    composed: tuple[ObjectKey, ...] = ()
    """What it refers to, if it is an XR."""
    uid: str = ""
    """Of an XR; empty otherwise."""
    owner_uid: str = ""
    """The uid of its controller; empty if there is none."""
    order: str = ""
    """The order whose Application delivers it; empty for composed objects."""
    data: bytes = b""
    """The XR itself as JSON, if it is of a kit's kind."""


def kept_object(manifest: Manifest, *, is_kits: bool) -> KeptObject:
    """
    Return what stays of an object.

    Raises:
        ValueError: It has no kind or no name.
    """
    composed = _composed(manifest)
    owner = controller(manifest) or {}
    state = part_state(manifest)
    key = _shared(state.key)
    return KeptObject(
        replace(
            state,
            key=key,
            synced=_word(state.synced),
            ready=_word(state.ready),
            reason=_short(state.reason),
        ),
        composed,
        uid=_shared_text(metadata(manifest).get("uid")) if composed or is_kits else "",
        owner_uid=_shared_text(owner.get("uid")),
        order=tracker(manifest),
        data=_xr_text(manifest) if is_kits else b"",
    )


def is_composed(manifest: Manifest) -> bool:
    """Say whether Crossplane composed an object: everything else of its kind is left out."""
    return COMPOSITE_LABEL in labels_of(manifest)


def application_text(application: Manifest) -> bytes:
    """Return what stays of an Application: what judging its delivery needs."""
    status = _map(application.get("status"))
    operation = _map(status.get("operationState"))
    result = _map(operation.get("syncResult"))
    kept_status: dict[str, Any] = {
        **{name: status[name] for name in ("health", "conditions") if name in status},
        "sync": {k: v for k, v in _map(status.get("sync")).items() if k in ("status", "revision")},
        "resources": _listed(status.get("resources"))[:_RESOURCES_MAX],
        "history": [
            {k: entry.get(k) for k in ("revision", "deployedAt")}
            for entry in _listed(status.get("history"))[-1:]
        ],
    }
    if operation:
        kept_status["operationState"] = {
            **operation,
            "syncResult": {**result, "resources": _worst(_listed(result.get("resources")))},
        }
    kept = {**_identity(application), "spec": application.get("spec"), "status": kept_status}
    if "operation" in application:
        kept["operation"] = application["operation"]
    return _text(kept, application)


def _xr_text(xr: Manifest) -> bytes:
    """Return what stays of an XR: all but its references, which are kept as keys."""
    spec = {name: value for name, value in _map(xr.get("spec")).items() if name != "resourceRefs"}
    if isinstance(spec.get("crossplane"), dict):
        crossplane = spec["crossplane"]
        spec["crossplane"] = {k: v for k, v in crossplane.items() if k != "resourceRefs"}
    return _text({**_identity(xr), "spec": spec, "status": xr.get("status")}, xr)


def _identity(manifest: Manifest) -> dict[str, Any]:
    meta = {name: value for name in _METADATA if (value := metadata(manifest).get(name))}
    annotations = annotations_of(manifest)
    # kubectl apply keeps a second copy of the whole object there
    if APPLIED in annotations:
        meta["annotations"] = {k: v for k, v in annotations.items() if k != APPLIED}
    return {
        "apiVersion": manifest.get("apiVersion"),
        "kind": manifest.get("kind"),
        "metadata": meta,
    }


def _text(kept: Mapping[str, Any], manifest: Manifest) -> bytes:
    data = _json(kept)
    if len(data) <= KEPT_BYTES_MAX:
        return data
    status = _map(manifest.get("status"))
    judging = lambda entry: entry.get("type") not in ("Synced", "Ready", "Responsive")  # noqa: E731
    conditions = sorted(_listed(status.get("conditions")), key=judging)[:_CONDITIONS_MAX]
    return _json(
        {
            **_identity(manifest),
            "metadata": {name: _brief(value) for name, value in kept["metadata"].items()},
            "spec": {},
            "status": {
                "conditions": [_brief(entry) for entry in conditions],
                "sync": {name: dig(status, "sync", name) for name in ("status", "revision")},
            },
        }
    )


def _brief(value: Any) -> Any:
    """Return a text shortened, or a map of short values; long annotations are left out."""
    if isinstance(value, dict):
        short = {k: v for k, v in value.items() if len(str(v)) <= _TEXT_MAX or k == "message"}
        return {k: _brief(v) for k, v in islice(short.items(), _RESOURCES_MAX)}
    if isinstance(value, list):
        return [_brief(entry) for entry in value[:_RESOURCES_MAX]]
    return shorten(value, limit=_TEXT_MAX) if isinstance(value, str) else value


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def _composed(manifest: Manifest) -> tuple[ObjectKey, ...]:
    try:
        keys = [_shared(key) for key in islice(composed_keys(manifest), _COMPOSED_MAX)]
    except (AttributeError, KeyError, TypeError):
        return ()  # not the references of an XR
    return tuple(dict.fromkeys(keys))


def _shared(key: ObjectKey) -> ObjectKey:
    """Return a key whose texts share memory with the same texts elsewhere."""
    return ObjectKey(key.kind, _shared_text(key.name), _shared_text(key.namespace))


def _shared_text(value: object) -> str:
    return sys.intern(str(value)) if value else ""


def _word(status: str) -> str:
    return sys.intern(status[:20])


def _short(reason: str) -> str:
    return shorten(reason, limit=_SHORT_TEXT_MAX) if reason else ""


def _worst(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return results of a sync, those first that failed or are waited for."""
    is_done = lambda entry: entry.get("status") == "Synced" and not entry.get("hookPhase")  # noqa: E731
    return sorted(results, key=is_done)[:_RESOURCES_MAX]


def _map(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _listed(value: object) -> list[dict[str, Any]]:
    entries: Iterable[object] = value if isinstance(value, list) else ()
    return [entry for entry in entries if isinstance(entry, dict)]


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
        # outside of the lock: whoever is told takes locks of their own
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
                # whoever pushes an XR may write references to objects of others into it
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
