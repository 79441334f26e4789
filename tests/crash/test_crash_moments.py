"""
The platform killed at random moments, under several clients that order, change and end.

It starts again at once on the same state; commands that failed are repeated until they are done.
Then everything must be there once, and nothing that was acknowledged may be lost.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.crash import judging
from tests.crash.interposed import Watch
from tests.crash.judging import order_of
from tests.crash.laboratory import COMMAND_DEADLINE_S
from tests.crash.processes import Process

from ground.errors import OrderkitError
from ground.objects.kube_objects import CONFIG_MAP, ObjectKey, metadata

if TYPE_CHECKING:
    from chances import Chances
    from tests.crash.conftest import Tally
    from tests.crash.laboratory import Lab

SHORT, FULL = 1, 50
CLIENTS = 3
BUSY_S = 2.5
"""About how long the clients of one moment need on a free machine."""
CLIENT_S = 240.0
"""How long a client may take, or may go on repeating what failed while the platform came back."""

_numbers = itertools.count(1)


@pytest.mark.timeout(900)
def test_a_platform_killed_at_random_moments_loses_nothing(
    lab: Lab, bootstrapped: Path, tally: Tally, chances: Chances
) -> None:
    state = lab.copy(bootstrapped)
    up = lab.must_be_up(state)
    random_ = chances.random("moments")
    settled: dict[str, str] = {}
    for number in range(chances.count(SHORT, FULL)):
        delay_s = random_.uniform(0, BUSY_S)
        try:
            up = one_moment(lab, state, up, delay_s, settled)
        except BaseException as error:
            error.add_note(f"moment {number}: killed after {delay_s:.3f} s")
            raise
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
    killed = threading.Event()
    with lab.interposer.watching(Watch()) as watch, ThreadPoolExecutor(CLIENTS + 1) as pool:
        work = [pool.submit(client, lab, state, t, ends=t == teams[0]) for t in teams]
        told = pool.submit(write_objects, state, teams[0], killed)
        time.sleep(delay_s)
        up.kill()
        killed.set()
        judging.versions_hold(state, list(watch.exchanges), lab.folder)
        up = lab.must_be_up(state)
        for done in work:
            done.result(timeout=CLIENT_S)
    with judging.looking_at(state) as platform:
        for key, version in told.result(timeout=CLIENT_S).items():
            found = metadata(platform.cluster.get(key) or {}).get("resourceVersion")
            assert found == version, f"{key}: a client was told {version}, now it is {found}"
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
    persist(lambda: lab.command(state, "team", "add", team).wait(COMMAND_DEADLINE_S))
    persist(lambda: lab.command(state, *order).wait(COMMAND_DEADLINE_S))
    persist(lambda: lab.push(state, team, "stage3").wait(COMMAND_DEADLINE_S))
    persist(lambda: lab.command(state, *order).wait(COMMAND_DEADLINE_S))
    if ends:
        persist(
            lambda: lab.command(state, "destroy", "--yes", order_of(team)).wait(COMMAND_DEADLINE_S)
        )


def write_objects(state: Path, name: str, killed: threading.Event) -> dict[ObjectKey, str | None]:
    """
    Write and delete objects until the platform is gone.

    Returns what the last answer for each object was: its version, None when it was deleted. An
    object whose last write got no answer is left out.
    """
    told: dict[ObjectKey, str | None] = {}
    with judging.looking_at(state) as platform:
        for number in itertools.takewhile(lambda _: not killed.is_set(), itertools.count()):
            key = ObjectKey(CONFIG_MAP, f"{name}-{number % 7}", "default")
            manifest = {
                "apiVersion": CONFIG_MAP.api_version,
                "kind": CONFIG_MAP.kind,
                "metadata": {"name": key.name, "namespace": key.namespace},
                "data": {"number": str(number)},
            }
            known = told.pop(key, None)
            try:
                if known and number % 3 == 0:
                    platform.cluster.delete(key)
                    told[key] = None
                else:
                    stored = platform.cluster.apply(manifest, owner=name)
                    told[key] = metadata(stored)["resourceVersion"]
            except OrderkitError:
                break
    return told


def persist(act: Callable[[], int]) -> None:
    """Repeat until the exit code is 0."""
    codes: list[int] = []
    end = time.monotonic() + CLIENT_S / 2
    while not codes or codes[-1] != 0:
        assert time.monotonic() < end, f"it never ended well: {codes}"
        codes.append(act())
        if codes[-1] != 0:
            time.sleep(0.2)
