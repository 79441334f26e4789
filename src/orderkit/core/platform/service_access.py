"""
Who may use Orderkit's service: ``spec.service.access`` of platform.yaml, and the clients' file.

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
them. Pure; ``adapters.tokens.access_tokens`` and ``adapters.tokens.oidc_tokens`` do the checking.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import PurePath
from typing import Any, Literal, get_args

from ground.errors import InvalidInputError
from ground.names import check_person
from yamlfiles import yaml11
from yamlfiles.documents import API_VERSION

Right = Literal["read", "order", "change", "end", "approve", "observe"]
RIGHTS: frozenset[Right] = frozenset(get_args(Right))
"""What a person has. A program has those that it was given; ``observe`` is for /metrics."""
ALGORITHMS = ("ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "EdDSA")
"""Asymmetric signatures; shared keys are never accepted."""

_TEXT = {"type": "string", "minLength": 1}
_REF = {"type": "string", "pattern": r"^[a-z]+:[A-Za-z0-9._-]+/[A-Za-z0-9._@+-]+$"}
_URL = {"type": "string", "pattern": r"^https?://[^\s/]+(/[^\s]*[^\s/])?$"}
_PROVIDER: dict[str, Any] = {
    "issuer": {"type": "string", "pattern": r"^https?://[^\s]+$"},
    "caFile": _TEXT,
    "jwksUrl": _URL,
    "requesterClaim": _TEXT,
    "groupsClaim": _TEXT,
    "groupPrefix": {"type": "string"},
    "algorithms": {"type": "array", "minItems": 1, "items": {"enum": [*ALGORITHMS]}},
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "platformGroups": {"type": "array", "items": _REF},
        "tokensFile": _TEXT,
        "requestsPerMinute": {"type": "integer", "minimum": 1},
        "trustedProxies": {"type": "array", "items": _TEXT},
        "openForms": {"type": "boolean"},
        "oidc": {
            "type": "object",
            "additionalProperties": False,
            "required": ["issuer", "audience"],
            "properties": {"audience": _TEXT, **_PROVIDER},
        },
        "signIn": {
            "type": "object",
            "additionalProperties": False,
            "required": ["issuer", "clientId"],
            "properties": {
                "clientId": _TEXT,
                "clientSecretFile": _TEXT,
                "scopes": {"type": "array", "minItems": 1, "items": _TEXT},
                "sessionMinutes": {"type": "integer", "minimum": 1, "maximum": 1440},
                **_PROVIDER,
            },
        },
    },
}


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """An OpenID Connect provider whose tokens are accepted."""

    issuer: str
    audience: str
    jwks_url: str = ""
    """Empty: the one in the issuer's discovery document."""
    requester_claim: str = "preferred_username"
    """Becomes ``user:default/<value>``; ``email`` counts only if the provider verified it."""
    groups_claim: str = "groups"
    group_prefix: str = ""
    """Only groups with this prefix count; it is removed. ``/ae86`` and ``ae86`` are equal."""
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    ca_file: PurePath | None = None
    """The certificates to trust; None: those that requests trusts."""


SCOPES = ("openid", "profile", "email", "groups", "read:user")
"""Without a scope of its API, Gitea's access token would have all (observed on Gitea 1.26)."""
SESSION_MINUTES = 60


@dataclass(frozen=True, slots=True)
class SignInSettings:
    """How people sign in to the console. The provider's audience is the client's id."""

    provider: OidcSettings
    client_secret_file: PurePath | None = None
    """None: a public client, which PKCE alone protects."""
    scopes: tuple[str, ...] = SCOPES
    session_minutes: int = SESSION_MINUTES


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """The platform's rules for callers of its service."""

    platform_groups: tuple[str, ...] = ()
    """Whose members act for every team."""
    tokens_file: PurePath | None = None
    requests_per_minute: int = 600
    open_forms: bool = False
    """Everybody may open the form of a change, even if the order's repository is private."""
    oidc: OidcSettings | None = None
    sign_in: SignInSettings | None = None
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks whose ``X-Forwarded-For`` names the client."""

    def to_spec(self) -> dict[str, Any]:
        """Return it as in platform.yaml, without defaults."""
        spec: dict[str, Any] = {}
        usual = AccessSettings()
        if self.platform_groups != usual.platform_groups:
            spec["platformGroups"] = list(self.platform_groups)
        if self.tokens_file is not None:
            spec["tokensFile"] = str(self.tokens_file)
        if self.requests_per_minute != usual.requests_per_minute:
            spec["requestsPerMinute"] = self.requests_per_minute
        if self.trusted_proxies:
            spec["trustedProxies"] = list(self.trusted_proxies)
        if self.open_forms:
            spec["openForms"] = True
        if self.oidc is not None:
            spec["oidc"] = {"audience": self.oidc.audience, **_provider_spec(self.oidc)}
        if self.sign_in is not None:
            spec["signIn"] = _sign_in_spec(self.sign_in)
        return spec


def _sign_in_spec(sign_in: SignInSettings) -> dict[str, Any]:
    spec = {"clientId": sign_in.provider.audience, **_provider_spec(sign_in.provider)}
    if sign_in.client_secret_file is not None:
        spec["clientSecretFile"] = str(sign_in.client_secret_file)
    if sign_in.scopes != SCOPES:
        spec["scopes"] = list(sign_in.scopes)
    if sign_in.session_minutes != SESSION_MINUTES:
        spec["sessionMinutes"] = sign_in.session_minutes
    return spec


def _provider_spec(oidc: OidcSettings) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "issuer": oidc.issuer,
        "requesterClaim": oidc.requester_claim,
        "groupsClaim": oidc.groups_claim,
        "algorithms": list(oidc.algorithms),
    }
    if oidc.jwks_url:
        spec["jwksUrl"] = oidc.jwks_url
    if oidc.group_prefix:
        spec["groupPrefix"] = oidc.group_prefix
    if oidc.ca_file is not None:
        spec["caFile"] = str(oidc.ca_file)
    return spec


def read_access(spec: Mapping[str, Any], *, folder: PurePath) -> AccessSettings:
    """
    Read a spec that `SCHEMA` accepted; `folder` is the folder of platform.yaml.

    Raises:
        InvalidInputError: A trusted proxy is not an address or a network, or is everybody.
    """
    usual = AccessSettings()
    file, oidc, sign_in = spec.get("tokensFile"), spec.get("oidc"), spec.get("signIn")
    return AccessSettings(
        platform_groups=tuple(spec.get("platformGroups", usual.platform_groups)),
        tokens_file=None if file is None else folder / file,
        requests_per_minute=spec.get("requestsPerMinute", usual.requests_per_minute),
        trusted_proxies=tuple(_proxy(text) for text in spec.get("trustedProxies", ())),
        open_forms=spec.get("openForms", False),
        oidc=None if oidc is None else _read_oidc(oidc, oidc["audience"], folder),
        sign_in=None if sign_in is None else _read_sign_in(sign_in, folder),
    )


def _read_sign_in(spec: Mapping[str, Any], folder: PurePath) -> SignInSettings:
    file = spec.get("clientSecretFile")
    return SignInSettings(
        _read_oidc(spec, spec["clientId"], folder),
        None if file is None else folder / file,
        tuple(spec.get("scopes", SCOPES)),
        spec.get("sessionMinutes", SESSION_MINUTES),
    )


def _proxy(text: str) -> str:
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
    return text


def _read_oidc(spec: Mapping[str, Any], audience: str, folder: PurePath) -> OidcSettings:
    attribute_names = {
        "jwksUrl": "jwks_url",
        "requesterClaim": "requester_claim",
        "groupsClaim": "groups_claim",
        "groupPrefix": "group_prefix",
    }
    settings: dict[str, Any] = {
        ours: spec[key] for key, ours in attribute_names.items() if key in spec
    }
    if "algorithms" in spec:
        settings["algorithms"] = tuple(spec["algorithms"])
    if "caFile" in spec:
        settings["ca_file"] = folder / spec["caFile"]
    return OidcSettings(spec["issuer"], audience, **settings)


@dataclass(frozen=True, slots=True)
class Client:
    """A program with a token of this service."""

    name: str
    digest: str
    """SHA-256 of the token, in hexadecimal: tokens are random, so no salt and no slow hash."""
    requester: str
    teams: tuple[str, ...]
    rights: frozenset[Right]
    platform: bool = False
    """It may act for every team."""
    expires: date | None = None
    """The last day on which the token is valid."""


_CLIENTS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["apiVersion", "kind", "clients"],
    "properties": {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": "ServiceClients"},
        "clients": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name", "sha256", "rights"],
                "properties": {
                    "name": {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$"},
                    "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                    "requester": _REF,
                    "teams": {"type": "array", "items": _TEXT},
                    "platform": {"type": "boolean"},
                    "rights": {
                        "type": "array",
                        "minItems": 1,
                        "items": {"enum": sorted(RIGHTS)},
                    },
                    "expires": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"},
                },
            },
        },
    },
}


def digest_of(token: str) -> str:
    """Return the form of a token that the clients' file stores."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_clients(text: str, *, name: str) -> tuple[Client, ...]:
    """
    Read the clients' file.

    Raises:
        InvalidInputError: A key or value the schema refuses, a name or digest twice, no date.
    """
    table = yaml11.load(text, name=name, schema=_CLIENTS)
    clients = tuple(_client(entry, name) for entry in table["clients"])
    for field, values in (
        ("name", [client.name for client in clients]),
        ("sha256", [client.digest for client in clients]),
    ):
        for value in values:
            if values.count(value) > 1:
                raise InvalidInputError(f"{name}: clients.{field}", value, "stands there twice")
    return clients


def _client(entry: Mapping[str, Any], name: str) -> Client:
    try:
        expires = date.fromisoformat(entry["expires"]) if "expires" in entry else None
    except ValueError as error:
        field = f"{name}: clients.{entry['name']}.expires"
        raise InvalidInputError(field, entry["expires"], "is not a date") from error
    return Client(
        name=entry["name"],
        digest=entry["sha256"],
        requester=check_person(entry.get("requester", f"user:default/{entry['name']}")),
        teams=tuple(entry.get("teams", ())),
        rights=frozenset(entry["rights"]),
        platform=entry.get("platform", False),
        expires=expires,
    )


def write_clients(clients: Sequence[Client]) -> str:
    """Write the clients' file."""
    return yaml11.dump(
        {
            "apiVersion": API_VERSION,
            "kind": "ServiceClients",
            "clients": [_entry(client) for client in clients],
        }
    )


def _entry(client: Client) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": client.name,
        "sha256": client.digest,
        "requester": client.requester,
        "rights": sorted(client.rights),
    }
    if client.teams:
        entry["teams"] = list(client.teams)
    if client.platform:
        entry["platform"] = True
    if client.expires is not None:
        entry["expires"] = client.expires.isoformat()
    return entry
