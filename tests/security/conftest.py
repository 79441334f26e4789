"""
Embedded platforms: one bootstrapped with its forge's users, and one without a bootstrap.

The second runs its service as ``orderkit up`` does.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pytest
from commands import Command, in_process
from forgeusers import ForgeUser, embedded_admin, new_user

from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.adapters.state_folder import PLATFORM_FILE
from orderkit.cli.connecting import SECRET_HEADER, connect, service_options
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer
from orderkit_standins.platform import EmbeddedPlatform, Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

Rename = Callable[[ForgeUser, str], ForgeUser]
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class EmbeddedServers:
    """The addresses of the four servers, and headers with which each lets its caller in."""

    urls: Mapping[str, str]
    credentials: Mapping[str, Mapping[str, str]]
    certificate_authority: str
    """The file that proves the Kubernetes API."""
    platform_file: str


@pytest.fixture(scope="session")
def embedded_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServers]:
    state = tmp_path_factory.mktemp("servers") / "state"
    platform = EmbeddedPlatform(
        state, pack=reference_pack(), ports=Ports(0, 0, 0, 0), teams=("ae86",)
    )
    settings = platform.start()
    options = service_options(settings, audit=None)
    service = HttpServer(service_app(connect(settings), options), platform.service_socket)
    service.start()
    try:
        token = platform.state.credential
        yield EmbeddedServers(
            {name: platform.url(name) for name in ("forge", "cluster", "portal", "service")},
            {
                "forge": {"Authorization": f"token {token('forge-token')}"},
                "cluster": {"Authorization": f"Bearer {token('cluster-token')}"},
                "portal": {"Authorization": f"Bearer {token('portal-token')}"},
                "service": {SECRET_HEADER: token("service-token")},
            },
            str(state / "tls" / "ca.crt"),
            str(state / PLATFORM_FILE),
        )
    finally:
        service.stop()
        platform.stop()


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


@pytest.fixture
def rename(platform: Running) -> Rename:
    """Give a user another login. The embedded forge has no way to, so its store is changed."""

    def change(user: ForgeUser, login: str) -> ForgeUser:
        with sqlite3.connect(platform.embedded.state.part("forge") / "forge.sqlite") as store:
            sql = "UPDATE accounts SET name = ?, lower_name = ? WHERE name = ?"
            assert store.execute(sql, (login, login.lower(), user.login)).rowcount == 1
        return replace(user, login=login)

    return change
