"""Commands on both faces, killed at their writes and repeated: nothing is lost or doubled."""

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

SHORT, FULL = 1, 100
"""Writes at which each command is killed at most."""
COMMANDS = ("team", "order", "change", "destroy")
_numbers = itertools.count(1)
Served = tuple[str, Lab, Path]


@pytest.fixture(scope="module", params=["github", "gitlab"])
def served_face(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp(f"crash-{request.param}")
    lab = Lab(folder, forge=request.param)
    lab.must_be_up(folder / "state")
    yield request.param, lab, folder / "state"
    lab.close()


def order(team: str) -> tuple[str, ...]:
    return ("order", "garage", f"team_name={team}", "stage=stage2")


def arguments_of(command: str, team: str) -> tuple[str, ...]:
    return {
        "team": ("team", "add", team),
        "order": order(team),
        "change": ("change", order_of(team), "stage=stage3", "--operation", f"op-{team}"),
        "destroy": ("destroy", "--yes", order_of(team)),
    }[command]


def prepare(lab: Lab, state: Path, command: str) -> str:
    """Return a team for which the command can be done."""
    team = f"crash-{next(_numbers)}"
    if command != "team":
        with judging.looking_at(state) as platform:
            add_team(platform, team, requester="user:default/test")
    if command in ("change", "destroy"):
        lab.must_do(state, *order(team))
    return team


def judge(state: Path, command: str, team: str) -> None:
    with judging.looking_at(state) as platform:
        if command == "team":
            judging.team_is_whole(platform, state, team)
        elif command == "destroy":
            judging.order_is_gone(platform, state, team, survivor="archive")
        else:
            stage, edits = ("stage2", 0) if command == "order" else ("stage3", 1)
            judging.order_is_whole(platform, state, team, stage, edits=edits)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_killed_at_any_write_is_finished_by_repeating_it(
    served_face: Served, command: str, chances: Chances, tally: Tally
) -> None:
    face, lab, state = served_face
    for at in range(1, chances.count(SHORT, FULL) + 1):
        team = prepare(lab, state, command)
        arguments = arguments_of(command, team)

        watch = lab.killed_at(state, arguments, at * 2, "after")
        lab.must_do(state, *arguments)

        tally.kill(f"{command} on the {face} face", reached=watch.killed)
        judge(state, command, team)
        if not watch.killed:
            return
