"""``make portal``: one command runs a Backstage on a platform, with the console beside it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from lab.daemons import Daemon
from lab.loopback import free_ports

from orderkit.cli.connecting import load_settings

_UP_S = 300.0


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("portal") / "state"


@pytest.fixture(scope="module")
def printed(state: Path) -> Iterator[str]:
    """What the command prints once it serves."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "lab.portal", f"--state={state}", f"--port={port}"]
    with Daemon("portal", command, log=state.with_name("portal.log")) as daemon:
        daemon.wait_until(lambda: "Stop with ctrl-C" in daemon.text(), timeout_s=_UP_S)
        yield daemon.text()


def _address(printed: str, name: str) -> str:
    found = re.search(rf"^  {name} +(http\S+)", printed, re.MULTILINE)
    assert found, printed
    return found[1]


def test_the_printed_link_opens_the_console(printed: str) -> None:
    with requests.Session() as session:
        session.trust_env = False
        page = session.get(_address(printed, "console"), timeout=60)
        again = session.get(page.url, timeout=60)

    assert (page.status_code, again.status_code) == (200, 200)
    assert "Signed in as" in page.text
    assert "guest" in page.text


def test_orders_are_registered_in_this_backstages_catalog(printed: str, state: Path) -> None:
    settings = load_settings(str(state / "platform.yaml"))

    assert _address(printed, "portal") == f"{settings.portal.url}/api"
    assert settings.signed_by == settings.portal.url
    assert "proved by its signature" in printed
