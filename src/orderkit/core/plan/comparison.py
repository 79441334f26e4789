"""
Compare two assemblies of one order, before and after a change, into a `Plan`.

Resources are paired by path. The comparison ignores what Crossplane writes for every resource
(owner references, its own labels and annotations) and what the cluster writes (status).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from operator import itemgetter
from typing import Any, Literal

from compositions.composed import CLAIM_LABELS, COMPOSITE_LABEL, RESOURCE_NAME_ANNOTATION
from compositions.layered_settings import LayeredValue
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, metadata
from orderkit.core.order.change import ABSENT, FieldDifference, differences, same
from orderkit.core.plan.assembly import Assembly, Fault, key_text
from orderkit.core.plan.cost import Costs
from orderkit.core.plan.dangers import Danger, DangerContext, dangers_of
from orderkit.core.plan.dangers.danger_codes import AcceptedPlanDanger, accepted_apart

_CROSSPLANE_LABELS = {COMPOSITE_LABEL, RESOURCE_NAME_ANNOTATION, *CLAIM_LABELS}
_SERVER_FIELDS = {
    "creationTimestamp", "generation", "managedFields", "ownerReferences", "resourceVersion",
    "selfLink", "uid",
}  # fmt: skip


class Action(StrEnum):
    """What happens to one resource."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"
    REPLACED = "replaced"

    @property
    def sign(self) -> str:
        """How lists of changes mark it."""
        return {"added": "+", "changed": "~", "removed": "-", "replaced": "±"}[self.value]


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """What happens to one resource and to its fields."""

    path: str
    action: Action
    old: Manifest | None
    new: Manifest | None
    fields: tuple[FieldDifference, ...] = ()

    @property
    def manifest(self) -> Manifest:
        """The resource as it will be; if it is removed, as it was."""
        manifest = self.new or self.old
        assert manifest is not None  # noqa: S101 - one of them is there
        return manifest


@dataclass(frozen=True, slots=True)
class Drift:
    """A composed resource that is not as it should be (``live_state``); path '': the XR."""

    path: str
    message: str
    fields: tuple[FieldDifference, ...] = ()
    """From what the cluster has to what it should have."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting of the order whose value, or the layer that decides it, changes."""

    field: FieldDifference
    old_layer: str
    """Empty: the setting is new."""
    layer: str
    """Empty: no layer gives it any more."""

    @property
    def decision(self) -> str:
        """Return which layer decides, in words."""
        before = f", before: {self.old_layer}" if self.old_layer not in {"", self.layer} else ""
        return f"layer: {self.layer or 'none'}{before}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a change does, down to composed resources, and what is unknown about it."""

    before: Assembly
    after: Assembly
    fields: tuple[FieldDifference, ...]
    """Differences of the XR's spec, with defaults."""
    changes: tuple[ResourceChange, ...]
    unchanged: int
    status: tuple[FieldDifference, ...]
    """Differences of the XR's status, without conditions."""
    dangers: tuple[Danger, ...]
    costs: Costs | None = None
    """None without a price table."""
    drift: tuple[Drift, ...] = ()
    """How the live state differs from `before`; it is part of `changes`."""
    accepted: tuple[AcceptedPlanDanger, ...] = ()
    """Dangers that the kit accepts; they are not among `dangers`."""
    paused: Mapping[str, str] = field(default_factory=dict)
    """What is paused after the change, by path ("": the order), in sentences."""
    approval: str = ""
    """Who has to approve it first, and why; empty: no one, or the plan is not of a request."""

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Why the order would fail after the change, whether or not it failed before."""
        return self.after.faults

    @property
    def unknowns(self) -> tuple[str, ...]:
        """What this plan does not know."""
        unclear = (
            f"{key_text(self.before.observed[path])} ({path}) already exists; its changes are "
            "unknown"
            for path in sorted(self.after.resources)
            if _is_unclear(self.before, path)
        )
        return tuple(dict.fromkeys((*self.before.unknowns, *self.after.unknowns, *unclear)))

    @property
    def readiness(self) -> Literal["Ready", "not Ready", "not known", "Paused"]:
        """Return, for a person, how the order ends up."""
        return "Paused" if "" in self.paused else self.after.readiness

    @property
    def settings(self) -> tuple[SettingChange, ...]:
        """Settings that change, with their layers."""
        before, after = self.before.settings, self.after.settings
        absent = LayeredValue(ABSENT, "")
        pairs = [(p, before.get(p, absent), after.get(p, absent)) for p in {*before, *after}]
        return tuple(
            SettingChange(
                FieldDifference(tuple(path.split(".")), old.value, new.value), old.layer, new.layer
            )
            for path, old, new in sorted(pairs, key=itemgetter(0))
            if old != new
        )

    @property
    def kept(self) -> Mapping[str, Manifest]:
        """Existing resources that no known step composes: they may stay, change or go."""
        return self.after.kept

    @property
    def waves(self) -> tuple[tuple[str, ...], ...]:
        """New resources in waves: each wave waits for the one before it."""
        new = {change.path for change in self.changes if change.action is not Action.REMOVED}
        new -= self.before.resources.keys()
        waves = (tuple(path for path in wave if path in new) for wave in self.after.waves)
        return tuple(wave for wave in waves if wave)

    def count(self, action: Action) -> int:
        """Return how many resources have this action."""
        return sum(change.action is action for change in self.changes)

    @property
    def summary(self) -> str:
        """Return the plan on one line."""
        counts = [f"{self.count(action)} {action}" for action in Action if self.count(action)]
        counts.append(f"{self.unchanged} unchanged")
        counts += [f"{len(self.kept)} kept, not known"] if self.kept else []
        faults = len(self.faults)
        counts += [f"{faults} fault{'s' if faults > 1 else ''}"] if faults else []
        if self.costs is not None:
            counts.append(self.costs.short)
        dangers = len(self.dangers)
        counts += [f"{dangers} danger{'s' if dangers > 1 else ''}"] if dangers else []
        return ", ".join(counts)


def plan_with_secrets(
    before: Assembly,
    after: Assembly,
    *,
    fresh: Assembly | None = None,
    context: DangerContext | None = None,
) -> Plan:
    """
    Compare like `masking.compare`, and leave the values of Secrets in the plan.

    No view may get such a plan: pass it to `masking.masked`.
    """
    after = _with_kept(before, after)
    changes = tuple(_changes(before, after))
    unchanged = len(before.resources.keys() & after.resources.keys())
    unchanged -= sum(change.old is not None and change.new is not None for change in changes)
    unchanged -= len(before.resources.keys() & after.kept.keys())
    dangers, accepted = accepted_apart(
        dangers_of(before, after, fresh or after, context), after, context
    )
    return Plan(
        before,
        after,
        differences(before.xr.get("spec") or {}, after.xr.get("spec") or {}, into_lists=True),
        changes,
        unchanged,
        differences(_status(before.xr), _status(after.xr), into_lists=True),
        dangers,
        accepted=accepted,
    )


def _with_kept(before: Assembly, after: Assembly) -> Assembly:
    """
    Return the outcome with the resources that stay although no known step composes them.

    Where a pipeline fails, Crossplane neither applies nor deletes: everything stays. Resources that
    only an opaque step may compose are assumed to stay as well.
    """
    failing = [fault.path for fault in after.faults if fault.code == "pipeline"]
    kept = {
        path: manifest
        for path, manifest in before.resources.items()
        if path in after.kept or any(not above or path.startswith(f"{above}/") for above in failing)
    }
    return replace(after, resources={**kept, **after.resources}) if kept else after


def _changes(before: Assembly, after: Assembly) -> Iterator[ResourceChange]:
    for path in sorted(before.resources.keys() | after.resources.keys()):
        if _is_unclear(before, path):
            continue
        old, new = before.resources.get(path), after.resources.get(path)
        if same(old, new):
            continue
        fields = differences(authored(old), authored(new), into_lists=True)
        if old is None:
            yield ResourceChange(path, Action.ADDED, None, new)
        elif new is None:
            yield ResourceChange(path, Action.REMOVED, old, None)
        elif is_other(old, new):
            yield ResourceChange(path, Action.REPLACED, old, new, fields)
        elif fields:
            yield ResourceChange(path, Action.CHANGED, old, new, fields)


def _is_unclear(before: Assembly, path: str) -> bool:
    """Return whether a resource exists at the path that no known step composed."""
    return path not in before.resources and path in before.observed and before.keeps(path)


def is_other(old: Manifest, new: Manifest) -> bool:
    """Return whether two manifests are different objects of the cluster."""
    old_key, new_key = ObjectKey.of(old), ObjectKey.of(new)
    kinds = {(key.kind.group, key.kind.kind) for key in (old_key, new_key)}
    return len(kinds) > 1 or (old_key.namespace, old_key.name) != (new_key.namespace, new_key.name)


def authored(manifest: Manifest | None) -> Manifest:
    """Return the part of a resource that its author controls."""
    if manifest is None:
        return {}
    meta: dict[str, Any] = {
        key: value for key, value in metadata(manifest).items() if key not in _SERVER_FIELDS
    }
    for name in ("labels", "annotations"):
        labels = {k: v for k, v in (meta.get(name) or {}).items() if k not in _CROSSPLANE_LABELS}
        meta = {**meta, name: labels} if labels else _without(meta, name)
    return {**_without(manifest, "status"), "metadata": meta}


def shown_manifest(manifest: Manifest) -> Manifest:
    """Return a resource as plans show it: kind first, without Crossplane's metadata."""
    kind = Kind.of(manifest)
    manifest_body = _without(_without(authored(manifest), "apiVersion"), "kind")
    return {"apiVersion": kind.api_version, "kind": kind.kind, **manifest_body}


def _status(xr: Manifest) -> Mapping[str, Any]:
    return _without(xr.get("status") or {}, "conditions")


def _without(mapping: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name != key}
