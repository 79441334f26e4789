"""
The platform killed at random moments, under several clients that order, change and end.

It starts again at once on the same state; commands that failed are repeated until they are done.
Then everything must be there once, and nothing that was acknowledged may be lost.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.crash import judging
from tests.crash.interposed import Watch
from tests.crash.judging import order_of
from tests.crash.processes import Process

if TYPE_CHECKING:
    from tests.conftest import Chances
    from tests.crash.conftest import Lab, Tally

SHORT, FULL = 8, 50
CLIENTS = 3
BUSY_S = 2.5
"""About how long the clients of one moment need on a free machine."""
TRIES = 6

_numbers = itertools.count(1)


@pytest.mark.timeout(400)
def test_a_platform_killed_at_random_moments_loses_nothing(
    lab: Lab, bootstrapped: Path, tally: Tally, chances: Chances
) -> None:
    state = lab.copy(bootstrapped)
    up = lab.must_be_up(state)
    random_ = chances.random("moments")
    settled: dict[str, str] = {}
    for _ in range(chances.count(SHORT, FULL)):
        up = one_moment(lab, state, up, random_.uniform(0, BUSY_S), settled)
        tally.kill("up at random moments")
    with judging.looking_at(state) as platform:
        for team, before in settled.items():
            assert judging.identity(platform, state, team) == before
    up.kill()
    judging.state_is_sound(state)


def one_moment(
    lab: Lab, state: Path, up: Process, delay_s: float, settled: dict[str, str]
) -> Process:
    """Kill the platform after a while, start it again, finish and judge; return the new one."""
    teams = [f"crash-{next(_numbers)}" for _ in range(CLIENTS)]
    with lab.interposer.watching(Watch()) as watch, ThreadPoolExecutor(CLIENTS) as pool:
        work = [pool.submit(client, lab, state, t, ends=t == teams[0]) for t in teams]
        time.sleep(delay_s)
        up.kill()
        judging.versions_hold(state, list(watch.exchanges), lab.folder)
        up = lab.must_be_up(state)
        for done in work:
            done.result(timeout=120)
    with judging.looking_at(state) as platform:
        judging.no_leftovers(state)
        judging.still_there(platform, state, watch.exchanges)
        judging.order_is_gone(platform, state, teams[0], survivor="archive", edits=1)
        for team in teams[1:]:
            judging.order_is_whole(platform, state, team, "stage3", edits=1)
            settled[team] = judging.identity(platform, state, team)
    return up


def client(lab: Lab, state: Path, team: str, *, ends: bool) -> None:
    """Add a team, order, change by a push, and perhaps end; repeat what fails."""
    order = ("order", "garage", f"team_name={team}", "stage=stage2")
    persist(lambda: lab.command(state, "team", "add", team).wait(60))
    persist(lambda: lab.command(state, *order).wait(60))
    persist(lambda: lab.push(state, team, "stage3").wait(60))
    persist(lambda: lab.command(state, *order).wait(60))
    if ends:
        persist(lambda: lab.command(state, "destroy", order_of(team)).wait(60))


def persist(act: Callable[[], int]) -> None:
    """Repeat until the exit code is 0."""
    codes = []
    for _ in range(TRIES):
        codes.append(act())
        if codes[-1] == 0:
            return
        time.sleep(0.2)
    raise AssertionError(f"it never ended well: {codes}")
