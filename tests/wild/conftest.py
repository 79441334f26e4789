"""An embedded platform with the reference pack and team ae86, for every test of the folder."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import Command, in_process
from faultypushes import pushed_pack

from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def whole_pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pushed_pack(tmp_path_factory.mktemp("pack") / "pack")


@pytest.fixture(scope="package")
def platform(tmp_path_factory: pytest.TempPathFactory, whole_pack: Path) -> Iterator[Running]:
    """Run the reference pack with team ae86, one platform for all the modules."""
    state = tmp_path_factory.mktemp("wild") / "state"
    request = EmbeddedRunRequest(state, whole_pack, Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as started:
        yield started


@pytest.fixture
def orderkit(platform: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``orderkit ARGUMENTS`` against the shared platform."""
    return in_process(platform.embedded.state.folder / "platform.yaml", capsys)


@pytest.fixture(scope="session")
def new_name() -> Callable[[], str]:
    """Return names of orders that no other test uses."""
    return lambda: f"wild-{next(_numbers):03d}"
