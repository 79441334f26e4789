"""
Hold all that Argo CD delivers, and let it go on.

A sync window that is always closed in each AppProject of the platform: root, layers and ledger are
in ``default``, a team's orders in the team's. It stops what begins by itself, new Applications too,
and it does not touch what is delivered. Argo CD does not take it away while it holds: the ledger,
which has the teams' AppProjects, is itself held.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ground.names import TeamName
from ground.objects.kube_objects import (
    APP_PROJECT,
    ARGOCD_NAMESPACE,
    Manifest,
    ObjectKey,
    dig,
    labels_of,
    metadata,
)
from orderkit.core.order import ledger
from orderkit.flows.argocd.refreshing import OWNER, refresh
from orderkit.flows.platform import get_object
from orderkit.flows.repeating import in_rounds
from orderkit.flows.team.teams import LEDGER_APPLICATION
from orderkit.ports.cluster import Cluster

_HOLD: dict[str, Any] = {
    "kind": "deny",
    "schedule": "* * * * *",  # each minute for an hour: always
    "duration": "1h",
    "applications": ["*"],
}


def is_held(cluster: Cluster) -> bool:
    """Say whether Argo CD is held."""
    return any(_HOLD in _windows(project) for project in _projects(cluster))


def hold(cluster: Cluster) -> None:
    """Hold all deliveries. Idempotent."""
    for project in _projects(cluster):
        _write(cluster, ObjectKey.of(project), holds=True)


def let_go(cluster: Cluster) -> None:
    """Let Argo CD deliver again. Idempotent."""
    projects = list(_projects(cluster))
    for project in reversed(projects):  # the platform's own last: with it, the ledger is delivered
        _write(cluster, ObjectKey.of(project), holds=False)
    refresh(cluster, "root")
    refresh(cluster, LEDGER_APPLICATION)
    for project in projects:
        if team := labels_of(project).get(ledger.TEAM_LABEL):
            refresh(cluster, ledger.team_application(TeamName(team)))


def _projects(cluster: Cluster) -> Iterator[Manifest]:
    """Yield the platform's AppProjects, its own first."""
    projects = cluster.list(APP_PROJECT, namespace=ARGOCD_NAMESPACE).items
    yield from (p for p in projects if metadata(p).get("name") == "default")
    yield from (p for p in projects if labels_of(p).get(ledger.TEAM_LABEL))


def _write(cluster: Cluster, key: ObjectKey, *, holds: bool) -> None:
    def attempt() -> None:
        project = get_object(cluster, key)
        windows = _windows(project or {})
        if project is None or (_HOLD in windows) is holds:
            return
        wanted = [*windows, _HOLD] if holds else [w for w in windows if w != _HOLD]
        # a merge patch replaces the whole list, so only if nobody changed it since
        patch = {
            "metadata": {"resourceVersion": metadata(project).get("resourceVersion")},
            "spec": {"syncWindows": wanted or None},
        }
        cluster.patch(key, patch, owner=OWNER)

    in_rounds(attempt)


def _windows(project: Manifest) -> list[dict[str, Any]]:
    return list(dig(project, "spec", "syncWindows", default=()) or ())
