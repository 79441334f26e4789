"""
Read a cluster in bulk: list a kind once instead of reading its objects one by one.

The first few objects of a kind are read singly; then the whole kind is listed and cached, so all
answers about a kind are of one moment. If listing is not allowed, objects are read singly. Called
by the flow that plans for many orders.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ground.errors import AccessError
from ground.objects.kube_objects import Kind, Manifest, ObjectKey
from orderkit.flows.plan.cluster_questions import Lookup
from orderkit.ports.cluster import NoSuchKindError, ObjectList

_SINGLY = 5


class BulkLookup:
    """A `Lookup` that keeps what it read. Safe to use from several threads."""

    def __init__(self, cluster: Lookup) -> None:
        self._place = cluster
        self._lock = threading.RLock()
        self._singly: Counter[Kind] = Counter()
        self._objects: dict[ObjectKey, Manifest | None] = {}
        self._kinds: dict[Kind, ObjectList | NoSuchKindError] = {}
        self._closed: set[Kind] = set()
        self._plurals: dict[Kind, str | None] = {}

    def get(self, key: ObjectKey) -> Manifest | None:
        """Return an object; None if it does not exist."""
        with self._lock:
            if key in self._objects:
                return self._objects[key]
            if key.kind not in self._kinds and key.kind not in self._closed:
                self._singly[key.kind] += 1
                if self._singly[key.kind] > _SINGLY:
                    self._read_kind(key.kind)
            if key.kind in self._kinds:
                self._of_kind(key.kind)
                return self._objects.get(key)
            self._objects[key] = manifest = self._place.get(key)
            return manifest

    def list(self, kind: Kind, *, namespace: str | None = None) -> ObjectList:
        """Return the objects of a kind."""
        with self._lock:
            if kind in self._closed:
                return self._place.list(kind, namespace=namespace)
            if kind not in self._kinds and not self._read_kind(kind):
                return self._place.list(kind, namespace=namespace)
            objects = self._of_kind(kind)
        if namespace is None:
            return objects
        items = (
            manifest for manifest in objects.items if ObjectKey.of(manifest).namespace == namespace
        )
        return ObjectList(tuple(items), objects.resource_version)

    def plural(self, kind: Kind) -> str | None:
        """Return the resource name of a kind."""
        with self._lock:
            if kind not in self._plurals:
                self._plurals[kind] = self._place.plural(kind)
            return self._plurals[kind]

    def serves(self, kind: Kind) -> bool:
        """Say whether the kind is served."""
        return self.plural(kind) is not None

    def openapi(self, group: str, version: str) -> Mapping[str, Any] | None:
        """Return the OpenAPI v3 document of a group's version."""
        return self._place.openapi(group, version)

    def _of_kind(self, kind: Kind) -> ObjectList:
        objects = self._kinds[kind]
        if isinstance(objects, NoSuchKindError):
            raise NoSuchKindError(str(objects))
        return objects

    def _read_kind(self, kind: Kind) -> bool:
        """List a kind and keep it; say whether that was allowed."""
        try:
            objects = self._place.list(kind)
        except NoSuchKindError as error:
            self._kinds[kind] = error
            return True
        except AccessError:
            self._closed.add(kind)
            return False
        self._kinds[kind] = objects
        self._objects.update((ObjectKey.of(manifest), manifest) for manifest in objects.items)
        return True
