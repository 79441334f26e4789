"""
The controllers beside an API server: garbage collection, namespaces, definitions, old Events.

Level-based: every change queues a place, and so does every object that exists at start. Handling a
place twice is harmless. One thread, woken by the store.

* An object all of whose owners are gone is deleted; owners being deleted in the foreground
  wait for the dependents that block them; orphaning cuts the references.
* A namespace being deleted is emptied, then released from its ``kubernetes`` finalizer.
* A definition being deleted loses its objects first.
* Events older than an hour are deleted, as on a real cluster.

An owner whose kind is not served, or a namespaced owner of a cluster-scoped object, is never
taken for gone. A write that admission refuses is tried again each second, and delays no other.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from ground.errors import ConflictError, NotFoundError
from ground.objects.kube_objects import CRD, EVENT, Kind, Manifest, dig, metadata
from orderkit.ports.cluster import Propagation
from orderkit_standins.cluster.admission import COLLECTOR
from orderkit_standins.cluster.definitions import CLEANUP_FINALIZER, KindRegistry, stored_kind
from orderkit_standins.cluster.documents import meta
from orderkit_standins.cluster.kinds import ServedKind
from orderkit_standins.cluster.lifecycle import FOREGROUND, ORPHAN, Deletion, Write
from orderkit_standins.cluster.refusals import ApiRefusal
from orderkit_standins.cluster.store import JournalEntry, ObjectStore, StorageKey, owner_uids
from orderkit_standins.cluster.write_rules import NAMESPACE_FINALIZER
from orderkit_standins.cluster.writes import Writes

OWNER = "kube-controller-manager"
"""Field manager of the writes of this module."""
EVENT_LIFE = timedelta(hours=1)
_EVENT_SWEEP_S = 60.0
_RETRY_S = 1.0

logger = logging.getLogger(__name__)


class Collector:
    """One background thread over a store."""

    def __init__(self, store: ObjectStore, registry: KindRegistry, writes: Writes) -> None:
        self._store, self._registry, self._writes = store, registry, writes
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._place: StorageKey | None = None
        self._refused: set[StorageKey] = set()
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
            next_sweep, next_retry = time.monotonic() + _EVENT_SWEEP_S, 0.0
            while not self._stopping.is_set() and not watcher.closed:
                next_look = min(next_sweep, next_retry) if self._refused else next_sweep
                changes = watcher.take(timeout_s=max(0.0, next_look - time.monotonic()))
                places = dict.fromkeys(p for c in changes for p in self._concerned(c))
                if time.monotonic() >= next_retry:
                    places |= dict.fromkeys(self._refused)
                    self._refused.clear()
                    next_retry = time.monotonic() + _RETRY_S
                self._look_at_all(sorted(places, key=_definitions_last))
                if time.monotonic() >= next_sweep:
                    self._sweep_events()
                    next_sweep = time.monotonic() + _EVENT_SWEEP_S

    def _concerned(self, change: JournalEntry) -> Iterable[StorageKey]:
        """Return the places that a change may require work for."""
        fields = metadata(change.manifest)
        if change.type != "DELETED":
            yield change.store_key
            if not fields.get("deletionTimestamp"):
                return
        yield from self._store.dependents(fields["uid"])
        for uid in owner_uids(change.manifest):
            owner = self._store.place_of(uid)
            if owner is not None:
                yield owner
        if change.store_key.namespace:
            yield StorageKey("", "Namespace", "", change.store_key.namespace)
        served = self._registry.any_version(change.store_key.group, change.store_key.kind)
        if served is not None and served.custom:
            yield StorageKey(CRD.group, CRD.kind, "", served.subject("").resource)

    def _look_at_all(self, places: Iterable[StorageKey]) -> None:
        for store_key in places:
            if self._stopping.is_set():
                return
            self._place = store_key
            try:
                self._look_at(store_key)
            except (NotFoundError, ConflictError):
                continue  # it changed after our read; that change queues the place again
            except Exception:
                if self._store.closed:
                    return
                logger.exception("collector: %s", store_key)

    def _look_at(self, store_key: StorageKey) -> None:
        with self._store.lock:
            manifest = self._store.get(store_key)
            served = self._registry.any_version(store_key.group, store_key.kind)
            if manifest is None or served is None:
                return
            if not metadata(manifest).get("deletionTimestamp"):
                self._collect(served, store_key, manifest)
                return
            finalizers = metadata(manifest).get("finalizers") or ()
            if ORPHAN in finalizers:
                self._orphan(served, store_key, manifest)
            elif FOREGROUND in finalizers:
                self._delete_dependents(served, store_key, manifest)
            if (store_key.group, store_key.kind) == ("", "Namespace"):
                self._empty_namespace(served, store_key)
            elif (store_key.group, store_key.kind) == (CRD.group, CRD.kind):
                self._empty_definition(served, store_key, manifest)

    # -- garbage

    def _collect(self, served: ServedKind, store_key: StorageKey, manifest: Manifest) -> None:
        references = metadata(manifest).get("ownerReferences") or ()
        if not references:
            return
        states = [(r, self._owner_state(store_key, r)) for r in references]
        if any(state in {"there", "unknown"} for _, state in states):
            self._drop_references(
                served, store_key, [r for r, s in states if s in {"gone", "waiting"}]
            )
            return
        waiting = any(state == "waiting" for _, state in states)
        how: Propagation = "Background"
        if waiting and self._store.dependents(metadata(manifest)["uid"]):
            how = "Foreground"
        self._delete(served, store_key, how, uid=metadata(manifest)["uid"])

    def _owner_state(self, dependent: StorageKey, reference: dict[str, Any]) -> str:
        """Return there, gone, waiting (for its dependents to go) or unknown."""
        kind = Kind.parse(reference["apiVersion"], reference["kind"])
        served = self._registry.any_version(kind.group, kind.kind)
        # such an owner is never taken for gone
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
        self, served: ServedKind, store_key: StorageKey, references: list[dict[str, Any]]
    ) -> None:
        if not references:
            return
        uids = {reference["uid"] for reference in references}
        self._change(served, store_key, lambda manifest: _without_owners(manifest, uids))

    def _orphan(self, served: ServedKind, store_key: StorageKey, manifest: Manifest) -> None:
        uid = metadata(manifest)["uid"]
        for dependent in self._store.dependents(uid):
            kind = self._registry.any_version(dependent.group, dependent.kind)
            if kind is not None:
                self._change(
                    kind,
                    dependent,
                    lambda dependent_object: _without_owners(dependent_object, {uid}),
                )
        self._release(served, store_key, ORPHAN)

    def _delete_dependents(
        self, served: ServedKind, store_key: StorageKey, manifest: Manifest
    ) -> None:
        uid = metadata(manifest)["uid"]
        blocked = False
        for dependent in self._store.dependents(uid):
            dependent_object = self._store.get(dependent)
            if dependent_object is None or not _blocks(dependent_object, uid):
                continue
            blocked = True
            kind = self._registry.any_version(dependent.group, dependent.kind)
            if kind is not None and not metadata(dependent_object).get("deletionTimestamp"):
                self._collect(kind, dependent, dependent_object)
        remaining = [self._store.get(p) for p in self._store.dependents(uid)]
        if not blocked or not any(
            dependent_object and _blocks(dependent_object, uid) for dependent_object in remaining
        ):
            self._release(served, store_key, FOREGROUND)

    # -- namespaces and definitions

    def _empty_namespace(self, served: ServedKind, store_key: StorageKey) -> None:
        for item in self._store.content(store_key.name):
            kind = self._registry.any_version(item.group, item.kind)
            content = self._store.get(item)
            if kind is None or content is None or metadata(content).get("deletionTimestamp"):
                continue
            self._delete(kind, item, "Background", uid=metadata(content)["uid"])
        if not self._store.content(store_key.name):
            self._change(served, store_key, _finalized, subresource="finalize")

    def _empty_definition(
        self, served: ServedKind, store_key: StorageKey, manifest: Manifest
    ) -> None:
        group, kind = dig(manifest, "spec", "group"), dig(manifest, "spec", "names", "kind")
        instances = self._store.scan(group, kind)
        for instance in instances:
            item = StorageKey(
                group, kind, metadata(instance).get("namespace", ""), metadata(instance)["name"]
            )
            if not metadata(instance).get("deletionTimestamp"):
                uid = metadata(instance)["uid"]
                self._delete(stored_kind(manifest), item, "Background", uid=uid)
        if not instances:  # else their dependents come first, while the kind is still known
            self._release(served, store_key, CLEANUP_FINALIZER)

    def _sweep_events(self) -> None:
        oldest = (datetime.now(UTC) - EVENT_LIFE).strftime("%Y-%m-%dT%H:%M:%SZ")
        served = self._registry.get(EVENT)
        for event in self._store.scan(EVENT.group, EVENT.kind):
            fields = metadata(event)
            if (event.get("lastTimestamp") or fields["creationTimestamp"]) < oldest:
                store_key = StorageKey("", EVENT.kind, fields["namespace"], fields["name"])
                self._delete(served, store_key, "Background", uid=fields["uid"])

    # -- writing

    def _delete(
        self, served: ServedKind, store_key: StorageKey, how: Propagation, *, uid: str
    ) -> None:
        with self._refusals_noted():
            self._writes.delete(
                served,
                store_key.namespace,
                store_key.name,
                Deletion(propagation=how, uid=uid, owner=OWNER, account=COLLECTOR),
            )

    def _release(self, served: ServedKind, store_key: StorageKey, finalizer: str) -> None:
        def edit(manifest: Manifest) -> Manifest:
            fields = meta(manifest)
            kept = [f for f in fields.get("finalizers") or () if f != finalizer]
            fields["finalizers"] = kept
            return manifest

        self._change(served, store_key, edit)

    def _change(
        self, served: ServedKind, store_key: StorageKey, edit: Any, *, subresource: Any = ""
    ) -> None:
        write = Write(OWNER, subresource=subresource, account=COLLECTOR)
        with self._refusals_noted():
            self._writes.change(served, store_key.namespace, store_key.name, edit, write)

    @contextmanager
    def _refusals_noted(self) -> Iterator[None]:
        """Note the place that a refused write was for, and let the next object have its turn."""
        try:
            yield
        except (NotFoundError, ConflictError):
            raise
        except ApiRefusal as refusal:
            logger.info("collector: %s: %s", self._place, refusal)
            if self._place is not None:
                # tried again each second, and delays no other
                self._refused.add(self._place)


def _definitions_last(store_key: StorageKey) -> bool:
    """Order places so that a definition is deleted after its objects' dependents are handled."""
    return (store_key.group, store_key.kind) == (CRD.group, CRD.kind)


def _without_owners(manifest: Manifest, uids: set[str]) -> Manifest:
    fields = meta(manifest)
    kept = [r for r in fields.get("ownerReferences") or () if r["uid"] not in uids]
    if kept:
        fields["ownerReferences"] = kept
    else:
        fields.pop("ownerReferences", None)
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
