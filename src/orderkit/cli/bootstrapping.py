"""
Prepare a bootstrap: the platform's ports, the pack, and stand-ins for what does not run yet.

A platform that comes up may have neither Orderkit's service nor a portal. Where they do not
answer, the service runs in this process for the time of the bootstrap, and a small catalog
stands for the portal's, so that the probe order can take the very path of people's orders; the
bootstrap says that templates are not registered.

Called by ``orderkit bootstrap`` and ``orderkit platform check``.
"""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from orderkit.adapters.backstage import BackstageCatalog, BackstagePortal, ProxyTarget
from orderkit.adapters.packfolder import pack_commit, read_folder, reference_pack
from orderkit.cli.connecting import (
    SECRET_HEADER,
    SERVICE_PROXY,
    connect_with,
    load_settings,
    token,
)
from orderkit.core.errors import NotFoundError, OrderkitError
from orderkit.core.installation import Target
from orderkit.core.settings import Endpoint, PlatformSettings
from orderkit.flows.bootstrapping import BootstrapRequest, ProbeWanted, RepositoryAccess
from orderkit.flows.packrendering import values_of
from orderkit.flows.platform import Platform
from orderkit.ports.catalog import Catalog
from orderkit.ports.portal import Portal

_ANSWER_S = 5.0
"""How long the platform's own service may take to say that it is there."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks for."""

    platform_file: str | None
    pack_folder: str | None
    requester: str
    timeout_s: float
    probe: bool = True
    replace_pack: bool = False


@contextlib.contextmanager
def prepared(wanted: Wanted) -> Iterator[tuple[Platform, BootstrapRequest]]:
    """
    Connect, read the pack, and run stand-ins as long as the caller needs them.

    Raises:
        NotFoundError, InvalidInputError: platform.yaml, a file it names, or the pack.
    """
    settings = load_settings(wanted.platform_file)
    pack = Path(wanted.pack_folder) if wanted.pack_folder else reference_pack()
    files = read_folder(pack)
    with contextlib.ExitStack() as undo:
        platform, problem = _platform(settings, undo)
        probe = ProbeWanted(settings.probe.kit, settings.probe.values) if wanted.probe else None
        yield (
            platform,
            BootstrapRequest(
                files,
                values_of(settings, pack_commit(pack, files)),
                wanted.requester,
                timeout_s=wanted.timeout_s,
                installation=settings.installation,
                access=_access(settings),
                replace_pack=wanted.replace_pack or settings.installation.target is Target.EMBEDDED,
                probe=probe,
                portal_problem=problem,
            ),
        )


def _access(settings: PlatformSettings) -> RepositoryAccess:
    """
    Return what Argo CD is given to read the repositories.

    Raises:
        NotFoundError: A file that platform.yaml names cannot be read, or none is named.
    """
    forge = settings.forge
    pem = _text(Path(forge.ca_file), "forge.caFile") if forge.ca_file else ""
    if not forge.private:
        return RepositoryAccess(ca_pem=pem)
    file = forge.read_token_file or forge.token_file
    if file is None:
        raise NotFoundError(
            "forge.private: no readTokenFile",
            hint="name a file with a token that may read, for Argo CD",
        )
    return RepositoryAccess("orderkit", token(replace(forge, token_file=file)), pem)


def _text(path: Path, field: str) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(
            f"{field}: {path} cannot be read", hint=f"check {field} in platform.yaml"
        ) from error


def _platform(settings: PlatformSettings, undo: contextlib.ExitStack) -> tuple[Platform, str]:
    """Connect; return the platform, and why its portal cannot be asked (empty: it can)."""
    nobody = secrets.token_hex(16)
    portal = _portal_to(settings, settings.service.url, _secret(settings.service))
    platform = connect_with(settings, BackstageCatalog(settings.portal.url, token=nobody), portal)
    catalog, problem = _catalog(settings)
    platform = replace(platform, catalog=catalog or _catalog_stand_in(platform, undo))
    if not _serves(portal):
        service = _service_stand_in(platform, undo)
        platform = replace(platform, portal=_portal_to(settings, *service))
    return platform, problem


def _catalog(settings: PlatformSettings) -> tuple[Catalog | None, str]:
    """Return the portal's catalog, or None and why it cannot be asked."""
    try:
        found = BackstageCatalog(settings.portal.url, token=token(settings.portal))
        found.locations()
    except OrderkitError as error:
        return None, str(error)
    return found, ""


def _catalog_stand_in(platform: Platform, undo: contextlib.ExitStack) -> Catalog:
    from orderkit.adapters.embedded import serving
    from orderkit.adapters.embedded.catalog import EmbeddedCatalog
    from orderkit.adapters.embedded.catalog.http import catalog_app

    folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="orderkit-")))
    embedded = EmbeddedCatalog(folder / "catalog.sqlite", platform.forge)
    undo.callback(embedded.close)
    secret = secrets.token_hex(16)
    server = serving.HttpServer(catalog_app(embedded, token=secret), serving.bind("portal", 0))
    server.start()
    undo.callback(server.stop)
    return BackstageCatalog(server.url, token=secret)


def _serves(portal: Portal) -> bool:
    """Say whether the platform's own service answers."""
    try:
        path = f"/proxy/{SERVICE_PROXY}/healthz"
        answer = portal.request("GET", path, headers={}, body=None, timeout_s=_ANSWER_S)
    except OrderkitError:
        return False
    return answer.code == 200  # noqa: PLR2004 - HTTP's own number


def _secret(endpoint: Endpoint) -> str:
    """Return an endpoint's token; where there is none nobody can know it, so any will do."""
    try:
        return token(endpoint)
    except OrderkitError:
        return secrets.token_hex(16)


def _portal_to(settings: PlatformSettings, service_url: str, secret: str) -> BackstagePortal:
    target = ProxyTarget(service_url, {SECRET_HEADER: secret})
    return BackstagePortal(
        settings.portal.url, token=_secret(settings.portal), proxies={SERVICE_PROXY: target}
    )


def _service_stand_in(platform: Platform, undo: contextlib.ExitStack) -> tuple[str, str]:
    """Run Orderkit's service in this process; return its address and its secret."""
    from orderkit.adapters.embedded import serving
    from orderkit.web.callers import Access
    from orderkit.web.operations import ServiceOptions
    from orderkit.web.service import service_app

    secret = secrets.token_hex(16)
    options = ServiceOptions(access=Access(secret=secret, header=SECRET_HEADER), audit=None)
    server = serving.HttpServer(service_app(platform, options), serving.bind("service", 0))
    server.start()
    undo.callback(server.stop)
    return server.url, secret
