"""Keeping at Argo CD until a commit, or a later one, is taken up; and what is left alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import roguery
from commands import Command
from pusher import Pusher

from ground.errors import IncompleteError
from ground.names import CommitSha, RepoId, TeamName
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
    metadata,
)
from orderkit.cli.connecting import token
from orderkit.core.order.ledger import team_application
from orderkit.flows.argocd.refreshing import (
    REFRESH,
    Ancestry,
    RepeatedRefresh,
    StuckOperationEnder,
    application_key,
    end_older_operation,
    prune_what_was_skipped,
    refresh,
)
from orderkit.flows.order.awaiting import await_commit, until_ready
from orderkit.flows.platform import Platform
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.argocd import argocd_crds
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.serve_platform import Running

OLD, NEW = "a" * 40, "b" * 40
NOTE = PurePosixPath("manifests/note.md")


def push(platform: Platform, repo: RepoId, text: str) -> CommitSha:
    head = platform.forge.head(repo)
    seen = platform.forge.tree(repo, head).get(NOTE) if head else None
    change = FileChange(NOTE, text.encode(), seen)
    return platform.forge.write(repo, [change], Operation(text, "user:default/eve", text)).commit


def test_a_wait_for_a_commit_is_over_when_a_later_one_is_delivered(
    orderkit: Command, platform: Running, team: str
) -> None:
    order, repo = f"garage-{team}", RepoId(team, f"garage-{team}")
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0
    first, *_, last = [push(platform.platform, repo, text) for text in ("one", "two", "three")]
    roguery.deliver_main(platform.platform, repo)
    assert await_commit(platform.platform, order, last, timeout_s=90).ready

    state = await_commit(platform.platform, order, first, timeout_s=90)

    assert state.ready
    assert state.revision == last


def test_only_what_has_a_commit_among_its_ancestors_contains_it(
    platform: Running, team: str
) -> None:
    repo = RepoId(team, "notes")
    platform.platform.forge.ensure_repo(repo, description="")
    first, second = (push(platform.platform, repo, text) for text in ("one", "two"))
    ancestry = Ancestry(platform.platform.forge, repo)

    assert ancestry.contains(second, first)
    assert ancestry.contains(first, first)
    assert not ancestry.contains(first, second)
    assert not ancestry.contains("main", first), "Argo CD shows this when it could not read"
    assert not ancestry.contains("f" * 40, first), "no commit of this repository"


def test_unrelated_histories_contain_nothing_of_each_other(
    platform: Running, team: str, tmp_path: Path
) -> None:
    """Gitea lists no commits between them."""
    repo = RepoId(team, "rewritten")
    platform.platform.forge.ensure_repo(repo, description="")
    first = push(platform.platform, repo, "one")
    forge = platform.settings.forge
    pusher = Pusher.cloned(tmp_path, f"{forge.url}/{repo}.git", "orderkit", token(forge))
    pusher.git("checkout", "-q", "--orphan", "fresh")
    other = CommitSha(pusher.commit("fresh start", {}))
    pusher.git("push", "-q", "origin", "fresh")
    ancestry = Ancestry(platform.platform.forge, repo)

    assert not ancestry.contains(other, first)
    assert not ancestry.contains(first, other)
    assert ancestry.are_unrelated(first, other)
    assert not ancestry.are_unrelated(first, first)
    later = push(platform.platform, repo, "two")
    assert not ancestry.are_unrelated(later, first)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """A cluster in which nobody delivers, so that Applications stay as they are."""
    found = EmbeddedCluster(tmp_path / "cluster.sqlite")
    metadata = {"name": ARGOCD_NAMESPACE}
    for crd in argocd_crds():
        found.apply(crd, owner="test")
    found.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, owner="test")
    yield found
    found.close()


def application(**operation: Any) -> Manifest:
    key = application_key("garage-ae86")
    state = {
        "phase": "Running",
        "operation": {"sync": {"revision": OLD}, **operation},
        "startedAt": "2026-11-21T16:00:00Z",
    }
    return {
        "apiVersion": key.kind.api_version,
        "kind": key.kind.kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "project": "ae86",
            "source": {"repoURL": "http://127.0.0.1/a.git", "path": "manifests"},
            "destination": {"server": "https://kubernetes.default.svc"},
        },
        "status": {"operationState": state},
    }


@dataclass(frozen=True)
class Case:
    reason: str
    initiator: dict[str, Any]
    commit: str
    ended: bool
    stale: bool = False


CASES = [
    Case(
        "auto-sync's own operation on an older commit is ended",
        {"automated": True},
        NEW,
        ended=True,
    ),
    Case("one on this very commit is left alone", {"automated": True}, OLD, ended=False),
    Case("one that somebody began is left alone", {"username": "eve"}, NEW, ended=False),
    Case(
        "one that began since it was read is left alone",
        {"automated": True},
        NEW,
        ended=False,
        stale=True,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_operations_that_are_in_the_way(case: Case, cluster: EmbeddedCluster) -> None:
    read = cluster.create(application(initiatedBy=case.initiator), owner="argocd")
    if case.stale:
        change = {"status": {"operationState": {"operation": {"sync": {"revision": NEW}}}}}
        cluster.patch(application_key("garage-ae86"), change, owner="argocd")

    ended = end_older_operation(cluster, read, case.commit)

    now = cluster.get(application_key("garage-ae86"))
    phase = dig(now, "status", "operationState", "phase")
    assert (ended, phase) == (case.ended, "Terminating" if case.ended else "Running")


@pytest.mark.parametrize(
    ("retries", "waited_s", "phase"),
    [(None, 1.9, "Running"), (None, 2.1, "Terminating"), (0, 0, "Running"), (1, 0, "Terminating")],
)
def test_an_operation_on_an_older_commit_has_a_moment_unless_it_is_tried_again(
    platform: Running, cluster: EmbeddedCluster, retries: int | None, waited_s: float, phase: str
) -> None:
    live = application(initiatedBy={"automated": True})
    if retries is not None:
        live["status"]["operationState"]["retryCount"] = retries
    live = cluster.create(live, owner="argocd")
    clock = LaterClock()
    there = replace(platform.platform, cluster=cluster, clock=clock)
    repo, commit = RepoId("ae86", "garage-ae86"), CommitSha(NEW)
    urging = StuckOperationEnder(there, repo, commit, may_be_later=False)

    clock.now_s += waited_s
    urging.look(live)

    now = cluster.get(application_key("garage-ae86"))
    assert dig(now, "status", "operationState", "phase") == phase


@dataclass(frozen=True)
class Skipped:
    reason: str
    synced: bool
    result: str = "PruneSkipped"
    phase: str = "Succeeded"
    may_prune: bool = True
    pruned: bool = False
    status: str = "OutOfSync"
    stale: bool = False


SKIPPED = [
    Skipped("what an operation of before may be pruned by now", synced=True),
    Skipped("an order that lives prunes nothing", synced=False, may_prune=False),
    Skipped("one that still runs is left alone", synced=False, phase="Running"),
    Skipped("one that pruned is left alone", synced=False, result="Pruned"),
    Skipped("what one that pruned had to keep stays skipped", synced=False, pruned=True),
    Skipped("what is gone by now needs no sync", synced=False, status="Synced"),
    Skipped("one that changed since it was read is left alone", synced=False, stale=True),
]


@pytest.mark.parametrize("case", SKIPPED, ids=lambda case: case.reason)
def test_what_an_operation_skipped_is_pruned_once_that_is_allowed(
    case: Skipped, cluster: EmbeddedCluster
) -> None:
    """An operation keeps its options, and its retry takes the newest commit."""
    key, made = application_key("garage-ae86"), application(initiatedBy={"automated": True})
    made["spec"]["syncPolicy"] = {"automated": {"prune": case.may_prune, "selfHeal": False}}
    made["status"]["operationState"]["operation"]["sync"]["prune"] = case.pruned
    made["status"] = {
        "operationState": {
            **made["status"]["operationState"],
            "phase": case.phase,
            "syncResult": {"revision": NEW, "resources": [{"status": case.result}]},
        },
        "sync": {"status": case.status, "revision": NEW},
    }
    read = cluster.create(made, owner="argocd")
    if case.stale:
        cluster.patch(key, {"metadata": {"annotations": {REFRESH: "normal"}}}, owner="argocd")

    synced = prune_what_was_skipped(cluster, read)

    requested = dig(cluster.get(key), "operation", "sync")
    assert synced is case.synced
    assert requested == ({"prune": True, "revision": NEW} if case.synced else None)


class LaterClock(SystemClock):
    """Time that passes only when told to."""

    now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s


def test_a_refresh_that_was_lost_is_asked_for_again_but_not_at_every_look(
    cluster: EmbeddedCluster,
) -> None:
    clock, key = LaterClock(), application_key("garage-ae86")
    cluster.create(application(), owner="argocd")
    asking = RepeatedRefresh(cluster, clock)
    asked = []
    for seconds in (0, 4, 8, 12, 16):
        clock.now_s = seconds
        asking.look(key.name)
        asked.append(annotations_of(cluster.get(key) or {}).get(REFRESH, ""))
        cluster.patch(key, {"metadata": {"annotations": {REFRESH: None}}}, owner="argocd")

    assert asked == ["", "", "normal", "", "normal"]


def test_a_refresh_that_stays_unseen_is_asked_for_anew(
    platform: Running, cluster: EmbeddedCluster
) -> None:
    """The same annotation once more would change nothing, and Argo CD would hear of nothing."""
    clock, key = LaterClock(), application_key("garage-ae86")
    cluster.create(application(), owner="argocd")
    there = replace(platform.platform, cluster=cluster, clock=clock)
    refresh(there.cluster, key.name)
    since = cluster.list(APPLICATION).resource_version
    asking = RepeatedRefresh(there.cluster, there.clock)
    clock.now_s = 6
    asking.look(key.name)

    events = itertools.islice(cluster.watch(APPLICATION, since=since, timeout_s=10), 2)
    requests = [annotations_of(event.object).get(REFRESH) for event in events]
    assert requests == [None, "normal"]


class PassingClock(LaterClock):
    """Time that passes only while somebody waits."""

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def copied(platform: Platform, cluster: EmbeddedCluster, name: str) -> ObjectKey:
    """Copy an Application into a cluster in which nobody delivers."""
    live = platform.cluster.get(application_key(name))
    assert live is not None
    kept = {key: value for key, value in metadata(live).items() if key in ("name", "labels")}
    manifest = {**live, "metadata": {**kept, "namespace": ARGOCD_NAMESPACE}}
    return ObjectKey.of(cluster.create(manifest, owner="argocd"))


@pytest.mark.parametrize("taken_up_by", ["nobody", "the team"])
def test_who_waits_for_a_change_asks_the_application_that_lost_its_refresh(
    platform: Running, cluster: EmbeddedCluster, orderkit: Command, team: str, taken_up_by: str
) -> None:
    order, repo = f"garage-{team}", RepoId(team, f"garage-{team}")
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0
    names = (team_application(TeamName(team)), order)
    parent, own = (copied(platform.platform, cluster, name) for name in names)
    commit = push(platform.platform, repo, "changed")
    roguery.deliver_main(platform.platform, repo)
    if taken_up_by == "the team":
        source = {"source": {"targetRevision": commit}}
        cluster.patch(own, {"spec": source}, owner="argocd")
    there = replace(platform.platform, cluster=cluster, clock=PassingClock())

    with pytest.raises(IncompleteError):
        until_ready(there, order, timeout_s=20, on_wait=lambda _: None)

    asked = [REFRESH in annotations_of(cluster.get(key) or {}) for key in (parent, own)]
    assert asked == [taken_up_by == "nobody", taken_up_by == "the team"]
