"""Commands on the GitLab face, killed at their writes and repeated: nothing is lost or doubled."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.crash import judging
from tests.crash.judging import order_of
from tests.crash.laboratory import Lab

from orderkit.flows.team.teams import add_team

if TYPE_CHECKING:
    from chances import Chances
    from tests.crash.conftest import Tally

SHORT, FULL = 3, 100
"""Writes at which each command is killed at most."""
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def gitlab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, Path]]:
    folder = tmp_path_factory.mktemp("crash-gitlab")
    lab = Lab(folder, forge="gitlab")
    lab.must_be_up(folder / "state")
    yield lab, folder / "state"
    lab.close()


def new_team(state: Path) -> str:
    name = f"crash-{next(_numbers)}"
    with judging.looking_at(state) as platform:
        add_team(platform, name, requester="user:default/test")
    return name


def order(team: str) -> tuple[str, ...]:
    return ("order", "garage", f"team_name={team}", "stage=stage2")


def change(team: str) -> tuple[str, ...]:
    return ("change", order_of(team), "stage=stage3", "--operation", f"op-{team}")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["order", "change"])
def test_a_command_killed_at_any_write_is_finished_by_repeating_it(
    gitlab: tuple[Lab, Path], name: str, chances: Chances, tally: Tally
) -> None:
    lab, state = gitlab
    for at in range(1, chances.count(SHORT, FULL) + 1):
        team = new_team(state)
        if name == "change":
            lab.must_do(state, *order(team))
        arguments = order(team) if name == "order" else change(team)

        watch = lab.killed_at(state, arguments, at * 2, "after")
        lab.must_do(state, *arguments)

        tally.kill(f"{name} on the GitLab face", reached=watch.killed)
        stage, edits = ("stage2", 0) if name == "order" else ("stage3", 1)
        with judging.looking_at(state) as platform:
            judging.order_is_whole(platform, state, team, stage, edits=edits)
        if not watch.killed:
            return
