"""
What all reconcilers here share: the cluster, the functions, a recorder of events, a clock.

Events on objects are core/v1 Event objects, deduplicated: the same statement about the same object
is one Event with a count. A separate thread writes, so no reconcile waits for a write or fails with
it. A repeated statement is counted in memory and written at most every few seconds. Events an hour
old are removed again, as an API server does by lease; only the embedded Crossplane's own. Not here:
Kubernetes' limits per source.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import queue
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from compositions.composed import XrEvent
from compositions.station import Station
from ground.errors import ConflictError, NotFoundError
from ground.objects.kube_objects import (
    CLUSTER_SCOPED_HOME,
    EVENT,
    Condition,
    Kind,
    Manifest,
    ObjectKey,
    controller,
    dig,
    merged,
    metadata,
)
from orderkit.ports.clock import Clock
from orderkit.ports.cluster import Cluster

OWNER = "crossplane"
"""Field manager of plain updates, and the component named in Events."""

_MESSAGE_MAX = 1024
_REWRITE_AFTER_S = 5.0
_REMEMBERED_MAX = 10_000
_SWEEP_EVERY_S = 60.0
_KEPT = timedelta(hours=1)

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Told:
    """How often an event occurred, and when its count was last written."""

    count: int
    written_s: float


class EventRecorder:
    """Records Events about objects. Thread-safe; call `start` first; `stop` flushes."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._queue: queue.SimpleQueue[tuple[Manifest, XrEvent] | None] = queue.SimpleQueue()
        self._told: dict[ObjectKey, _Told] = {}
        self._thread = threading.Thread(target=self._write_all, name="events", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Write what is waiting, then end."""
        self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def normal(self, about: Manifest, reason: str, message: str) -> None:
        self.record(about, XrEvent("Normal", reason, message))

    def warning(self, about: Manifest, reason: str, message: str) -> None:
        self.record(about, XrEvent("Warning", reason, message))

    def record(self, about: Manifest, event: XrEvent) -> None:
        """Queue the event; returns at once."""
        self._queue.put((_reference(about), event))

    def _write_all(self) -> None:
        swept_s = self._clock.monotonic_s()
        while True:
            try:
                item = self._queue.get(timeout=_SWEEP_EVERY_S)
            except queue.Empty:
                pass
            else:
                if item is None:
                    return
                self._try(functools.partial(self._write, *item))
            if self._clock.monotonic_s() - swept_s >= _SWEEP_EVERY_S:
                swept_s = self._clock.monotonic_s()
                self._try(self.sweep)

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - no failure may end the thread
            logger.info("events not written: %s", error)

    def sweep(self) -> None:
        """Remove our Events that were last said more than an hour ago."""
        oldest = text_of(self._clock.now() - _KEPT)
        for event in self._cluster.list(EVENT).items:
            ours = dig(event, "source", "component") == OWNER
            if ours and str(event.get("lastTimestamp")) < oldest:
                self._told.pop(ObjectKey.of(event), None)
                self._cluster.delete(ObjectKey.of(event))

    def _write(self, about: Manifest, event: XrEvent) -> None:
        key = _key(about, event)
        recorded = self._told.get(key)
        now_s = self._clock.monotonic_s()
        if recorded is None:
            if len(self._told) >= _REMEMBERED_MAX:
                self._told.clear()
            self._told[key] = _Told(self._create(key, about, event), now_s)
            return
        recorded.count += 1
        if now_s - recorded.written_s >= _REWRITE_AFTER_S:
            recorded.written_s = now_s
            self._count(key, recorded.count)

    def _create(self, key: ObjectKey, about: Manifest, event: XrEvent) -> int:
        """Create the Event, or count up one that an earlier process left; return the count."""
        now = self.now()
        try:
            self._cluster.create(_manifest(key, about, event, now), owner=OWNER)
        except ConflictError:
            existing = self._cluster.get(key) or {}
            count = int(existing.get("count") or 0) + 1
            self._count(key, count)
            return count
        return 1

    def _count(self, key: ObjectKey, count: int) -> None:
        patch = {"count": count, "lastTimestamp": self.now()}
        self._cluster.patch(key, patch, owner=OWNER)

    def now(self) -> str:
        """Return the time as Kubernetes writes it."""
        return text_of(self._clock.now())


def text_of(time: datetime) -> str:
    """Return a UTC time as Kubernetes writes it; such texts sort like times."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _reference(about: Manifest) -> Manifest:
    meta = metadata(about)
    fields = {
        "apiVersion": about.get("apiVersion"),
        "kind": about.get("kind"),
        "name": meta.get("name"),
        "namespace": meta.get("namespace"),
        "uid": meta.get("uid"),
    }
    return {key: value for key, value in fields.items() if value}


def _key(about: Manifest, event: XrEvent) -> ObjectKey:
    content = "\0".join((str(about.get("uid")), event.type, event.reason, event.message))
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    name = f"{str(about.get('name'))[:200]}.{digest}"
    return ObjectKey(EVENT, name, about.get("namespace") or CLUSTER_SCOPED_HOME)


def _manifest(key: ObjectKey, about: Manifest, event: XrEvent, now: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "involvedObject": about,
        "type": event.type,
        "reason": event.reason,
        "message": event.message[:_MESSAGE_MAX],
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": OWNER},
        "reportingComponent": OWNER,
        "reportingInstance": OWNER,
    }


@dataclass(frozen=True, slots=True)
class ReconcilerContext:
    """The surroundings of a reconciler."""

    cluster: Cluster
    functions: Mapping[str, Station]
    """What can run in this process, by the name of its Function object."""
    recorder: EventRecorder
    clock: Clock
    chance: random.Random
    """Order of applying and jitter; Crossplane's are random too."""
    program_of: Callable[[str], Station | None] = lambda _digest: None
    """Returns a function's own program, if it was added on this machine."""

    def write_status(
        self, manifest: Manifest, *conditions: Condition, status: Manifest | None = None
    ) -> None:
        """
        Set conditions (and other status fields) on an object as it was read.

        Nothing is written if nothing changes, nor if the object is gone.

        Raises:
            ConflictError: It changed since it was read.
        """
        before = manifest.get("status") or {}
        after = {**before, **(status or {})}
        after["conditions"] = merged(
            before.get("conditions") or (),
            *conditions,
            generation=dig(manifest, "metadata", "generation", default=0),
            now=self.recorder.now(),
        )
        if after == before:
            return
        try:
            self.cluster.replace({**manifest, "status": after}, owner=OWNER, status=True)
        except NotFoundError:
            return

    def keep_finalizer(self, manifest: Manifest, finalizer: str) -> Manifest:
        """
        Make sure the object carries a finalizer; return it as it is then.

        Raises:
            ConflictError: It changed since it was read.
        """
        present = metadata(manifest).get("finalizers") or []
        if finalizer in present:
            return manifest
        return self.patch_metadata(manifest, {"finalizers": [*present, finalizer]})

    def drop_finalizer(self, manifest: Manifest, finalizer: str) -> Manifest | None:
        """
        Remove a finalizer; return the object if others still hold it, None once it is gone.

        Raises:
            ConflictError: It changed since it was read.
        """
        present = metadata(manifest).get("finalizers") or []
        remaining = [entry for entry in present if entry != finalizer]
        if remaining == present:
            return manifest
        try:
            patched = self.patch_metadata(manifest, {"finalizers": remaining or None})
        except NotFoundError:
            return None
        return patched if remaining else None

    def patch_metadata(self, manifest: Manifest, changes: Manifest) -> Manifest:
        """Patch metadata of an object as it was read; ConflictError if it changed since."""
        version = metadata(manifest).get("resourceVersion")
        patch = {"metadata": {**changes, "resourceVersion": version}}
        return self.cluster.patch(ObjectKey.of(manifest), patch, owner=OWNER)

    def selected(
        self, about: Manifest, kind: Kind, namespace: str, selector: Mapping[str, Any]
    ) -> list[Manifest]:
        """Return the objects that a selector of Crossplane's in `about` matches."""
        owner = (controller(about) or {}).get("uid")
        candidates = self.cluster.list(
            kind, namespace=namespace or None, labels=selector.get("matchLabels") or {}
        )
        return [
            candidate
            for candidate in candidates.items
            if not selector.get("matchControllerRef")
            or (owner and (controller(candidate) or {}).get("uid") == owner)
        ]

    def scope_of(self, kind: Kind) -> bool | None:
        """Say whether a kind is namespaced; None when it is not served."""
        return self.cluster.is_namespaced(kind) if self.cluster.serves(kind) else None


def is_deleting(manifest: Manifest) -> bool:
    """Say whether deletion was asked for."""
    return bool(metadata(manifest).get("deletionTimestamp"))
