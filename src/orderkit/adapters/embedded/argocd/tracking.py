"""
Argo CD's tracking annotation: which Application delivered an object.

The value is ``<app>:<group>/<kind>:<namespace>/<name>`` and is written at every apply. It counts
only on the object it names, because controllers copy annotations to objects they make.
"""

from __future__ import annotations

from orderkit.core.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    TRACKING_ID,
    Manifest,
    ObjectKey,
    annotations_of,
    metadata,
)


def application_key(name: str) -> ObjectKey:
    """Return the key of an Application; all live in Argo CD's own namespace."""
    return ObjectKey(APPLICATION, name, ARGOCD_NAMESPACE)


def tracking_id(app: str, key: ObjectKey, destination: str) -> str:
    """Return the annotation's value. A cluster-scoped object gets the app's destination."""
    kind = key.kind
    return f"{app}:{kind.group}/{kind.kind}:{key.namespace or destination}/{key.name}"


def tracker(live: Manifest) -> str:
    """Return the name of the Application that delivered this very object, or nothing."""
    value = annotations_of(live).get(TRACKING_ID)
    parts = value.split(":") if isinstance(value, str) else []
    if len(parts) != 3:  # noqa: PLR2004 - app, kind, name
        return ""
    key = ObjectKey.of(live)
    namespace, _, name = parts[2].partition("/")
    names_it = parts[1] == f"{key.kind.group}/{key.kind.kind}" and name == key.name
    return parts[0] if names_it and (not key.namespace or namespace == key.namespace) else ""


def is_owned(live: Manifest) -> bool:
    """Say whether another object owns it; such objects are never pruned by Argo CD."""
    return bool(metadata(live).get("ownerReferences"))
