"""Lists that are filtered and watched, and what `status` shows: in terminals and in pipes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Command
from mischief import XGARAGE
from roguery import place

from ground.names import TeamName
from ground.objects.kube_objects import ObjectKey
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.team.teams import add_team
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

TEAM = "wild-watching"
WITHIN_S = 60.0


@pytest.fixture(scope="module")
def entry(platform: Running) -> OrderEntry:
    add_team(platform.platform, TeamName(TEAM), requester="user:default/test")
    return place(platform.platform, "garage", TEAM)


@pytest.mark.parametrize(
    ("options", "is_listed"),
    [
        (["--team", TEAM], True),
        (["--team", TEAM, "--kit", "garage", "--phase", "ready", "--text", "WATCHING"], True),
        (["--team", TEAM, "--failing"], False),
        (["--team", TEAM, "--phase", "Failing", "--phase", "Ended"], False),
        (["--team", "nobody"], False),
        (["--text", "no such text"], False),
    ],
    ids=str,
)
def test_a_list_has_what_its_options_select(
    options: list[str], *, is_listed: bool, orderkit: Command, entry: OrderEntry
) -> None:
    shown = orderkit("list", *options)
    orders = orderkit("list", *options, "--json").json["orders"]

    assert [order["order"] for order in orders] == [entry.order] * is_listed
    assert (entry.order in shown.out) is is_listed
    if is_listed:
        head, row = shown.out.splitlines()
        assert head.split() == ["PHASE", "ORDER", "AGE", "REASON"]
        assert re.fullmatch(rf"Ready   {entry.order}   (moments|\d+ min)", row)
        head, row = orderkit("list", *options, "-o", "wide").out.splitlines()
        assert head.split()[2:] == ["AGE", "TEAM", "KIT", "OWNER", "EXPIRES", "REVISION", "REASON"]
        assert re.search(rf"{TEAM} +garage +mallory +- +[0-9a-f]{{8}}$", row)
        assert orders[0]["owner"] == "user:default/mallory"
    else:
        assert shown.err == (
            "no order matches these filters\nhint:  'orderkit list' without filters shows all\n"
        )


def test_a_misspelt_phase_names_the_nearest(orderkit: Command) -> None:
    done = orderkit("list", "--phase", "faling")

    assert (done.code, done.out) == (2, "")
    assert "--phase: 'faling' is not a phase" in done.err
    assert "did you mean 'Failing'?" in done.err


def test_status_shows_the_view_and_keeps_its_old_fields(
    orderkit: Command, entry: OrderEntry
) -> None:
    shown = orderkit("status", entry.order).out
    told = orderkit("status", entry.order, "--json").json

    assert shown.startswith(f"{entry.order} of team {TEAM}: Ready\n")
    for words in ("parts", "2 of 2 ready", "by user:default/mallory, ", "commit", "delivered"):
        assert words in shown
    assert (told["ready"], told["advice"], told["findings"]) == (True, "", [])
    assert told["xr"]["name"] == entry.order
    assert (told["parts"]["ready"], told["parts"]["total"]) == (2, 2)
    assert {"outputs", "facts", "attention", "pulls", "changes", "values", "owner"} <= set(told)


def test_status_lists_open_pull_requests_with_their_plans(
    orderkit: Command, entry: OrderEntry
) -> None:
    proposed = orderkit("change", entry.order, "stage=stage2", "--pr", "--json").json["pull"]

    shown = orderkit("status", entry.order).out

    assert f"pull #{proposed['number']}" in shown
    assert "plan: " in shown
    assert proposed["url"] in shown


@contextlib.contextmanager
def watching(platform: Running, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Run ``orderkit list --watch`` with pipes."""
    file = platform.embedded.state.folder / "platform.yaml"
    command = [sys.executable, "-m", "orderkit", "list", "--watch", "--platform", str(file)]
    with subprocess.Popen(
        [*command, "--team", TEAM, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Press Ctrl-C; return the exit code and what was said on stderr."""
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=WITHIN_S)
    return process.returncode, err


def pause(platform: Running, entry: OrderEntry, value: str | None) -> None:
    patch = {"metadata": {"annotations": {"crossplane.io/paused": value}}}
    platform.platform.cluster.patch(ObjectKey(XGARAGE, entry.order), patch, owner="kubectl")


def test_watched_orders_are_an_object_a_line_and_ctrl_c_ends_them_cleanly(
    platform: Running, entry: OrderEntry
) -> None:
    def next_phase(process: subprocess.Popen[str]) -> tuple[str, str]:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        assert (told["schema"], told["order"]) == ("orderkit.order-change/v1", entry.order)
        return told["change"], told["phase"]

    with watching(platform, "--json") as process:
        phases = [next_phase(process)]
        for value in ("true", None):
            pause(platform, entry, value)
            phases.append(next_phase(process))
        assert ended(process) == (0, "")

    assert phases == [("added", "Ready"), ("changed", "Attention"), ("changed", "Ready")]


def test_watched_orders_are_rows_in_a_pipe_and_end_with_their_reader(
    platform: Running, entry: OrderEntry
) -> None:
    with watching(platform) as process:
        assert process.stdout is not None
        head, row = process.stdout.readline(), process.stdout.readline()
        process.stdout.close()
        pause(platform, entry, "true")
        try:
            code = process.wait(WITHIN_S)
        finally:
            pause(platform, entry, None)

    assert head.startswith("PHASE   ORDER")
    assert row.startswith(f"Ready   {entry.order}")
    assert "\x1b" not in head + row
    assert code == 0


@pytest.mark.usefixtures("entry")
def test_a_terminal_draws_the_list_on_a_screen_of_its_own(platform: Running) -> None:
    file = platform.embedded.state.folder / "platform.yaml"
    command = [sys.executable, "-m", "orderkit", "list", "--watch", "--platform", str(file)]
    command += ["--team", TEAM]  # a screen has no room for the orders of other tests
    leader, follower = pty.openpty()
    variables = {**os.environ, "TERM": "xterm", "COLUMNS": "40"}
    variables.pop("NO_COLOR", None)
    process = subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, env=variables,
        start_new_session=True,
    )  # fmt: skip
    os.close(follower)
    text = b""
    try:
        while b"\x1b[32mReady" not in text:
            text += os.read(leader, 65536)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the end of a terminal
            while chunk := os.read(leader, 65536):
                text += chunk
        code = process.wait(WITHIN_S)
    finally:
        process.kill()
        os.close(leader)

    assert code == 0
    assert text.startswith(b"\x1b[?1049h")
    assert text.endswith(b"\x1b[?1049l")
    row = rb"\x1b\[32mReady\x1b\[0m   garage-wild-watching   (moments|\d+ min)"
    assert re.search(row, text), "a table at 40 columns"
    assert b"Traceback" not in text


def test_a_platform_that_goes_away_for_a_while_is_watched_again(tmp_path: Path) -> None:
    request = EmbeddedRunRequest(tmp_path / "state", reference_pack(), Ports(0, 0, 0, 0), (TEAM,))
    with contextlib.ExitStack() as undo:
        with running(request, on_step=lambda *_: None) as platform:
            entry = place(platform.platform, "garage", TEAM)
            process = undo.enter_context(watching(platform, "--json"))
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["change"] == "added"
        with running(request, on_step=lambda *_: None) as platform:
            pause(platform, entry, "true")
            told = json.loads(process.stdout.readline())
            while told["phase"] != "Attention":
                told = json.loads(process.stdout.readline())
            assert ended(process) == (0, "")
