"""Play a rogue: order, push by hand, wait until it is told, take it back. On any platform."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml
from forgehands import unprotect_main
from rogues import Pair, Rogue

from ground.names import BlobSha, CommitSha, OrderId, RepoId, TeamName
from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, ObjectKey, dig
from orderkit.core.order.ledger import OrderEntry, team_application
from orderkit.core.order.order_file import MANIFESTS
from orderkit.flows.argocd.commit_pinning import deliver
from orderkit.flows.argocd.refreshing import nudge, refresh
from orderkit.flows.order import order_report, placing
from orderkit.flows.order.awaiting import await_commit
from orderkit.flows.order.order_report import OrderReport
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Forge, Operation
from orderkit.ports.requesters import Requester

REQUESTER = "user:default/mallory"
WAIT_S = 240.0


def place(
    platform: Platform, kit: str, team: str, name: str = "", *, wait: bool = True
) -> OrderEntry:
    """Order a kit as the command line does."""
    values = {"team_name": team, "stage": "stage1"}
    if kit != "garage":
        values = {"team": team, "name": name, "serial": "first"}
    wanted = placing.TaskRequest(kit, values, Requester(REQUESTER))
    done = placing.order(platform, wanted, wait_s=WAIT_S if wait else None)
    entry = OrderEntry(done.team, done.order)
    unprotect(platform, entry.repository)
    return entry


def unprotect(platform: Platform, repo: RepoId) -> None:
    """
    Let members push to ``main``, and Argo CD follow it: what holds behind the forge is tried.

    A forge admin can do the first; the second is what an order has whose kit wants no review.
    """
    unprotect_main(platform.forge, repo)
    follow_main(platform, OrderEntry(TeamName(repo.owner), OrderId(repo.name)))


def deliver_main(platform: Platform, repo: RepoId) -> None:
    """Have what somebody wrote to ``main`` past Orderkit delivered, as registering again does."""
    head = platform.forge.head(repo)
    assert head is not None
    deliver(platform, OrderEntry(TeamName(repo.owner), OrderId(repo.name)), head, REQUESTER)


def follow_main(platform: Platform, entry: OrderEntry) -> None:
    """Write an order's Application as earlier releases did: it delivers what is called main."""
    forge = platform.forge
    file = forge.read(platform.ledger, entry.application_path, "main")
    if file is not None:
        manifest = yaml.safe_load(file.data)
        if manifest["spec"]["source"]["targetRevision"] == "main":
            return
        manifest["spec"]["source"]["targetRevision"] = "main"
        change = FileChange(file.path, yaml.safe_dump(manifest).encode(), file.sha)
        operation = Operation(f"follow-{entry.order}-{file.sha[:8]}", REQUESTER, "follow main")
        forge.write(platform.ledger, [change], operation)
        refresh(platform.cluster, team_application(entry.team))
        wait_for_application(platform, entry)


def wait_for_application(platform: Platform, entry: OrderEntry) -> None:
    until(
        SystemClock(),
        lambda: application(platform, entry),
        lambda live: dig(live, "spec", "source", "targetRevision", default="main") == "main",
        timeout_s=WAIT_S,
        goal=f"{entry.order} follows main",
        why_not=lambda live: str(dig(live, "spec", "source")),
    )


@dataclass
class Attempt:
    """One rogue's push to the repository of one order, with some member's credentials."""

    rogue: Rogue
    pair: Pair
    entry: OrderEntry
    forge: Forge
    before: dict[PurePosixPath, tuple[bytes, BlobSha]]
    head: CommitSha

    def told(self) -> list[str]:
        return self.rogue.told(self.pair, self.entry.order)

    def said(self) -> str:
        return self.rogue.said(self.pair, self.entry.order)


def attempt(
    platform: Platform, forge: Forge, rogue: Rogue, pair: Pair, entry: OrderEntry
) -> Attempt:
    """Push what the rogue pushes; make Argo CD look."""
    before = manifests(forge, entry)
    ((own, (data, _)),) = before.items()
    edits = rogue.edit(yaml.safe_load(data), pair)
    changes = [
        FileChange(
            path or own, yaml.safe_dump(made).encode(), before[own][1] if path is None else None
        )
        for path, made in edits.items()
    ]
    head = _write(platform, forge, entry, changes, "something")
    return Attempt(rogue, pair, entry, forge, before, head)


def repent(platform: Platform, tried: Attempt) -> CommitSha:
    """Push what was there before; return that commit."""
    now = manifests(tried.forge, tried.entry)
    changes = [
        FileChange(path, tried.before[path][0] if path in tried.before else None, now[path][1])
        for path in now
        if path not in tried.before or tried.before[path][0] != now[path][0]
    ]
    return _write(platform, tried.forge, tried.entry, changes, "sorry")


def manifests(forge: Forge, entry: OrderEntry) -> dict[PurePosixPath, tuple[bytes, BlobSha]]:
    """Read what an order's repository delivers."""
    head = forge.head(entry.repository)
    assert head is not None
    found = {}
    for path, sha in forge.tree(entry.repository, head).items():
        if path.is_relative_to(MANIFESTS):
            revision = forge.read(entry.repository, path, head)
            assert revision is not None
            found[path] = (revision.data, sha)
    return found


def _write(
    platform: Platform, forge: Forge, entry: OrderEntry, changes: list[FileChange], words: str
) -> CommitSha:
    head = forge.head(entry.repository)
    operation = Operation(f"{words}-{str(head)[:8]}", REQUESTER, words)
    commit = forge.write(entry.repository, changes, operation).commit
    nudge(platform.cluster, entry.order, commit)
    return commit


def application(platform: Platform, entry: OrderEntry) -> dict[str, Any]:
    key = ObjectKey(APPLICATION, entry.order, ARGOCD_NAMESPACE)
    return platform.cluster.get(key) or {}


def reasons(platform: Platform, entry: OrderEntry) -> str:
    """Return what the deliverer says of an order's objects, in its own words."""
    found = dig(
        application(platform, entry),
        *("status", "operationState", "syncResult", "resources"),
        default=(),
    )
    return " ".join(str(one.get("message", "")) for one in found or ())


def failing(platform: Platform, tried: Attempt) -> OrderReport:
    """Wait until the order's status tells the attempt; return it."""

    def tells(report: OrderReport) -> bool:
        reason = report.state.reason
        return report.state.phase == "Failing" and all(word in reason for word in tried.told())

    return wait_for(platform, tried.entry, tells, f"{tried.rogue.reason}: told")


def forgiven(platform: Platform, tried: Attempt, commit: CommitSha) -> None:
    """Wait until the repentant order is Ready, as a change is waited for."""
    await_commit(platform, tried.entry.order, commit, timeout_s=WAIT_S)
    ready(platform, tried.entry)


def ready(platform: Platform, entry: OrderEntry) -> OrderReport:
    """Wait until an order is Ready at the head of its repository."""
    return wait_for(platform, entry, lambda report: report.state.ready, "Ready")


def wait_for(
    platform: Platform, entry: OrderEntry, done: Callable[[OrderReport], bool], what: str
) -> OrderReport:
    return until(
        SystemClock(),
        lambda: order_report.status(platform, entry.order),
        done,
        timeout_s=WAIT_S,
        goal=f"{entry.order} {what}",
        why_not=lambda report: f"{report.state}",
    )


def entry_of(kit: str, team: str, name: str = "") -> OrderEntry:
    return OrderEntry(TeamName(team), OrderId(f"{kit}-{name or team}"))
