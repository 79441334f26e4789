"""A platform with orders of two teams, its console, and people who look at it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pytest
from bays import TEAM, Bay, new_bay
from changingpack import changing_pack
from consolebrowser import Browser
from openid import AUDIENCE, CLIENT_SECRET
from platformsettings import settings_with

from ground.shapes import changed
from orderkit.cli.connecting import connect, service_options, token
from orderkit.core.platform.service_access import AccessSettings, SignInSettings
from orderkit.ports.forge import Forge
from orderkit.ports.requesters import Requester
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

LEAD = Requester("user:default/keiichi", "a one-time link", frozenset({f"group:default/{TEAM}"}))
STRANGER = Requester("user:default/bunta", "a one-time link", frozenset({"group:default/rx7"}))
PLATFORM = Requester("user:default/ryosuke", "a one-time link", everywhere=True)


@dataclass(frozen=True)
class Site:
    """The console of one platform."""

    running: Running

    @property
    def url(self) -> str:
        return self.running.settings.service.url

    @property
    def secret(self) -> str:
        return token(self.running.settings.service)

    def browser(self, person: Requester | None = None) -> Browser:
        browser = Browser(self.url)
        if person is not None:
            assert browser.sign_in(self.secret, person).status == 200
        return browser


@contextmanager
def serving(
    site: Site, *, portal_url: str = "", forge: Forge | None = None, **access: Any
) -> Iterator[str]:
    """
    Serve the console once more, as off the loopback: the server admits every host's pages.

    Args:
        forge: What it reads instead of the platform's own forge.
    """
    settings = site.running.settings
    sock = bind("service", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    settings = settings_with(
        settings,
        service__url=url,
        portal__url=portal_url or settings.portal.url,
        service__access=changed(settings.service.access, **access),
    )
    options = service_options(settings, audit=None, links=True)
    platform = connect(settings)
    platform = replace(platform, forge=forge or platform.forge)
    server = HttpServer(service_app(platform, options), sock, hosts=None)
    server.start()
    try:
        yield url
    finally:
        server.stop()


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("console")
    (folder / "docs").mkdir()
    (folder / "docs" / "index.html").write_text("<title>The documentation</title>")
    request = EmbeddedRunRequest(
        folder / "state", changing_pack(folder / "pack"), Ports(0, 0, 0, 0), ("ae86", "rx7"),
        docs=folder / "docs",
    )  # fmt: skip
    with running(request, on_step=lambda *_: None) as platform:
        yield Site(platform)


@pytest.fixture(scope="package")
def quiet_bay(site: Site) -> Bay:
    """An order of team `TEAM` that many tests look at and none may change."""
    return new_bay(site.running.platform)


@pytest.fixture
def bay(site: Site) -> Bay:
    """An order of team `TEAM` of its own."""
    return new_bay(site.running.platform)


@pytest.fixture(scope="package")
def lead(site: Site) -> Browser:
    """Somebody of the orders' team."""
    return site.browser(LEAD)


@pytest.fixture(scope="package")
def stranger(site: Site) -> Browser:
    """Somebody of another team."""
    return site.browser(STRANGER)


@pytest.fixture(scope="package")
def engineer(site: Site) -> Browser:
    """Somebody who may act for every team."""
    return site.browser(PLATFORM)


class IdentityIssuer(Protocol):
    """A provider that is served."""

    issuer: str


@contextmanager
def console_of(site: Site, provider: IdentityIssuer, folder: Path, **more: Any) -> Iterator[str]:
    """Serve a console whose people sign in with a provider; return its address."""
    secret = folder / "client-secret"
    secret.write_text(f"{CLIENT_SECRET}\n")
    sock = bind("service", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    settings = site.running.settings
    sign_in = SignInSettings(provider.issuer, AUDIENCE, Path(secret), **more)
    settings = settings_with(
        settings,
        service__url=url,
        service__access=AccessSettings(("group:default/platform",), sign_in=sign_in),
    )
    server = HttpServer(service_app(connect(settings), service_options(settings, audit=None)), sock)
    server.start()
    try:
        yield url
    finally:
        server.stop()
