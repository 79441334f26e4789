"""One of two replicas of the service is killed at any write; the other one finishes the work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.crash.pairs import (
    Pair,
    change,
    change_is_finished,
    end,
    end_is_finished,
    order_is_finished,
    place,
    replica,
    sweep_is_finished,
)
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
from tests.crash.test_crash_leases import SWEEP_END

if TYPE_CHECKING:
    from tests.crash.laboratory import Launcher

__all__ = ["fresh", "ordering_team", "team"]
"""Fixtures."""
pytestmark = pytest.mark.soak
SWEEP_KILLS = [
    Kill(SWEEP_END, 1, "before"),
    *(Kill(SWEEP_END, at, "after") for at in range(2, len(SWEEP_END) + 1, 2)),
]


@pytest.fixture(scope="module")
def pair(lab: Launcher, served: Path) -> Iterator[Pair]:
    second = replica(lab, served)
    yield Pair(lab, served, second)
    assert second.end() == 0


def test_the_writes_of_an_order_are_those_of_the_command(pair: Pair, team: str) -> None:
    assert pair.writes(place(team)) == ORDER


def test_the_writes_of_a_change_and_an_end_are_those_of_the_commands(
    pair: Pair, ordering_team: str
) -> None:
    assert pair.writes(change(ordering_team)) == CHANGE
    assert pair.writes(end(ordering_team)) == END


@pytest.mark.parametrize("kill", kills(ORDER), ids=str)
def test_an_order_is_finished_by_the_other_replica(pair: Pair, team: str, kill: Kill) -> None:
    order_is_finished(pair, team, kill)


@pytest.mark.parametrize("kill", kills(CHANGE), ids=str)
def test_a_change_is_finished_by_the_other_replica(
    pair: Pair, ordering_team: str, kill: Kill
) -> None:
    change_is_finished(pair, ordering_team, kill)


@pytest.mark.parametrize("kill", kills(END), ids=str)
def test_an_end_is_finished_by_the_other_replica(
    pair: Pair, ordering_team: str, kill: Kill
) -> None:
    end_is_finished(pair, ordering_team, kill)


@pytest.mark.parametrize("kill", SWEEP_KILLS, ids=str)
def test_a_sweep_is_finished_by_the_other_replica_by_itself(
    pair: Pair, ordering_team: str, kill: Kill
) -> None:
    sweep_is_finished(pair, ordering_team, kill)
