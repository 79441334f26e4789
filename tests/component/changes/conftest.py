"""A platform whose garage has fields to change, and orders on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import pytest
from bays import Bay, new_bay
from changingpack import changing_pack
from commands import Command, in_process
from faultproxy import Plan, open_proxy
from forgehands import client_at

from orderkit.adapters.forges import answers
from orderkit.flows.platform import Platform
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

Through = Callable[[Plan], AbstractContextManager[Platform]]
"""Gives the platform as a client sees it through a proxy that follows a plan."""


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("changes")
    request = EmbeddedRunRequest(
        folder / "state", changing_pack(folder / "pack"), Ports(0, 0, 0, 0), ()
    )
    with running(request, on_step=lambda *_: None) as found:
        yield found


@pytest.fixture
def platform(site: Running) -> Platform:
    return site.platform


@pytest.fixture
def orderkit(site: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``orderkit ARGUMENTS`` against the platform."""
    return in_process(site.embedded.state.folder / "platform.yaml", capsys)


@pytest.fixture
def bay(platform: Platform) -> Bay:
    """An order of its own."""
    return new_bay(platform)


@pytest.fixture(scope="package")
def quiet_bay(site: Running) -> Bay:
    """An order that many tests look at and none may change."""
    return new_bay(site.platform)


@pytest.fixture
def through(site: Running, monkeypatch: pytest.MonkeyPatch) -> Through:
    """
    Return the platform as a client sees it through a proxy that follows a plan.

    The client waits long: a rival's whole change may happen before its answer comes.
    """
    monkeypatch.setattr(answers, "PAUSE_FIRST_S", 0.001)
    monkeypatch.setattr(answers, "PAUSE_MAX_S", 0.01)

    @contextmanager
    def opened(plan: Plan) -> Iterator[Platform]:
        with (
            open_proxy(site.settings.forge.url) as proxy,
            client_at(
                proxy.url, site.settings.forge, site.platform.signatures, read_timeout_s=120
            ) as forge,
        ):
            proxy.plan = plan
            yield replace(site.platform, forge=forge)

    return opened
