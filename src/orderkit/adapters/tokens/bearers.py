"""
Prove the person behind a bearer token: of an OpenID Connect provider, or of Backstage.

`BearerRequesters` passes each token to the checker of its kind. The kind is read from the token
itself and proves nothing; it only chooses who has to. The checkers and `JudgedGroups` are
thread-safe.

`OidcRequesters` checks a token of an OpenID Connect provider: signature (a published key, an
algorithm of the allow-list), issuer, audience and times. The requester and the groups are claims of
the token. It keeps no sessions and asks the provider for nothing but its keys.

`BackstageRequesters` proves who is behind a request that came through Backstage, by Backstage's
signatures. The step ``http:backstage:request`` sends a token of the scaffolder
(``vnd.backstage.plugin``, audience ``proxy``, an hour) that holds, as ``obo``, a token of the
person who runs the task (``vnd.backstage.limited-user``); a person's own call through the proxy
sends theirs (``vnd.backstage.user``). Observed on Backstage 1.55. Each is checked with the keys its
signer publishes below the portal's address. A task of a service account names no person.

A person's groups are the claim ``ent`` of Backstage's token. The limited token has none; then
Backstage is asked for them with the token itself (``/api/auth/v1/userinfo``), as its own plugins
do, and the answer is kept for half a minute.

`JudgedGroups` leaves out groups of the platform that are organisations of somebody else.
"""

from __future__ import annotations

import hashlib
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from ground.errors import InvalidInputError, RemoteError, UnreachableError
from ground.names import LABEL, LABEL_MAX, REFERENCE_MAX, check_person, fold_reference
from orderkit.adapters.http import check_url
from orderkit.adapters.tokens.published_keys import (
    WAITERS_MAX,
    ExpectedClaims,
    PublishedKeys,
    fetch_json,
    header,
    provider_busy,
)
from orderkit.core.platform.service_access import ALGORITHMS, OidcSettings
from orderkit.ports.requesters import Requester, Requesters, UnprovedError

_BACKSTAGE = "vnd.backstage."
_DOTS_OF_SIGNED = 2
"""A signed token has three parts (RFC 7515)."""


@dataclass(frozen=True, slots=True)
class BearerRequesters:
    """The checker of each kind; None: that kind is not accepted."""

    portal: Requesters | None = None
    oidc: Requesters | None = None
    tokens: Requesters | None = None

    def describe(self) -> str:
        """
        Say what is accepted.

        Raises:
            UnreachableError: What somebody checks with cannot be had now.
        """
        descriptions = [
            checker.describe() for checker in (self.portal, self.oidc, self.tokens) if checker
        ]
        return "; ".join(descriptions) or "claims: nothing is checked"

    def proved(self, authorization: str) -> Requester:
        """
        Return who stands behind the token.

        Raises:
            UnprovedError: No bearer token, of a kind that is not accepted, or it proves nobody.
            UnreachableError: What it has to be checked with cannot be had now.
        """
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise _unproved("no token came with the request")
        # the kind is what the token says of itself: it proves nothing, and only chooses who has to
        checker = self._checker(token)
        if checker is None:
            raise _unproved("this service accepts no such token")
        return checker.proved(authorization)

    def _checker(self, token: str) -> Requesters | None:
        if token.count(".") != _DOTS_OF_SIGNED:
            return self.tokens or self.portal
        if str(header(token, _unproved).get("typ", "")).startswith(_BACKSTAGE):
            return self.portal
        return self.oidc or self.portal


def _unproved(why: str) -> UnprovedError:
    return UnprovedError(
        f"the requester is not proved: {why}",
        hint="send Authorization: Bearer <token>; a portal's proxy must forward it "
        "(allowedHeaders)",
    )


BelievedGroups = Callable[[frozenset[str]], frozenset[str]]
"""Returns which of the groups that a token names count."""
DISCOVERY = "/.well-known/openid-configuration"
_HINT = "is service.access.oidc.issuer in platform.yaml an OpenID provider?"


class OidcRequesters:
    """The tokens of one provider."""

    def __init__(self, settings: OidcSettings, believed: BelievedGroups = frozenset) -> None:
        """
        Prepare; nothing is sent.

        Raises:
            InvalidInputError: The issuer, or where its keys are, is not an address, or the file of
                certificates has none.
            RefusedError: Plain HTTP to another machine.
        """
        self._settings, self._believed = settings, believed
        self._issuer = check_url("issuer", settings.issuer)
        if settings.ca_file is not None:
            _check_certificates(settings.ca_file)
        if settings.jwks_url:
            check_url("jwksUrl", settings.jwks_url)
        self._keys = PublishedKeys(
            self._address, _unproved_by_provider, hint=_HINT, ca_file=settings.ca_file
        )

    def describe(self) -> str:
        """
        Say whose tokens are accepted, after fetching the keys.

        Raises:
            UnreachableError: The keys cannot be had now.
        """
        return f"proved by {self._settings.issuer} ({self._keys.fetch()} keys)"

    def proved(self, authorization: str) -> Requester:
        """
        Return the person whom the provider vouches for, with their groups.

        Raises:
            UnprovedError: No token of its for us, an expired one, or nobody behind it.
            UnreachableError: The keys cannot be had now.
        """
        return self.person(self.claims(authorization.partition(" ")[2]))

    def claims(self, token: str) -> dict[str, Any]:
        """Return what a token of the provider for our audience says; raises like `proved`."""
        settings = self._settings
        expected = ExpectedClaims(settings.audience, settings.algorithms, settings.issuer)
        return self._keys.verified(token, expected)

    def person(self, claims: dict[str, Any]) -> Requester:
        """
        Return the person of verified claims.

        Raises:
            UnprovedError: They name nobody.
        """
        person = self._person(claims)
        proof, groups = f"signed by {self._settings.issuer}", self._groups(claims)
        return Requester(person, proof, self._believed(groups), expires_s=float(claims["exp"]))

    def _person(self, claims: dict[str, Any]) -> str:
        name = self._settings.requester_claim
        if name == "email" and claims.get("email_verified") is not True:
            raise _unproved_by_provider("the provider has not verified the e-mail address")
        return person_named(claims.get(name), name)

    def _groups(self, claims: dict[str, Any]) -> frozenset[str]:
        """Take ``ae86``, ``/ae86`` and, with a prefix, ``orderkit-ae86`` for the group ae86."""
        claim = claims.get(self._settings.groups_claim)
        claimed_groups = (
            [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
        )
        names = (item.removeprefix("/") for item in claimed_groups if isinstance(item, str))
        return groups_named(names, self._settings.group_prefix)

    def _address(self) -> str:
        """Return where the keys are: as configured, else as the issuer's own document says."""
        return self._settings.jwks_url or self.endpoint("jwks_uri")

    def endpoint(self, name: str) -> str:
        """
        Return an address in the issuer's own document.

        Raises:
            UnreachableError: The document cannot be had, or is of another issuer.
            InvalidInputError, RefusedError: It names none that can be used.
        """
        answer = fetch_json(f"{self._issuer}{DISCOVERY}", _HINT, ca_file=self._settings.ca_file)
        document = answer if isinstance(answer, dict) else {}
        if document.get("issuer") != self._settings.issuer:
            raise UnreachableError(
                f"{self._issuer}{DISCOVERY} is of another issuer: '{document.get('issuer')}'",
                hint=_HINT,
            )
        return check_url(name, str(document.get(name)))


def person_named(value: object, claim: str) -> str:
    """
    Return the reference of the person whom a provider calls so.

    Raises:
        UnprovedError: It names nobody.
    """
    if not isinstance(value, str) or not value:
        raise _unproved_by_provider(f"the token has no claim '{claim}'")
    try:
        return fold_reference(check_person(f"user:default/{value}"))
    except InvalidInputError as error:
        raise _unproved_by_provider(f"the provider's name of its user: {error}") from error


def groups_named(names: Iterable[str], prefix: str) -> frozenset[str]:
    """Return the references of groups whose names have the prefix, without it."""
    ours = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return frozenset(
        f"group:default/{name}" for name in ours if len(name) <= LABEL_MAX and LABEL.match(name)
    )


def _check_certificates(file: PurePath) -> None:
    try:
        ssl.create_default_context(cafile=str(file))
    except OSError as error:
        raise InvalidInputError(
            "service.access: caFile",
            str(file),
            "is not a readable file of certificates",
            hint="name a file with the certificate of the provider's CA in PEM",
        ) from error


def _unproved_by_provider(why: str) -> UnprovedError:
    return UnprovedError(
        f"the requester is not proved: {why}",
        hint="get a new token from the provider, for the audience in platform.yaml",
    )


PLUGIN, USER, LIMITED_USER = (
    "vnd.backstage.plugin",
    "vnd.backstage.user",
    "vnd.backstage.limited-user",
)
_SCAFFOLDER, _PROXY, _AUDIENCE = "scaffolder", "proxy", "backstage"
_NO_BACKSTAGE = "does portal.signedBy in platform.yaml name a Backstage?"
_GROUPS_KEPT_S = 30.0
_GROUPS_KEPT_MAX = 1000


class BackstageRequesters:
    """The signatures of one Backstage."""

    def __init__(self, base_url: str) -> None:
        """
        Prepare; nothing is sent.

        Raises:
            InvalidInputError: `base_url` is not an address.
            RefusedError: Plain HTTP to another machine.
        """
        self._base = check_url("signedBy", base_url)
        self._users = self._keys("/api/auth/.well-known/jwks.json")
        self._scaffolder = self._keys("/api/scaffolder/.backstage/auth/v1/jwks.json")
        self._groups = _Groups(f"{self._base}/api/auth/v1/userinfo")

    def _keys(self, path: str) -> PublishedKeys:
        url = f"{self._base}{path}"
        return PublishedKeys(lambda: url, _unproved_by_portal, hint=_NO_BACKSTAGE)

    def describe(self) -> str:
        """
        Say whose signatures are checked, after fetching the keys.

        Raises:
            UnreachableError: The keys cannot be had now.
        """
        users, scaffolder = self._users.fetch(), self._scaffolder.fetch()
        return f"proved by {self._base} ({users} keys for persons, {scaffolder} of the scaffolder)"

    def proved(self, authorization: str) -> Requester:
        """
        Return the person whom this Backstage vouches for, with their groups.

        Raises:
            UnprovedError: No token of its, an expired one, or nobody behind it.
            UnreachableError: Its keys, or the person's groups, cannot be had now.
        """
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise _unproved_by_portal("no token of the portal came with the request")
        kind = token_type(token)
        if kind == PLUGIN:
            token = self._on_behalf_of(token)
            claims = self._users.verified(token, ExpectedClaims(None, ALGORITHMS))
        elif kind == USER:
            claims = self._users.verified(token, ExpectedClaims(_AUDIENCE, ALGORITHMS))
        else:
            raise _unproved_by_portal(
                "the token does not belong to a person who is signed in to the portal"
            )
        try:
            person = check_person(claims["sub"])
        except InvalidInputError as error:
            raise _unproved_by_portal(f"the portal's name of its user: {error}") from error
        groups = self._groups.of(token, claims)
        return Requester(person, f"signed by {self._base}", groups, expires_s=float(claims["exp"]))

    def _on_behalf_of(self, token: str) -> str:
        claims = self._scaffolder.verified(token, ExpectedClaims(_PROXY, ALGORITHMS))
        if claims["sub"] != _SCAFFOLDER:
            raise _unproved_by_portal(f"the token belongs to the portal's plugin '{claims['sub']}'")
        person = claims.get("obo")
        if not isinstance(person, str) or token_type(person) != LIMITED_USER:
            raise UnprovedError(
                "the portal's token names no person",
                hint="start the task signed in, not with a service token",
            )
        return person


class _Groups:
    """What persons own, as Backstage says; asked with their own verified token."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(WAITERS_MAX)
        self._kept: dict[str, tuple[float, frozenset[str]]] = {}

    def of(self, token: str, claims: dict[str, Any]) -> frozenset[str]:
        if isinstance(claims.get("ent"), list):
            return _refs(claims["ent"])
        # a limited token has no groups: Backstage is asked with the token itself, as its plugins do
        key = hashlib.sha256(token.encode()).hexdigest()
        now = time.monotonic()
        with self._lock:
            until, groups = self._kept.get(key, (0.0, frozenset()))
        if now < until:
            return groups
        if not self._slots.acquire(blocking=False):
            raise provider_busy()
        try:
            groups = self._fetch_groups(token, claims["sub"])
        finally:
            self._slots.release()
        with self._lock:
            if len(self._kept) >= _GROUPS_KEPT_MAX:
                self._kept.clear()
            self._kept[key] = (now + _GROUPS_KEPT_S, groups)
        return groups

    def _fetch_groups(self, token: str, person: str) -> frozenset[str]:
        try:
            answer = fetch_json(self._url, _NO_BACKSTAGE, token=token)
        except RemoteError as error:
            raise UnreachableError(
                f"the groups of {person} cannot be read: {error}", hint=error.hint
            ) from error
        claims = answer.get("claims") if isinstance(answer, dict) else None
        if not isinstance(claims, dict) or claims.get("sub", person) != person:
            raise _unproved_by_portal(f"the portal does not say which groups {person} is in")
        return _refs(claims.get("ent"))


def _refs(value: Any) -> frozenset[str]:
    items = value if isinstance(value, list) else ()
    texts = (item for item in items if isinstance(item, str) and len(item) <= REFERENCE_MAX)
    return frozenset(fold_reference(text) for text in texts)


def token_type(token: str) -> str:
    """
    Return what kind of token Backstage says it is; nothing is proved by it.

    Raises:
        UnprovedError: It is not a signed token.
    """
    return str(header(token, _unproved_by_portal).get("typ", ""))


def _unproved_by_portal(why: str) -> UnprovedError:
    return UnprovedError(
        f"the requester is not proved: {why}",
        hint="let the portal's proxy forward the Authorization header (allowedHeaders)",
    )


_JUDGED_S = 30.0
"""How long a verdict counts: as long as a person's groups do."""


class JudgedGroups:
    """The groups of one provider."""

    def __init__(self, platform_groups: Collection[str], problem: Callable[[str], str]) -> None:
        """
        Prepare; nothing is asked.

        Args:
            problem: Returns why nobody counts as a member of an organisation; empty: they count.
        """
        self._platform_groups, self._problem = frozenset(platform_groups), problem
        self._judged: dict[str, tuple[float, str]] = {}

    def believed(self, groups: frozenset[str]) -> frozenset[str]:
        """
        Return the groups that count.

        Raises:
            OrderkitError: One of them is the platform's, and the forge cannot be asked.
        """
        return frozenset(
            group
            for group in groups
            # anybody may create an organisation of a name that platformGroups lists
            if group not in self._platform_groups or not self._problem_of(group.rpartition("/")[2])
        )

    def _problem_of(self, org: str) -> str:
        at, problem = self._judged.get(org, (0.0, ""))
        if not at or time.monotonic() - at >= _JUDGED_S:
            problem = self._problem(org)
            self._judged[org] = (time.monotonic(), problem)
        return problem
