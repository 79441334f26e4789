"""
Twins of what has no cloud behind it: provider-kubernetes, provider-nop, and other controllers.

An Object of provider-kubernetes has its manifest applied to the cluster it lives in: server-side,
forced, under the manager ``provider-kubernetes/<object>``, so a sparse manifest owns its own fields
and no others. Management policies are obeyed: without Create a missing target stays missing and the
Object unready, without Delete it outlives the Object. Targets are watched, where the real provider
polls unless told to watch. Not here: ``references`` and ``connectionDetails`` (an Object that has
them says so in Synced), other clusters and identities, ObservedObjectCollections.

provider-nop's resources take the conditions that their ``conditionAfter`` says, when it says so
(``NopResourceParameters`` of the provider). A kind of which nothing is known is Ready at once. Not
here: what an operator would make of its resource, and every status field but conditions.
"""

from __future__ import annotations

import copy
import functools
import re
import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ground.errors import OrderkitError
from ground.objects.kube_objects import (
    AVAILABLE,
    CREATING,
    Condition,
    Kind,
    Manifest,
    ObjectKey,
    condition,
    dig,
    metadata,
)
from kubeschema.cel.expressions import Expression, bound, plain_result
from orderkit.ports.cluster import Propagation
from orderkit_standins.controller import Controller
from orderkit_standins.crossplane.reconciler_context import ReconcilerContext, is_deleting
from orderkit_standins.providers.managed_reconciler import (
    TWIN,
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
        # of its own, so that a sparse manifest owns its own fields and no others
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


NOP_KINDS = tuple(
    Kind("nop.crossplane.io", "v1alpha1", kind) for kind in ("NopResource", "ClusterNopResource")
)
_PART = re.compile(r"([0-9.]+)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class NopTwin(Twin):
    """The controllers of provider-nop."""

    def __init__(self, site: ReconcilerContext) -> None:
        super().__init__(site, "nop", NOP_KINDS, workers=2)

    def _visit(self, managed: Manifest, policies: Allowed) -> VisitOutcome:  # noqa: ARG002 - Twin's
        entries = dig(managed, "spec", "forProvider", "conditionAfter", default=None) or ()
        wanted = [(_seconds(entry.get("time")), entry) for entry in entries]
        age_s = self._age_s(managed)
        due = [entry for after_s, entry in wanted if after_s <= age_s]
        later = [after_s - age_s for after_s, _ in wanted if after_s > age_s]
        ready = [entry for entry in due if entry.get("conditionType") == "Ready"]
        fields = dig(managed, "spec", "forProvider", "fields", default=None) or {}
        return VisitOutcome(
            _condition(ready[-1]) if ready else CREATING,
            again_s=min(later, default=None),
            status={"atProvider": {"fields": fields}} if fields else None,
        )

    def _leave(self, managed: Manifest, policies: Allowed) -> bool:  # noqa: ARG002 - Twin's
        return True

    def _age_s(self, managed: Manifest) -> float:
        created = datetime.fromisoformat(str(metadata(managed)["creationTimestamp"]))
        return (self._site.clock.now().astimezone(UTC) - created).total_seconds()


def _condition(entry: dict[str, Any]) -> Condition:
    usual = AVAILABLE if entry.get("conditionStatus") == "True" else CREATING
    return Condition("Ready", usual.status, str(entry.get("conditionReason") or usual.reason))


def _seconds(duration: object) -> float:
    """Read a duration of Go: ``1m30s``."""
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(str(duration)))


class OperatorTwin:
    """Says of resources of any kind that they are Ready, as soon as it sees them."""

    def __init__(self, site: ReconcilerContext, kinds: Iterable[Kind]) -> None:
        self._site = site
        self._controller = Controller("operators", site.cluster, self._reconcile, workers=1)
        for kind in kinds:
            self._controller.watch(kind)

    def start(self) -> None:
        self._controller.start()

    def stop(self) -> None:
        self._controller.stop()

    def _reconcile(self, key: ObjectKey) -> float | None:
        found = self._site.cluster.get(key)
        if found is not None and not is_deleting(found):
            self._site.write_status(found, TWIN, AVAILABLE)
        return None
