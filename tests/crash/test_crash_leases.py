"""Extensions and sweeps of leases, killed before and after every write they make, then repeated."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.crash import judging
from tests.crash.judging import order_of
from tests.crash.test_crash_commands import (
    END,
    LEDGER,
    ORDER_REPO,
    REFRESH,
    Kill,
    fresh,
    kill_and_repeat,
    kills,
    ordering_team,
    team,
    writes_of,
)

from ground.names import OrderId, TeamName
from ground.objects.kube_objects import annotations_of
from orderkit.core.order.lease import EXPIRES_AT, LeaseRecord, time_text
from orderkit.core.order.ledger import OrderEntry, team_application
from orderkit.flows.argocd.refreshing import application_key, refresh
from orderkit.flows.lease.extending import lease_of, read_leased
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.forge import Operation

if TYPE_CHECKING:
    from tests.crash.laboratory import Lab

__all__ = ["fresh", "ordering_team", "team"]
"""Fixtures."""
NOTE = [f"forge POST {ORDER_REPO}/contents", f"{REFRESH}garage-TEAM"]
EXTEND = [LEDGER, *NOTE, f"{REFRESH}team-TEAM"]
WARN = [LEDGER, f"{REFRESH}team-TEAM", *NOTE]
SWEEP_END = [LEDGER, f"{REFRESH}team-TEAM", *END]
DAY = timedelta(days=1)


def extend(team: str) -> tuple[str, ...]:
    order = order_of(team)
    return ("lease", "extend", order, "8h", "--reason", "more", "--operation", f"op-{team}")


def test_the_writes_of_an_extension_are_known(lab: Lab, served: Path, ordering_team: str) -> None:
    assert writes_of(lab, served, *extend(ordering_team)) == EXTEND


@pytest.mark.parametrize("kill", kills(EXTEND), ids=str)
def test_a_killed_extension_is_finished_by_repeating_it(
    lab: Lab, served: Path, ordering_team: str, kill: Kill
) -> None:
    kill_and_repeat(lab, served, kill, *extend(ordering_team))

    with judging.looking_at(served) as platform:
        record = lease_of(platform, order_of(ordering_team)).leased.record
        judging.order_is_whole(platform, served, ordering_team, "stage2", edits=1)
    assert record is not None
    assert (record.extensions, record.expires - record.began) == (1, DAY / 3)


@pytest.fixture
def warned_team(served: Path, ordering_team: str) -> str:
    """A team whose order's lease is nearly over, without a warning."""
    lend(served, ordering_team, left=DAY / 48, warned=())
    return ordering_team


@pytest.fixture
def expired_team(served: Path, ordering_team: str) -> str:
    """A team whose order's lease is over, after all its warnings."""
    lend(served, ordering_team, left=-DAY / 48, warned=("24h", "1h"))
    return ordering_team


def lend(state: Path, team: str, *, left: timedelta, warned: tuple[str, ...]) -> None:
    """Write a lease of ten days into the ledger, and wait until the cluster has it."""
    entry = OrderEntry(TeamName(team), OrderId(order_of(team)))
    with judging.looking_at(state) as platform:
        now = platform.clock.now()
        at = (now + left - 10 * DAY).replace(microsecond=0)
        times = dict.fromkeys(warned, now - DAY)
        record = LeaseRecord(at + 10 * DAY, at, at, 10 * DAY, times)
        leased = read_leased(platform, entry)
        operation = Operation(f"lend-{team}", "user:default/test", "lend")
        platform.forge.write(platform.ledger, [leased.with_record(record)], operation)
        until(
            platform.clock,
            lambda: (
                refresh(platform.cluster, team_application(entry.team))
                and expiry_in_cluster(platform, team)
            ),
            lambda text: text == time_text(record.expires),
            timeout_s=90,
            goal="the lease reaching the cluster",
        )


def expiry_in_cluster(platform: Platform, team: str) -> str:
    application = platform.cluster.get(application_key(OrderId(order_of(team))))
    return str(annotations_of(application or {}).get(EXPIRES_AT, ""))


def test_the_writes_of_a_warning_are_known(lab: Lab, served: Path, warned_team: str) -> None:
    assert writes_of(lab, served, "lease", "sweep") == WARN
    assert warned_team


@pytest.mark.parametrize("kill", kills(WARN), ids=str)
def test_a_killed_warning_is_recorded_once_by_the_next_sweep(
    lab: Lab, served: Path, warned_team: str, kill: Kill
) -> None:
    kill_and_repeat(lab, served, kill, "lease", "sweep")

    with judging.looking_at(served) as platform:
        record = lease_of(platform, order_of(warned_team)).leased.record
    messages = judging.git(judging.bare(served, platform.ledger), "log", "--format=%s", "main")
    assert messages.count(f"{order_of(warned_team)}: warned 24h") == 1
    assert record is not None
    assert list(record.warned) == ["24h"]
    assert record.expires >= datetime.fromisoformat(time_text(record.warned["24h"])) + DAY


def test_the_writes_of_an_end_by_its_lease_are_known(
    lab: Lab, served: Path, expired_team: str
) -> None:
    assert writes_of(lab, served, "lease", "sweep") == SWEEP_END
    assert expired_team


@pytest.mark.parametrize("kill", kills(SWEEP_END, every=6), ids=str)
def test_a_killed_end_by_its_lease_is_finished_by_the_next_sweep(
    lab: Lab, served: Path, expired_team: str, kill: Kill
) -> None:
    kill_and_repeat(lab, served, kill, "lease", "sweep")

    with judging.looking_at(served) as platform:
        judging.order_is_gone(platform, served, expired_team, survivor="archive")
