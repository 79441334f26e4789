"""A bootstrapped embedded platform that this folder shares, and a way to run commands."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import requests
from commands import Command, in_process

from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.flows.team.teams import add_team
from orderkit_standins.platform import BOT, Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

ANY_PORT = Ports(0, 0, 0, 0)


@pytest.fixture(scope="package")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run the reference pack with team ae86."""
    state = tmp_path_factory.mktemp("platform") / "state"
    request = EmbeddedRunRequest(state, reference_pack(), ANY_PORT, ("ae86",), twins=("helm",))
    with running(request, on_step=lambda *_: None) as found:
        yield found


@pytest.fixture
def orderkit(platform: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``orderkit ARGUMENTS`` against the shared platform."""
    return in_process(platform.embedded.state.folder / "platform.yaml", capsys)


@pytest.fixture(scope="package")
def weak_user(platform: Running) -> tuple[str, str]:
    """A forge user who owns nothing, with a password."""
    name, password = "newcomer", "newcomer-Pw1"
    answer = requests.post(
        f"{platform.settings.forge.url}/api/v1/admin/users",
        auth=(BOT, platform.embedded.state.credential("forge-password")),
        json={"username": name, "password": password},
        timeout=10,
    )
    assert answer.status_code == 201, answer.text
    return name, password


_numbers = itertools.count(1)


@pytest.fixture
def team(platform: Running) -> str:
    """A team that nobody else uses."""
    name = f"team-{next(_numbers):03d}"
    add_team(platform.platform, name, requester="user:default/test")
    return name
