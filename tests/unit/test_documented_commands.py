"""Every ``orderkit`` command that a page shows exists, with the options that the page gives it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from orderkit.cli.root import root

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "packs/*/**/*.md",
        "*/README.md",
        "tests/kits/*.md",
    )
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"
)
_BLOCK = re.compile(r"```(?:sh|shell|text)?\n(.*?)```|((?:^ {4}\S.*\n)+)", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\s*(?:\$ )?orderkit (?P<words>\S.*)$")


def documented() -> Iterator[tuple[str, str]]:
    """Yield page and command of each line that begins with ``orderkit`` in a block."""
    for page in PAGES:
        for block in _BLOCK.findall(page.read_text()):
            text = "".join(block).replace("\\\n", " ")
            for line in text.splitlines():
                if found := _COMMAND.match(line):
                    yield str(page.relative_to(ROOT)), found["words"]


COMMANDS = list(documented())


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 100


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=lambda value: value[:60])
def test_the_command_exists_with_its_options(page: str, words: str) -> None:
    command: click.Command | None = root
    rest = shlex.split(words, comments=True)
    context = click.Context(root)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        _, command, rest = command.resolve_command(context, rest)
    assert command is not None, page
    known = {
        name
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    known |= {"--help", "--version"}
    given = {word.split("=")[0] for word in rest if word.startswith("--")}
    assert given <= known, page
