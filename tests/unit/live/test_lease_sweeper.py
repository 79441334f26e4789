"""One of all processes sweeps leases, again and again, whatever a sweep comes to."""

from __future__ import annotations

import logging
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusteralone import platform_of
from heldfiles import HeldFiles

from ground.errors import UnreachableError
from ground.names import CommitSha, RepoId
from ground.objects.kube_objects import ARGOCD_NAMESPACE
from orderkit.flows.lease.sweeper import SWEEP_LEASE, LeaseSweeper
from orderkit.ports.forge import Commit
from orderkit_standins.cluster import EmbeddedCluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    found = EmbeddedCluster(tmp_path / "cluster.sqlite")
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ARGOCD_NAMESPACE}}
    found.create(home, owner="x")
    yield found
    found.close()


class Ledger(HeldFiles):
    """A ledger that is read for each sweep, or cannot be."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__({})
        self.error = error
        self.asked: queue.Queue[str] = queue.Queue()

    def head(self, repo: RepoId, branch: str = "main") -> CommitSha | None:
        self.asked.put(str(repo))
        if self.error:
            raise self.error
        return super().head(repo, branch)

    def commits(self, repo: RepoId, **_options: Any) -> tuple[Commit, ...]:
        self.head(repo)
        return ()


@pytest.mark.parametrize(
    ("error", "level", "words"),
    [
        (None, "INFO", "leases are not swept: platform/pack: no pack"),
        (UnreachableError("no answer"), "WARNING", "leases cannot be swept now: no answer"),
        (ZeroDivisionError(), "ERROR", "a bug while sweeping leases"),
    ],
    ids=["not bootstrapped", "no answer", "a bug"],
)
def test_a_sweep_that_fails_is_followed_by_the_next(
    error: Exception | None,
    level: str,
    words: str,
    cluster: EmbeddedCluster,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ledger = Ledger(error)
    sweeper = LeaseSweeper(platform_of(cluster, forge=ledger), interval_s=0.02)
    with caplog.at_level(logging.INFO):
        sweeper.start()
        for _ in range(2):
            ledger.asked.get(timeout=20)
        sweeper.close()

    told = [r.levelname for r in caplog.records if r.getMessage().startswith(words)]
    assert set(told) == {level}
    lease = cluster.get(SWEEP_LEASE)
    assert lease
    assert lease["spec"]["holderIdentity"] == "", "another replica goes on at once"


def test_a_process_that_does_not_lead_sweeps_nothing(cluster: EmbeddedCluster) -> None:
    first, second = Ledger(), Ledger()
    leading = LeaseSweeper(platform_of(cluster, forge=first), interval_s=0.02)
    waiting = LeaseSweeper(platform_of(cluster, forge=second), interval_s=0.02)
    leading.start()
    first.asked.get(timeout=20)
    waiting.start()
    for _ in range(3):
        first.asked.get(timeout=20)
    waiting.close()
    leading.close()

    assert second.asked.empty()


def test_a_process_that_ends_at_once_takes_no_lease(cluster: EmbeddedCluster) -> None:
    ledger: Any = Ledger()
    sweeper = LeaseSweeper(platform_of(cluster, forge=ledger), interval_s=60)
    sweeper.start()
    sweeper.close()
    LeaseSweeper(platform_of(cluster, forge=ledger)).close()

    assert cluster.get(SWEEP_LEASE) is None
    assert ledger.asked.empty()
