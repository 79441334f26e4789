"""What the tests that kill share: the laboratory, states to start from, a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.crash import judging
from tests.crash.laboratory import Lab
from tests.workers import summary

BYSTANDER = "rx7"
"""A team with an order that no test touches; it must stay as it is."""


class Tally:
    """How many points were found and kills done, for the summary of the run."""

    def __init__(self) -> None:
        self._points: dict[str, Counter[str]] = {}
        self._kills: Counter[str] = Counter()
        self._missed: Counter[str] = Counter()
        self._failures: list[str] = []

    def add(self, phase: str, kinds: Iterable[str]) -> None:
        self._points[phase] = Counter(kinds)

    def kill(self, phase: str, *, reached: bool = True) -> None:
        self._kills[phase] += 1
        self._missed[phase] += not reached

    def fail(self, phase: str, text: str) -> None:
        """Note a failure at once: an interrupted run shows it all the same."""
        self._failures.append(f"FAILED {phase}: {text}")

    def lines(self) -> Iterator[str]:
        for phase, kills in self._kills.items():
            points = self._points.get(phase, Counter())
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(points.items()))
            found = f" {points.total()} writes ({kinds});" if points else ""
            missed = f", {self._missed[phase]} at rest" if self._missed[phase] else ""
            yield f"{phase}:{found} {kills} kills{missed}"
        yield from self._failures


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Tally:
    """Count for the summary."""
    made = Tally()
    summary(pytestconfig).add("kills", made.lines)
    return made


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    found = Lab(tmp_path_factory.mktemp("crash"))
    yield found
    found.close()


@pytest.fixture(autouse=True)
def _nothing_survives(request: pytest.FixtureRequest) -> Iterator[None]:
    """Kill what a test started, except the platform that a module shares."""
    yield
    if "lab" in request.fixturenames and "served" not in request.fixturenames:
        request.getfixturevalue("lab").kill_all()


@pytest.fixture(scope="package")
def bootstrapped(lab: Lab) -> Path:
    """A stopped platform with the bystander's order."""
    state = lab.path("bootstrapped")
    up = lab.must_be_up(state)
    lab.must_do(state, "team", "add", BYSTANDER)
    lab.must_do(state, "order", "garage", f"team_name={BYSTANDER}", "stage=stage1")
    up.kill()
    return state


@pytest.fixture(scope="package")
def ordered(lab: Lab, bootstrapped: Path) -> Path:
    """A stopped platform on which ae86 has an order too."""
    state = lab.copy(bootstrapped)
    up = lab.must_be_up(state)
    lab.must_do(state, "order", "garage", "team_name=ae86", "stage=stage2")
    up.kill()
    return state


@pytest.fixture(scope="module")
def served(lab: Lab, bootstrapped: Path) -> Iterator[Path]:
    """A platform that runs while a module's tests kill commands; judged at the end."""
    state = lab.copy(bootstrapped)
    up = lab.must_be_up(state)
    with judging.looking_at(state) as platform:
        before = judging.identity(platform, state, BYSTANDER)
        yield state
        assert judging.identity(platform, state, BYSTANDER) == before
    up.kill()
    judging.state_is_sound(state)
    lab.kill_all()
