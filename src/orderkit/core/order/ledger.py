"""
The ledger's files: their paths and content, and how to find them.

    teams/<team>.yaml            the team's AppProject and the Application for apps/<team>/
    apps/<team>/<order>.yaml     the order's Application
    data/<team>/team.yaml        members and limits (core.order.team_file), never delivered
    data/<team>/<order>/waiting.yaml          an order that waits for approval, never delivered
    data/<team>/<order>/approvals.yaml        who agreed to what (core.order.approval)
    data/<team>/<order>/end.yaml              an end under way, never delivered
    data/<team>/<order>/tombstone-<when>.yaml one per end
    campaigns/<name>.yaml, campaigns/<name>/record.json  (core.campaign), never delivered

The layout limits the damage of a bad file to one order, at worst one team: a malformed file blocks
every new child of the Application that delivers it (observed on Argo CD 3.2.11). Pure: it writes
and reads texts; flows commit them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from ground.argocd.delivery_obstacles import ORDER_LABEL as ORDER_LABEL  # noqa: PLC0414 - exported
from ground.names import CommitSha, OrderId, RepoId, TeamName
from ground.objects.kube_objects import Manifest, annotations_of, dig, labels_of

TEAM_LABEL = "orderkit.dev/team"
KIT_LABEL = "orderkit.dev/kit"
REQUESTER_ANNOTATION = "orderkit.dev/requester"
"""On an order's Application: who ordered it. Only the ledger's writers can say so."""
FORMAT_ANNOTATION = "orderkit.dev/format"
"""On an order's Application: which Orderkit can change it. Without it: any (0.2 wrote none)."""
KEEP = ".gitkeep"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_APP_PARTS, _DATA_PARTS = 3, 4
_END, _WAITING = "end.yaml", "waiting.yaml"


@dataclass(frozen=True, slots=True)
class OrderEntry:
    """An order as named by a file of the ledger."""

    team: TeamName
    order: OrderId

    @property
    def application_path(self) -> PurePosixPath:
        return PurePosixPath("apps", self.team, f"{self.order}.yaml")

    @property
    def end_path(self) -> PurePosixPath:
        return PurePosixPath("data", self.team, self.order, _END)

    @property
    def waiting_path(self) -> PurePosixPath:
        return self.end_path.with_name(_WAITING)

    @property
    def approvals_path(self) -> PurePosixPath:
        return self.end_path.with_name("approvals.yaml")

    def tombstone_path(self, started_at: str) -> PurePosixPath:
        """Return the path of the tombstone for the end started at `started_at` (ISO 8601)."""
        stamp = "".join(c for c in started_at.partition("+")[0] if c.isalnum())
        return self.end_path.with_name(f"tombstone-{stamp}.yaml")

    @property
    def repository(self) -> RepoId:
        return RepoId(self.team, self.order)


def team_path(team: TeamName) -> PurePosixPath:
    """Return the path of a team's file."""
    return PurePosixPath("teams", f"{team}.yaml")


def team_of(path: PurePosixPath) -> str:
    """Return the team whose file that is; empty for a file of no team."""
    match path.parts:
        case ("teams", _):
            return path.stem
        case ("apps" | "data", team, _, *_):
            return team
    return ""


def apps_keep_path(team: TeamName) -> PurePosixPath:
    """Return the file that keeps a team's folder of Applications when it is empty."""
    return PurePosixPath("apps", team, KEEP)


def team_application(team: TeamName) -> str:
    """Return the name of the Application that delivers a team's orders."""
    return f"team-{team}"


def team_namespace(team: TeamName) -> str:
    """Return the namespace for a team's namespaced XRs; no other team may deliver there."""
    return f"team-{team}"


def delivered_commit(application: Manifest | None) -> CommitSha | None:
    """Return the commit that an order's Application names; None if it follows a branch."""
    revision = str(dig(application, "spec", "source", "targetRevision", default=""))
    # Argo CD takes any branch, tag or other ref whose short name is ``targetRevision``, but looks
    # for no ref if that is a commit id (util/git/client.go, ``lsRemote``; observed on 3.2.11)
    return CommitSha(revision) if _COMMIT.fullmatch(revision) else None


def kit_of(application: Manifest) -> str:
    """Return the kit of an order's Application; empty if there is none."""
    return labels_of(application).get(KIT_LABEL, "")


def requester_of(application: Manifest | None) -> str:
    """Return who ordered, by an order's Application; empty if it does not say."""
    return str(annotations_of(application or {}).get(REQUESTER_ANNOTATION) or "")


def named_kit(order: str, kits: Iterable[str]) -> str:
    """Return the kit whose name an order's id begins with, the longest; empty if there is none."""
    return max((kit for kit in kits if order.startswith(f"{kit}-")), key=len, default="")


def living_order(paths: Iterable[PurePosixPath], order: str) -> OrderEntry | None:
    """
    Return the live order of that id in any team, without parsing the other paths.

    One that waits for approval counts too: its id is taken.
    """
    file, waiting = f"{order}.yaml", f"/{order}/{_WAITING}"
    for path in paths:
        if not str(path).endswith((file, waiting)):  # faster than path.name, which is computed
            continue
        is_application = path.name == file and path.parts[0] == "apps"
        if (is_application and len(path.parts) == _APP_PARTS) or _is_waiting(path):
            return OrderEntry(TeamName(path.parts[1]), OrderId(order))
    return None


def waiting_orders(paths: Iterable[PurePosixPath]) -> list[OrderEntry]:
    """Return the orders that wait for approval, by team and id."""
    waiting = sorted(path.parts for path in paths if _is_waiting(path))
    return [OrderEntry(TeamName(parts[1]), OrderId(parts[2])) for parts in waiting]


def _is_waiting(path: PurePosixPath) -> bool:
    parts = path.parts
    return parts[-1] == _WAITING and len(parts) == _DATA_PARTS and parts[0] == "data"


def teams_besides(paths: Iterable[PurePosixPath], entry: OrderEntry) -> list[TeamName]:
    """Return the other teams that have a live order of that id, sorted; there should be none."""
    file = f"/{entry.order}.yaml"
    same = (path for path in paths if str(path).endswith(file))  # faster than path.name
    return [other.team for other in entries(same) if other.team != entry.team]


def living_orders(paths: Iterable[PurePosixPath], team: TeamName) -> list[OrderId]:
    """Return the live orders of a team, sorted."""
    folder = ("apps", team)
    return sorted(
        OrderId(path.stem)
        for path in paths
        if path.parts[:-1] == folder and path.name.endswith(".yaml")
    )


def entries(paths: Iterable[PurePosixPath]) -> Iterator[OrderEntry]:
    """Yield the live orders in the ledger's paths, sorted."""
    app_parts = [path.parts for path in paths if path.parts[0] == "apps"]
    for _, team, file in sorted(parts for parts in app_parts if len(parts) == _APP_PARTS):
        if file.endswith(".yaml"):
            yield OrderEntry(TeamName(team), OrderId(file.removesuffix(".yaml")))


def ending_order(paths: Iterable[PurePosixPath], order: str) -> OrderEntry | None:
    """Return the order of that id if it is ending."""
    for path in paths:
        if path.name == _END and _is_data_of(path, order):
            return OrderEntry(TeamName(path.parts[1]), OrderId(order))
    return None


def ending_orders(paths: Iterable[PurePosixPath]) -> Iterator[OrderEntry]:
    """Yield the orders that are ending, also those whose Application left the ledger."""
    for path in paths:
        if path.name == _END and path.parts[0] == "data" and len(path.parts) == _DATA_PARTS:
            yield OrderEntry(TeamName(path.parts[1]), OrderId(path.parts[2]))


def tombstones(paths: Iterable[PurePosixPath], order: str) -> list[PurePosixPath]:
    """Return the tombstones of an order id, oldest first."""
    return sorted(
        path for path in paths if path.name.startswith("tombstone-") and _is_data_of(path, order)
    )


def _is_data_of(path: PurePosixPath, order: str) -> bool:
    parts = path.parts
    return len(parts) == _DATA_PARTS and parts[0] == "data" and parts[2] == order


def teams(paths: Iterable[PurePosixPath]) -> Iterator[TeamName]:
    """Yield the teams in the ledger's paths, sorted."""
    names = [path.name for path in paths if path.parts[:-1] == ("teams",)]
    for name in sorted(names):
        if name.endswith(".yaml"):
            yield TeamName(name.removesuffix(".yaml"))
