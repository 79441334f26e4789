"""
What Argo CD reads of the ledger: an order's Application, and a team's with its AppProject.

How they are made, and whether one that somebody wrote is safe. Pure; flows commit them.

Maintenance windows say when changes of a kit's orders may be delivered. Argo CD holds what is
merged until a window opens, by sync windows of the team's AppProject: `sync_windows` writes them,
`opens_at` reads the same windows for people. Argo CD joins windows: any that is open lets an
Application sync, and one that has a window does not sync outside of it (docs, Sync Windows;
observed on 3.6.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from fnmatch import fnmatchcase
from typing import Any, Literal
from zoneinfo import ZoneInfo

from ground.argocd.delivery_obstacles import ORDER_LABEL as ORDER_LABEL  # noqa: PLC0414 - exported
from ground.argocd.sync_rules import SYNC_OPTIONS, sync_options
from ground.names import MAIN, CommitSha, RepoId, TeamName
from ground.objects.kube_objects import (
    APP_PROJECT,
    APPLICATION,
    ARGOCD_NAMESPACE,
    NAMESPACE,
    Kind,
    Manifest,
    annotations_of,
    dig,
    labels_of,
    metadata,
)
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_kinds import OrderKinds, as_rules
from orderkit.core.kit.order_terms import DAYS, MaintenanceWindow
from orderkit.core.order.ledger import (
    FORMAT_ANNOTATION,
    KIT_LABEL,
    REQUESTER_ANNOTATION,
    TEAM_LABEL,
    OrderEntry,
    team_application,
    team_namespace,
    team_path,
)
from orderkit.core.order.order_file import MANIFESTS
from yamlfiles import yaml11
from yamlfiles.format_versions import API_VERSION
from yamlfiles.manifests import parse_manifests

"""In the order of ``datetime.weekday``."""


def sync_windows(windows: Mapping[str, Sequence[MaintenanceWindow]]) -> list[dict[str, Any]]:
    """
    Return the sync windows of an AppProject.

    Args:
        windows: By kit. Argo CD matches Applications by name, so these are named ``<kit>-*``.
    """
    return [
        {
            "kind": "allow",
            "schedule": _schedule(window),
            "duration": _duration(window),
            "timeZone": window.zone,
            "applications": [f"{kit}-*"],
        }
        for kit, of_kit in sorted(windows.items())
        for window in of_kit
    ]


def _schedule(window: MaintenanceWindow) -> str:
    start = _time(window.start)
    days = ",".join(str((DAYS.index(day) + 1) % 7) for day in window.days)  # cron: Sunday is 0
    return f"{start.minute} {start.hour} * * {days}"


def _duration(window: MaintenanceWindow) -> str:
    minutes = int(length_of(window).total_seconds()) // 60
    return f"{minutes // 60}h{minutes % 60}m"


def length_of(window: MaintenanceWindow) -> timedelta:
    """Return how long a window is open; one that ends before it begins ends the next day."""
    start, end = (
        timedelta(hours=at.hour, minutes=at.minute)
        for at in (_time(window.start), _time(window.end))
    )
    return end - start if end > start else end - start + timedelta(days=1)


def opens_at(windows: Iterable[MaintenanceWindow], now: datetime) -> datetime | None:
    """Return when the next window opens, in its zone; None if one is open, or if there is none."""
    openings = []
    for window in windows:
        local = now.astimezone(ZoneInfo(window.zone))
        for offset in range(-1, 8):
            day = (local + timedelta(days=offset)).date()
            if DAYS[day.weekday()] not in window.days:
                continue
            opening = datetime.combine(day, _time(window.start), ZoneInfo(window.zone))
            if opening <= now < opening + length_of(window):
                return None
            if opening > now:
                openings.append(opening)
    return min(openings, default=None)


def _time(text: str) -> time:
    return time.fromisoformat(text)


FINALIZER = "resources-finalizer.argocd.argoproj.io"
KEPT = {SYNC_OPTIONS: "Prune=false"}
"""
On what Argo CD keeps although its file left the ledger. It counts on the object itself; among
``spec.syncPolicy.syncOptions`` it would keep what an order no longer has (observed on 3.6.1).
"""
Stage = Literal["proposed", "entering", "living", "ending"]
"""
Where an order stands: nobody agreed to it yet, its place is not confirmed yet, it is delivered, its
end has begun.
"""
IN_CLUSTER = "https://kubernetes.default.svc"
MANIFESTS_ONLY = {"include": "*.{yaml,yml,json}"}
"""
``source.directory``: Argo CD reads plain manifests and never looks for a Chart.yaml, a
kustomization.yaml or a plugin. ``recurse: false`` says nothing to it (Argo CD 3.2.11 removes it).
"""
GENERATE_PATHS = "argocd.argoproj.io/manifest-generate-paths"
"""Prevents a commit for one team from making Argo CD refresh every other team."""
_OURS = "orderkit.dev/"


def _application(
    name: str,
    *,
    project: str,
    source: dict[str, Any],
    namespace: str,
    automated: dict[str, bool] | None,
    refreshes: bool = False,
    **meta: Any,
) -> Manifest:
    retry: dict[str, Any] = {"limit": 10}
    if refreshes:
        retry["refresh"] = True
    retry["backoff"] = {"duration": "2s", "factor": 2, "maxDuration": "1m"}
    return {
        "apiVersion": APPLICATION.api_version,
        "kind": APPLICATION.kind,
        "metadata": {"name": name, "namespace": ARGOCD_NAMESPACE, **meta},
        "spec": {
            "project": project,
            "source": source,
            "destination": {"server": IN_CLUSTER, "namespace": namespace},
            "syncPolicy": {**({"automated": automated} if automated else {}), "retry": retry},
        },
    }


@dataclass(frozen=True, slots=True)
class TeamPlace:
    """Source and destination of a team's orders."""

    team: TeamName
    forge_url: str
    ledger: RepoId
    kinds: OrderKinds
    namespaces: tuple[str, ...] = ()
    """In addition to the team's own."""
    windows: Mapping[str, tuple[MaintenanceWindow, ...]] = field(default_factory=dict)
    """By kit: when its orders are delivered. Other kits' orders are not held."""


def team_file(team_place: TeamPlace) -> str:
    """
    Return ``teams/<team>.yaml``.

    The AppProject allows only this organisation's repositories, these kinds and the team's own
    namespaces. The team's namespace is created only if there are namespaced kinds, and is never
    pruned. The team's Application has no finalizer: if it is deleted, by hand or because this file
    is lost, its orders stay.
    """
    team = team_place.team
    namespaces = [_namespace(team)] if team_place.kinds.namespaced else []
    application = _application(
        team_application(team),
        project="default",
        source={
            "repoURL": f"{team_place.forge_url}/{team_place.ledger}.git",
            "targetRevision": MAIN,
            "path": f"apps/{team}",
            "directory": dict(MANIFESTS_ONLY),
        },
        namespace=ARGOCD_NAMESPACE,
        # allowEmpty: it has no objects left once its last order ends
        automated={"prune": True, "selfHeal": True, "allowEmpty": True},
        labels={TEAM_LABEL: team},
        annotations={GENERATE_PATHS: "."},
    )
    return yaml11.dump_all([*namespaces, _project(team_place), application])


def permits(file: bytes, team: TeamName, kit: Kit) -> bool:
    """
    Say whether a team's file in the ledger lets Argo CD deliver a kit's XRs.

    Raises:
        ManifestError: It is not YAML of manifests.
    """
    scope = "namespace" if kit.namespaced else "cluster"
    return any(
        fnmatchcase(kit.kind.group, rule.get("group", ""))
        and fnmatchcase(kit.kind.kind, rule.get("kind", ""))
        for project in parse_manifests(str(team_path(team)), file)
        if Kind.of(project) == APP_PROJECT
        for rule in dig(project, "spec", f"{scope}ResourceWhitelist", default=())
    )


def _project(team_place: TeamPlace) -> Manifest:
    team = team_place.team
    namespaces = [team_namespace(team), *sorted(team_place.namespaces)]
    windows = sync_windows(team_place.windows)
    return {
        "apiVersion": APP_PROJECT.api_version,
        "kind": APP_PROJECT.kind,
        "metadata": {"name": team, "namespace": ARGOCD_NAMESPACE, "labels": {TEAM_LABEL: team}},
        "spec": {
            "description": f"Orders of team {team}",
            "sourceRepos": [f"{team_place.forge_url}/{team}/*"],
            "destinations": [
                {"server": IN_CLUSTER, "namespace": namespace} for namespace in namespaces
            ],
            "clusterResourceWhitelist": as_rules(team_place.kinds.cluster),
            # written even if it is empty: without it, every namespaced kind is allowed (observed)
            "namespaceResourceWhitelist": as_rules(team_place.kinds.namespaced),
            **({"syncWindows": windows} if windows else {}),
        },
    }


def _namespace(team: TeamName) -> Manifest:
    return {
        "apiVersion": NAMESPACE.api_version,
        "kind": NAMESPACE.kind,
        "metadata": {
            "name": team_namespace(team),
            "labels": {TEAM_LABEL: team},
            "annotations": dict(KEPT),
        },
    }


def order_application(
    entry: OrderEntry,
    *,
    kit: str,
    forge_url: str,
    commit: CommitSha | None = None,
    stage: Stage = "living",
    refreshes: bool = False,
    recorded: Manifest | None = None,
    requester: str = "",
    lease: Mapping[str, str] | None = None,
) -> Manifest:
    """
    Return the Application of an order, which delivers `commit`, or else the branch ``main``.

    While it lives, nothing that is pushed or lost deletes its XR: the Application does not prune,
    has no finalizer, and outlives its file in the ledger. Only an order that is ending prunes. One
    to which nobody agreed yet is not synced: Argo CD delivers nothing of it.

    Args:
        refreshes: Argo CD knows ``retry.refresh``: a retry takes the newest commit.
        recorded: The order's Application until now, whose annotations of ours stay.
        requester: Who orders it; of one that is recorded, who ordered it first counts.
        lease: The annotations of a new order's lease (`core.order.lease`).
    """
    automated: dict[str, bool] | None = None
    if stage != "proposed":
        automated = {"prune": stage != "living", "selfHeal": stage != "ending"}
    if automated and stage == "ending":
        # else Argo CD answers "auto-sync will wipe out all resources" and keeps everything
        # (observed on 3.2.11)
        automated["allowEmpty"] = True
    meta: dict[str, Any] = {
        "labels": {ORDER_LABEL: entry.order, TEAM_LABEL: entry.team, KIT_LABEL: kit}
    }
    annotations = {FORMAT_ANNOTATION: API_VERSION}
    annotations |= {REQUESTER_ANNOTATION: requester} if requester else {}
    annotations |= lease or {}
    annotations |= {
        name: text
        for name, text in annotations_of(recorded or {}).items()
        if name.startswith(_OURS)
    }
    if stage == "living":
        annotations |= KEPT
    meta["annotations"] = annotations
    if stage == "entering":
        # its place is not confirmed yet, so it goes with its file
        meta["finalizers"] = [FINALIZER]
    return _application(
        entry.order,
        project=entry.team,
        source={
            "repoURL": f"{forge_url}/{entry.repository}.git",
            "targetRevision": commit or MAIN,
            "path": str(MANIFESTS),
            "directory": dict(MANIFESTS_ONLY),
        },
        namespace=team_namespace(entry.team),
        automated=automated,
        refreshes=refreshes,
        **meta,
    )


def is_entering(application: Manifest | None) -> bool:
    """Say whether an order's place in its team is not confirmed yet."""
    return FINALIZER in (metadata(application or {}).get("finalizers") or ())


def is_pinned(application: Manifest) -> bool:
    """
    Say whether a file in the source cannot choose the tool that renders the Application.

    A chart is rendered by Helm, whatever it holds; a folder needs `MANIFESTS_ONLY`, or another
    pattern.
    """
    source = dig(application, "spec", "source", default={})
    return bool(source.get("chart") or dig(source, "directory", "include"))


def is_safe(application: Manifest) -> bool:
    """
    Say whether no push and no lost file of the ledger can delete what an Application delivered.

    An order must neither prune nor take its XR along, and must outlive its own file; an order that
    is ending prunes. A team must not take its orders along.
    """
    meta, automated = metadata(application), dig(application, "spec", "syncPolicy", "automated")
    if FINALIZER in (meta.get("finalizers") or ()):
        return False
    if not labels_of(application).get(ORDER_LABEL) or dig(automated, "allowEmpty"):
        return True
    return not dig(automated, "prune") and "Prune=false" in sync_options(application)
