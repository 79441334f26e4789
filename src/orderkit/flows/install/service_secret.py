"""
The Secret of the installed service: the files that platform.yaml names, by the settings' names.

It is never in Git. Pods see a changed entry within a minute or two, and the service then uses it
without a restart (`web.serving.RenewedApp`).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig
from orderkit.core.platform.service_objects import LABELS, NAME, NAMESPACE
from orderkit.flows.argocd.refreshing import OWNER
from orderkit.flows.notify.notified_events import ensure_namespace
from orderkit.flows.platform import get_object
from orderkit.ports.cluster import Cluster

KEY = ObjectKey(Kind("", "v1", "Secret"), NAME, NAMESPACE)


def secret_differs(cluster: Cluster, files: Mapping[str, bytes]) -> bool | None:
    """Say whether the Secret holds something else than these files; None: there is no Secret."""
    live = get_object(cluster, KEY)
    return None if live is None else dig(live, "data", default={}) != _encoded(files)


def ensure_service_secret(cluster: Cluster, files: Mapping[str, bytes]) -> bool:
    """
    Make the Secret hold these files. Idempotent. Returns whether it was written.

    Raises:
        AccessError: Our credentials may not write Secrets there.
    """
    if secret_differs(cluster, files) is False:
        return False
    ensure_namespace(cluster, NAMESPACE)
    manifest: Manifest = {
        "apiVersion": KEY.kind.api_version,
        "kind": KEY.kind.kind,
        "metadata": {"name": KEY.name, "namespace": KEY.namespace, "labels": dict(LABELS)},
        "type": "Opaque",
        "data": _encoded(files),
    }
    cluster.apply(manifest, owner=OWNER)
    return True


def _encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(data).decode() for name, data in sorted(files.items())}
