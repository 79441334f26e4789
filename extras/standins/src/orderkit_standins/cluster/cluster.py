"""
The embedded cluster as the Cluster port: for reconcilers in this process, and under the HTTP API.

Reads come from memory; returned manifests are copies. Field validation is strict: unknown fields
are refused, as ``adapters.kube`` requests it from a real server.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal

from ground.objects.kube_objects import (
    CRD,
    NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    labels_of,
    metadata,
)
from orderkit.ports.cluster import ObjectList, Propagation, WatchEvent, WatchStop
from orderkit_standins.cluster.admission import ADMIN, Admission, Policies, impersonated
from orderkit_standins.cluster.definitions import KindRegistry
from orderkit_standins.cluster.kinds import ServedKind
from orderkit_standins.cluster.lifecycle import (
    PROTECTED_NAMESPACES,
    Deletion,
    Write,
    place_of,
    presented,
    shared_view,
)
from orderkit_standins.cluster.openapi import document_v3
from orderkit_standins.cluster.patches import merge_patch
from orderkit_standins.cluster.refusals import BadRequest, Expired, NotFound
from orderkit_standins.cluster.server_controllers import Collector
from orderkit_standins.cluster.store import HISTORY, ObjectStore, Watcher
from orderkit_standins.cluster.writes import Writes

VERSION_TEXT = "v1.37.2+orderkit-embedded"
"""Texts and behaviour follow this release of kube-apiserver."""


class EmbeddedCluster:
    """One cluster in one SQLite file. Thread-safe; close it when done."""

    def __init__(
        self, path: Path, *, admission: Admission | None = None, history: int = HISTORY
    ) -> None:
        """
        Open or make the cluster stored at `path`.

        Args:
            path: The SQLite file; its folder is made.
            admission: Called before every write; None: the policies it holds are enforced.
            history: Number of changes that a watch can at least go back.

        Raises:
            RefusedError: The file was written by a newer Orderkit.
        """
        self._account = ADMIN
        self.store = ObjectStore(path, history=history)
        self.registry = KindRegistry()
        self.writes = Writes(self.store, self.registry, admission or Policies(self.store))
        for definition in self.store.scan(CRD.group, CRD.kind):
            self.writes.define(definition)
        self._ensure_namespaces()
        self._collector = Collector(self.store, self.registry, self.writes)
        self._collector.start()

    def _ensure_namespaces(self) -> None:
        served = self.registry.get(NAMESPACE)
        for name in PROTECTED_NAMESPACES:
            if self.store.get(place_of(served, "", name)) is None:
                manifest = {"metadata": {"name": name}}
                self.writes.create(served, manifest, Write("kube-apiserver"))

    def close(self) -> None:
        """End all watches, stop the collector, close the file. Idempotent."""
        self.store.close()
        self._collector.stop()

    def acting_as(self, account: str) -> EmbeddedCluster:
        """Return the same cluster, written to by another account (a user name)."""
        view = copy.copy(self)
        view._account = impersonated(account)  # noqa: SLF001 - a copy of this object
        return view

    # -- reading

    def version(self) -> str:
        """Return the text that ``/version`` has too."""
        return VERSION_TEXT

    def serves(self, kind: Kind) -> bool:
        """Say whether the kind is served now."""
        return self.registry.find(kind) is not None

    def is_namespaced(self, kind: Kind) -> bool:
        """
        Say whether objects of the kind live in namespaces.

        Raises:
            NoSuchKindError: The kind is not served.
        """
        return self.registry.get(kind).namespaced

    def plural(self, kind: Kind) -> str | None:
        """Return the resource name of a kind; None if it is not served now."""
        served = self.registry.find(kind)
        return served.plural if served else None

    def openapi(self, group: str, version: str) -> Mapping[str, Any] | None:
        """Return the OpenAPI v3 document of a group's version; None if there is none."""
        return document_v3(self.registry, group, version)

    def get(self, key: ObjectKey) -> Manifest | None:
        """
        Return the object, or None if it does not exist.

        Raises:
            NoSuchKindError: The kind is not served.
        """
        return self._read(key, presented)

    def shared(self, key: ObjectKey) -> Manifest | None:
        """
        Return what `get` returns, without a copy: for who reads much and changes nothing of it.

        Raises:
            NoSuchKindError: The kind is not served.
        """
        return self._read(key, shared_view)

    def _read(
        self, key: ObjectKey, show: Callable[[ServedKind, Manifest], Manifest]
    ) -> Manifest | None:
        served = self.registry.get(key.kind)
        stored = self.store.get(place_of(served, key.namespace, key.name))
        return None if stored is None else show(served, stored)

    def list(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> ObjectList:
        """
        Return all objects of a kind (`namespace` None: everywhere) that carry all `labels`.

        Sorted by namespace and name, one consistent state.

        Raises:
            NoSuchKindError: The kind is not served.
        """
        served = self.registry.get(kind)
        label_items = (labels or {}).items()
        # objects and version of the same moment
        with self.store.lock:
            version = self.store.version
            stored = self.store.scan(kind.group, kind.kind, namespace)
        items = tuple(presented(served, m) for m in stored if label_items <= labels_of(m).items())
        return ObjectList(items, str(version))

    def list_pages(self, kind: Kind, *, namespace: str | None = None) -> Iterator[ObjectList]:
        """Yield all objects of a kind as one page."""
        yield self.list(kind, namespace=namespace)

    def watch(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        since: str,
        timeout_s: float,
        stop: WatchStop | None = None,
    ) -> Iterator[WatchEvent]:
        """
        Yield changes after the resourceVersion `since`, in order, until `timeout_s` passes.

        A final BOOKMARK carries the last version read. Ends early when the cluster is closed, or
        `stop` is set.

        Raises:
            ExpiredError: `since` is too old: list again.
            NoSuchKindError: The kind is not served.
            InvalidObjectError: `since` is not a resourceVersion.
        """
        served = self.registry.get(kind)
        if not since.isdigit():
            raise BadRequest(f'resourceVersion: Invalid value: "{since}": must be a number')
        deadline = time.monotonic() + timeout_s
        with (
            self.watching(served, namespace=namespace, since=int(since)) as watcher,
            stop.ending(watcher.close) if stop else nullcontext(),
        ):
            while (left_s := deadline - time.monotonic()) > 0 and not watcher.closed:
                for change in watcher.take(left_s):
                    yield WatchEvent(change.type, presented(served, change.manifest))
            if watcher.overrun:
                raise Expired(int(since), self.store.version)
            yield from self._last_words(served, watcher)

    def _last_words(self, served: ServedKind, watcher: Watcher) -> Iterator[WatchEvent]:
        with self.store.lock:
            version, queued = self.store.version, watcher.take()
        for change in queued:
            yield WatchEvent(change.type, presented(served, change.manifest))
        yield WatchEvent("BOOKMARK", bookmark(served, version))

    def watching(
        self, served: ServedKind, *, namespace: str | None, since: int | None
    ) -> AbstractContextManager[Watcher]:
        """Open a watch on a kind; see ``ObjectStore.watching``."""
        kind = (served.kind.group, served.kind.kind)
        return self.store.watching(kind, namespace=namespace, since=since)

    # -- writing

    def create(self, manifest: Manifest, *, owner: str) -> Manifest:
        """
        Create an object; `owner` is its field manager.

        Raises:
            ConflictError: It exists already.
            InvalidObjectError: The server refused it.
            NoSuchNamespaceError: Its namespace does not exist.
            NoSuchKindError: The kind is not served.
            AccessError: Its namespace is being deleted.
        """
        served = self._served(manifest)
        return presented(served, self.writes.create(served, manifest, self._strict(owner)))

    def apply(
        self, manifest: Manifest, *, owner: str, force: bool = True, status: bool = False
    ) -> Manifest:
        """
        Server-side apply: `owner` owns exactly the fields of the manifest. Idempotent.

        Raises:
            ApplyConflictError: Another manager owns a field and `force` is False.
            InvalidObjectError: The server refused it. WrongTypeError: a value has the wrong type.
            NoSuchNamespaceError: Its namespace does not exist.
            NotFoundError: `status` and the object does not exist.
            NoSuchKindError: The kind is not served.
            AccessError: Its namespace is being deleted.
        """
        served = self._served(manifest)
        write = self._strict(owner, _subresource(served, manifest, status=status))
        return presented(served, self.writes.apply(served, manifest, write, force=force))

    def replace(self, manifest: Manifest, *, owner: str, status: bool = False) -> Manifest:
        """
        Replace an object (or its status). The manifest's resourceVersion is checked, if set.

        Raises:
            ConflictError: The object changed since that resourceVersion.
            NotFoundError: It does not exist.
            InvalidObjectError: The server refused it.
            NoSuchKindError: The kind is not served.
        """
        served = self._served(manifest)
        key = ObjectKey.of(manifest)
        write = self._strict(owner, _subresource(served, manifest, status=status))
        new = self.writes.change(served, key.namespace, key.name, lambda _old: manifest, write)
        return presented(served, new)

    def patch(
        self, key: ObjectKey, patch: Manifest, *, owner: str, status: bool = False
    ) -> Manifest:
        """
        JSON merge patch (RFC 7386): null removes a field, lists are replaced.

        Raises:
            ConflictError: The patch contains a resourceVersion that is not the current one.
            NotFoundError: It does not exist.
            InvalidObjectError: The server refused it.
            NoSuchKindError: The kind is not served.
        """
        served = self.registry.get(key.kind)
        named_object = {"metadata": {"name": key.name}}
        write = self._strict(owner, _subresource(served, named_object, status=status))
        new = self.writes.change(
            served, key.namespace, key.name, lambda live: merge_patch(live, patch), write
        )
        return presented(served, new)

    def delete(
        self, key: ObjectKey, *, propagation: Propagation = "Background", uid: str = ""
    ) -> bool:
        """
        Ask for deletion; finalizers may delay it. Idempotent. False if it did not exist.

        Raises:
            ConflictError: `uid` is given and another object now has that name.
            NoSuchKindError: The kind is not served.
            AccessError: It may not be deleted (``default``, ``kube-system``).
        """
        served = self.registry.get(key.kind)
        how = Deletion(propagation, uid, account=self._account)
        try:
            self.writes.delete(served, key.namespace, key.name, how)
        except NotFound:
            return False
        return True

    def _strict(self, owner: str, subresource: Literal["", "status"] = "") -> Write:
        return Write(owner, subresource, strictness="Strict", account=self._account)

    def _served(self, manifest: Manifest) -> ServedKind:
        try:
            kind = Kind.of(manifest)
        except ValueError as error:
            raise BadRequest(str(error)) from error
        return self.registry.get(kind)


def bookmark(served: ServedKind, version: int) -> Manifest:
    """Return the object of a BOOKMARK event."""
    return {
        "apiVersion": served.kind.api_version,
        "kind": served.kind.kind,
        "metadata": {"resourceVersion": str(version), "creationTimestamp": None},
    }


def _subresource(served: ServedKind, manifest: Manifest, *, status: bool) -> Literal["", "status"]:
    """
    Return the subresource of a write.

    Raises:
        NotFound: The kind has no status subresource.
    """
    if status and not served.has_status:
        raise NotFound(served.subject(str(metadata(manifest).get("name", ""))))
    return "status" if status else ""
