"""
One of two replicas is killed at a write, on a real Gitea, API server and Argo CD.

The other one finishes its order, change, end or sweep. `make e2e` takes a moment of each phase, and
`make soak` all: killed before a write, a replica leaves what it leaves after the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from labplatform import ServedLab
from replicas import ServedPlatform
from tests.crash.laboratory import Launcher
from tests.crash.pairs import (
    Pair,
    change,
    change_is_finished,
    end,
    end_is_finished,
    order_is_finished,
    place,
    sweep_is_finished,
)
from tests.crash.test_crash_commands import (
    CHANGE,
    END,
    ORDER,
    Kill,
    fresh,
    ordering_team,
    team,
)
from tests.crash.test_crash_leases import SWEEP_END
from tests.crash.test_crash_replicas import SWEEP_KILLS, pair

from orderkit.cli.connecting import load_settings

__all__ = ["fresh", "ordering_team", "pair", "team"]
"""Fixtures."""


def moments(writes: Sequence[str]) -> list[Kill]:
    """Return the moments before the first write and after each."""
    return [
        Kill(writes, 1, "before"),
        *(Kill(writes, at, "after") for at in range(1, len(writes) + 1)),
    ]


@pytest.fixture(scope="module")
def lab(platform: ServedPlatform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    portal = urlsplit(load_settings(str(platform.file)).portal.url).port or 0
    found = Launcher(tmp_path_factory.mktemp("killed"), {**platform.ports, "portal": portal})
    found.interposer.present(platform.authority.parent)
    yield found
    found.close()


@pytest.fixture(scope="module")
def served(platform: ServedPlatform, served_lab: ServedLab, lab: Launcher) -> Path:
    """A folder with the lab where ``tests/crash/judging`` looks."""
    state = lab.path("state")
    (state / "forge").mkdir(parents=True)
    (state / "forge" / "repos").symlink_to(served_lab.lab.repositories)
    (state / "platform.yaml").write_text(platform.file.read_text())
    return state


@pytest.fixture
def placed_team(pair: Pair, team: str) -> str:
    """A team whose order need not be Ready yet."""
    assert place(team)(pair.second).status_code == 201
    return team


def test_an_order_lives_through_a_kill_in_each_phase(pair: Pair, team: str) -> None:
    order_is_finished(pair, team, Kill(ORDER, 4, "after"))
    change_is_finished(pair, team, Kill(CHANGE, 1, "after"))
    end_is_finished(pair, team, Kill(END, 9, "before"), edits=1)


@pytest.mark.parametrize(
    "kill",
    [
        Kill(SWEEP_END, 3, "after"),
        *(pytest.param(kill, marks=pytest.mark.soak) for kill in SWEEP_KILLS),
    ],
    ids=str,
)
def test_a_sweep_is_finished_by_the_other_replica_by_itself(
    pair: Pair, placed_team: str, kill: Kill
) -> None:
    sweep_is_finished(pair, placed_team, kill)


@pytest.mark.soak
def test_the_writes_are_those_on_the_embedded_platform(pair: Pair, team: str) -> None:
    assert pair.writes(place(team)) == ORDER
    assert pair.writes(change(team)) == CHANGE
    assert pair.writes(end(team)) == END


@pytest.mark.soak
@pytest.mark.parametrize("kill", moments(ORDER), ids=str)
def test_an_order_is_finished_by_the_other_replica(pair: Pair, team: str, kill: Kill) -> None:
    order_is_finished(pair, team, kill)


@pytest.mark.soak
@pytest.mark.parametrize("kill", moments(CHANGE), ids=str)
def test_a_change_is_finished_by_the_other_replica(
    pair: Pair, ordering_team: str, kill: Kill
) -> None:
    change_is_finished(pair, ordering_team, kill)


@pytest.mark.soak
@pytest.mark.parametrize("kill", moments(END), ids=str)
def test_an_end_is_finished_by_the_other_replica(
    pair: Pair, ordering_team: str, kill: Kill
) -> None:
    end_is_finished(pair, ordering_team, kill)
