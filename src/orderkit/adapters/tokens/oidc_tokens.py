"""
Prove the person behind a token of an OpenID Connect provider.

Signature (a published key, an algorithm of the allow-list), issuer, audience and times are checked;
the requester and the groups are claims of the token. It keeps no sessions and asks the provider for
nothing but its keys. Thread-safe.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any

from ground.errors import InvalidInputError, UnreachableError
from ground.names import LABEL, LABEL_MAX, check_person, fold_reference
from orderkit.adapters.http import check_url
from orderkit.adapters.tokens.published_keys import ExpectedClaims, PublishedKeys, fetch_json
from orderkit.core.platform.service_access import OidcSettings
from orderkit.ports.requesters import Requester, UnprovedError

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
        self._keys = PublishedKeys(self._address, _unproved, hint=_HINT, ca_file=settings.ca_file)

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
            raise _unproved("the provider has not verified the e-mail address")
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
        raise _unproved(f"the token has no claim '{claim}'")
    try:
        return fold_reference(check_person(f"user:default/{value}"))
    except InvalidInputError as error:
        raise _unproved(f"the provider's name of its user: {error}") from error


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


def _unproved(why: str) -> UnprovedError:
    return UnprovedError(
        f"the requester is not proved: {why}",
        hint="get a new token from the provider, for the audience in platform.yaml",
    )
