"""``make portal``: one command runs a Backstage with Orderkit's packages, and the console."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from lab.daemons import Daemon
from lab.loopback import free_ports
from lab.realbackstage import GUEST
from ordered import TEMPLATE
from published import Up, read_kit
from realbrowser import guest_browser
from scaffolderapi import Scaffolder

from orderkit.cli.commands.console import console_link
from orderkit.cli.connecting import connect, load_settings

_UP_S = 300.0
TEAM = "ae86"
ORDER = f"garage-{TEAM}"


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("portal") / "state"


@pytest.fixture(scope="module")
def printed(state: Path) -> Iterator[str]:
    """What the command prints once it serves."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "lab.portal", "--front-end"]
    command += [f"--state={state}", f"--port={port}"]
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


def test_who_orders_is_proved(printed: str, state: Path) -> None:
    settings = load_settings(str(state / "platform.yaml"))

    assert _address(printed, "portal") == f"{settings.portal.url}/create"
    assert settings.portal.signed_by == settings.portal.url
    assert "proved by its signature" in printed


def test_actions_catalog_card_and_console_agree(
    printed: str, state: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The module orders, the provider makes the entity, plugin and console show the state."""
    assert printed
    settings = load_settings(str(state / "platform.yaml"))
    platform = connect(settings)
    kit = read_kit(Up(state, settings, platform), TEMPLATE, {"team_name": TEAM, "stage": "stage2"})
    scaffolder = Scaffolder(settings.portal.url)
    done = scaffolder.run(TEMPLATE, kit.values, timeout_s=_UP_S)
    scaffolder.close()
    assert done.status == "completed", done.log
    assert f"{ORDER} is Ready." in done.log
    assert not [place for place in platform.catalog.locations() if ORDER in place.target]

    with guest_browser(settings.portal.url, tmp_path_factory.mktemp("chromium")) as browser:
        browser.find(f"/catalog/default/component/{ORDER}", "● Ready")
    with requests.Session() as session:
        session.trust_env = False
        session.get(console_link(settings, GUEST), timeout=60)
        page = session.get(f"{settings.service_address}/orders/{ORDER}", timeout=60)

    assert "Everything in Git is delivered and works" in page.text
