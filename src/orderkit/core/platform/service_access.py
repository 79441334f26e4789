"""
Who may use Orderkit's service, by platform.yaml and the clients' file, and how it is installed.

``spec.service.access`` of platform.yaml:

    access:
      platformGroups: [group:default/platform]   # see and do everything; default: none
      tokensFile: clients.yaml                   # programs that carry a token of ours
      requestsPerMinute: 600                     # of one caller
      trustedProxies: [10.0.0.0/8]               # whose X-Forwarded-For is believed; default: none
      openForms: false                           # see docs/service.md
      oidc: {issuer: https://id.example.com, audience: orderkit}
      signIn:                                    # how people enter the console (docs/console.md)
        {issuer: https://git.example.com, clientId: orderkit, clientSecretFile: client-secret}

The clients' file holds digests, never a token: what it can tell is whether a token is one of
them. Pure; ``adapters.tokens.access_tokens`` and ``adapters.tokens.bearers`` do the checking.

`ServiceInstall` is ``spec.service.install`` of platform.yaml: how the service is installed in the
cluster.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Sequence
from datetime import date
from pathlib import PurePath
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, ValidationError, field

from ground.errors import InvalidInputError
from ground.names import check_person
from ground.shapes import StrictShape, changed, json_schema, plain, read_shape
from orderkit.core.documents import DocumentName
from orderkit.core.platform.baking import SAFE
from yamlfiles import yaml11
from yamlfiles.format_versions import API_VERSION

Right = Literal["read", "order", "change", "end", "approve", "observe"]
RIGHTS: frozenset[Right] = frozenset(get_args(Right))
"""What a person has. A program has those that it was given; ``observe`` is for /metrics."""
Algorithm = Literal["ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "EdDSA"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
"""Asymmetric signatures; shared keys are never accepted."""
Url = Annotated[str, Meta(pattern=r"^https?://[^\s/]+(/[^\s]*[^\s/])?$")]
Text = Annotated[str, Meta(min_length=1)]
_Texts = Annotated[tuple[Text, ...], Meta(min_length=1)]
_Ref = Annotated[str, Meta(pattern=r"^[a-z]+:[A-Za-z0-9._-]+/[A-Za-z0-9._@+-]+$")]
_Issuer = Annotated[str, Meta(pattern=r"^https?://[^\s]+$")]


class IdentityProvider(StrictShape, frozen=True, kw_only=True):
    """What is known of an OpenID Connect provider."""

    jwks_url: Url = ""
    """Empty: the one in the issuer's discovery document."""
    requester_claim: Text = "preferred_username"
    """Becomes ``user:default/<value>``; ``email`` counts only if the provider verified it."""
    groups_claim: Text = "groups"
    group_prefix: str = ""
    """Only groups with this prefix count; it is removed. ``/ae86`` and ``ae86`` are equal."""
    algorithms: Annotated[tuple[Algorithm, ...], Meta(min_length=1)] = ("RS256", "ES256")
    ca_file: PurePath | None = None
    """The certificates to trust; None: those that requests trusts."""


class OidcSettings(IdentityProvider, frozen=True):
    """A provider whose tokens are accepted."""

    issuer: _Issuer
    audience: Text


class SignInSettings(IdentityProvider, frozen=True):
    """How people sign in to the console."""

    issuer: _Issuer
    client_id: Text
    client_secret_file: PurePath | None = None
    """None: a public client, which PKCE alone protects."""
    scopes: _Texts = ("openid", "profile", "email", "groups", "read:user")
    """Without a scope of its API, Gitea's access token would have all (observed on Gitea 1.26)."""
    session_minutes: Annotated[int, Meta(ge=1, le=1440)] = 60
    kind: Literal["openid", "github"] = "openid"
    """``github``: GitHub's own flow, because it is no OpenID provider; groups are organisations."""
    members_of: tuple[_Ref, ...] = ()
    """Who signs in: members of one of these groups; empty: everybody whom the provider knows."""

    def check(self) -> None:
        """Raise InvalidInputError: GitHub without a secret, or open to everybody."""
        if self.kind != "github":
            return
        if self.client_secret_file is None:
            raise InvalidInputError(
                "service.access.signIn.clientSecretFile",
                None,
                "is missing, and GitHub has no public clients",
                hint="name the file with the client secret of the OAuth app",
            )
        if not self.members_of:
            raise InvalidInputError(
                "service.access.signIn.membersOf",
                [],
                "is empty, and anybody may have an account of GitHub",
                hint="list the organisations whose members may sign in, such as"
                " group:default/platform",
            )

    @property
    def provider(self) -> OidcSettings:
        """The provider; the audience of its tokens is the client's id."""
        known = {name: getattr(self, name) for name in IdentityProvider.__struct_fields__}
        return OidcSettings(self.issuer, self.client_id, **known)


class AccessSettings(StrictShape, frozen=True):
    """The platform's rules for callers of its service."""

    platform_groups: tuple[_Ref, ...] = ()
    """Whose members act for every team."""
    tokens_file: PurePath | None = None
    requests_per_minute: Annotated[int, Meta(ge=1)] = 600
    open_forms: bool = False
    """Everybody may open the form of a change, even if the order's repository is private."""
    oidc: OidcSettings | None = None
    sign_in: SignInSettings | None = None
    trusted_proxies: tuple[Text, ...] = ()
    """Addresses and networks whose ``X-Forwarded-For`` names the client."""

    def check(self) -> None:
        """Raise InvalidInputError: a trusted proxy is everybody or no network, or a bad sign-in."""
        if self.sign_in is not None:
            self.sign_in.check()
        for text in self.trusted_proxies:
            _check_proxy(text)


def _check_proxy(text: str) -> None:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise InvalidInputError(
            "service.access.trustedProxies",
            text,
            "is not an address or a network",
            hint="for example 127.0.0.1 or 10.42.0.0/16",
        ) from error
    if network.prefixlen == 0:
        raise InvalidInputError(
            "service.access.trustedProxies",
            text,
            "trusts everybody to say where a request comes from",
            hint="name the addresses of the proxies",
        )


class Client(StrictShape, frozen=True):
    """A program with a token of this service."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$")]
    digest: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")] = field(name="sha256")
    """SHA-256 of the token, in hexadecimal: tokens are random, so no salt and no slow hash."""
    requester: _Ref = ""
    """Empty: ``user:default/NAME``."""
    teams: tuple[Text, ...] = ()
    rights: Annotated[frozenset[Right], Meta(min_length=1)] = frozenset()
    platform: bool = False
    """It may act for every team."""
    expires: Annotated[date, Meta(extra_json_schema={"pattern": r"^\d{4}-\d\d-\d\d$"})] | None = (
        None
    )
    """The last day on which the token is valid."""


class _ClientsFile(StrictShape, frozen=True):
    api_version: Annotated[str, Meta(extra_json_schema={"const": API_VERSION})]
    kind: Literal["ServiceClients"]
    clients: tuple[Client, ...]


def digest_of(token: str) -> str:
    """Return the form of a token that the clients' file stores."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_clients(text: str, *, name: str) -> tuple[Client, ...]:
    """
    Read the clients' file.

    Raises:
        InvalidInputError: A key or value the schema refuses, a name or digest twice, no date.
    """
    table = yaml11.load(text, name=name, schema=json_schema(_ClientsFile))
    clients = tuple(_client(entry, name) for entry in table["clients"])
    for key, values in (
        ("name", [client.name for client in clients]),
        ("sha256", [client.digest for client in clients]),
    ):
        for value in values:
            if values.count(value) > 1:
                raise InvalidInputError(f"{name}: clients.{key}", value, "stands there twice")
    return clients


def _client(entry: dict[str, Any], name: str) -> Client:
    field_name = f"{name}: clients.{entry['name']}"
    try:
        client = read_shape(Client, entry)
    except ValidationError as error:  # a pattern lets 30 February pass
        raise InvalidInputError(
            f"{field_name}.expires",
            entry.get("expires"),
            "is not a date",
            hint="expires: 2027-01-31",
        ) from error
    if not client.rights:
        message = f"is missing: {', '.join(sorted(RIGHTS))}"
        raise InvalidInputError(f"{field_name}.rights", None, message)
    requester = client.requester or f"user:default/{client.name}"
    return changed(client, requester=check_person(requester))


def write_clients(clients: Sequence[Client]) -> str:
    """Write the clients' file."""
    file = _ClientsFile(API_VERSION, "ServiceClients", tuple(clients))
    return yaml11.dump(plain(file))


_NAME = "[a-z0-9]([-a-z0-9.]*[a-z0-9])?"
_Name = Annotated[str, Meta(pattern=f"^{_NAME}$")]
_MaybeName = Annotated[str, Meta(pattern=f"^({_NAME})?$")]


class ServiceRoute(StrictShape, frozen=True):
    """How requests from outside of the cluster reach the service."""

    kind: Literal["Ingress", "HTTPRoute", "none"] = "Ingress"
    ingress_class: _MaybeName = ""
    """Empty: the cluster's default class."""
    tls_secret: _MaybeName = ""
    """The Secret with the certificate, in the service's namespace; empty: the controller's own."""
    gateway: Annotated[str, Meta(pattern=r"^([a-z0-9-]+/[a-z0-9.-]+)?$")] = ""
    """NAMESPACE/NAME of the Gateway that an HTTPRoute attaches to."""


class ServiceTraces(StrictShape, frozen=True):
    """Where traces of the service go."""

    endpoint: Annotated[
        str,
        Meta(
            pattern=r"^(https?://[A-Za-z0-9\[][A-Za-z0-9.:\]-]*(/[A-Za-z0-9._~-]+)*/?)?$",
            description="write where OTLP over HTTP is taken, as http://collector.tracing:4318",
        ),
    ] = ""
    """Empty: nothing is recorded."""
    namespace: _MaybeName = ""
    """The collector's, if a network policy has to name it: for some, no Pod is an address."""
    headers_secret: _MaybeName = ""
    """The Secret whose entry ``headers`` goes along, as ``Authorization=Bearer%20TOKEN``."""


class ServiceInstall(StrictShape, frozen=True):
    """How the service is installed in the cluster."""

    callers: Annotated[
        tuple[DocumentName, ...],
        Meta(
            min_length=1,
            description="name the namespaces that may connect, as [ingress-nginx, backstage]",
        ),
    ]
    """Namespaces whose Pods may connect."""
    image: Annotated[str, Meta(pattern=rf"^({SAFE}(@sha256:[0-9a-f]{{64}})?)?$")] = ""
    """Empty: the image of this release in the platform's registry."""
    pull_secret: _MaybeName = ""
    replicas: Annotated[int, Meta(ge=1, le=20)] = 2
    route: ServiceRoute = ServiceRoute()
    monitoring: bool = False
    """Deliver the ServiceMonitor, the alerts and the dashboard."""
    metrics_secret: _Name = "orderkit-metrics"  # noqa: S105 - an object's name
    """The Secret whose entry ``token`` may observe, for Prometheus."""
    traces: ServiceTraces = ServiceTraces()
