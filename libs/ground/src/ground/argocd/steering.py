"""
Recognise annotations with which a pushed object steers Argo CD, and say what Argo CD then does.

Read from Argo CD's source, 3.5.4 and gitops-engine 3.6.1: ``pkg/sync/sync_context.go``
(``applyObject``, ``isPruningDisabled``), ``controller/state.go``, ``appcontroller.go``. Hooks are
in ``ground.argocd.hooks``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ground.argocd.waves import SYNC_OPTIONS, SYNC_WAVE
from ground.errors import shorten
from ground.objects.kube_objects import Manifest, annotations_of

__all__ = ["SteeringAnnotation", "steering_annotations"]

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
