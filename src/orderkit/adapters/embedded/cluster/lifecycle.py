"""
What each kind of write may change, and what the server itself decides. Pure.

A create is stamped, an update keeps what it may not touch, a deletion marks; here are these steps
as functions from manifests to manifests. Called by ``writes``, the collector and the HTTP side.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from orderkit.adapters.embedded.cluster import definitions
from orderkit.adapters.embedded.cluster.documents import clone, meta, new_uid, now
from orderkit.adapters.embedded.cluster.journal import StorageKey
from orderkit.adapters.embedded.cluster.kinds import ServedKind
from orderkit.core.objects.kube_objects import CRD, NAMESPACE, Manifest, dig, metadata
from orderkit.core.schema.structural import default, prune
from orderkit.ports.cluster import Propagation

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
"""Finalizers by which a deletion tells the garbage collector what to do first."""
PROTECTED_NAMESPACES = ("default", "kube-system")
"""Made at start; they cannot be deleted."""

Strictness = Literal["Strict", "Warn", "Ignore"]


@dataclass(frozen=True, slots=True)
class Write:
    """Who writes and how."""

    owner: str
    subresource: Literal["", "status", "finalize"] = ""
    dry_run: bool = False
    strictness: Strictness = "Ignore"
    """What happens to unknown fields besides being dropped."""
    warnings: list[str] = field(default_factory=list)
    """Filled with what the client should be told."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """How to delete. None leaves finalizers as they are (same as Background)."""

    propagation: Propagation | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Deleted:
    """The object's last or present state, and whether it is gone already."""

    manifest: Manifest
    gone: bool


def place_of(served: ServedKind, namespace: str, name: str) -> StorageKey:
    """Return where an object of a kind is stored."""
    return StorageKey(
        served.kind.group, served.kind.kind, namespace if served.namespaced else "", name
    )


def presented(served: ServedKind, manifest: Manifest) -> Manifest:
    """Return a copy of a stored object in the version of `served`."""
    if served.shaped_on_read:
        return shaped(served, manifest)
    return {**clone(manifest), "apiVersion": served.kind.api_version}


def shaped(served: ServedKind, manifest: Manifest) -> Manifest:
    """Return a copy of a stored object as the schema of `served` shows it."""
    kept, _dropped = prune(served.typed, manifest)
    return {**default(served.typed, kept), "apiVersion": served.kind.api_version}


def without_nulls(config: Any) -> Any:
    """Return an applied document without nulls: to set nothing is to leave the field out."""
    if isinstance(config, dict):
        return {k: without_nulls(v) for k, v in config.items() if v is not None}
    return config


def without_empty_metadata(manifest: Manifest) -> Manifest:
    """Return the object without empty lists and maps in its metadata, as the server shows it."""
    found = metadata(manifest)
    kept = {k: v for k, v in found.items() if v not in ({}, [], None) or k == "managedFields"}
    return manifest if len(kept) == len(found) else {**manifest, "metadata": kept}


def skeleton(served: ServedKind, place: StorageKey) -> Manifest:
    """Return what an apply to a missing object is merged into: its identity."""
    found = {"name": place.name}
    if place.namespace:
        found["namespace"] = place.namespace
    return {
        "apiVersion": served.kind.api_version,
        "kind": served.kind.kind,
        "metadata": found,
    }


def only_subresource(served: ServedKind, config: Manifest, write: Write) -> Manifest:
    """Return the part of an applied document that this endpoint looks at."""
    if not write.subresource:
        dropped = {"status"} if served.has_status else set()
        return {k: v for k, v in config.items() if k not in dropped}
    identity = {
        k: v
        for k, v in metadata(config).items()
        if k in {"name", "namespace", "uid", "resourceVersion"}
    }
    kept = {k: v for k, v in config.items() if k in {"apiVersion", "kind", "status"}}
    return {**kept, "metadata": identity}


def stamp(served: ServedKind, new: Manifest) -> dict[str, Any]:
    """Set what the server alone decides about a new object."""
    found = meta(new)
    for name in ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        found.pop(name, None)
    found["uid"], found["creationTimestamp"] = new_uid(), now()
    if served.has_generation:
        found["generation"] = 1
    if served.kind == CRD:
        kept = found.get("finalizers") or []
        found["finalizers"] = list(dict.fromkeys([*kept, definitions.CLEANUP_FINALIZER]))
    return found


_KEPT_META = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generateName",
)


def protected(served: ServedKind, old: Manifest, new: Manifest, write: Write) -> Manifest:
    """Return `new` with what this write may not change taken from `old`."""
    if write.subresource == "status":
        owned = metadata(new).get("managedFields", metadata(old).get("managedFields"))
        out = {**clone(old), "apiVersion": new["apiVersion"]}
        out.pop("status", None)
        if "status" in new:
            out["status"] = new["status"]
        out["metadata"]["managedFields"] = owned
        return out
    found = meta(new)
    for name in _KEPT_META:
        if name in metadata(old):
            found[name] = metadata(old)[name]
        else:
            found.pop(name, None)
    if served.has_status and write.subresource != "finalize":
        new.pop("status", None)
        if "status" in old:
            new["status"] = clone(old["status"])
    return new


def desired(served: ServedKind, manifest: Manifest) -> Manifest:
    """Return the part of an object whose change makes a new generation."""
    ignored = {"apiVersion", "kind", "metadata"} | ({"status"} if served.has_status else set())
    return {k: v for k, v in manifest.items() if k not in ignored}


def bool_differs(left: Any, right: Any) -> bool:
    """Say whether equal-looking documents differ in a boolean against a number."""
    if isinstance(left, dict) and isinstance(right, dict):
        return any(bool_differs(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return any(bool_differs(a, b) for a, b in zip(left, right, strict=True))
    return isinstance(left, bool) != isinstance(right, bool)


def marked(served: ServedKind, old: Manifest, how: Deletion) -> Manifest:
    """Return the object as a deletion leaves it, finalizers set as the propagation asks."""
    new = clone(old)
    found = meta(new)
    finalizers = list(found.get("finalizers") or ())
    wanted = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(how.propagation or "")
    if how.propagation is not None:
        finalizers = [f for f in finalizers if f not in {FOREGROUND, ORPHAN}]
    if wanted:
        finalizers.append(wanted)
    if finalizers != (found.get("finalizers") or []):
        found["finalizers"] = finalizers
    if not found.get("deletionTimestamp"):
        found["deletionTimestamp"], found["deletionGracePeriodSeconds"] = now(), 0
        if served.has_generation:
            found["generation"] = found.get("generation", 0) + 1
    if served.kind == NAMESPACE:
        new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
    if not found.get("finalizers"):
        found.pop("finalizers", None)
    return new


def held(served: ServedKind, manifest: Manifest) -> bool:
    """Say whether finalizers keep a deleted object."""
    if metadata(manifest).get("finalizers"):
        return True
    return served.kind == NAMESPACE and bool(dig(manifest, "spec", "finalizers"))
