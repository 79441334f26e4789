"""An embedded platform with its service, as ``orderkit up`` runs it, without a bootstrap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from orderkit.adapters.embedded.platform import EmbeddedPlatform, Ports
from orderkit.adapters.embedded.serving import HttpServer
from orderkit.adapters.embedded.state import PLATFORM_FILE
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.cli.connecting import SECRET_HEADER, connect, service_options
from orderkit.web.service import service_app


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
