"""
``orderkit up`` killed by SIGKILL before and after its durable writes, then started again.

A first run of each phase lets the platform live and numbers its writes. Each further run starts
from the same folder, dies at one of them, starts again and must end where the first run ended.
The short run takes an even, seeded sample over kinds of writes; ``--soak`` takes them all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
from roguery import deliver_main
from tests.crash import judging
from tests.crash.durable import Faults, Side
from tests.crash.interposed import Watch
from tests.crash.judging import LEDGER, PACK, order_of, repo_of
from tests.crash.laboratory import COMMAND_DEADLINE_S
from tests.crash.processes import KILLED, Process

from ground.errors import OrderkitError
from orderkit.flows.order import order_report
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock

if TYPE_CHECKING:
    from chances import Chances
    from tests.crash.conftest import Tally
    from tests.crash.laboratory import Lab

TEAM = "ae86"
TAIL_S = 0.5
"""How long the reconcilers go on writing after the client has its answer."""
SAMPLE = 2
"""Kills of each phase in a short run."""
TWICE = 0.3
"""How often the platform is killed once more while it starts after a kill."""


class Act(Protocol):
    """What a client does meanwhile."""

    def poll(self) -> int | None: ...
    def wait(self, deadline_s: float) -> int: ...


@dataclass(frozen=True)
class Phase:
    """What happens while the platform dies; repeating `act` must finish it."""

    begins: str
    """The fixture with the folder to start from; none: an empty one."""
    act: Callable[[Lab, Path], Act]
    judge: Callable[[Platform, Path], None]


@dataclass(frozen=True)
class Point:
    """A write of a phase, as numbered within its kind in the first run."""

    number: int
    kind: str
    what: str


@dataclass(frozen=True)
class First:
    """The first run of a phase: its writes, and how many commits the ledger had at its end."""

    points: Sequence[Point]
    ledger_commits: int


# --- what clients do


def order(lab: Lab, state: Path) -> Act:
    return lab.command(state, "order", "garage", f"team_name={TEAM}", "stage=stage2")


def destroy(lab: Lab, state: Path) -> Act:
    return lab.command(state, "destroy", "--yes", order_of(TEAM))


def destroy_and_delete(lab: Lab, state: Path) -> Act:
    return lab.command(state, "destroy", "--yes", order_of(TEAM), "--delete-repository")


def push(lab: Lab, state: Path) -> Act:
    return lab.push(state, TEAM, "stage3")


# --- what must have come of it


def is_ordered(platform: Platform, state: Path) -> None:
    judging.order_is_whole(platform, state, TEAM, "stage2", edits=0)


def is_changed(platform: Platform, state: Path) -> None:
    (head, *_) = judging.commits(state, repo_of(TEAM))
    deliver_main(platform, repo_of(TEAM))
    until(
        SystemClock(),
        lambda: order_report.status(platform, order_of(TEAM)).state,
        lambda found: found.ready and found.revision == head,
        timeout_s=120,
        goal="delivery of the push",
    )
    judging.order_is_whole(platform, state, TEAM, "stage3", edits=1)


def is_archived(platform: Platform, state: Path) -> None:
    judging.order_is_gone(platform, state, TEAM, survivor="archive")


def is_deleted(platform: Platform, state: Path) -> None:
    judging.order_is_gone(platform, state, TEAM, survivor="delete")


PHASES = {
    "bootstrap": Phase("", order, is_ordered),
    "order": Phase("bootstrapped", order, is_ordered),
    "change": Phase("ordered", push, is_changed),
    "end": Phase("ordered", destroy, is_archived),
    "end and delete": Phase("ordered", destroy_and_delete, is_deleted),
}
ONLY_SOAKED = {"end and delete"}
"""Its writes are those of an end but for the last two, at which other tests kill the command."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.soak] if name in ONLY_SOAKED else [])
        for name in PHASES
    ],
)
def test_a_killed_platform_ends_where_an_unharmed_one_does(
    lab: Lab, request: pytest.FixtureRequest, tally: Tally, chances: Chances, name: str
) -> None:
    phase = PHASES[name]
    start: Path | None = request.getfixturevalue(phase.begins) if phase.begins else None
    first = unharmed(lab, phase, start)
    tally.add(name, [point.kind for point in first.points])
    failures = []
    for kill in choose(first.points, SAMPLE, chances, name):
        try:
            reached = survive(lab, phase, start, kill, first)
        except (AssertionError, OrderkitError) as error:
            lab.kill_all()
            failures.append(f"{kill}: {error}")
            tally.fail(name, failures[-1])
        else:
            tally.kill(name, reached=reached)
    assert failures == []


@dataclass(frozen=True)
class Kill:
    """Where to die, and perhaps where to die again while starting after that."""

    point: Point
    side: Side
    again: Point | None


def choose(points: Sequence[Point], count: int, chances: Chances, name: str) -> list[Kill]:
    """
    Choose evenly over the kinds of writes; in a soak all points, both sides.

    A soak is in random order, so that a part of it is a fair sample too.
    """
    sides: tuple[Side, ...] = ("before", "after")
    random_ = chances.random(name)

    def kill(point: Point, side: Side) -> Kill:
        again = random_.choice(points) if random_.random() < TWICE else None
        return Kill(point, side, again and replace(again, number=random_.randint(1, 3)))

    if chances.soak:
        everything = [kill(point, side) for point in points for side in sides]
        return random_.sample(everything, len(everything))
    by_kind: dict[str, list[Point]] = {}
    for point in points:
        by_kind.setdefault(point.kind, []).append(point)
    kinds = random_.sample(sorted(by_kind), len(by_kind))
    return [
        kill(random_.choice(by_kind[kinds[n % len(kinds)]]), random_.choice(sides))
        for n in range(count)
    ]


def unharmed(lab: Lab, phase: Phase, start: Path | None) -> First:
    """Run a phase to its end and number its writes."""
    state = lab.copy(start) if start else lab.path("state")
    log = lab.path("writes")
    up = lab.up(state, faults=Faults(str(log), str(state)))
    assert lab.is_up(up, state), up.text()
    assert phase.act(lab, state).wait(COMMAND_DEADLINE_S) == 0
    time.sleep(TAIL_S)
    with judging.looking_at(state) as platform:
        phase.judge(platform, state)
    up.kill()
    points = [Point(**json.loads(line)) for line in log.read_text().splitlines()]
    return First(points, len(judging.commits(state, LEDGER)))


def survive(lab: Lab, phase: Phase, start: Path | None, kill: Kill, first: First) -> bool:
    """Kill, start again, finish, judge. False if the write did not come this time."""
    state = lab.copy(start) if start else lab.path("state")
    watch = Watch()
    up = lab.up(state, faults=faults_at(lab, state, kill.point, kill.side))
    with lab.interposer.watching(watch):
        act = phase.act(lab, state) if lab.is_up(up, state) else None
        reached = dies(up, act)
        judging.versions_hold(state, watch.exchanges, lab.folder)
        if kill.again is not None:
            starting = lab.up(state, faults=faults_at(lab, state, kill.again, kill.side))
            starting.is_up()
            starting.kill()
        up = lab.must_be_up(state)
        if act is not None:
            act.wait(COMMAND_DEADLINE_S)
    with judging.looking_at(state) as platform:
        judging.no_leftovers(state)
        judging.still_there(platform, state, watch.exchanges)
        code = phase.act(lab, state).wait(COMMAND_DEADLINE_S)
        assert code == 0, f"repeated, it ended with {code}"
        phase.judge(platform, state)
    up.kill()
    judging.state_is_sound(state)
    assert len(judging.commits(state, PACK)) == 1
    assert len(judging.commits(state, LEDGER)) == first.ledger_commits
    lab.forget(state)
    return reached


def faults_at(lab: Lab, state: Path, point: Point, side: Side) -> Faults:
    return Faults(str(lab.path("writes")), str(state), point.kind, point.number, side)


def dies(up: Process, act: Act | None) -> bool:
    """Wait for the kill. If the write does not come in time, kill at rest and return False."""
    end = None
    while up.poll() is None:
        if end is None and act is not None and act.poll() is not None:
            end = time.monotonic() + TAIL_S
        if end is not None and time.monotonic() > end:
            up.kill()
            return False
        time.sleep(0.005)
    assert up.poll() == KILLED, f"ended with {up.poll()}:\n{up.text()}"
    return True
