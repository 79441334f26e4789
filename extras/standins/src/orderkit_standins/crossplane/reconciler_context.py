"""Shared by all reconcilers here: the cluster, the functions, a recorder, a clock."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from compositions.station import Station
from ground.errors import NotFoundError
from ground.objects.conditions import Condition, merged
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, controller, dig, metadata
from orderkit.ports.clock import Clock
from orderkit.ports.cluster import Cluster
from orderkit_standins.crossplane.events import OWNER, EventRecorder


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
