"""
Recognise annotations with which a pushed object steers Argo CD, and say what Argo CD then does.

Read from Argo CD's source, 3.5.4 and gitops-engine 3.6.1: ``pkg/sync/sync_context.go``
(``applyObject``, ``isPruningDisabled``), ``controller/state.go``, ``appcontroller.go``.

Recognise hooks of Argo CD, which no order has.

A hook is an object that Argo CD does not keep: it makes the object before, during or after a sync,
when a sync fails, or when the Application is deleted. Argo CD deletes what already has the hook's
name, be it the order's own XR. Of two annotations the mere presence makes a hook, whatever their
value is (read from Argo CD's source, 3.2 and 3.6).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ground.argocd.waves import SYNC_OPTIONS, SYNC_WAVE
from ground.errors import shorten
from ground.objects.kube_objects import Kind, Manifest, annotations_of, metadata

__all__ = [
    "ANNOTATIONS",
    "FINALIZERS",
    "HELM_HOOK",
    "HINT",
    "HOOK",
    "SteeringAnnotation",
    "hook_annotation",
    "hook_refusal",
    "steering_annotations",
]


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
