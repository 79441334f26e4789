"""One replica loses the forge, the other one the API server; clients go on, and both come back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from networks import Line
from replicas import Replica, Replicas, ServedPlatform, until
from tests.component.replicas.conftest import AddTeam, Figures

SEEN_S = 15.0
"""In what time a replica notices: checks are kept for five seconds, pauses grow to ten."""
UNHEARD_S = 70
"""A quiet ledger is read, and a silent watch is over, after a minute: then a list tells its age."""
STAGES = ("stage2", "stage3", "stage1")


@dataclass
class Cut:
    """A replica that loses a part of the platform, and a client that changes an order there."""

    part: str
    line: Line
    replica: Replica
    team: str = ""
    written: int = 0
    refusals: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def write(self) -> None:
        """Change the order again and again; send each change until it is acknowledged."""
        while not self.over.is_set():
            key = f"{self.team}-{self.written}"
            until(lambda key=key: self._change(key), "it is acknowledged", 240)
            self.written += 1

    def _change(self, key: str) -> bool:
        answer = self.replica.change(self.team, STAGES[self.written % len(STAGES)], key)
        if not answer.ok:
            error = answer.json()["error"]
            assert answer.status_code in (502, 503), answer.text
            assert error["hint"], answer.text
            self.refusals.append(error["message"])
        return answer.ok

    def notice(self) -> float:
        """Return after how many seconds readiness names the part that is lost, and no other."""
        took_s = until(lambda: self.replica.readiness()[0] == 503, "it is missed", SEEN_S)
        checks = self.replica.readiness()[1]
        assert [part for part, result in checks.items() if result != "ok"] == [self.part]
        return took_s

    def age_s(self) -> float:
        """Return how old the list of orders says it may be; it is always answered at once."""
        began_s = time.monotonic()
        answer = self.replica.ask("GET", "/v1/orders")
        assert (answer.status_code, time.monotonic() - began_s < SEEN_S) == (200, True)
        return float(answer.json()["age"])

    def come_back(self) -> float:
        """Return after how many seconds it is ready, up to date, and writes."""
        written = self.written
        ready_s = until(lambda: self.replica.readiness()[0] == 200, "it is back", SEEN_S)
        current_s = until(lambda: self.age_s() == 0, "its list is current", SEEN_S)
        return ready_s + current_s + until(lambda: self.written > written, "it writes", SEEN_S)


@pytest.fixture
def cuts(platform: ServedPlatform, replicas: Replicas) -> Iterator[list[Cut]]:
    found = []
    for part, port in platform.ports.items():
        line = Line(port)
        found.append(Cut(part, line, replicas.start({port: line.port})))
    for cut in found:
        until(lambda cut=cut: cut.replica.readiness()[0] == 200, "it gets ready", 60)
    yield found
    for cut in found:
        assert cut.replica.end() == 0
        cut.line.close()


@pytest.mark.parametrize(
    "network",
    [
        ("refusing", 2),
        pytest.param(("refusing", 75), marks=pytest.mark.soak),
        pytest.param(("swallowing", 75), marks=pytest.mark.soak),
    ],
    ids=str,
)
def test_a_replica_that_is_cut_off_says_so_and_loses_and_doubles_nothing(
    platform: ServedPlatform,
    cuts: list[Cut],
    add: AddTeam,
    figures: Figures,
    network: tuple[str, int],
) -> None:
    how, for_s = network
    for cut in cuts:
        cut.team = add(f"{cut.part}-{how}-{for_s}")
        assert cut.replica.place(cut.team).status_code == 201
    with ThreadPoolExecutor() as threads, ExitStack() as ends:
        for cut in cuts:
            ends.callback(cut.over.set)
        work = [threads.submit(cut.write) for cut in cuts]
        with ExitStack() as broken:
            for cut in cuts:
                broken.enter_context(getattr(cut.line, how)())
            began_s = time.monotonic()
            noticed_s = list(threads.map(Cut.notice, cuts))
            time.sleep(max(0.0, began_s + for_s - time.monotonic()))
            ages_s = [cut.age_s() for cut in cuts]
        back_s = list(threads.map(Cut.come_back, cuts))
    for each in work:
        each.result()
    for cut, *times in zip(cuts, noticed_s, ages_s, back_s, strict=True):
        seen, age, back = (f"{time_s:.1f} s" for time_s in times)
        figures.append(
            f"{cut.part} {how} for {for_s} s: noticed after {seen}, list {age} old, back after "
            f"{back}; {cut.written} changes, {len(cut.refusals)} refusals {set(cut.refusals)}"
        )

    assert [platform.commits(cut.team) for cut in cuts] == [1 + cut.written for cut in cuts]
    assert min(ages_s if for_s > UNHEARD_S else ages_s[1:]) >= for_s
    assert cuts[0].refusals
