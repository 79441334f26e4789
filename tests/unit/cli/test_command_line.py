"""The command line's root: its help, its exit codes, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from orderkit.cli.command_list import EXTRA_OF, help_text
from orderkit.cli.main import run
from orderkit.cli.root import root

HEAVY = (
    *("requests", "kubernetes", "pygit2", "starlette", "uvicorn", "jinja2", "jsonschema", "yaml"),
    *("cel_expr_python", "google"),
    *("pathlib", "dataclasses"),
)


NO_RESULT = {
    "up": "runs the embedded platform until it is stopped",
    "serve": "runs the HTTP service until it is stopped",
    "mcp": "serves an agent until its program ends it",
    "campaign carry": "is what a Job runs; its exit code and 'campaign status' say the result",
    "campaign work": "is what a Job runs; its exit code and 'campaign status' say the result",
    "stations": "runs the gRPC server until it is stopped",
    "schema": "prints a JSON Schema, and nothing else",
}
"""Commands without --json, each with the reason why it has no result to print."""


def every_command(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield " ".join(path), command
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            assert child is not None
            yield from every_command(child, (*path, name))


COMMANDS = dict(every_command(root))
LAYERS = ("orderkit.flows", "orderkit.adapters", "orderkit.ports", "orderkit.web")


def imported_by(*command_lines: list[str]) -> set[str]:
    """Return the modules that command lines import beyond those of bare Python."""
    script = (
        "import sys; before = set(sys.modules); from orderkit.cli.main import run;"
        f"[run(line) for line in {command_lines!r}];"
        "print(*set(sys.modules) - before, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


@pytest.mark.parametrize("option", ["--help", "-h", "--version"])
def test_help_and_version_import_not_even_click(option: str) -> None:
    imported = imported_by([option])

    assert "orderkit.cli.main" in imported
    assert not imported & {*HEAVY, "click", "typing", "re"}


def test_help_of_commands_imports_little_beside_click() -> None:
    """All in one process, because a process each takes seconds: the sum of them is as light."""
    lines = [[*name.split(), "--help"] for name in COMMANDS]
    own = imported_by(*(line for line in lines if line[0] not in EXTRA_OF))
    of_extras = imported_by(*(line for line in lines if line[0] in EXTRA_OF))

    assert "click" in own
    assert not own & {*HEAVY}
    assert not of_extras & {*HEAVY} - {"pathlib"}  # by which Python finds entry points
    assert not any(module.startswith(LAYERS) for module in own | of_extras)


@pytest.mark.parametrize("columns", ["80", "200"])
def test_the_quick_help_is_what_click_prints(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    root.main(["--help"], prog_name="orderkit", standalone_mode=False)

    assert help_text() == capsys.readouterr().out


def test_the_quick_version_is_what_click_prints(capsys: pytest.CaptureFixture[str]) -> None:
    root.main(["--version"], prog_name="orderkit", standalone_mode=False)
    told = capsys.readouterr().out
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == told


def test_a_reader_that_leaves_early_is_no_error() -> None:
    """The pipe is closed before anything is written."""
    script = "sleep 0.5; exec orderkit --help"
    with subprocess.Popen(
        ["sh", "-c", f"PATH={Path(sys.executable).parent}:$PATH; {script}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_narrow_terminal_gets_help_that_click_wraps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert help_text() is None

    assert run(["--help"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) < 60


@pytest.mark.parametrize("name", root.list_commands(click.Context(root)))
def test_each_command_has_an_example_in_its_help(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = root.get_command(click.Context(root), name)
    assert found is not None
    commands = found.commands.values() if isinstance(found, click.Group) else [found]

    for command in commands:
        assert f"orderkit {name}" in (command.help or ""), f"{name}: no example"
    assert run([name, "--help"]) == 0
    assert "Usage: orderkit" in capsys.readouterr().out


def test_every_command_with_a_result_takes_json() -> None:
    without = {
        name
        for name, command in COMMANDS.items()
        if not any("--json" in option.opts for option in command.params)
    }

    assert without == set(NO_RESULT)
    assert "kit check" in COMMANDS, "commands of groups are looked at, too"


def test_a_former_name_of_a_command_still_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["function", "--help"]) == 0
    assert "orderkit stations --pack ." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--version"], 0), (["nonsense"], 2), (["order"], 2), (["up", "--forge-port", "x"], 2)],
)
def test_exit_codes_of_usage(
    arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == code
    capsys.readouterr()
