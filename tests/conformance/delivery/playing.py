"""
Play scenarios on a platform, many at once, and keep what came of each.

`scenario` registers a function; its name is the scenario's, its docstring the fact it states.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from tests.conformance.delivery.account import Facts
from tests.conformance.delivery.stage import Platform, Stage

Play = Callable[[Stage], None]
SCENARIOS: dict[str, Play] = {}


def scenario(play: Play) -> Play:
    """Register a scenario under its function's name."""
    assert play.__name__ not in SCENARIOS, f"two scenarios named {play.__name__}"
    assert play.__doc__, f"{play.__name__} states no fact"
    SCENARIOS[play.__name__] = play
    return play


PLAYS_MAX = 5
"""How often a scenario is played on a system that is not ours before its account counts."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a scenario: what was seen, and why it ended early if it did."""

    facts: Facts
    failure: str = ""
    earlier: tuple[Outcome, ...] = ()
    """What came of the plays before, which did not count."""


def play_all(platform: Platform, names: Iterable[str]) -> dict[str, Outcome]:
    """Play scenarios at the same time, as many as the platform allows."""
    with ThreadPoolExecutor(platform.at_once) as pool:
        futures = {name: pool.submit(_play, platform, name) for name in names}
        return {name: future.result() for name, future in futures.items()}


def play_until(
    platform: Platform, names: Iterable[str], right: Callable[[str, Outcome], bool]
) -> dict[str, Outcome]:
    """
    Play scenarios at the same time; what is not `right` is played again, alone, up to four times.

    For a foreign system, whose account stands for what it can do. Starved of time it runs into
    races of its own: it prunes an object that its cache still shows, or is at the next retry
    before the last was written (both observed on Argo CD 3.2.11).
    """
    found = play_all(platform, names)
    for _ in range(1, PLAYS_MAX):
        platform = platform.again()
        for name, outcome in found.items():
            if not right(name, outcome):
                found[name] = replace(_play(platform, name), earlier=(*outcome.earlier, outcome))
    return found


def _play(platform: Platform, name: str) -> Outcome:
    try:
        stage = Stage(platform, f"{name.replace('_', '-')}-{platform.run}")
        SCENARIOS[name](stage)
        return Outcome(stage.account())
    except Exception:  # noqa: BLE001 - the test of this scenario reports it
        return Outcome({}, traceback.format_exc())
