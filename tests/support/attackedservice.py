"""A service on a port of its own whose settings an attack decides, and what its log says."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from platformsettings import settings_with

from orderkit.cli.connecting import SECRET_HEADER, connect, service_options, token
from orderkit.core.platform.service_access import AccessSettings
from orderkit.web.auditing import AuditLog
from orderkit.web.client_time_limits import CLIENT_TIME_LIMITS, ClientTimeLimits
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.serve_platform import Running

TIMEOUT_S = 60
"""A client's patience: far longer than any answer takes, so it decides nothing by chance."""


@dataclass(frozen=True)
class AttackedService:
    """A running service."""

    url: str
    port: int
    secret: str
    audit: Path

    def send(self, method: str, path: str, **options: Any) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            return session.request(method, f"{self.url}{path}", timeout=TIMEOUT_S, **options)

    def as_portal(self, method: str, path: str, **options: Any) -> requests.Response:
        """Send with the portal's secret."""
        return self.send(method, path, headers={SECRET_HEADER: self.secret}, **options)

    def connection(self, data: bytes) -> socket.socket:
        """Open a connection and send these bytes."""
        client = socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_S)
        client.sendall(data)
        return client

    def audit_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.audit.read_text().splitlines()]


@contextlib.contextmanager
def attacked_service(
    platform: Running,
    folder: Path,
    access: AccessSettings,
    *,
    time_limits: ClientTimeLimits = CLIENT_TIME_LIMITS,
    signed_by: str | None = None,
) -> Iterator[AttackedService]:
    """Serve the platform once more, with these settings."""
    settings = settings_with(
        platform.settings, service__access=access, portal__signed_by=signed_by or ""
    )
    audit = folder / "audit.jsonl"
    app = service_app(connect(settings), service_options(settings, audit=AuditLog(audit)))
    server = HttpServer(app, bind("service", 0), time_limits=time_limits)
    server.start()
    try:
        yield AttackedService(server.url, server.port, token(settings.service), audit)
    finally:
        server.stop()
