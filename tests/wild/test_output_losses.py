"""What stdout cannot take never makes a command fail that has written already."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TextIO

import pytest
from roguery import place

from ground.names import RepoId, TeamName
from orderkit.cli.main import main
from orderkit.flows.team.teams import add_team
from orderkit_standins.serve_platform import Running

TEAM = "wild-outputs"
Run = Callable[..., tuple[int, str]]
"""Runs the whole program on a stdout; returns its exit code and stderr."""


@pytest.fixture(scope="module")
def order(platform: Running) -> str:
    """Return an order whose stage changes by pull requests."""
    add_team(platform.platform, TeamName(TEAM), requester="user:default/test")
    return place(platform.platform, "garage", TEAM).order


@pytest.fixture
def program(platform: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    def run(stdout: TextIO | None, *arguments: str) -> tuple[int, str]:
        file = str(platform.embedded.state.folder / "platform.yaml")
        errors = tmp_path / "stderr"
        with errors.open("w", encoding="utf-8") as stderr:
            monkeypatch.setattr(sys, "argv", ["orderkit", *arguments, "--platform", file])
            monkeypatch.setattr(sys, "stdout", stdout)
            monkeypatch.setattr(sys, "stderr", stderr)
            with pytest.raises(SystemExit) as ended:
                main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, errors.read_text(encoding="utf-8")

    return run


def proposes(platform: Running, order: str, stage: str) -> bool:
    """Say whether a pull request of the order sets a stage."""
    forge, repo = platform.platform.forge, RepoId(TEAM, order)
    files = [
        forge.read(repo, PurePosixPath("manifests", "xgarage.yaml"), pull.head)
        for pull in forge.pulls(repo, base="main")
    ]
    return any(file is not None and stage in file.text for file in files)


def test_a_change_in_another_encoding_is_done_and_told(
    platform: Running, program: Run, order: str, tmp_path: Path
) -> None:
    """The plan of a change has an arrow that ISO-8859-1 lacks."""
    shown = tmp_path / "shown"
    with shown.open("w", encoding="iso-8859-1") as stdout:
        code, err = program(stdout, "change", order, "stage=stage2")

    assert code == 0, err
    assert rb"stage1 \u2192 stage2" in shown.read_bytes()
    assert proposes(platform, order, "stage2")


def test_json_is_json_in_every_encoding(program: Run, order: str, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    with shown.open("w", encoding="iso-8859-1") as stdout:
        code, err = program(stdout, "trace", order, "--json")

    assert code == 0, err
    assert shown.read_bytes().isascii()
    assert json.loads(shown.read_bytes())["order"] == order


def test_a_reader_that_leaves_does_not_stop_a_change(
    platform: Running, program: Run, order: str
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as stdout:
        assert program(stdout, "change", order, "stage=stage3") == (0, "")

    assert proposes(platform, order, "stage3")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("change", "ORDER", "stage=stage2"), 0, "the command itself is over, with exit code 0"),
        (("status", "ORDER"), 1, "the output is incomplete: No space left on device"),
        (("status", "garage-nobody"), 1, "no order 'garage-nobody' in the ledger"),
    ],
    ids=["a change is done", "a report has failed", "an error stays one"],
)
def test_a_full_disk_is_told_after_the_command_is_done(
    program: Run, order: str, arguments: tuple[str, ...], code: int, words: str
) -> None:
    requested = [order if word == "ORDER" else word for word in arguments]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ended, err = program(full, *requested)

    assert (ended, words in err) == (code, True), err


def test_without_any_stdout_a_command_works(program: Run, order: str) -> None:
    assert program(None, "status", order) == (0, "")
