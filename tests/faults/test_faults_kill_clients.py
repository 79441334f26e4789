"""
Clients killed by SIGKILL before and after each of their requests, and at random moments.

A killed client was told nothing, so its deed may be done or not, but never in part where the
forge does it in one request; the same deed, done again, finishes it, and it is there once.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from faultproxy import Decision, Fault, Plan
from tests.crash.processes import KILLED, Process, Zygote
from tests.faults import deeds
from tests.faults.deeds import DEEDS, Look, Spec

if TYPE_CHECKING:
    from chances import Chances
    from tests.faults.conftest import Bench, Report

Side = Literal["before", "after"]
SHORT, FULL = 10, 300
DEADLINE_S = 180.0


@dataclass
class KillAt(Plan):
    """Kill the client at its n-th request: before it goes on, or after it was carried out."""

    at: int
    side: Side
    kill: Callable[[], None]
    requests: int = 0
    killed: bool = False

    def decide(self, method: str, path: str) -> Decision:
        del method, path
        self.requests += 1
        if self.requests != self.at:
            return Decision()
        if self.side == "after":
            return Decision(Fault.HOOK_AFTER)
        self.hook()
        return Decision(Fault.DROP_BEFORE)

    def hook(self) -> None:
        self.killed = True
        self.kill()


@dataclass
class Killing:
    """Clients as processes."""

    bench: Bench
    zygote: Zygote
    logs: Path
    started: int = 0

    def client(self, spec: Spec) -> Process:
        """Start a client that does one deed through the proxy."""
        self.started += 1
        bench = self.bench
        argument = deeds.argument(bench.proxy.url, bench.token, spec, bench.face)
        log = self.logs / f"client-{self.started}"
        return self.zygote.start([argument], log, entry="tests.faults.deeds:main")

    def requests(self, deed: str) -> int:
        """Let a deed end, and return how many requests it took."""
        spec = deeds.prepared(self.bench.direct, self.bench.org, deed)
        plan = self.killed_at(spec, 0, "before")
        assert deeds.count(self.look, spec) == 1
        return plan.requests

    def killed_at(self, spec: Spec, at: int, side: Side) -> KillAt:
        """Run a client, killed at its n-th request; 0: let it end."""
        started: Future[Process] = Future()
        plan = KillAt(at, side, lambda: started.result(DEADLINE_S).kill())
        with self.bench.proxy.using(plan):
            started.set_result(self.client(spec))
            code = started.result().wait(DEADLINE_S)
        assert code == (KILLED if plan.killed else 0), started.result().text()
        return plan

    @property
    def look(self) -> Look:
        return self.bench.look

    def finished_by_repeating(self, spec: Spec) -> int:
        """Do the deed again; assert that it is there once; return how often it was before."""
        before = deeds.count(self.look, spec)
        assert before <= 1, f"{spec} is there {before} times"
        deeds.do(self.bench.direct, spec)
        assert deeds.count(self.look, spec) == 1, f"{spec} is not there once"
        return before


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


@pytest.fixture
def killing(bench: Bench, zygote: Zygote, tmp_path: Path) -> Killing:
    if bench.real:
        pytest.skip("the flows are killed on the real Gitea (tests/e2e)")
    return Killing(bench, zygote, tmp_path)


@pytest.mark.parametrize("deed", DEEDS)
def test_a_client_killed_at_any_request_is_finished_by_repeating(
    killing: Killing, deed: str, report: Report
) -> None:
    if (killing.bench.face, deed) == ("gitlab", "access"):
        pytest.skip("a team without members is nothing on GitLab")
    requests = killing.requests(deed)
    assert requests >= 1
    sides: tuple[Side, ...] = ("before", "after")
    for at in range(1, requests + 1):
        for side in sides:
            spec = deeds.prepared(killing.bench.direct, killing.bench.org, deed)
            plan = killing.killed_at(spec, at, side)
            if not plan.killed:  # a merge asks again only while the forge is still checking
                assert deed in ("merge", "squash"), f"request {at} never came"
            done = killing.finished_by_repeating(spec)
            report.add(
                "clients killed at a request",
                Counter({"kills": plan.killed, "carried out before": done}),
            )


@pytest.mark.timeout(600)
def test_clients_killed_at_random_moments_are_finished_by_repeating(
    killing: Killing, chances: Chances, report: Report
) -> None:
    random_ = chances.random("clients")
    names = [d for d in DEEDS if (killing.bench.face, d) != ("gitlab", "access")]
    lasts = {deed: _duration_s(killing, deed) for deed in names}
    for number in range(chances.count(SHORT, FULL)):
        deed = random_.choice(names)
        try:
            report.add("clients killed at random moments", _one(killing, deed, lasts, random_))
        except BaseException as error:
            error.add_note(f"seed {chances.seed}, kill {number}: {deed}")
            raise


def _duration_s(killing: Killing, deed: str) -> float:
    spec = deeds.prepared(killing.bench.direct, killing.bench.org, deed)
    begin_s = time.monotonic()
    killing.client(spec).wait(DEADLINE_S)
    return time.monotonic() - begin_s


def _one(
    killing: Killing, deed: str, lasts: dict[str, float], random_: random.Random
) -> Counter[str]:
    """Kill a client at a random moment of its life; return what was hit."""
    spec = deeds.prepared(killing.bench.direct, killing.bench.org, deed)
    killing.bench.proxy.log.clear()
    client = killing.client(spec)
    time.sleep(random_.uniform(0, lasts[deed]))
    client.kill()
    code, asked = client.wait(DEADLINE_S), len(killing.bench.proxy.log)
    done = killing.finished_by_repeating(spec)
    return Counter({
        "kills": 1,
        "had ended": code == 0,
        "before the first request": code != 0 and not asked,
        "in the middle": code != 0 and asked > 0,
        "carried out before": done,
    })  # fmt: skip
