"""
A twin of provider-kubernetes: an Object's manifest is applied to the cluster it lives in.

Server-side apply, forced, under the manager ``provider-kubernetes/<object>``, so a sparse
manifest owns its own fields and no others. Management policies are obeyed: without Create a
missing target stays missing and the Object unready, without Delete it outlives the Object.
Targets are watched, where the real provider polls unless told to watch.

Not here: ``references`` and ``connectionDetails`` (an Object that has them says so in Synced),
other clusters and identities, ObservedObjectCollections.

Started by ``provider_objects``.
"""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Iterable

from ground.errors import OrderkitError
from ground.objects.conditions import AVAILABLE, Condition
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, condition, dig, metadata
from kubeschema.cel.expressions import Expression, bound, plain_result
from orderkit.ports.cluster import Propagation
from orderkit_standins.crossplane.reconciler_context import ReconcilerContext
from orderkit_standins.providers.managed_reconciler import (
    UNAVAILABLE,
    Allowed,
    ManagedError,
    Twin,
    VisitOutcome,
)

LEGACY = Kind("kubernetes.crossplane.io", "v1alpha2", "Object")
MODERN = Kind("kubernetes.m.crossplane.io", "v1alpha1", "Object")
CONFIG_VERSION = "v1alpha1"
_BY_CEL = "DeriveFromCelQuery"


class ObjectTwin(Twin):
    """The controllers of both flavours of Object."""

    def __init__(self, site: ReconcilerContext) -> None:
        super().__init__(site, "object", (LEGACY, MODERN), workers=4)
        self._lock = threading.Lock()
        self._targets: dict[ObjectKey, set[ObjectKey]] = {}
        """Target: the Objects that are about it."""

    def _visit(self, managed: Manifest, policies: Allowed) -> VisitOutcome:
        _refuse_what_is_not_done(managed)
        target = target_of(managed)
        self._follow(managed, target)
        live = self._site.cluster.get(ObjectKey.of(target))
        if (live is None and policies.create) or (live is not None and policies.update):
            live = self._applied(managed, target, new=live is None)
        if live is None:
            return VisitOutcome(UNAVAILABLE, status={"atProvider": {}})
        return VisitOutcome(_readiness(managed, live), status={"atProvider": {"manifest": live}})

    def _applied(self, managed: Manifest, target: Manifest, *, new: bool) -> Manifest:
        owner = f"provider-kubernetes/{metadata(managed)['name']}"
        try:
            return self._site.cluster.apply(target, owner=owner)
        except OrderkitError as error:
            verb = "create" if new else "update"
            raise ManagedError(f"{verb} failed: cannot apply object: {error}") from error

    def _leave(self, managed: Manifest, policies: Allowed) -> bool:
        target = ObjectKey.of(target_of(managed))
        is_served = self._site.cluster.serves(target.kind)
        if not (policies.delete and is_served) or self._site.cluster.get(target) is None:
            self._forget(ObjectKey.of(managed))
            return True
        self._site.cluster.delete(target, propagation=_propagation(managed))
        return False

    def _follow(self, managed: Manifest, manifest: Manifest) -> None:
        """Watch the target, so that its changes trigger a reconcile."""
        object_key, target = ObjectKey.of(managed), ObjectKey.of(manifest)
        with self._lock:
            self._targets.setdefault(target, set()).add(object_key)
        self._controller.watch(target.kind, self._about)

    def _forget(self, object_key: ObjectKey) -> None:
        with self._lock:
            for owners in self._targets.values():
                owners.discard(object_key)

    def _about(self, target: Manifest) -> Iterable[ObjectKey]:
        with self._lock:
            return tuple(self._targets.get(ObjectKey.of(target), ()))


def target_of(managed: Manifest) -> Manifest:
    """
    Return what an Object wants; its own name where the manifest has none.

    Raises:
        ManagedError: The manifest is not an object.
    """
    target = copy.deepcopy(dig(managed, "spec", "forProvider", "manifest", default={}))
    target.setdefault("metadata", {}).setdefault("name", metadata(managed)["name"])
    try:
        ObjectKey.of(target)
    except (ValueError, AttributeError) as error:
        raise ManagedError(f"cannot read the manifest: {error}") from error
    manifest: Manifest = target
    return manifest


def _readiness(managed: Manifest, live: Manifest) -> Condition:
    policy = dig(managed, "spec", "readiness", "policy", default="SuccessfulCreate")
    if policy == "DeriveFromObject":
        ready = (condition(live, "Ready") or {}).get("status") == "True"
    elif policy == "AllTrue":
        conditions = dig(live, "status", "conditions", default=None) or []
        ready = bool(conditions) and all(entry.get("status") == "True" for entry in conditions)
    elif policy == _BY_CEL:
        ready = _is_true(_query(managed), live)
    else:
        ready = True
    return AVAILABLE if ready else UNAVAILABLE


def _refuse_what_is_not_done(managed: Manifest) -> None:
    for field in ("references", "connectionDetails"):
        if dig(managed, "spec", field, default=None):
            raise ManagedError(f"spec.{field}: the embedded platform's twin does not do that")
    if dig(managed, "spec", "readiness", "policy", default="") == _BY_CEL:
        problem = _expression(_query(managed)).judged()[0]
        if problem:
            raise ManagedError(f"spec.readiness.celQuery: {problem}")


def _query(managed: Manifest) -> str:
    return str(dig(managed, "spec", "readiness", "celQuery", default=""))


_expression = functools.lru_cache(maxsize=100)(Expression)


def _is_true(query: str, live: Manifest) -> bool:
    """Return whether a query about `object` is true. One that fails is not."""
    try:
        return plain_result(_expression(query).evaluate(bound(object=live)).value) is True
    except (OverflowError, TypeError):
        return False


def _propagation(managed: Manifest) -> Propagation:
    policy = dig(managed, "spec", "forProvider", "deletionPropagationPolicy", default="")
    ways: tuple[Propagation, ...] = ("Background", "Foreground", "Orphan")
    return next((way for way in ways if way == policy), "Background")
