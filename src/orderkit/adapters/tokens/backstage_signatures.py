"""
Prove the person behind a request that came through Backstage, by Backstage's signatures.

The step ``http:backstage:request`` sends a token of the scaffolder (``vnd.backstage.plugin``,
audience ``proxy``, an hour) that holds, as ``obo``, a token of the person who runs the task
(``vnd.backstage.limited-user``); a person's own call through the proxy sends theirs
(``vnd.backstage.user``). Observed on Backstage 1.55. Each is checked with the keys its signer
publishes below the portal's address. A task of a service account names no person.

A person's groups are the token's own claim ``ent``. The limited token has none; then Backstage is
asked for them with the token itself (``/api/auth/v1/userinfo``), as its own plugins do, and the
answer is kept for half a minute.

Thread-safe.
"""

from __future__ import annotations

import hashlib
import threading
import time
from typing import Any

from ground.errors import InvalidInputError, RemoteError, UnreachableError
from ground.names import REFERENCE_MAX, check_person, fold_reference
from orderkit.adapters.http import check_url
from orderkit.adapters.tokens.published_keys import (
    WAITERS_MAX,
    ExpectedClaims,
    PublishedKeys,
    fetch_json,
    header,
    provider_busy,
)
from orderkit.core.platform.service_access import ALGORITHMS
from orderkit.ports.requesters import Requester, UnprovedError

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
        return PublishedKeys(lambda: url, _unproved, hint=_NO_BACKSTAGE)

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
            raise _unproved("no token of the portal came with the request")
        kind = token_type(token)
        if kind == PLUGIN:
            token = self._on_behalf_of(token)
            claims = self._users.verified(token, ExpectedClaims(None, ALGORITHMS))
        elif kind == USER:
            claims = self._users.verified(token, ExpectedClaims(_AUDIENCE, ALGORITHMS))
        else:
            raise _unproved("the token does not belong to a person who is signed in to the portal")
        try:
            person = check_person(claims["sub"])
        except InvalidInputError as error:
            raise _unproved(f"the portal's name of its user: {error}") from error
        groups = self._groups.of(token, claims)
        return Requester(person, f"signed by {self._base}", groups, expires_s=float(claims["exp"]))

    def _on_behalf_of(self, token: str) -> str:
        claims = self._scaffolder.verified(token, ExpectedClaims(_PROXY, ALGORITHMS))
        if claims["sub"] != _SCAFFOLDER:
            raise _unproved(f"the token belongs to the portal's plugin '{claims['sub']}'")
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
            raise _unproved(f"the portal does not say which groups {person} is in")
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
    return str(header(token, _unproved).get("typ", ""))


def _unproved(why: str) -> UnprovedError:
    return UnprovedError(
        f"the requester is not proved: {why}",
        hint="let the portal's proxy forward the Authorization header (allowedHeaders)",
    )
