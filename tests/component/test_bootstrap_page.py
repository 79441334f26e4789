"""docs/bootstrap.md: its commands exist with these options, its examples can be read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from orderkit.cli.connecting import load_settings
from orderkit.cli.root import root
from orderkit.core.platform import idpbuilder
from orderkit.core.platform.installation import Target

HERE = Path(__file__).parents[2]
PAGE = HERE / "docs" / "bootstrap.md"
EXAMPLES = sorted((HERE / "bootstrap").glob("*/*.yaml"))
_BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def commands() -> list[list[str]]:
    """Return every ``orderkit …`` line of the page's shell blocks, as words."""
    lines = [line for block in _BLOCK.findall(PAGE.read_text()) for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("orderkit ")]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_each_command_is_there_with_its_options(words: list[str]) -> None:
    command: click.Command | None = root
    rest = list(words)
    context = click.Context(root)
    while isinstance(command, click.Group) and rest:
        command = command.get_command(context, rest.pop(0))
    assert command is not None
    known = {name for parameter in command.params for name in parameter.opts}
    assert {word for word in rest if word.startswith("--")} <= known


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_each_example_can_be_read(file: Path) -> None:
    found = load_settings(str(file))

    assert found.installation.target is Target(file.parent.name)
    assert str(found.kubeconfig) == str(Path.home() / ".kube" / "config")
    if found.installation.target is Target.IDPBUILDER:
        assert idpbuilder.cluster_name(found.pack) == "localdev"
        where = idpbuilder.addresses(found.forge.url)
        assert where.path_routing is (file.name == "platform.yaml")
