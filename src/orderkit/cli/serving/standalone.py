"""Run the service alone, against a platform that is somewhere else: ``orderkit serve``."""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from orderkit.cli.connecting import connect, load_settings, service_options, settings_path
from orderkit.core.platform.mounted_settings import named_files
from orderkit.core.platform.settings import PlatformSettings
from orderkit.web.auditing import AuditLog
from orderkit.web.service import service_app
from orderkit.web.serving import GRACE_S, LOOPBACK_NAMES, HttpServer, RenewedApp, bind

if TYPE_CHECKING:
    from starlette.types import ASGIApp


_FINISH_S = 30.0
"""How long requests may take to end once the process was asked to end for another one."""


@dataclass(frozen=True, slots=True)
class Tls:
    """A certificate with its chain, and its private key."""

    server: Path
    key: Path

    @classmethod
    def of(cls, certificate: str | None, key: str | None) -> Tls | None:
        """
        Return both files, or None for plain HTTP.

        Raises:
            InvalidInputError: One without the other. NotFoundError: a file is missing.
        """
        if certificate is None and key is None:
            return None
        if certificate is None or key is None:
            missing = "--certificate" if certificate is None else "--key"
            raise InvalidInputError(
                missing, "", "is missing: give both or none", hint="--certificate FILE --key FILE"
            )
        for path in (certificate, key):
            if not Path(path).is_file():
                raise NotFoundError(f"{path} is not a file", hint="a file in PEM format")
        return cls(Path(certificate), Path(key))


@dataclass(frozen=True, slots=True)
class ServeRequest:
    """What to serve, where, and where the audit log goes (None: standard error)."""

    platform_file: str | None
    host: str
    port: int
    tls: Tls | None
    audit: Path | None
    names: frozenset[str] = frozenset()
    """Host names that requests may use beside those of platform.yaml."""
    behind_tls: bool = False
    """A proxy in front terminates TLS."""

    @property
    def is_private(self) -> bool:
        """Whether only this machine reaches the service: no proxy leads others to it."""
        return ipaddress.ip_address(self.host).is_loopback and not (self.tls or self.behind_tls)


def check_listening(host: str, tls: Tls | None, *, behind_tls: bool) -> None:
    """
    Return if tokens may travel to this address.

    Raises:
        InvalidInputError: It is not an IP address.
        RefusedError: Another address than loopback, without TLS.
    """
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError as error:
        raise InvalidInputError(
            "--host", host, "is not an IP address", hint="0.0.0.0: all"
        ) from error
    if not (loopback or tls or behind_tls):
        raise RefusedError(
            f"{host}: tokens would travel over plain HTTP",
            hint="give --certificate and --key, or --behind-tls if an ingress terminates TLS",
        )


@contextlib.contextmanager
def serving(
    serve_request: ServeRequest, is_replaced: Callable[[], bool] = lambda: False
) -> Iterator[str]:
    """
    Serve until the block ends; yield the address.

    Changed settings, and files that they name, count within seconds.

    Args:
        serve_request: What is served, and where.
        is_replaced: Asked at the end: whether another process takes over, so that requests which
            came here get their answers.

    Raises:
        PortInUseError: The port is taken. NotFoundError: no platform, or a credential is missing.
    """
    try:
        audit = AuditLog(serve_request.audit)
    except OSError as error:
        raise NotFoundError(
            f"{serve_request.audit} cannot be written: {error.strerror}",
            hint="choose another --audit-log",
        ) from error
    servers: list[HttpServer] = []

    def make() -> ASGIApp:
        settings = load_settings(serve_request.platform_file)
        options = service_options(
            settings,
            audit=audit,
            links=serve_request.is_private,
            behind_tls=serve_request.behind_tls,
        )
        app = service_app(connect(settings), options)
        for server in servers:
            server.reread_certificate()
        return app

    app = RenewedApp(make, lambda: settings_stamp(serve_request))
    sock = bind("service", serve_request.port, host=serve_request.host)
    settings = load_settings(serve_request.platform_file)
    server = HttpServer(app, sock, serve_request.tls, hosts=host_names(serve_request, settings))
    servers.append(server)
    server.start()
    try:
        yield f"{server.scheme}://{serve_request.host}:{server.port}"
    finally:
        server.stop(grace_s=_FINISH_S if is_replaced() else GRACE_S)


def host_names(serve_request: ServeRequest, settings: PlatformSettings) -> frozenset[str] | None:
    """Return the names that requests may use; None: any."""
    # off the loopback others can connect anyway, and kubelets and load balancers name the address
    if not (serve_request.names or ipaddress.ip_address(serve_request.host).is_loopback):
        return None
    addresses = (settings.service.url, settings.service_address)
    hosts = {urlsplit(address).hostname or "" for address in addresses}
    return LOOPBACK_NAMES | {serve_request.host} | hosts | serve_request.names


def settings_stamp(serve_request: ServeRequest) -> bytes:
    """
    Return a digest of platform.yaml and of the files that are read at a start only.

    Raises:
        NotFoundError, InvalidInputError: platform.yaml cannot be read, or is broken.
    """
    path = settings_path(serve_request.platform_file)
    named = named_files(load_settings(serve_request.platform_file))
    named.pop("service.access.tokensFile", None)  # read for each request
    tls = serve_request.tls
    files = [path, *named.values(), *((tls.server, tls.key) if tls else ())]
    digest = hashlib.sha256()
    for file in map(Path, files):
        data = file.read_bytes() if file.is_file() else b""
        digest.update(f"{file}\0{len(data)}\0".encode() + data)
    return digest.digest()
