"""
What each kind of write may change, and what the server itself decides. Pure.

A create sets metadata, an update keeps protected fields, a deletion sets marks: each step is a
function from manifests to manifests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ground.objects.kube_objects import CRD, NAMESPACE, Manifest, dig, metadata
from ground.objects.values import clone
from kubeschema.pruning import default, prune
from orderkit.ports.cluster import Propagation
from orderkit_standins.cluster import definitions
from orderkit_standins.cluster.admission import ADMIN, Account
from orderkit_standins.cluster.documents import meta, new_uid, now
from orderkit_standins.cluster.kinds import ServedKind
from orderkit_standins.cluster.store import StorageKey

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
"""Finalizers by which a deletion tells the garbage collector what to do first."""
PROTECTED_NAMESPACES = ("default", "kube-system")
"""Made at start; they cannot be deleted."""

Strictness = Literal["Strict", "Warn", "Ignore"]


@dataclass(frozen=True, slots=True)
class Write:
    """The field manager of a write, and its options."""

    owner: str
    subresource: Literal["", "status", "finalize"] = ""
    dry_run: bool = False
    strictness: Strictness = "Ignore"
    """What happens to unknown fields besides being dropped."""
    warnings: list[str] = field(default_factory=list)
    """Receives warnings for the client."""
    account: Account = ADMIN


@dataclass(frozen=True, slots=True)
class Deletion:
    """How to delete. None leaves finalizers as they are (same as Background)."""

    propagation: Propagation | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False
    owner: str = ""
    account: Account = ADMIN


@dataclass(frozen=True, slots=True)
class Deleted:
    """The object's last or present state, and whether it is gone already."""

    manifest: Manifest
    is_gone: bool


def place_of(served: ServedKind, namespace: str, name: str) -> StorageKey:
    """Return where an object of a kind is stored."""
    return StorageKey(
        served.kind.group, served.kind.kind, namespace if served.namespaced else "", name
    )


def presented(served: ServedKind, manifest: Manifest) -> Manifest:
    """Return a copy of a stored object in the version of `served`."""
    return shared_view(served, manifest if served.shaped_on_read else clone(manifest))


def shared_view(served: ServedKind, manifest: Manifest) -> Manifest:
    """Return a stored object in the version of `served`; what is in it may be shared."""
    if served.shaped_on_read:
        return shaped(served, manifest)
    return {**manifest, "apiVersion": served.kind.api_version}


def shaped(served: ServedKind, manifest: Manifest) -> Manifest:
    """Return a copy of a stored object as the schema of `served` shows it."""
    kept, _dropped = prune(served.typed, manifest)
    return {**default(served.typed, kept), "apiVersion": served.kind.api_version}


def without_nulls(config: Any) -> Any:
    """Return an applied document without nulls: a null means that the field is not applied."""
    if isinstance(config, dict):
        return {k: without_nulls(v) for k, v in config.items() if v is not None}
    return config


def without_empty_metadata(manifest: Manifest) -> Manifest:
    """Return the object without empty lists and maps in its metadata, as the server shows it."""
    fields = metadata(manifest)
    kept = {k: v for k, v in fields.items() if v not in ({}, [], None) or k == "managedFields"}
    return manifest if len(kept) == len(fields) else {**manifest, "metadata": kept}


def skeleton(served: ServedKind, store_key: StorageKey) -> Manifest:
    """Return what an apply to a missing object is merged into: its identity."""
    fields = {"name": store_key.name}
    if store_key.namespace:
        fields["namespace"] = store_key.namespace
    return {
        "apiVersion": served.kind.api_version,
        "kind": served.kind.kind,
        "metadata": fields,
    }


def only_subresource(served: ServedKind, config: Manifest, write: Write) -> Manifest:
    """Return the part of an applied document that this endpoint uses."""
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
    """Set the fields of a new object that only the server decides."""
    fields = meta(new)
    for name in ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        fields.pop(name, None)
    fields["uid"], fields["creationTimestamp"] = new_uid(), now()
    if served.has_generation:
        fields["generation"] = 1
    if served.kind == CRD:
        kept = fields.get("finalizers") or []
        fields["finalizers"] = list(dict.fromkeys([*kept, definitions.CLEANUP_FINALIZER]))
    return fields


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
    """Return `new` with the fields that this write may not change taken from `old`, shared."""
    if write.subresource == "status":
        owned = metadata(new).get("managedFields", metadata(old).get("managedFields"))
        protected_object = {**old, "apiVersion": new["apiVersion"]}
        protected_object.pop("status", None)
        if "status" in new:
            protected_object["status"] = new["status"]
        protected_object["metadata"] = {**metadata(old), "managedFields": owned}
        return protected_object
    fields = meta(new)
    for name in _KEPT_META:
        if name in metadata(old):
            fields[name] = metadata(old)[name]
        else:
            fields.pop(name, None)
    if served.has_status and write.subresource != "finalize":
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    return new


def desired(served: ServedKind, manifest: Manifest) -> Manifest:
    """Return the part of an object whose change makes a new generation."""
    ignored = {"apiVersion", "kind", "metadata"} | ({"status"} if served.has_status else set())
    return {k: v for k, v in manifest.items() if k not in ignored}


def bool_differs(first: Any, second: Any) -> bool:
    """Say whether documents that Python calls equal differ in a boolean against a number."""
    if isinstance(first, dict) and isinstance(second, dict):
        return any(bool_differs(first[k], second[k]) for k in first)
    if isinstance(first, list) and isinstance(second, list):
        return any(bool_differs(a, b) for a, b in zip(first, second, strict=True))
    return isinstance(first, bool) != isinstance(second, bool)


def marked(served: ServedKind, old: Manifest, how: Deletion) -> Manifest:
    """Return the object as a deletion leaves it, finalizers set as the propagation asks."""
    new = clone(old)
    fields = meta(new)
    finalizers = list(fields.get("finalizers") or ())
    finalizer = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(how.propagation or "")
    if how.propagation is not None:
        finalizers = [f for f in finalizers if f not in {FOREGROUND, ORPHAN}]
    if finalizer:
        finalizers.append(finalizer)
    if finalizers != (fields.get("finalizers") or []):
        fields["finalizers"] = finalizers
    if not fields.get("deletionTimestamp"):
        fields["deletionTimestamp"], fields["deletionGracePeriodSeconds"] = now(), 0
        if served.has_generation:
            fields["generation"] = fields.get("generation", 0) + 1
    if served.kind == NAMESPACE:
        new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
    if not fields.get("finalizers"):
        fields.pop("finalizers", None)
    return new


def held(served: ServedKind, manifest: Manifest) -> bool:
    """Say whether finalizers keep a deleted object."""
    if metadata(manifest).get("finalizers"):
        return True
    return served.kind == NAMESPACE and bool(dig(manifest, "spec", "finalizers"))
