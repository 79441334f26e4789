"""One of all processes sweeps leases, again and again, whatever a sweep comes to."""

from __future__ import annotations

import logging
import queue
from collections.abc import Iterator
from pathlib import Path

import pytest
from ownforge import OwnForge, Watched, unanswered
from rivals import Rival

from ground.objects.kube_objects import ARGOCD_NAMESPACE
from orderkit.flows.lease.sweeper import SWEEP_LEASE, LeaseSweeper
from orderkit.flows.platform import Platform
from orderkit_standins.cluster import EmbeddedCluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    found = EmbeddedCluster(tmp_path / "cluster.sqlite")
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ARGOCD_NAMESPACE}}
    found.create(home, owner="x")
    yield found
    found.close()


def sweep_until_asked(
    cluster: EmbeddedCluster, platform: Platform, asked: queue.Queue[str], count: int
) -> None:
    sweeper = LeaseSweeper(platform, interval_s=0.02)
    sweeper.start()
    for _ in range(count):
        asked.get(timeout=20)
    sweeper.close()
    lease = cluster.get(SWEEP_LEASE)
    assert lease
    assert lease["spec"]["holderIdentity"] == "", "another replica goes on at once"


def told(caplog: pytest.LogCaptureFixture, words: str) -> set[str]:
    return {r.levelname for r in caplog.records if r.getMessage().startswith(words)}


@pytest.mark.parametrize("is_silent", [False, True], ids=["not bootstrapped", "no answer"])
def test_a_sweep_that_fails_is_followed_by_the_next(
    cluster: EmbeddedCluster,
    forge: OwnForge,
    caplog: pytest.LogCaptureFixture,
    *,
    is_silent: bool,
) -> None:
    plan = Watched(unanswered(1000) if is_silent else [])
    ours = forge.proxied(plan)
    words, level = f"leases are not swept: {forge.pack}: no pack", "INFO"
    if is_silent:
        words, level = f"leases cannot be swept now: {ours.base_url} did not answer", "WARNING"
    with caplog.at_level(logging.INFO):
        # the first request of the sweep after the next comes once the next one has failed
        count = 2 * len(unanswered()) + 1 if is_silent else 3
        sweep_until_asked(cluster, forge.platform(cluster, forge=ours), plan.asked, count)

    assert told(caplog, words) == {level}


def test_a_bug_in_a_sweep_is_followed_by_the_next(
    cluster: EmbeddedCluster, forge: OwnForge, caplog: pytest.LogCaptureFixture
) -> None:
    plan = Watched()
    broken = Rival(forge.proxied(plan), "head", lambda: 1 / 0)
    with caplog.at_level(logging.INFO):
        sweep_until_asked(cluster, forge.platform(cluster, forge=broken), plan.asked, 2)

    assert told(caplog, "a bug while sweeping leases") == {"ERROR"}


def test_a_process_that_does_not_lead_sweeps_nothing(
    cluster: EmbeddedCluster, forge: OwnForge
) -> None:
    first, second = Watched(), Watched()
    leading, waiting = (
        LeaseSweeper(forge.platform(cluster, forge=forge.proxied(plan)), interval_s=0.02)
        for plan in (first, second)
    )
    leading.start()
    first.asked.get(timeout=20)
    waiting.start()
    for _ in range(3):
        first.asked.get(timeout=20)
    waiting.close()
    leading.close()

    assert second.asked.empty()


def test_a_process_that_ends_at_once_takes_no_lease(
    cluster: EmbeddedCluster, forge: OwnForge
) -> None:
    plan = Watched()
    platform = forge.platform(cluster, forge=forge.proxied(plan))
    sweeper = LeaseSweeper(platform, interval_s=60)
    sweeper.start()
    sweeper.close()
    LeaseSweeper(platform).close()

    assert cluster.get(SWEEP_LEASE) is None
    assert plan.asked.empty()
