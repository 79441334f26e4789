"""
The controllers an API server needs beside it: garbage, namespaces, definitions, old Events.

Level-based: every change puts a place on the list of things to look at, and so does everything
that exists at start; looking at a place twice does no harm. One thread, woken by the store.

* An object all of whose owners are gone is deleted; owners being deleted in the foreground
  wait for the dependents that block them; orphaning cuts the references.
* A namespace being deleted is emptied, then released from its ``kubernetes`` finalizer.
* A definition being deleted loses its objects first.
* Events older than an hour go, as on a real cluster.

An owner whose kind is not served, or a namespaced owner of a cluster-scoped object, is never
taken for gone.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from orderkit.adapters.embedded.cluster.definitions import CLEANUP_FINALIZER, stored_kind
from orderkit.adapters.embedded.cluster.documents import meta
from orderkit.adapters.embedded.cluster.journal import JournalEntry, StorageKey
from orderkit.adapters.embedded.cluster.kinds import ServedKind
from orderkit.adapters.embedded.cluster.lifecycle import FOREGROUND, ORPHAN, Deletion, Write
from orderkit.adapters.embedded.cluster.registry import KindRegistry
from orderkit.adapters.embedded.cluster.store import ObjectStore, owner_uids
from orderkit.adapters.embedded.cluster.strategies import NAMESPACE_FINALIZER
from orderkit.adapters.embedded.cluster.writes import Writes
from orderkit.core.errors import ConflictError, NotFoundError
from orderkit.core.objects.kube_objects import CRD, EVENT, Kind, Manifest, dig, metadata
from orderkit.ports.cluster import Propagation

OWNER = "kube-controller-manager"
"""Field manager of everything done here."""
EVENT_LIFE = timedelta(hours=1)
_EVENT_SWEEP_S = 60.0

logger = logging.getLogger(__name__)


class Collector:
    """One background thread over a store."""

    def __init__(self, store: ObjectStore, registry: KindRegistry, writes: Writes) -> None:
        self._store, self._registry, self._writes = store, registry, writes
        self._stopping = threading.Event()
        self._idle = threading.Condition()
        self._busy = True
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="collector", daemon=True)

    def start(self) -> None:
        """Start; returns once changes are being followed."""
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        """Stop after the place being looked at. The store must be closed, or about to be."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=10)

    def _run(self) -> None:
        with self._store.watching(None) as watcher:
            self._ready.set()
            self._look_at_all(self._store.places())
            next_sweep = time.monotonic() + _EVENT_SWEEP_S
            while not self._stopping.is_set() and not watcher.closed:
                changes = watcher.take(timeout_s=max(0.0, next_sweep - time.monotonic()))
                places = dict.fromkeys(p for c in changes for p in self._concerned(c))
                self._look_at_all(sorted(places, key=_definitions_last))
                if time.monotonic() >= next_sweep:
                    self._sweep_events()
                    next_sweep = time.monotonic() + _EVENT_SWEEP_S

    def _concerned(self, change: JournalEntry) -> Iterable[StorageKey]:
        """Say which places a change may have made something to do for."""
        found = metadata(change.manifest)
        if change.type != "DELETED":
            yield change.place
            if not found.get("deletionTimestamp"):
                return
        yield from self._store.dependents(found["uid"])
        for uid in owner_uids(change.manifest):
            owner = self._store.place_of(uid)
            if owner is not None:
                yield owner
        if change.place.namespace:
            yield StorageKey("", "Namespace", "", change.place.namespace)
        served = self._registry.any_version(change.place.group, change.place.kind)
        if served is not None and served.custom:
            yield StorageKey(CRD.group, CRD.kind, "", served.subject("").resource)

    def _look_at_all(self, places: Iterable[StorageKey]) -> None:
        for place in places:
            if self._stopping.is_set():
                return
            try:
                self._look_at(place)
            except (NotFoundError, ConflictError):
                continue  # it changed under us; that change brings us back
            except Exception:
                if self._store.closed:
                    return
                logger.exception("collector: %s", place)

    def _look_at(self, place: StorageKey) -> None:
        with self._store.lock:
            manifest = self._store.get(place)
            served = self._registry.any_version(place.group, place.kind)
            if manifest is None or served is None:
                return
            if not metadata(manifest).get("deletionTimestamp"):
                self._collect(served, place, manifest)
                return
            finalizers = metadata(manifest).get("finalizers") or ()
            if ORPHAN in finalizers:
                self._orphan(served, place, manifest)
            elif FOREGROUND in finalizers:
                self._delete_dependents(served, place, manifest)
            if (place.group, place.kind) == ("", "Namespace"):
                self._empty_namespace(served, place)
            elif (place.group, place.kind) == (CRD.group, CRD.kind):
                self._empty_definition(served, place, manifest)

    # -- garbage

    def _collect(self, served: ServedKind, place: StorageKey, manifest: Manifest) -> None:
        references = metadata(manifest).get("ownerReferences") or ()
        if not references:
            return
        states = [(r, self._owner_state(place, r)) for r in references]
        if any(state in {"there", "unknown"} for _, state in states):
            self._drop_references(served, place, [r for r, s in states if s in {"gone", "waiting"}])
            return
        waiting = any(state == "waiting" for _, state in states)
        how: Propagation = "Background"
        if waiting and self._store.dependents(metadata(manifest)["uid"]):
            how = "Foreground"
        self._delete(served, place, how, uid=metadata(manifest)["uid"])

    def _owner_state(self, dependent: StorageKey, reference: dict[str, Any]) -> str:
        """Return there, gone, waiting (for its dependents to go) or unknown."""
        kind = Kind.parse(reference["apiVersion"], reference["kind"])
        served = self._registry.any_version(kind.group, kind.kind)
        if served is None or (served.namespaced and not dependent.namespace):
            return "unknown"
        namespace = dependent.namespace if served.namespaced else ""
        owner = self._store.get(StorageKey(kind.group, kind.kind, namespace, reference["name"]))
        if owner is None or metadata(owner)["uid"] != reference["uid"]:
            return "gone"
        deleting = metadata(owner).get("deletionTimestamp")
        in_foreground = FOREGROUND in (metadata(owner).get("finalizers") or ())
        if deleting and in_foreground and reference.get("blockOwnerDeletion"):
            return "waiting"
        return "there"

    def _drop_references(
        self, served: ServedKind, place: StorageKey, gone: list[dict[str, Any]]
    ) -> None:
        if not gone:
            return
        uids = {reference["uid"] for reference in gone}
        self._change(served, place, lambda manifest: _without_owners(manifest, uids))

    def _orphan(self, served: ServedKind, place: StorageKey, manifest: Manifest) -> None:
        uid = metadata(manifest)["uid"]
        for dependent in self._store.dependents(uid):
            kind = self._registry.any_version(dependent.group, dependent.kind)
            if kind is not None:
                self._change(kind, dependent, lambda found: _without_owners(found, {uid}))
        self._release(served, place, ORPHAN)

    def _delete_dependents(self, served: ServedKind, place: StorageKey, manifest: Manifest) -> None:
        uid = metadata(manifest)["uid"]
        blocked = False
        for dependent in self._store.dependents(uid):
            found = self._store.get(dependent)
            if found is None or not _blocks(found, uid):
                continue
            blocked = True
            kind = self._registry.any_version(dependent.group, dependent.kind)
            if kind is not None and not metadata(found).get("deletionTimestamp"):
                self._collect(kind, dependent, found)
        remaining = [self._store.get(p) for p in self._store.dependents(uid)]
        if not blocked or not any(found and _blocks(found, uid) for found in remaining):
            self._release(served, place, FOREGROUND)

    # -- namespaces and definitions

    def _empty_namespace(self, served: ServedKind, place: StorageKey) -> None:
        for item in self._store.content(place.name):
            kind = self._registry.any_version(item.group, item.kind)
            found = self._store.get(item)
            if kind is None or found is None or metadata(found).get("deletionTimestamp"):
                continue
            self._delete(kind, item, "Background", uid=metadata(found)["uid"])
        if not self._store.content(place.name):
            self._change(served, place, _finalized, subresource="finalize")

    def _empty_definition(self, served: ServedKind, place: StorageKey, manifest: Manifest) -> None:
        group, kind = dig(manifest, "spec", "group"), dig(manifest, "spec", "names", "kind")
        instances = self._store.scan(group, kind)
        for found in instances:
            item = StorageKey(
                group, kind, metadata(found).get("namespace", ""), metadata(found)["name"]
            )
            if not metadata(found).get("deletionTimestamp"):
                uid = metadata(found)["uid"]
                self._delete(stored_kind(manifest), item, "Background", uid=uid)
        if not instances:  # else their dependents come first, while the kind is still known
            self._release(served, place, CLEANUP_FINALIZER)

    def _sweep_events(self) -> None:
        oldest = (datetime.now(UTC) - EVENT_LIFE).strftime("%Y-%m-%dT%H:%M:%SZ")
        served = self._registry.get(EVENT)
        for event in self._store.scan(EVENT.group, EVENT.kind):
            found = metadata(event)
            if (event.get("lastTimestamp") or found["creationTimestamp"]) < oldest:
                place = StorageKey("", EVENT.kind, found["namespace"], found["name"])
                self._delete(served, place, "Background", uid=found["uid"])

    # -- writing

    def _delete(self, served: ServedKind, place: StorageKey, how: Propagation, *, uid: str) -> None:
        self._writes.delete(
            served,
            place.namespace,
            place.name,
            Deletion(propagation=how, uid=uid, owner=OWNER),
        )

    def _release(self, served: ServedKind, place: StorageKey, finalizer: str) -> None:
        def edit(manifest: Manifest) -> Manifest:
            found = meta(manifest)
            kept = [f for f in found.get("finalizers") or () if f != finalizer]
            found["finalizers"] = kept
            return manifest

        self._change(served, place, edit)

    def _change(
        self, served: ServedKind, place: StorageKey, edit: Any, *, subresource: Any = ""
    ) -> None:
        self._writes.change(
            served, place.namespace, place.name, edit, Write(OWNER, subresource=subresource)
        )


def _definitions_last(place: StorageKey) -> bool:
    """Order places so that a definition goes only after its objects' dependents were seen."""
    return (place.group, place.kind) == (CRD.group, CRD.kind)


def _without_owners(manifest: Manifest, uids: set[str]) -> Manifest:
    found = meta(manifest)
    kept = [r for r in found.get("ownerReferences") or () if r["uid"] not in uids]
    if kept:
        found["ownerReferences"] = kept
    else:
        found.pop("ownerReferences", None)
    return manifest


def _blocks(manifest: Manifest, owner_uid: str) -> bool:
    return any(
        reference["uid"] == owner_uid and reference.get("blockOwnerDeletion")
        for reference in metadata(manifest).get("ownerReferences") or ()
    )


def _finalized(manifest: Manifest) -> Manifest:
    spec = manifest.get("spec") or {}
    kept = [f for f in spec.get("finalizers") or () if f != NAMESPACE_FINALIZER]
    return {**manifest, "spec": {**spec, "finalizers": kept}}
