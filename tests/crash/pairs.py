"""
Two replicas of the service: one is killed at a write of a request, the other one finishes it.

The client sends the same request again, to the replica that is left. A sweep has no client: the
replica that is left goes on by itself, once the Lease of the killed one is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import requests
from replicas import Replica, started, until
from tests.crash import judging
from tests.crash.interposed import PhaseWatch, Watch
from tests.crash.judging import order_of
from tests.crash.test_crash_commands import Kill
from tests.crash.test_crash_leases import lend

from ground.errors import NotFoundError
from orderkit.cli.connecting import load_settings, token
from orderkit.flows.lease.sweeper import SWEEP_LEASE
from orderkit.flows.order import order_report
from orderkit.flows.platform import Platform

if TYPE_CHECKING:
    from tests.crash.laboratory import Launcher

SERVE = "tests.crash.sweepingservice:serve_only"
SWEEPING = "tests.crash.sweepingservice:serve"
WITHIN_S = 60.0
Ask = Callable[[Replica], requests.Response]


@dataclass(frozen=True)
class Pair:
    """Two replicas: the first one is new for each test, and its writes can be watched."""

    lab: Launcher
    state: Path
    second: Replica

    def first(self, entry: str = SERVE) -> Replica:
        return replica(self.lab, self.state, entry, self.lab.interposer.redirect)

    def killed(self, kill: Kill, ask: Ask) -> None:
        """Kill the first one at its point, look at what was acknowledged, ask the second one."""
        first = self.first()
        watch = PhaseWatch(kill.at, kill.side, first.process.kill)
        with self.lab.interposer.watching(watch), suppress(requests.ConnectionError):
            until(lambda: ask(first) and watch.is_killed(), "its end", WITHIN_S)
        assert watch.is_killed(), f"write {kill.at} was never reached"
        with judging.looking_at(self.state) as platform:
            judging.still_there(platform, self.state, watch.exchanges)
        until(lambda: ask(self.second).status_code in (200, 201), "the other one does it", WITHIN_S)

    def writes(self, ask: Ask) -> list[str]:
        first = self.first()
        with self.lab.interposer.watching(PhaseWatch()) as watch:
            until(lambda: ask(first).status_code in (200, 201), "it is done", WITHIN_S)
        first.process.kill()
        return watch.numbered


def replica(
    lab: Launcher, state: Path, entry: str = SERVE, redirect: Mapping[int, int] | None = None
) -> Replica:
    file = state / "platform.yaml"
    command = ["serve", "--port=0", "--platform", str(file)]
    log = lab.path("serve.log")
    process = lab.zygote.start(command, log, redirect=redirect, entry=entry)
    return started(process, token(load_settings(str(file)).service))


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


def order_is_finished(pair: Pair, team: str, kill: Kill) -> None:
    pair.killed(kill, place(team))

    with judging.looking_at(pair.state) as platform:
        until(lambda: is_ready(platform, team), "it is Ready", WITHIN_S)
        judging.order_is_whole(platform, pair.state, team, "stage1", edits=0)


def change_is_finished(pair: Pair, team: str, kill: Kill) -> None:
    pair.killed(kill, change(team))

    with judging.looking_at(pair.state) as platform:
        assert len(judging.commits(pair.state, judging.repo_of(team))) == 2
        until(lambda: is_ready(platform, team), "it is Ready", WITHIN_S)
        judging.order_is_whole(platform, pair.state, team, "stage3", edits=1)


def end_is_finished(pair: Pair, team: str, kill: Kill, *, edits: int = 0) -> None:
    pair.killed(kill, end(team))

    with judging.looking_at(pair.state) as platform:
        judging.order_is_gone(platform, pair.state, team, survivor="archive", edits=edits)


def leads(watch: Watch) -> bool:
    """Say whether a replica has written the Lease."""
    exchanges = list(watch.exchanges)
    return any("/leases" in e.path and e.acknowledged for e in exchanges)


def sweep_is_finished(pair: Pair, team: str, kill: Kill) -> None:
    """Kill the one that sweeps; the other one, which nobody asks, goes on."""
    with judging.looking_at(pair.state) as platform:
        platform.cluster.delete(SWEEP_LEASE)  # a service that runs for long has it for ten minutes
    first = pair.first(SWEEPING)
    watch = PhaseWatch(kill.at, kill.side, first.process.kill)
    with pair.lab.interposer.watching(watch):
        until(lambda: leads(watch), "it leads", WITHIN_S)
        second = replica(pair.lab, pair.state, SWEEPING)
        lend(pair.state, team, left=timedelta(minutes=-30), warned=("24h", "1h"))
        until(watch.is_killed, f"write {kill.at} is reached", WITHIN_S)

    path = f"apps/{team}/{order_of(team)}.yaml"
    tombstone = f"data/{team}/{order_of(team)}/tombstone-"
    with judging.looking_at(pair.state) as platform:
        until(lambda: judging.ledger_files(platform, tombstone), "the other one ends it", WITHIN_S)
        judging.order_is_gone(platform, pair.state, team, survivor="archive")
    removals = judging.commits(pair.state, judging.LEDGER, "--diff-filter=D", "--", path)
    assert len(removals) == 1
    assert second.end() == 0
