"""
One of two replicas of the service is killed at any write of a request; the other one finishes it.

The client sends the same request again, to the replica that is left. A sweep has no client: the
replica that is left goes on by itself, once the Lease of the killed one is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requests
from replicas import Replica, started, until
from tests.crash import judging
from tests.crash.interposed import Watch
from tests.crash.judging import order_of
from tests.crash.test_crash_commands import (
    CHANGE,
    END,
    ORDER,
    Kill,
    fresh,
    kills,
    ordering_team,
    team,
)
from tests.crash.test_crash_leases import SWEEP_END, expired_team

from ground.errors import NotFoundError
from orderkit.cli.connecting import load_settings, token
from orderkit.flows.lease.sweeper import SWEEP_LEASE
from orderkit.flows.order import order_report
from orderkit.flows.platform import Platform

if TYPE_CHECKING:
    from tests.crash.laboratory import Lab

__all__ = ["expired_team", "fresh", "ordering_team", "team"]
"""Fixtures."""
pytestmark = pytest.mark.soak
SERVE, SWEEPING = "orderkit.cli.main:run", "tests.crash.sweepingservice:serve"
WITHIN_S = 60.0
Ask = Callable[[Replica], requests.Response]


@dataclass(frozen=True)
class Pair:
    """Two replicas: the first one is new for each test, and its writes can be watched."""

    lab: Lab
    state: Path
    second: Replica

    def first(self, entry: str = SERVE) -> Replica:
        return replica(self.lab, self.state, entry, self.lab.interposer.redirect)

    def killed(self, kill: Kill, ask: Ask) -> None:
        """Kill the first one at its point, look at what was acknowledged, ask the second one."""
        first = self.first()
        watch = Watch(kill.at, kill.side, first.process.kill)
        with self.lab.interposer.watching(watch), suppress(requests.ConnectionError):
            until(lambda: ask(first) and watch.is_killed(), "its end", WITHIN_S)
        assert watch.is_killed(), f"write {kill.at} was never reached"
        with judging.looking_at(self.state) as platform:
            judging.still_there(platform, self.state, watch.exchanges)
        until(lambda: ask(self.second).status_code in (200, 201), "the other one does it", WITHIN_S)

    def writes(self, ask: Ask) -> list[str]:
        first = self.first()
        with self.lab.interposer.watching(Watch()) as watch:
            until(lambda: ask(first).status_code in (200, 201), "it is done", WITHIN_S)
        first.process.kill()
        return written(watch)


def written(watch: Watch) -> list[str]:
    """Return the writes, without those of the Kubernetes Lease."""
    exchanges = list(watch.exchanges)
    return [e.pattern for e in exchanges if e.method != "GET" and "/leases" not in e.path]


def replica(
    lab: Lab, state: Path, entry: str = SERVE, redirect: Mapping[int, int] | None = None
) -> Replica:
    file = state / "platform.yaml"
    command = ["serve", "--port=0", "--platform", str(file)]
    log = lab.path("serve.log")
    process = lab.zygote.start(command, log, redirect=redirect, entry=entry)
    return started(process, token(load_settings(str(file)).service))


@pytest.fixture(scope="module")
def pair(lab: Lab, served: Path) -> Iterator[Pair]:
    second = replica(lab, served)
    yield Pair(lab, served, second)
    assert second.end() == 0


def place(team: str) -> Ask:
    return lambda replica: replica.place(team)


def change(team: str) -> Ask:
    return lambda replica: replica.change(team, "stage3", f"op-{team}")


def end(team: str) -> Ask:
    order = order_of(team)
    return lambda replica: replica.ask("POST", f"/v1/orders/{order}/end", confirm=order)


def is_ready(platform: Platform, team: str) -> bool:
    with suppress(NotFoundError):
        return order_report.status(platform, order_of(team)).state.ready
    return False


def test_the_writes_of_an_order_are_those_of_the_command(pair: Pair, team: str) -> None:
    assert pair.writes(place(team)) == ORDER


def test_the_writes_of_a_change_and_an_end_are_those_of_the_commands(
    pair: Pair, ordering_team: str
) -> None:
    assert pair.writes(change(ordering_team)) == CHANGE
    assert pair.writes(end(ordering_team)) == END


@pytest.mark.parametrize("kill", kills(ORDER), ids=str)
def test_an_order_is_finished_by_the_other_replica(pair: Pair, team: str, kill: Kill) -> None:
    pair.killed(kill, place(team))

    with judging.looking_at(pair.state) as platform:
        until(lambda: is_ready(platform, team), "it is Ready", WITHIN_S)
        judging.order_is_whole(platform, pair.state, team, "stage1", edits=0)


@pytest.mark.parametrize("kill", kills(CHANGE), ids=str)
def test_a_change_is_finished_by_the_other_replica(
    pair: Pair, ordering_team: str, kill: Kill
) -> None:
    pair.killed(kill, change(ordering_team))

    with judging.looking_at(pair.state) as platform:
        assert len(judging.commits(pair.state, judging.repo_of(ordering_team))) == 2
        until(lambda: is_ready(platform, ordering_team), "it is Ready", WITHIN_S)
        judging.order_is_whole(platform, pair.state, ordering_team, "stage3", edits=1)


@pytest.mark.parametrize("kill", kills(END), ids=str)
def test_an_end_is_finished_by_the_other_replica(
    pair: Pair, ordering_team: str, kill: Kill
) -> None:
    pair.killed(kill, end(ordering_team))

    with judging.looking_at(pair.state) as platform:
        judging.order_is_gone(platform, pair.state, ordering_team, survivor="archive")


@pytest.mark.parametrize("after", range(0, len(SWEEP_END), 2))
def test_a_sweep_is_finished_by_the_other_replica_by_itself(
    pair: Pair, expired_team: str, after: int
) -> None:
    with judging.looking_at(pair.state) as platform:
        platform.cluster.delete(SWEEP_LEASE)  # the platform's own service has it for ten minutes
    first = pair.first(SWEEPING)
    with pair.lab.interposer.watching(Watch()) as watch:
        until(lambda: any("/leases" in e.path for e in watch.exchanges), "it leads", WITHIN_S)
        second = replica(pair.lab, pair.state, SWEEPING)
        until(lambda: len(written(watch)) >= after, f"write {after} is reached", WITHIN_S)
        first.process.kill()

    path = f"apps/{expired_team}/{order_of(expired_team)}.yaml"
    tombstone = f"data/{expired_team}/{order_of(expired_team)}/tombstone-"
    with judging.looking_at(pair.state) as platform:
        until(lambda: judging.ledger_files(platform, tombstone), "the other one ends it", WITHIN_S)
        judging.order_is_gone(platform, pair.state, expired_team, survivor="archive")
    removals = judging.commits(pair.state, judging.LEDGER, "--diff-filter=D", "--", path)
    assert len(removals) == 1
    assert second.end() == 0
