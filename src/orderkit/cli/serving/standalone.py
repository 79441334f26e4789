"""Run the service alone, against a platform that is somewhere else: ``orderkit serve``."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from orderkit.cli.connecting import connect, load_settings, service_options
from orderkit.core.platform.settings import PlatformSettings
from orderkit.web.auditing import AuditLog
from orderkit.web.service import service_app
from orderkit.web.serving import LOOPBACK_NAMES, HttpServer, bind


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
            raise InvalidInputError(missing, "", "is missing: give both or none")
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
def serving(serve_request: ServeRequest) -> Iterator[str]:
    """
    Serve until the block ends; yield the address.

    Raises:
        PortInUseError: The port is taken. NotFoundError: no platform, or a credential is missing.
    """
    settings = load_settings(serve_request.platform_file)
    try:
        audit = AuditLog(serve_request.audit)
    except OSError as error:
        raise NotFoundError(
            f"{serve_request.audit} cannot be written: {error.strerror}",
            hint="choose another --audit-log",
        ) from error
    options = service_options(
        settings,
        audit=audit,
        links=serve_request.is_private,
        behind_tls=serve_request.behind_tls,
    )
    app = service_app(connect(settings), options)
    sock = bind("service", serve_request.port, host=serve_request.host)
    server = HttpServer(app, sock, serve_request.tls, hosts=host_names(serve_request, settings))
    server.start()
    try:
        yield f"{server.scheme}://{serve_request.host}:{server.port}"
    finally:
        server.stop()


def host_names(serve_request: ServeRequest, settings: PlatformSettings) -> frozenset[str] | None:
    """
    Return the names that requests may use; None: any.

    Off the loopback any name is right unless some are given: others can connect anyway, and
    kubelets and load balancers name the address.
    """
    if not (serve_request.names or ipaddress.ip_address(serve_request.host).is_loopback):
        return None
    addresses = (settings.service.url, settings.service_address)
    hosts = {urlsplit(address).hostname or "" for address in addresses}
    return LOOPBACK_NAMES | {serve_request.host} | hosts | serve_request.names
