"""
Hooks as Argo CD 3.6 reads them, and those that run when an Application is deleted.

A hook of a sync runs with an operation, which it does not start: `sync` makes its object again. One
of a deletion puts finalizers on the Application, and is asked of the AppProject like any other
object. Not here: that a hook completes or fails by its health, its finalizer, delete policies,
waves and names that the server makes up.
"""

from __future__ import annotations

from collections.abc import Iterable

from ground.argocd.steering import FINALIZERS, HELM_HOOK, HOOK
from ground.objects.kube_objects import Manifest, annotations_of

_PHASES = frozenset({"PreSync", "Sync", "PostSync", "SyncFail"})
_HELM_PHASES = {
    "pre-install": "PreSync",
    "pre-upgrade": "PreSync",
    "post-install": "PostSync",
    "post-upgrade": "PostSync",
}
_SKIP = "Skip"
_OF_DELETION = {"PreDelete": "pre-delete", "PostDelete": "post-delete"}


def is_skipped(manifest: Manifest) -> bool:
    """Say whether Argo CD knows an object without ever comparing or applying it."""
    return _known(manifest) == [_SKIP]


def is_hook(manifest: Manifest) -> bool:
    """Say whether an object is no target of a comparison; it may be of no phase either."""
    annotations = annotations_of(manifest)
    if HOOK in annotations:
        return not is_skipped(manifest)
    return annotations.get(HELM_HOOK, "crd-install") != "crd-install"


def phases_of(manifest: Manifest) -> frozenset[str]:
    """Return the phases of a sync in which a hook runs."""
    known = _known(manifest) if is_hook(manifest) else []
    return frozenset(known) & _PHASES


def deletion_types(manifest: Manifest) -> frozenset[str]:
    """Return the types of hook of a deletion that an object is."""
    return frozenset(
        type_
        for type_, helm_type in _OF_DELETION.items()
        if type_ in _words(manifest, HOOK) or helm_type in _words(manifest, HELM_HOOK)
    )


def finalizers_for(types: Iterable[str]) -> list[str]:
    """Return what Argo CD puts on an Application that has hooks of these types."""
    return [name for type_ in sorted(types) for name in _both(FINALIZERS[type_])]


def finalizers_of_hooks() -> frozenset[str]:
    """Return everything that Argo CD puts on an Application because of hooks."""
    return frozenset(finalizers_for(FINALIZERS))


def _both(finalizer: str) -> tuple[str, str]:
    return finalizer, f"{finalizer}/cleanup"


def _known(manifest: Manifest) -> list[str]:
    """Return the known types, Helm's only where Argo CD's own annotation has none."""
    own = [word for word in _words(manifest, HOOK) if word in _PHASES or word == _SKIP]
    words = _words(manifest, HELM_HOOK)
    return own or [_HELM_PHASES[word] for word in words if word in _HELM_PHASES]


def _words(manifest: Manifest, annotation: str) -> list[str]:
    text = str(annotations_of(manifest).get(annotation, ""))
    return [word.strip() for word in text.split(",")]
