"""One replica loses the forge, the other one the API server; clients go on, and so do both after."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
import yaml
from networks import Line
from replicas import Replica, Replicas, until
from tests.component.replicas.conftest import AddTeam

from ground.names import RepoId
from orderkit_standins.serve_platform import Running

SEEN_S = 15.0
"""In what time readiness says that a part is gone, or is back: checks are kept for five seconds."""
STAGES = ("stage2", "stage3", "stage1")


@dataclass
class Writer:
    """Changes an order again and again; each change is sent until it is acknowledged."""

    replica: Replica
    team: str
    written: int = 0
    refusals: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
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


@dataclass(frozen=True)
class Pair:
    """A replica behind a line to the forge, and one behind a line to the API server."""

    lines: dict[str, Line]
    replicas: dict[str, Replica]

    @contextmanager
    def cut(self, how: str) -> Iterator[None]:
        with ExitStack() as cuts:
            for line in self.lines.values():
                cuts.enter_context(getattr(line, how)())
            yield

    def checks(self, part: str) -> tuple[int, dict[str, str]]:
        return self.replicas[part].readiness()

    def age_s(self, part: str) -> float:
        """Return how old the list of orders says it may be; it is always answered at once."""
        began_s = time.monotonic()
        answer = self.replicas[part].ask("GET", "/v1/orders")
        assert (answer.status_code, time.monotonic() - began_s < SEEN_S) == (200, True)
        return float(answer.json()["age"])


@pytest.fixture
def pair(platform: Running, replicas: Replicas) -> Iterator[Pair]:
    kubeconfig = yaml.safe_load(platform.settings.cluster.kubeconfig.read_text())
    addresses = {
        "forge": platform.settings.forge.url,
        "cluster": kubeconfig["clusters"][0]["cluster"]["server"],
    }
    ports = {part: urlsplit(address).port or 0 for part, address in addresses.items()}
    lines = {part: Line(port) for part, port in ports.items()}
    found = {part: replicas.start({ports[part]: lines[part].port}) for part in ports}
    for part in found:
        until(lambda part=part: found[part].readiness()[0] == 200, "both get ready", 60)
    yield Pair(lines, found)
    for part in found:
        assert found[part].end() == 0
        lines[part].close()


@pytest.mark.parametrize(
    ("how", "for_s"),
    [
        ("refusing", 2),
        pytest.param("refusing", 60, marks=pytest.mark.soak),
        pytest.param("swallowing", 75, marks=pytest.mark.soak),  # a watch lasts a minute
    ],
)
def test_a_replica_that_is_cut_off_says_so_and_loses_and_doubles_nothing(
    platform: Running, pair: Pair, add: AddTeam, how: str, for_s: float
) -> None:
    teams = {part: add(f"{part}-{how}-{for_s}") for part in pair.replicas}
    for part, team in teams.items():
        assert pair.replicas[part].place(team).status_code == 201
    writers = {part: Writer(pair.replicas[part], team) for part, team in teams.items()}
    figures: dict[str, object] = {}
    with ThreadPoolExecutor() as threads, ExitStack() as ends:
        for writer in writers.values():
            ends.callback(writer.over.set)
        work = [threads.submit(writer.run) for writer in writers.values()]
        with pair.cut(how):
            began_s = time.monotonic()
            for part in teams:
                other = {"forge": "cluster", "cluster": "forge"}[part]
                until(lambda part=part: pair.checks(part)[0] == 503, f"{part} is missed", SEEN_S)
                figures[f"{part} missed"] = time.monotonic() - began_s
                checks = pair.checks(part)[1]
                figures[f"{part} checks"] = checks
                assert (checks[part] != "ok", checks[other]) == (True, "ok")
            time.sleep(max(0.0, began_s + for_s - time.monotonic()))
            ages = {part: pair.age_s(part) for part in teams}
            figures["ages"] = ages
            before = {part: writer.written for part, writer in writers.items()}
        began_s = time.monotonic()
        for part in teams:
            until(lambda part=part: pair.checks(part)[0] == 200, f"{part} is back", SEEN_S)
            figures[f"{part} back"] = time.monotonic() - began_s
            until(lambda part=part: pair.age_s(part) == 0, "the list is up to date", SEEN_S)
            figures[f"{part} age 0"] = time.monotonic() - began_s
            until(
                lambda part=part: writers[part].written > before[part], "it writes again", SEEN_S
            )
            figures[f"{part} writes"] = time.monotonic() - began_s
    for each in work:
        each.result()
    for part, writer in writers.items():
        print(part, len(writer.refusals), set(writer.refusals), writer.written)
    print(figures)

    for part, team in teams.items():
        repo = RepoId(team, f"garage-{team}")
        assert len(platform.platform.forge.commits(repo, limit=1000)) == 1 + writers[part].written
    assert writers["forge"].refusals
    assert min(ages.values()) >= min(for_s, 60)
