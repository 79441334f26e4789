"""Clusters on the embedded platform, with twins of all clouds: from the order to the end."""

from __future__ import annotations

import itertools
import threading
from datetime import timedelta
from typing import Self

import pytest
from commands import Command
from reviewedchanges import Members, reviewed
from tests.component.clusters.conftest import TEAM, OrderedCluster
from tests.component.leases.conftest import TurnedClock

from ground.names import RepoId
from orderkit.flows.lease.sweeping import SweepRequest, sweep
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock

CLOUDS = ("aws", *(pytest.param(cloud, marks=pytest.mark.soak) for cloud in ("azure", "gcp")))
"""A short run takes one: `make demo-clouds` orders and ends clusters in all of them."""
_numbers = itertools.count(1)


def ordered(orderkit: Command, platform: Platform, cloud: str, *fields: str) -> OrderedCluster:
    """Order a cluster and wait until it is Ready."""
    cluster = OrderedCluster(platform, f"{cloud}-{next(_numbers)}x")
    done = orderkit(
        *("order", "cluster", f"cluster_name={cluster.name}", f"owner={TEAM}", f"cloud={cloud}"),
        *("location=eu-central", *fields, "--timeout", "300"),
    )
    assert done.code == 0, done.err
    return cluster


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_cluster_lives_from_its_order_to_its_end_in_every_cloud(
    cloud: str, orderkit: Command, platform: Platform, members: Members
) -> None:
    domain = f"domain={cloud}.example.com"
    cluster = ordered(orderkit, platform, cloud, domain, "version=1.33")
    status = cluster.status
    assert status["phase"] == "Ready"
    assert status["clusterEndpoint"].startswith("https://")
    assert status["clusterCA"]
    assert status["version"] == "1.33"
    assert status["nameServers"]
    row = orderkit("status", cluster.order, "--json").json
    assert row["phase"] == "Ready"
    assert row["costs"]["monthly"], "settings and a generated password do not hide a cost"
    statement = orderkit("cost")
    assert "not known " not in statement.out, statement.out

    two = '[{"name": "default", "size": "small", "minNodes": 2, "maxNodes": 4}, {"name": "more"}]'
    assert orderkit("change", cluster.order, f"pools={two}").code == 0
    cluster.until(lambda now: len(now["pools"]) == 2 and now["phase"] == "Ready", "two pools")
    assert orderkit("change", cluster.order, 'addOns=["cert-manager"]').code == 0
    until(
        SystemClock(),
        lambda: {name for name in cluster.parts if name.startswith("release-")},
        lambda releases: releases == {"release-cert-manager"},
        timeout_s=120,
        goal="fewer add-ons",
    )
    without = orderkit("change", cluster.order, 'pools=[{"name": "more"}]', "--timeout", "60")
    assert "holds the add-ons" in without.err
    assert orderkit("change", cluster.order, f"pools={two}").code == 0
    reviewed(orderkit, platform, members, RepoId(TEAM, cluster.order), "createDnsZones=false")
    until(SystemClock(), lambda: cluster.parts, lambda parts: "zone-public" not in parts,
          timeout_s=120, goal="no zones")  # fmt: skip
    reviewed(orderkit, platform, members, RepoId(TEAM, cluster.order), "version=1.35")
    cluster.until(
        lambda now: {now["version"], *(pool.get("version") for pool in now["pools"])} == {"1.35"},
        "everything runs 1.35",
    )

    parts = {name: part["metadata"]["name"] for name, part in cluster.parts.items()}
    with Watch(cluster) as watch:
        assert orderkit("destroy", "--yes", cluster.order).code == 0
    assert cluster.xr == {}
    assert cluster.in_the_cloud() == set()
    release, default, more, control_plane, network = (
        watch.gone.index(parts[name])
        for name in ("release-cert-manager", "pool-default", "pool-more", "cluster", "network")
    )
    assert release < default, "the charts run in the first pool"
    assert max(default, more) < control_plane < network


class Watch:
    """Notes in which order the things of a cluster vanish from the cloud."""

    def __init__(self, cluster: OrderedCluster) -> None:
        self._cluster = cluster
        self.gone: list[str] = []
        """The names of what managed each."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        left, over = self._cluster.in_the_cloud(), False
        while left and not over:
            over = self._stop.wait(0.01)
            now = self._cluster.in_the_cloud()
            self.gone += left - now
            left = now


@pytest.mark.parametrize(
    "assignment",
    ["cloud=aws", "location=us-west", "planeType=production", "private=false", "version=1.33"],
)
def test_what_no_change_allows_is_refused(
    assignment: str, orderkit: Command, gke: OrderedCluster
) -> None:
    before = gke.xr["spec"]

    assert orderkit("change", gke.order, assignment).code != 0
    assert gke.xr["spec"] == before


def test_the_size_of_a_pool_is_not_changed_but_another_pool_is_added(
    orderkit: Command, gke: OrderedCluster
) -> None:
    larger = '[{"name": "a", "size": "large", "minNodes": 1, "maxNodes": 3}]'

    assert orderkit("change", gke.order, f"pools={larger}").code != 0


@pytest.fixture(scope="module")
def _gke() -> dict[str, str]:
    return {}


@pytest.fixture
def gke(orderkit: Command, platform: Platform, _gke: dict[str, str]) -> OrderedCluster:
    """A small GKE cluster that the tests of this module share."""
    if not _gke:
        pool = 'pools=[{"name": "a"}]'
        _gke["name"] = ordered(orderkit, platform, "gcp", pool, "add_ons=[]").name
    return OrderedCluster(platform, _gke["name"])


def test_a_lease_ends_a_cluster_and_nothing_is_left(
    gke: OrderedCluster, platform: Platform, clock: TurnedClock
) -> None:
    def swept() -> list[str]:
        orders = sweep(platform, SweepRequest()).orders
        return [done.action for done in orders if done.order == gke.order]

    clock.moved += timedelta(days=83, minutes=1)
    assert swept() == ["warn"]
    clock.moved += timedelta(days=6)
    assert swept() == ["warn"]
    clock.moved += timedelta(days=1, hours=1)
    assert swept() == ["end"]
    assert gke.xr == {}
    until(SystemClock(), gke.in_the_cloud, lambda left: not left, timeout_s=120, goal="nothing")
