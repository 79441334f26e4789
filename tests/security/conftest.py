"""An embedded platform that the attacks share, its forge's users, and commands against it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from commands import Command, in_process
from forgeusers import ForgeUser, embedded_admin, new_user

from orderkit.adapters.embedded.platform import Ports
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.cli.serving.embedded_platform import EmbeddedRunRequest, Running, running

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run the reference pack with team ae86."""
    state = tmp_path_factory.mktemp("attacked") / "state"
    request = EmbeddedRunRequest(state, reference_pack(), Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as started:
        yield started


@pytest.fixture
def orderkit(platform: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``orderkit ARGUMENTS`` against the shared platform."""
    return in_process(platform.embedded.state.folder / "platform.yaml", capsys)


@pytest.fixture(scope="package")
def forge_admin(platform: Running) -> ForgeUser:
    """Return the forge's site admin, who is also the platform's account."""
    return embedded_admin(platform.settings.forge.url, platform.embedded.state.folder)


@pytest.fixture
def stranger(forge_admin: ForgeUser) -> ForgeUser:
    return new_user(forge_admin)


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Return names that no other test uses."""
    return lambda: f"crew-{next(_numbers):03d}"
