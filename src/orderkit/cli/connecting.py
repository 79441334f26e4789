"""
Turn ``platform.yaml`` into ports: the only module that knows which adapter implements which port.

The embedded platform is reached like any other: over HTTP, by its addresses.
"""

from __future__ import annotations

import functools
import os
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path, PurePath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from compositions.function_processes import read_processes
from ground.errors import NotFoundError
from ground.secrets import register
from ground.shapes import changed, json_schema
from orderkit.adapters.backstage import (
    BackstageCatalog,
    BackstagePortal,
    NoCatalog,
    ProxyTarget,
)
from orderkit.adapters.commit_signatures import Ed25519Signatures
from orderkit.adapters.forge_choice import connect_forge
from orderkit.adapters.forges.credentials import CredentialSources
from orderkit.adapters.functions.local_functions import LocalFunctions
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.adapters.state_folder import PLATFORM_FILE, default_state
from orderkit.cli.late_imports import (
    LazyRenderer,
    run_program,
)
from orderkit.core.platform import settings as platform_settings
from orderkit.core.platform.installation import PlatformTarget
from orderkit.core.platform.notification_settings import NotificationSettings, read_notifications
from orderkit.core.platform.service_access import OidcSettings
from orderkit.core.platform.settings import (
    Endpoint,
    ForgeSettings,
    PlatformSettings,
    PortalSettings,
)
from orderkit.core.platform.webhook_key import channel_key, hook_key
from orderkit.core.portal.catalog_origins import pack_location
from orderkit.core.portal.profile import Profile
from orderkit.flows.platform import Platform
from orderkit.flows.team.connections import service_webhook
from orderkit.ports.catalog import Catalog
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import Webhook
from orderkit.ports.portal import Portal
from orderkit.ports.requesters import Requesters, SignIn
from softwaretemplates.size_limit import MIB
from yamlfiles import yaml11

if TYPE_CHECKING:
    from orderkit.adapters.tokens.bearers import BelievedGroups
    from orderkit.core.notify.order_event import Channel
    from orderkit.flows.notify.notifying import NotifyOptions
    from orderkit.ports.notifier import Notifier
    from orderkit.web.auditing import AuditLog
    from orderkit.web.operations import ServiceOptions

SERVICE_PROXY = "orderkit"
"""The portal's proxy endpoint that leads to our service: ``/proxy/orderkit``."""
SECRET_HEADER = "X-Orderkit-Secret"  # noqa: S105 - the header's name
"""What the portal's proxy adds so that the service knows it; templates cannot see it."""
_LINKED_MINUTES = 480
"""How long a session lasts that a one-time link began: a working day."""


def settings_path(platform_file: str | None) -> Path:
    """Return the path of platform.yaml: the given one, else the one in the state folder."""
    if platform_file:
        return Path(platform_file)
    state = os.environ.get("ORDERKIT_STATE")
    return (Path(state) if state else default_state()) / PLATFORM_FILE


def load_settings(platform_file: str | None) -> PlatformSettings:
    """
    Read ``platform.yaml``.

    Raises:
        NotFoundError: There is none. InvalidInputError: it is broken.
    """
    path = settings_path(platform_file)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise NotFoundError(
            f"no platform: {path} cannot be read ({error.strerror})",
            hint="start one with 'orderkit up', or name one with --platform FILE",
        ) from error
    folder = path.resolve().parent
    return platform_settings.parse(text, folder=folder, name=str(path), home=Path.home())


def load_notifications(file: str | None) -> NotificationSettings:
    """
    Read a file with what platform.yaml has below ``notifications``; None: nothing.

    Raises:
        NotFoundError: It cannot be read. InvalidInputError: a key or value is refused.
    """
    if file is None:
        return NotificationSettings()
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(
            f"--notifications: {path} cannot be read",
            hint="--notifications FILE, a file that you can read",
        ) from error
    spec = yaml11.load(text, name=file, schema=json_schema(NotificationSettings))
    folder = path.resolve().parent
    return read_notifications(spec, lambda name: folder / name)


def token(endpoint: Endpoint) -> str:
    """
    Read an endpoint's token and register it for redaction.

    Raises:
        NotFoundError: No file is named, or it cannot be read; or the platform has no such service.
    """
    if not endpoint.url:
        name = "portal" if isinstance(endpoint, PortalSettings) else "service"
        raise NotFoundError(
            f"platform.yaml has no spec.{name}, and this needs it",
            hint=f"add spec.{name} with url and tokenFile (docs/install.md)",
        )
    if endpoint.token_file is None:
        raise NotFoundError(f"no tokenFile for {endpoint.url}", hint="name one in platform.yaml")
    try:
        secret = Path(endpoint.token_file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise NotFoundError(
            f"the token for {endpoint.url} cannot be read from {endpoint.token_file}",
            hint="check tokenFile in platform.yaml",
        ) from error
    register(secret)
    return secret


def requesters(settings: PlatformSettings) -> Requesters | None:
    """
    Make what checks the tokens of those who call the service; None where nothing is checked.

    Raises:
        InvalidInputError, RefusedError: An address in platform.yaml cannot be used.
    """
    access = settings.service.access
    if not (settings.portal.signed_by or access.oidc or access.tokens_file):
        return None
    from orderkit.adapters.tokens.access_tokens import TokenRequesters  # lazy: these need jwt
    from orderkit.adapters.tokens.bearers import (
        BackstageRequesters,
        BearerRequesters,
        OidcRequesters,
    )

    clients = access.tokens_file
    return BearerRequesters(
        portal=BackstageRequesters(settings.portal.signed_by)
        if settings.portal.signed_by
        else None,
        oidc=OidcRequesters(access.oidc, _believed_groups(settings, access.oidc))
        if access.oidc
        else None,
        tokens=TokenRequesters(Path(clients), SystemClock()) if clients else None,
    )


def sign_in(settings: PlatformSettings) -> SignIn | None:
    """
    Make the provider with which people sign in to the console; None if platform.yaml names none.

    Raises:
        NotFoundError: The client's secret cannot be read.
        InvalidInputError, RefusedError: An address in platform.yaml cannot be used.
    """
    sign_in_settings = settings.service.access.sign_in
    if sign_in_settings is None:
        return None
    from orderkit.adapters.tokens.sign_in import (
        GitHubSignIn,  # lazy: these need jwt
        OpenIdSignIn,
    )

    issuer, file = sign_in_settings.provider.issuer, sign_in_settings.client_secret_file
    client_secret = token(Endpoint(issuer, file)) if file else ""
    made = GitHubSignIn if sign_in_settings.kind == "github" else OpenIdSignIn
    return made(
        sign_in_settings,
        client_secret=client_secret,
        believed=_believed_groups(settings, sign_in_settings.provider),
    )


def _believed_groups(settings: PlatformSettings, provider: OidcSettings) -> BelievedGroups:
    """Return which groups of a provider's tokens count; those of the forge are judged there."""
    from orderkit.adapters.tokens.bearers import JudgedGroups
    from orderkit.flows.order.agreements import organisation_problem

    platform = functools.cache(lambda: connect(settings))

    def problem(org: str) -> str:
        return organisation_problem(platform(), org) if _is_forge(settings, provider) else ""

    return JudgedGroups(settings.service.access.platform_groups, problem).believed


def _is_forge(settings: PlatformSettings, provider: OidcSettings) -> bool:
    """
    Say whether a provider is the forge: by its address, or as the forge's own document says.

    Raises:
        UnreachableError: The forge does not answer.
    """
    from orderkit.adapters.backstage.backstage_client import send
    from orderkit.adapters.tokens.bearers import DISCOVERY

    forge = settings.forge
    if urlsplit(provider.issuer).netloc == urlsplit(forge.url).netloc:
        return True
    answer = send("GET", f"{forge.url}{DISCOVERY}", headers={}, ca_file=forge.ca_file)
    return answer.status == HTTPStatus.OK and answer.json().get("issuer") == provider.issuer


def service_options(
    settings: PlatformSettings,
    *,
    audit: AuditLog | None,
    links: bool = False,
    behind_tls: bool = False,
) -> ServiceOptions:
    """
    Say how the platform's service is set up.

    Args:
        settings: The platform.
        audit: Where requests are written down.
        links: Sign in who opens a one-time link on this machine.
        behind_tls: A proxy terminates TLS.

    Raises:
        NotFoundError: A secret cannot be read.
        InvalidInputError, RefusedError: See `requesters` and `sign_in`.
    """
    from orderkit.web.callers import CallerAccess  # lazy: the web server
    from orderkit.web.operations import ConsoleOptions, ServiceOptions

    address = settings.service_address
    sign_in_settings = settings.service.access.sign_in
    minutes = sign_in_settings.session_minutes if sign_in_settings else _LINKED_MINUTES

    return ServiceOptions(
        access=CallerAccess(
            secret=token(settings.service),
            header=SECRET_HEADER,
            requesters=requesters(settings),
            persons=bool(settings.portal.signed_by),
            platform_groups=frozenset(settings.service.access.platform_groups),
        ),
        audit=audit,
        requests_per_minute=settings.service.access.requests_per_minute,
        trusted_proxies=settings.service.access.trusted_proxies,
        portal_url=settings.portal_address,
        open_forms=settings.service.access.open_forms,
        notifications=notify_options(settings),
        console=ConsoleOptions(
            address,
            sign_in(settings),
            links=links,
            secure=behind_tls or address.startswith("https://"),
            session_s=60 * minutes,
        ),
    )


def notify_options(settings: PlatformSettings) -> NotifyOptions | None:
    """
    Say how the platform's notifications are set up; None if platform.yaml has none.

    Raises:
        NotFoundError: The service's secret cannot be read.
    """
    if not settings.notifications.uses_anything:
        return None
    from orderkit.flows.notify.notifying import NotifyOptions  # lazy: few commands notify

    return NotifyOptions(
        settings.notifications,
        lambda platform, channel: notifier(settings, platform, channel),
        settings.service_address,
        f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}",
    )


def notifier(settings: PlatformSettings, platform: Platform, channel: Channel) -> Notifier:
    """
    Make what delivers to a channel. Nothing is contacted yet.

    Raises:
        NotFoundError: A file that platform.yaml names cannot be read, or Apprise is not installed.
        InvalidInputError, RefusedError: An address cannot be used.
    """
    match channel.settings.type:
        case "backstage":
            from orderkit.adapters.notify.notifiers import BackstageNotifier

            portal = settings.portal
            return BackstageNotifier(portal.url, token=token(portal))
        case "pullRequest":
            from orderkit.flows.notify.pull_comments import PullComments

            return PullComments(platform.forge, platform.ledger)
        case "webhook":
            from orderkit.adapters.notify.notifiers import WebhookNotifier, WebhookTarget

            return WebhookNotifier(
                WebhookTarget(
                    channel.settings.url,
                    webhook_key(settings, channel),
                    settings.service_address,
                    settings.notifications.allowed_networks,
                )
            )
        case "apprise":
            from orderkit.adapters.notify.notifiers import AppriseNotifier

            field = f"notifications.channels.{channel.id}.urlFile"
            return AppriseNotifier(channel.id, _secret_text(channel.settings.url_file, field))


def webhook_key(settings: PlatformSettings, channel: Channel) -> str:
    """
    Return the key with which a channel's webhooks are signed.

    Raises:
        NotFoundError: Its file, or the service's secret, cannot be read.
    """
    if channel.settings.key_file is not None:
        field = f"notifications.channels.{channel.id}.keyFile"
        return _secret_text(channel.settings.key_file, field)
    key = channel_key(token(settings.service), channel.id)
    register(key)
    return key


def _secret_text(path: PurePath | None, field: str) -> str:
    try:
        text = Path(path or "").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(
            f"{field}: {path} cannot be read", hint=f"check {field} in platform.yaml"
        ) from error
    if not text:
        raise NotFoundError(f"{field}: {path} is empty", hint="write the secret into it")
    register(text)
    return text


def connect(settings: PlatformSettings) -> Platform:
    """
    Make the ports of a platform. Nothing is contacted yet, but see `connect_forge`.

    Raises:
        OrderkitError: A file that platform.yaml names cannot be used, or what `connect_forge` says.
    """
    return connect_with(settings, connect_catalog(settings), connect_portal(settings, token))


def connect_catalog(settings: PlatformSettings) -> Catalog:
    """
    Make the catalog's port. Nothing is contacted yet.

    Raises:
        NotFoundError: The portal's token cannot be read.
    """
    portal = settings.portal
    return BackstageCatalog(portal.url, token=token(portal)) if portal.url else NoCatalog()


def connect_portal(settings: PlatformSettings, secret: Callable[[Endpoint], str]) -> Portal:
    """Make the portal's port, and through it the service's; `secret` reads their tokens."""
    service, portal = settings.service, settings.portal
    proxies = {}
    if service.url:
        proxies[SERVICE_PROXY] = ProxyTarget(service.url, {SECRET_HEADER: secret(service)})
    return BackstagePortal(portal.url, token=secret(portal) if portal.url else "", proxies=proxies)


def connect_with(settings: PlatformSettings, catalog: Catalog, portal: Portal) -> Platform:
    """
    Make the ports of a platform with this catalog and portal.

    Raises:
        OrderkitError: As `connect` says.
    """
    cluster = KubeCluster.from_kubeconfig(
        Path(settings.cluster.kubeconfig), context=settings.cluster.context or None
    )
    key_file = settings.service.signing_key_file
    signatures = Ed25519Signatures(Path(key_file) if key_file else None)
    return Platform(
        name=settings.name,
        forge=connect_forge(_trusting(settings, cluster), cluster, signatures),
        cluster=cluster,
        catalog=catalog,
        portal=portal,
        clock=SystemClock(),
        other_clock=cluster.clock,
        pack_repo=settings.pack,
        ledger=settings.ledger,
        confined=LazyRenderer(),
        run_program=run_program,
        pipeline_functions=LocalFunctions(),
        teams=settings.teams,
        functions=read_processes(settings.plans.functions),
        service_registers=settings.service.registers,
        portal_reads_orders=settings.portal.profile is Profile.PLUGIN or not settings.portal.url,
        private=settings.forge.private,
        team_token=lambda team: _team_token(settings.forge, team),
        signatures=signatures,
        webhook=_webhook(settings),
        adopted=frozenset(settings.forge.adopted),
        size_limit=settings.templates.size_mib * MIB,
        people_from=tuple(settings.portal.people_from)
        or (pack_location(settings.pack_folder_url),),
    )


def forge_login(settings: PlatformSettings) -> tuple[str, str]:
    """
    Return name and password with which git reaches the forge; a token is a password, of any name.

    Raises:
        NotFoundError: There are no credentials besides those of a GitHub App.
    """
    forge = settings.forge
    file = Path(forge.token_file) if forge.token_file else None
    cluster = KubeCluster.from_kubeconfig(
        Path(settings.cluster.kubeconfig), context=settings.cluster.context or None
    )
    found = CredentialSources(forge.url, file, cluster).find(forge.credentials).credentials
    return (found.user or "orderkit", found.token or found.password)


def _webhook(settings: PlatformSettings) -> Webhook | None:
    """Return how the forge reports to the service, or None without the service's secret."""
    with suppress(NotFoundError):
        return service_webhook(settings.service_address, hook_key(token(settings.service)))
    return None


def _team_token(forge: ForgeSettings, team: str) -> str:
    """
    Return the token with which Argo CD reads a team's repositories; empty if none is named.

    Raises:
        NotFoundError: A folder is named and has no file for the team.
    """
    if forge.team_token_folder is None:
        return ""
    return token(changed(forge, token_file=forge.team_token_folder / team))


def _trusting(settings: PlatformSettings, cluster: Cluster) -> ForgeSettings:
    """Return the forge's endpoint; on idpbuilder it is trusted by the authority it has there."""
    forge = settings.forge
    on_idpbuilder = settings.target is PlatformTarget.IDPBUILDER
    if not on_idpbuilder or forge.ca_file or not forge.url.startswith("https://"):
        return forge
    # lazy: seldom needed
    from orderkit.adapters.kube.idpbuilder_authority import authority_file

    return changed(forge, ca_file=authority_file(cluster))
