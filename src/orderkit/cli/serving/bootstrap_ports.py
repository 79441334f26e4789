"""
Prepare a bootstrap: the platform's ports, the pack, and stand-ins for missing services.

A new platform may have neither Orderkit's service nor a portal. If they do not answer, the service
runs in this process during the bootstrap, and a small catalog replaces the portal's, so that the
probe order takes the same path as other orders. The bootstrap then reports that templates are not
registered.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ground.errors import NotFoundError, OrderkitError
from ground.shapes import changed
from orderkit.adapters.backstage import BackstageCatalog, NoCatalog
from orderkit.adapters.folders.pack_folder import pack_commit, read_folder, reference_pack
from orderkit.cli.connecting import (
    SERVICE_PROXY,
    connect_catalog,
    connect_portal,
    connect_with,
    load_settings,
    token,
)
from orderkit.cli.extras import MissingExtraError, stand_ins
from orderkit.core.platform.installation import PlatformTarget
from orderkit.core.platform.mounted_settings import mounted_settings
from orderkit.core.platform.settings import Endpoint, PlatformSettings
from orderkit.flows.install.bootstrapping import BootstrapRequest, ProbeRequest, RepositoryAccess
from orderkit.flows.install.pack_rendering import values_of
from orderkit.flows.platform import Platform
from orderkit.ports.catalog import Catalog
from orderkit.ports.forge import Forge
from orderkit.ports.portal import Portal

_ANSWER_S = 5.0
"""How long the platform's own service may take to say that it is there."""


@dataclass(frozen=True, slots=True)
class BootstrapOptions:
    """What the command line asks for."""

    platform_file: str | None
    pack_folder: str | None
    requester: str
    timeout_s: float
    probe: bool = True
    replace_pack: bool = False
    adopted: tuple[str, ...] = ()
    move_ledger: bool = False


@contextlib.contextmanager
def prepared(options: BootstrapOptions) -> Iterator[tuple[Platform, BootstrapRequest]]:
    """
    Connect, read the pack, and run stand-ins as long as the caller needs them.

    Raises:
        NotFoundError, InvalidInputError: platform.yaml, a file it names, or the pack.
    """
    settings = load_settings(options.platform_file)
    pack = Path(options.pack_folder) if options.pack_folder else reference_pack()
    files = read_folder(pack)
    with contextlib.ExitStack() as undo:
        platform, problem = _platform(settings, undo)
        platform = replace(platform, adopted=platform.adopted.union(options.adopted))
        probe = ProbeRequest(settings.probe.kit, settings.probe.values) if options.probe else None
        yield (
            platform,
            BootstrapRequest(
                files,
                values_of(settings, pack_commit(pack, files)),
                options.requester,
                timeout_s=options.timeout_s,
                installation=settings,
                access=_access(settings),
                service_files=service_files(settings),
                replace_pack=options.replace_pack or settings.target is PlatformTarget.EMBEDDED,
                move_ledger=options.move_ledger,
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
    from orderkit.adapters.github.reading import app_secret  # lazy: the forge's client
    from orderkit.adapters.github.transport import api_urls

    forge = settings.forge
    pem = _text(Path(forge.ca_file), "forge.caFile") if forge.ca_file else ""
    if not forge.private:
        return RepositoryAccess(ca_pem=pem)
    if forge.argocd_app is not None:
        api_url = api_urls(forge.url, forge.api_url)[0]
        return RepositoryAccess(app_secret(forge.argocd_app, forge.url, api_url), pem)
    file = forge.read_token_file or forge.token_file
    if file is None:
        raise NotFoundError(
            "forge.private: no readTokenFile",
            hint="name a file with a token that may read, for Argo CD",
        )
    secret = {"username": "orderkit", "password": token(changed(forge, token_file=file))}
    return RepositoryAccess(secret, pem)


def service_files(settings: PlatformSettings) -> dict[str, bytes]:
    """
    Read the files that the installed service needs; none if platform.yaml does not install it.

    Raises:
        NotFoundError: One cannot be read.
    """
    if settings.service.install is None:
        return {}
    _, files = mounted_settings(settings)
    return {name: _text(Path(path), name).encode() for name, path in files.items()}


def _text(path: Path, field: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(
            f"{field}: {path} cannot be read", hint=f"check {field} in platform.yaml"
        ) from error


def _platform(settings: PlatformSettings, undo: contextlib.ExitStack) -> tuple[Platform, str]:
    """Connect; return the platform, and why its portal cannot be asked (empty: it can)."""
    portal = connect_portal(settings, _secret)
    platform = connect_with(settings, NoCatalog(), portal)
    catalog, problem = _catalog(settings)
    platform = replace(platform, catalog=catalog or _catalog_stand_in(platform.forge, undo))
    if settings.service.registers and not _serves(portal):
        platform = replace(platform, service_registers=False)
    return platform, problem


def _catalog(settings: PlatformSettings) -> tuple[Catalog | None, str]:
    """Return the portal's catalog, or None and why it cannot be asked."""
    if not settings.portal.url:
        return NoCatalog(), "platform.yaml has no spec.portal"
    try:
        catalog = connect_catalog(settings)
        catalog.locations()
    except OrderkitError as error:
        return None, str(error)
    return catalog, ""


def _catalog_stand_in(forge: Forge, undo: contextlib.ExitStack) -> Catalog:
    """
    Run a catalog for as long as the caller needs it.

    Raises:
        MissingExtraError: The extra that brings one is not installed.
    """
    found = stand_ins()
    if found is None:
        raise MissingExtraError("a catalog in place of a portal that does not answer", "embedded")
    url, secret = undo.enter_context(found.running_catalog(forge))
    return BackstageCatalog(url, token=secret)


def _serves(portal: Portal) -> bool:
    """Say whether the platform's own service answers."""
    try:
        path = f"/proxy/{SERVICE_PROXY}/healthz"
        answer = portal.request("GET", path, headers={}, body=None, timeout_s=_ANSWER_S)
    except OrderkitError:
        return False
    return answer.code == 200  # noqa: PLR2004 - HTTP's own number


def _secret(endpoint: Endpoint) -> str:
    """Return an endpoint's token."""
    try:
        return token(endpoint)
    except OrderkitError:
        # where there is none nobody can know it, so any will do
        return secrets.token_hex(16)
