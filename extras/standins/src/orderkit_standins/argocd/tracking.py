"""
Argo CD's tracking annotation as it is written at every apply.

``ground.argocd.delivery_hindrances.tracker`` reads it.
"""

from __future__ import annotations

from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, Manifest, ObjectKey, metadata


def application_key(name: str) -> ObjectKey:
    """Return the key of an Application; all live in Argo CD's own namespace."""
    return ObjectKey(APPLICATION, name, ARGOCD_NAMESPACE)


def tracking_id(app: str, key: ObjectKey, destination: str) -> str:
    """Return the annotation's value. A cluster-scoped object gets the app's destination."""
    kind = key.kind
    return f"{app}:{kind.group}/{kind.kind}:{key.namespace or destination}/{key.name}"


def is_owned(live: Manifest) -> bool:
    """Say whether another object owns it; such objects are never pruned by Argo CD."""
    return bool(metadata(live).get("ownerReferences"))
