"""
Who stands behind a request that came through Backstage, proved by Backstage's signatures.

The step ``http:backstage:request`` sends a token of the scaffolder (``vnd.backstage.plugin``,
audience ``proxy``, an hour) that holds, as ``obo``, a token of the person who runs the task
(``vnd.backstage.limited-user``); a person's own call through the proxy sends theirs
(``vnd.backstage.user``). Observed on Backstage 1.55. Each is checked with the keys its signer
publishes below the portal's address. A task of a service account holds nobody.

Keys are kept by id and fetched again when an unknown id appears, at most every few seconds.
Called by ``web`` through the port ``requesters``; thread-safe.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import jwt

from orderkit.adapters.backstage.transport import send
from orderkit.adapters.http import check_url
from orderkit.core.errors import InvalidInputError, UnreachableError
from orderkit.core.names import check_requester
from orderkit.ports.requesters import Requester, UnprovedError

PLUGIN, USER, LIMITED_USER = (
    "vnd.backstage.plugin",
    "vnd.backstage.user",
    "vnd.backstage.limited-user",
)
_SCAFFOLDER, _PROXY, _AUDIENCE = "scaffolder", "proxy", "backstage"
_ALGORITHMS = ["ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "EdDSA"]
_LEEWAY_S = 30
_REFETCH_S = 5.0
_TIMEOUT_S = 5.0
_OK = 200


class BackstageRequesters:
    """The signatures of one Backstage."""

    def __init__(self, base_url: str, *, allow_http: bool = False) -> None:
        """
        Prepare; nothing is sent.

        Raises:
            InvalidInputError: `base_url` is no address.
            RefusedError: Plain HTTP to another machine without `allow_http`.
        """
        self._base = check_url("signedBy", base_url, allow_http=allow_http)
        self._users = _Keys(f"{self._base}/api/auth/.well-known/jwks.json")
        self._scaffolder = _Keys(f"{self._base}/api/scaffolder/.backstage/auth/v1/jwks.json")

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
        Return the person whom this Backstage vouches for.

        Raises:
            UnprovedError: No token of its, an expired one, or nobody behind it.
            UnreachableError: Its keys cannot be had now.
        """
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise _unproved("no token of the portal came with the request")
        kind = _type(token)
        if kind == PLUGIN:
            claims = self._users.verified(self._on_behalf_of(token), audience=None)
        elif kind == USER:
            claims = self._users.verified(token, audience=_AUDIENCE)
        else:
            raise _unproved("the token is none of a person who is signed in to the portal")
        person = claims["sub"]
        try:
            return Requester(check_requester(person), f"signed by {self._base}")
        except InvalidInputError as error:
            raise _unproved(f"the portal calls its user '{person}'") from error

    def _on_behalf_of(self, token: str) -> str:
        claims = self._scaffolder.verified(token, audience=_PROXY)
        if claims["sub"] != _SCAFFOLDER:
            raise _unproved(f"the token is of the portal's plugin '{claims['sub']}'")
        person = claims.get("obo")
        if not isinstance(person, str) or _type(person) != LIMITED_USER:
            raise UnprovedError(
                "the portal's token names no person",
                hint="start the task signed in, not with a service token",
            )
        return person


class _Keys:
    """The keys of one signer."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._known: Mapping[str, jwt.PyJWK] = {}
        self._fetched_at: float | None = None

    def verified(self, token: str, *, audience: str | None) -> dict[str, Any]:
        """
        Return the claims of a token that this signer signed, for this audience, and lately.

        Raises:
            UnprovedError: It did not. UnreachableError: the keys cannot be had.
        """
        key = self._key(str(jwt.get_unverified_header(token).get("kid", "")))
        try:
            found: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                audience=audience,
                leeway=_LEEWAY_S,
                options={"require": ["iat", "exp", "sub"], "verify_aud": audience is not None},
            )
        except jwt.PyJWTError as error:
            raise _unproved(f"the portal's token is not valid: {error}") from error
        return found

    def fetch(self) -> int:
        """Fetch the keys now; return how many there are."""
        with self._lock:
            self._known = _fetched(self._url)
            self._fetched_at = time.monotonic()
            return len(self._known)

    def _key(self, key_id: str) -> jwt.PyJWK:
        with self._lock:
            if key_id not in self._known and self._may_fetch():
                self._known = _fetched(self._url)
                self._fetched_at = time.monotonic()
            found = self._known.get(key_id)
        if found is None:
            raise _unproved("the portal has not signed the token with a key it publishes")
        return found

    def _may_fetch(self) -> bool:
        return self._fetched_at is None or time.monotonic() - self._fetched_at >= _REFETCH_S


def _fetched(url: str) -> dict[str, jwt.PyJWK]:
    answer = send("GET", url, headers={"Accept": "application/json"}, timeout_s=_TIMEOUT_S)
    if answer.status != _OK:
        raise UnreachableError(
            f"the portal's keys: {url} answered {answer.status}",
            hint="does portal.signedBy in platform.yaml name a Backstage?",
        )
    listed = answer.json()
    keys = listed.get("keys") if isinstance(listed, dict) else None
    found = {}
    for entry in keys if isinstance(keys, list) else ():
        try:
            key = jwt.PyJWK.from_dict(entry)
        except (jwt.PyJWTError, TypeError, AttributeError):
            continue  # a kind of key that we do not know: tokens signed with it are refused
        if key.key_id and key.key_type != "oct":
            found[key.key_id] = key
    return found


def _type(token: str) -> str:
    try:
        return str(jwt.get_unverified_header(token).get("typ", ""))
    except jwt.PyJWTError as error:
        raise _unproved("what came with the request is no token of the portal") from error


def _unproved(why: str) -> UnprovedError:
    return UnprovedError(
        f"who asks is not proved: {why}",
        hint="the portal's proxy must let Authorization pass (allowedHeaders)",
    )
