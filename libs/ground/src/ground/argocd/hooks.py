"""
Recognise hooks of Argo CD, which no order has.

A hook is an object that Argo CD does not keep: it makes the object before, during or after a sync,
when a sync fails, or when the Application is deleted. Argo CD deletes what already has the hook's
name, be it the order's own XR. Of two annotations the mere presence makes a hook, whatever their
value is (read from Argo CD's source, 3.2 and 3.6).

Called wherever an order's files or its Application are judged, and by the embedded Argo CD.
"""

from __future__ import annotations

from ground.errors import shorten
from ground.objects.kube_objects import Kind, Manifest, annotations_of, metadata

__all__ = [
    "ANNOTATIONS",
    "FINALIZERS",
    "HELM_HOOK",
    "HINT",
    "HOOK",
    "hook_annotation",
    "hook_refusal",
]

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
_SHOWN_MAX = 80


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
