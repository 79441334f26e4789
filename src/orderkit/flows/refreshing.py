"""
Tell Argo CD to look at Git now instead of at its next poll.

The annotation ``argocd.argoproj.io/refresh: normal`` re-resolves the revision without cache;
the controller removes it when done (read from source, observed on Argo CD 3.2.11).
"""

from __future__ import annotations

from orderkit.core.errors import NotFoundError
from orderkit.core.objects import APPLICATION, ARGOCD_NAMESPACE, Manifest, ObjectKey, dig
from orderkit.flows.platform import Platform, get_object

REFRESH = "argocd.argoproj.io/refresh"
OWNER = "orderkit"
"""Field manager of what flows write into the cluster."""


def application_key(name: str) -> ObjectKey:
    """Return where an Application lives."""
    return ObjectKey(APPLICATION, name, ARGOCD_NAMESPACE)


def refresh(platform: Platform, application: str) -> bool:
    """Ask for a refresh. Idempotent. False if the Application does not exist (yet)."""
    patch = {"metadata": {"annotations": {REFRESH: "normal"}}}
    try:
        platform.cluster.patch(application_key(application), patch, owner=OWNER)
    except NotFoundError:
        return False
    return True


def nudge(platform: Platform, application: str, commit: str) -> None:
    """
    Ask for a refresh after a write, and end an operation that retries an older commit.

    Idempotent. A first try at an older commit is left to end by itself.
    """
    found = get_object(platform, application_key(application))
    if found is None:
        return
    if dig(found, "status", "operationState", "retryCount", default=0):
        end_older_operation(platform, found, commit)
    refresh(platform, application)


def end_older_operation(platform: Platform, application: Manifest, commit: str) -> bool:
    """
    End a running operation that pins another commit than `commit`. Idempotent.

    An operation that retries a bad commit keeps newer ones from being applied; setting its
    phase to Terminating lets the newest through in 0.5 s (observed on Argo CD 3.2.11).
    """
    operation = dig(application, "status", "operationState", default={})
    pinned = dig(operation, "operation", "sync", "revision")
    if operation.get("phase") != "Running" or pinned in (None, commit):
        return False
    patch = {"status": {"operationState": {"phase": "Terminating"}}}
    try:
        platform.cluster.patch(ObjectKey.of(application), patch, owner=OWNER)
    except NotFoundError:
        return False
    return True
