"""
The rules of an Argo CD sync: the order of objects, and annotations with which they steer it.

The order is wave, kind, name, and reversed for pruned objects. Pure: it sees manifests and says
what comes when. It neither applies nor waits. Phases other than Sync (hooks) are not supported.
Rules, read from Argo CD 3.2: lower waves first, default 0; inside a wave the kinds of `KIND_ORDER`,
then every other kind, each by name; a Namespace moves before the first object that lives in it and
a CRD before the first object of its kind, taking that object's wave; waves of objects to be pruned
are swapped symmetrically (the last goes first); prune-last objects come after everything.

Annotations of a pushed object that steer Argo CD are recognised, with what Argo CD then does. Read
from Argo CD's source, 3.5.4 and gitops-engine 3.6.1: ``pkg/sync/sync_context.go``
(``applyObject``, ``isPruningDisabled``), ``controller/state.go``, ``appcontroller.go``.

A hook, which no order has, is an object that Argo CD does not keep: it makes the object before,
during or after a sync, when a sync fails, or when the Application is deleted. Argo CD deletes what
already has the hook's name, be it the order's own XR. Of two annotations the mere presence makes a
hook, whatever their value is (read from Argo CD's source, 3.2 and 3.6).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ground.errors import shorten
from ground.objects.kube_objects import (
    CRD,
    NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
    metadata,
)

__all__ = [
    "ANNOTATIONS",
    "FINALIZERS",
    "HELM_HOOK",
    "HINT",
    "HOOK",
    "SYNC_OPTIONS",
    "SteeringAnnotation",
    "SyncStep",
    "apply_step",
    "deletion_waves",
    "hook_annotation",
    "hook_refusal",
    "prune_step",
    "steering_annotations",
    "sync_options",
    "sync_order",
    "wave_of",
    "waves",
]

SYNC_WAVE = "argocd.argoproj.io/sync-wave"
SYNC_OPTIONS = "argocd.argoproj.io/sync-options"

KIND_ORDER = (
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
)
"""Kinds that are applied before all others, in this order."""

_RANK = {kind: rank for rank, kind in enumerate(KIND_ORDER)}


@dataclass(frozen=True, slots=True)
class SyncStep:
    """One object of a sync: applied, or pruned."""

    key: ObjectKey
    wave: int
    prune: bool = False
    creates: Hashable = None
    """What later objects may need: ``("namespace", name)`` or ``("kind", group, kind)``."""

    @property
    def rank(self) -> tuple[int, int, str]:
        """Its position before dependencies are considered."""
        return self.wave, _RANK.get(self.key.kind.kind, len(KIND_ORDER)), self.key.name


def wave_of(manifest: Manifest) -> int:
    """Return the sync wave; 0 if it is missing or not a number."""
    text = str(annotations_of(manifest).get(SYNC_WAVE, "0"))
    try:
        return int(text)
    except ValueError:
        return 0


def sync_options(manifest: Manifest) -> frozenset[str]:
    """Return the entries of the sync-options annotation, for example ``Prune=false``."""
    text = str(annotations_of(manifest).get(SYNC_OPTIONS, ""))
    return frozenset(option.strip() for option in text.split(",") if option.strip())


def apply_step(manifest: Manifest) -> SyncStep:
    """
    Make the step that applies `manifest`.

    Raises:
        ValueError: It is not a Kubernetes object.
    """
    key = ObjectKey.of(manifest)
    return SyncStep(key, wave_of(manifest), creates=_creates(key, manifest))


def prune_step(live: Manifest) -> SyncStep:
    """
    Make the step that deletes `live`.

    Raises:
        ValueError: It is not a Kubernetes object.
    """
    return SyncStep(ObjectKey.of(live), wave_of(live), prune=True)


def sync_order(
    steps: Iterable[SyncStep], *, prune_last: Iterable[ObjectKey] = ()
) -> list[SyncStep]:
    """
    Return the steps in the order Argo CD takes them, with the waves it gives them.

    Deterministic: equal input in any order gives equal output.

    Args:
        prune_last: Which of the prune steps wait until everything else is done.
    """
    ordered = sorted(_swap_prune_waves(list(steps), set(prune_last)), key=_by_rank_and_key)
    ordered = _pull_forward(ordered, _namespace_needed)
    return _pull_forward(ordered, _kind_needed)


def waves(steps: Iterable[SyncStep]) -> list[list[SyncStep]]:
    """Group ordered steps into waves; each waits for the health of the one before."""
    return [list(group) for _, group in groupby(steps, key=lambda step: step.wave)]


def deletion_waves(live: Iterable[Manifest]) -> list[list[Manifest]]:
    """Group live objects in the order of an Application's deletion: highest wave first."""
    ordered = sorted(live, key=lambda manifest: (-wave_of(manifest), ObjectKey.of(manifest)))
    return [list(group) for _, group in groupby(ordered, key=wave_of)]


def _by_rank_and_key(step: SyncStep) -> tuple[tuple[int, int, str], ObjectKey, bool]:
    return step.rank, step.key, step.prune


def _creates(key: ObjectKey, manifest: Manifest) -> Hashable:
    if key.kind == NAMESPACE:
        return "namespace", key.name
    if (key.kind.group, key.kind.kind) == (CRD.group, CRD.kind):
        return (
            "kind",
            dig(manifest, "spec", "group", default=""),
            dig(manifest, "spec", "names", "kind", default=""),
        )
    return None


def _swap_prune_waves(steps: list[SyncStep], prune_last: set[ObjectKey]) -> list[SyncStep]:
    prune_waves = sorted({step.wave for step in steps if step.prune})
    swapped = dict(zip(prune_waves, reversed(prune_waves), strict=True))
    turned = [replace(step, wave=swapped[step.wave]) if step.prune else step for step in steps]
    last = max([0, *(step.wave for step in turned)]) + 1
    return [
        replace(step, wave=last) if step.prune and step.key in prune_last else step
        for step in turned
    ]


def _namespace_needed(step: SyncStep) -> Hashable:
    return ("namespace", step.key.namespace) if step.key.namespace else None


def _kind_needed(step: SyncStep) -> Hashable:
    kind: Kind = step.key.kind
    return "kind", kind.group, kind.kind


def _pull_forward(
    steps: Sequence[SyncStep], users_of: Callable[[SyncStep], Hashable]
) -> list[SyncStep]:
    """Move each creator before the first step that needs it, into that step's wave."""
    ordered: list[SyncStep] = []
    for step in steps:
        position = _first_user(ordered, step, users_of) if step.creates is not None else None
        if position is None:
            ordered.append(step)
        else:
            ordered.insert(position, replace(step, wave=ordered[position].wave))
    return ordered


def _first_user(
    ordered: Sequence[SyncStep], creator: SyncStep, users_of: Callable[[SyncStep], Hashable]
) -> int | None:
    for position, step in enumerate(ordered):
        if not step.prune and step.creates is None and users_of(step) == creator.creates:
            return position
    return None


_SHOWN_MAX = 80
_EFFECTS = {
    "Force=true": (
        "Argo CD deletes the object and makes it again when it cannot be updated, with Replace=true"
        " at every sync; what belongs to it is deleted too"
    ),
    "Replace=true": (
        "Argo CD puts the file in place of the whole object at every sync, and so removes what"
        " controllers such as Crossplane wrote into it"
    ),
    "Prune=false": "Argo CD does not prune the object, so the end of its order waits",
    "Prune=confirm": "Argo CD prunes the object only once a person confirms it; until then the end"
    " of its order waits",
    "Delete=false": "Argo CD leaves the object behind when it deletes the Application",
    "Delete=confirm": "Argo CD deletes the Application only once a person confirms it",
}
_DANGEROUS = ("Force=true", "Replace=true")
_NAMES = {
    SYNC_OPTIONS: "Argo CD syncs the object otherwise than those of other orders",
    "argocd.argoproj.io/compare-options": "Argo CD may call the order Synced although it is not",
    SYNC_WAVE: "an order delivers one object, so Argo CD has nothing to put into an order",
    "argocd.argoproj.io/ignore-healthcheck": (
        "Argo CD leaves the object's health out, and calls the order healthy when it is not"
    ),
}


@dataclass(frozen=True, slots=True)
class SteeringAnnotation:
    """One annotation, or one option of it, and what Argo CD does because of it."""

    name: str
    value: str
    effect: str
    is_dangerous: bool = False
    """Whether it deletes or damages the object, with what it holds."""

    @property
    def hint(self) -> str:
        return f"take {self.name} out of the annotations; commit and push"

    def __str__(self) -> str:
        return f"{self.name}: {self.value} steers Argo CD: {self.effect}"


def steering_annotations(manifest: Manifest) -> Iterator[SteeringAnnotation]:
    """Yield what an object's annotations make Argo CD do, whatever their values are."""
    annotations: object = annotations_of(manifest)
    if not isinstance(annotations, dict):
        return  # the API server refuses the object
    for name, effect in _NAMES.items():
        if name not in annotations:
            continue
        text = str(annotations[name])
        options = [option.strip() for option in text.split(",")] if name == SYNC_OPTIONS else [text]
        for option in options:
            value, told = shorten(option, limit=_SHOWN_MAX), _EFFECTS.get(option, effect)
            yield SteeringAnnotation(name, value, told, option in _DANGEROUS)


HOOK, HELM_HOOK = "argocd.argoproj.io/hook", "helm.sh/hook"
ANNOTATIONS = (HOOK, HELM_HOOK)
FINALIZERS = {
    "PreDelete": "pre-delete-finalizer.argocd.argoproj.io",
    "PostDelete": "post-delete-finalizer.argocd.argoproj.io",
}
"""
What Argo CD puts on an Application whose files have a hook of this type. Each has a second one
whose name ends with ``/cleanup``.
"""
HINT = "take the annotation, or the object, out of manifests/; commit and push"
_RULE = "and an order has no hooks"


def hook_annotation(manifest: Manifest) -> str:
    """Return the annotation that makes an object a hook, as ``name: value``; empty if none does."""
    annotations: object = annotations_of(manifest)
    if not isinstance(annotations, dict):
        return ""  # the API server refuses the object
    names = (name for name in ANNOTATIONS if name in annotations)
    return next((shorten(f"{name}: {annotations[name]}", limit=_SHOWN_MAX) for name in names), "")


def hook_refusal(manifest: Manifest) -> str:
    """Return why an object of an order is refused as a hook; empty if it is none."""
    annotation = hook_annotation(manifest)
    return f"{_object(manifest)} is a hook of Argo CD ({annotation}), {_RULE}" if annotation else ""


def _object(manifest: Manifest) -> str:
    name = shorten(str(metadata(manifest).get("name") or ""), limit=_SHOWN_MAX)
    return f"{Kind.of(manifest).kind} {name}".strip()


def delete_hooks(application: Manifest) -> list[str]:
    """Return the types of hooks for whose run the deletion of an Application would wait."""
    finalizers = metadata(application).get("finalizers") or ()
    return [
        type_
        for type_, finalizer in FINALIZERS.items()
        if any(str(found).partition("/")[0] == finalizer for found in finalizers)
    ]


def found_hooks(application: Manifest) -> str:
    """Return that Argo CD found hooks in an order's files; empty if it shows none."""
    types = delete_hooks(application)
    return f"manifests/ holds a hook of Argo CD ({', '.join(types)}), {_RULE}" if types else ""
