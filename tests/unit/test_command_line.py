"""The command line's root: its help, its exit codes, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from orderkit.cli.main import root, run

HEAVY = (
    *("requests", "kubernetes", "pygit2", "starlette", "uvicorn", "jinja2", "jsonschema", "yaml"),
    *("cel_expr_python", "google"),
)


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from orderkit.cli.main import run; run(['--help']);"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stderr.strip() == "[]"


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


NO_RESULT = {
    "up": "runs the embedded platform until it is stopped",
    "serve": "runs the HTTP service until it is stopped",
    "function": "runs the gRPC server until it is stopped",
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


def test_every_command_with_a_result_takes_json() -> None:
    without = {
        name
        for name, command in COMMANDS.items()
        if not any("--json" in option.opts for option in command.params)
    }

    assert without == set(NO_RESULT)
    assert "kit check" in COMMANDS, "commands of groups are looked at, too"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--version"], 0), (["nonsense"], 2), (["order"], 2), (["up", "--forge-port", "x"], 2)],
)
def test_exit_codes_of_usage(
    arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == code
    capsys.readouterr()
