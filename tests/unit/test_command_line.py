"""The command line's root: its help, its exit codes, and what it costs."""

from __future__ import annotations

import subprocess
import sys

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


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--version"], 0), (["nonsense"], 2), (["order"], 2), (["up", "--forge-port", "x"], 2)],
)
def test_exit_codes_of_usage(
    arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == code
    capsys.readouterr()
