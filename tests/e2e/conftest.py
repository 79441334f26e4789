"""
An embedded platform, and a real Backstage with its front end on it, as processes.

Runs with ``--e2e`` only; ``scripts/backstage.sh --front-end`` installs what is needed.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Command, as_process
from daemons import Daemon
from published import Up
from realbackstage import Backstage, Wanted, serving
from scaffolderapi import Scaffolder
from tests.lab.binaries import keep_log

from orderkit.cli.connecting import connect, load_settings

FOLDER = Path(__file__).parent
_TIMEOUT_S = 300
_UP_S = 90.0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted = config.getoption("--e2e")
    for item in items:
        if not item.path.is_relative_to(FOLDER):
            continue
        item.add_marker(pytest.mark.timeout(_TIMEOUT_S), append=False)
        if not wanted:
            item.add_marker(pytest.mark.skip(reason="a whole journey: needs --e2e"))


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("up")
    state = folder / "state"
    ports = [f"--{part}-port=0" for part in ("forge", "cluster", "portal", "service")]
    command = [sys.executable, "-m", "orderkit", "up", "--state", str(state), *ports]
    with Daemon("orderkit up", command, log=folder / "up.log") as daemon:
        daemon.wait_until(lambda: "Stop with ctrl-C" in daemon.text(), timeout_s=_UP_S)
        settings = load_settings(str(state / "platform.yaml"))
        yield Up(state, settings, connect(settings))


@pytest.fixture(scope="session")
def backstage(up: Up) -> Iterator[Backstage]:
    wanted = Wanted(up.settings, up.state / "backstage", front_end=True)
    try:
        with serving(wanted) as found:
            yield found
    finally:
        keep_log(wanted.folder / "backstage.log")


@pytest.fixture(scope="session")
def scaffolder(backstage: Backstage) -> Iterator[Scaffolder]:
    found = Scaffolder(backstage.url)
    yield found
    found.close()


@pytest.fixture(scope="session")
def orderkit(up: Up) -> Command:
    """Run ``orderkit ARGUMENTS`` as a process."""
    return as_process(up.state / "platform.yaml")


@pytest.fixture(scope="session")
def portal_file(up: Up, backstage: Backstage) -> Path:
    """A platform.yaml whose portal is the real Backstage: its catalog, not the embedded one."""
    portal = replace(up.settings.portal, url=backstage.url)
    path = up.state / "with-backstage.yaml"
    path.write_text(replace(up.settings, portal=portal).to_yaml())
    return path


_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def new_team(orderkit: Command) -> Callable[[], str]:
    """Add a team that nobody else uses."""

    def add() -> str:
        team = f"crew-{next(_numbers):03d}"
        done = orderkit("team", "add", team)
        assert done.code == 0, done.err
        return team

    return add
