"""
The ledger's files: which exist, what stands in them, how they are found again.

    teams/<team>.yaml            the team's AppProject and the Application for apps/<team>/
    apps/<team>/<order>.yaml     the order's Application
    data/<team>/<order>/end.yaml              an end under way, never delivered
    data/<team>/<order>/tombstone-<when>.yaml one per end

Layout chosen so that one bad file hurts one order, at worst one team: a malformed file stops
every new child of the Application that holds it (observed on Argo CD 3.2.11). Pure: it makes
and reads texts; flows commit them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from orderkit.core import yamltext
from orderkit.core.kit.kinds import OrderKinds, as_rules
from orderkit.core.names import OrderId, RepoId, TeamName
from orderkit.core.objects import APP_PROJECT, APPLICATION, ARGOCD_NAMESPACE, Manifest
from orderkit.core.orderfile import MANIFESTS

ORDER_LABEL = "orderkit.dev/order"
TEAM_LABEL = "orderkit.dev/team"
KIT_LABEL = "orderkit.dev/kit"
FINALIZER = "resources-finalizer.argocd.argoproj.io"
IN_CLUSTER = "https://kubernetes.default.svc"
GENERATE_PATHS = "argocd.argoproj.io/manifest-generate-paths"
"""Keeps a commit for one team from making Argo CD look at every other team."""
KEEP = ".gitkeep"


@dataclass(frozen=True, slots=True)
class OrderEntry:
    """An order as the ledger's file names tell it."""

    team: TeamName
    order: OrderId

    @property
    def application_path(self) -> PurePosixPath:
        return PurePosixPath("apps", self.team, f"{self.order}.yaml")

    @property
    def end_path(self) -> PurePosixPath:
        return PurePosixPath("data", self.team, self.order, "end.yaml")

    def tombstone_path(self, started_at: str) -> PurePosixPath:
        """Return where the tombstone of the end begun at `started_at` (ISO 8601) stands."""
        stamp = "".join(c for c in started_at.partition("+")[0] if c.isalnum())
        return self.end_path.with_name(f"tombstone-{stamp}.yaml")

    @property
    def repository(self) -> RepoId:
        return RepoId(self.team, self.order)


def team_path(team: TeamName) -> PurePosixPath:
    """Return where a team's file stands."""
    return PurePosixPath("teams", f"{team}.yaml")


def apps_keep_path(team: TeamName) -> PurePosixPath:
    """Return the file that keeps a team's folder of Applications when it is empty."""
    return PurePosixPath("apps", team, KEEP)


def team_application(team: TeamName) -> str:
    """Return the name of the Application that delivers a team's orders."""
    return f"team-{team}"


def entries(paths: Iterable[PurePosixPath]) -> Iterator[OrderEntry]:
    """Yield the orders among the ledger's paths, ended ones left out, in order."""
    for path in sorted(paths):
        match path.parts:
            case ("apps", team, file) if file.endswith(".yaml"):
                yield OrderEntry(TeamName(team), OrderId(file.removesuffix(".yaml")))
            case _:
                continue


def ending(paths: Iterable[PurePosixPath], order: str) -> OrderEntry | None:
    """Return the order of that id if its end is under way."""
    for path in paths:
        match path.parts:
            case ("data", team, name, "end.yaml") if name == order:
                return OrderEntry(TeamName(team), OrderId(name))
            case _:
                continue
    return None


def tombstones(paths: Iterable[PurePosixPath], order: str) -> list[PurePosixPath]:
    """Return the tombstones of an order id, oldest first."""
    found = []
    for path in sorted(paths):
        match path.parts:
            case ("data", _, name, file) if name == order and file.startswith("tombstone-"):
                found.append(path)
            case _:
                continue
    return found


def teams(paths: Iterable[PurePosixPath]) -> Iterator[TeamName]:
    """Yield the teams among the ledger's paths, in order."""
    for path in sorted(paths):
        match path.parts:
            case ("teams", file) if file.endswith(".yaml"):
                yield TeamName(file.removesuffix(".yaml"))
            case _:
                continue


def _application(
    name: str, *, project: str, source: dict[str, Any], automated: dict[str, bool], **meta: Any
) -> Manifest:
    return {
        "apiVersion": APPLICATION.api_version,
        "kind": APPLICATION.kind,
        "metadata": {"name": name, "namespace": ARGOCD_NAMESPACE, **meta},
        "spec": {
            "project": project,
            "source": source,
            "destination": {"server": IN_CLUSTER, "namespace": "default"},
            "syncPolicy": {
                "automated": automated,
                "retry": {
                    "limit": 10,
                    "backoff": {"duration": "2s", "factor": 2, "maxDuration": "1m"},
                },
            },
        },
    }


def team_file(team: TeamName, *, forge_url: str, ledger: RepoId, kinds: OrderKinds) -> str:
    """
    Return ``teams/<team>.yaml``.

    The AppProject allows this organisation's repositories and these kinds only; an absent
    ``namespaceResourceWhitelist`` would allow every namespaced kind (observed), so it is written
    even when it is empty. The team's Application is emptied when its last order ends, therefore
    ``allowEmpty``.
    """
    project: Manifest = {
        "apiVersion": APP_PROJECT.api_version,
        "kind": APP_PROJECT.kind,
        "metadata": {"name": team, "namespace": ARGOCD_NAMESPACE, "labels": {TEAM_LABEL: team}},
        "spec": {
            "description": f"Orders of team {team}",
            "sourceRepos": [f"{forge_url}/{team}/*"],
            "destinations": [{"server": IN_CLUSTER, "namespace": "*"}],
            "clusterResourceWhitelist": as_rules(kinds.cluster),
            "namespaceResourceWhitelist": as_rules(kinds.namespaced),
        },
    }
    application = _application(
        team_application(team),
        project="default",
        source={
            "repoURL": f"{forge_url}/{ledger}.git",
            "targetRevision": "main",
            "path": f"apps/{team}",
        },
        automated={"prune": True, "selfHeal": True, "allowEmpty": True},
        labels={TEAM_LABEL: team},
        annotations={GENERATE_PATHS: "."},
        finalizers=[FINALIZER],
    )
    return yamltext.dump_all([project, application])


def order_application(
    entry: OrderEntry, *, kit: str, forge_url: str, ending: bool = False
) -> Manifest:
    """
    Return the Application of an order.

    `ending` turns self-heal off and lets the last manifest be pruned: without it Argo CD
    answers "auto-sync will wipe out all resources" and keeps everything (observed).
    """
    automated = {"prune": True, "selfHeal": not ending}
    if ending:
        automated["allowEmpty"] = True
    return _application(
        entry.order,
        project=entry.team,
        source={
            "repoURL": f"{forge_url}/{entry.repository}.git",
            "targetRevision": "main",
            "path": str(MANIFESTS),
        },
        automated=automated,
        labels={ORDER_LABEL: entry.order, TEAM_LABEL: entry.team, KIT_LABEL: kit},
        finalizers=[FINALIZER],
    )
