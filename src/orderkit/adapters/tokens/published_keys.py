"""
Tokens signed with keys that their signer publishes (JSON Web Key Sets, RFC 7517).

Keys are kept by id and fetched again when an unknown id appears, at most every few seconds, so
that a stranger's tokens cannot cause endless requests. Signatures, algorithms, audience and
times are judged by PyJWT. Called by ``backstage.signatures`` and ``oidc``; thread-safe.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jwt

from orderkit.adapters.backstage.backstage_http import send
from orderkit.core.errors import UnreachableError
from orderkit.ports.requesters import UnprovedError

LEEWAY_S = 30
"""How far the clocks of signer and service may differ."""
REFETCH_S = 5.0
TIMEOUT_S = 5.0
_OK = 200
Unproved = Callable[[str], UnprovedError]


@dataclass(frozen=True, slots=True)
class ExpectedClaims:
    """What a token must say; None: its audience or issuer is not looked at."""

    audience: str | None
    algorithms: Sequence[str]
    issuer: str | None = None


class PublishedKeys:
    """The keys of one signer."""

    def __init__(self, address: Callable[[], str], unproved: Unproved, *, hint: str) -> None:
        """
        Prepare; nothing is sent.

        Args:
            address: Where the keys are published; may ask the signer itself.
            unproved: Makes the error from the reason.
            hint: What to do if they cannot be had.
        """
        self._address, self._unproved, self._hint = address, unproved, hint
        self._lock = threading.Lock()
        self._known: Mapping[str, jwt.PyJWK] = {}
        self._fetched_at: float | None = None

    def verified(self, token: str, expected: ExpectedClaims) -> dict[str, Any]:
        """
        Return the claims of a token that this signer signed, as expected, and lately.

        Raises:
            UnprovedError: It did not. UnreachableError: the keys cannot be had.
        """
        key = self._key(str(header(token, self._unproved).get("kid", "")))
        required = ["iat", "exp", "sub", *(["iss"] if expected.issuer else [])]
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(expected.algorithms),
                audience=expected.audience,
                issuer=expected.issuer,
                leeway=LEEWAY_S,
                options={"require": required, "verify_aud": expected.audience is not None},
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise self._unproved(f"the token is not valid: {error}") from error
        return claims

    def fetch(self) -> int:
        """
        Fetch the keys now; return how many there are.

        Raises:
            UnreachableError: They cannot be had.
        """
        with self._lock:
            self._fetch()
            return len(self._known)

    def _key(self, key_id: str) -> jwt.PyJWK:
        with self._lock:
            if key_id not in self._known and self._may_fetch():
                self._fetch()
            public_key = self._known.get(key_id)
        if public_key is None:
            raise self._unproved("the token is signed with a key that its signer does not publish")
        return public_key

    def _fetch(self) -> None:
        self._known = self._fetched(self._address())
        self._fetched_at = time.monotonic()

    def _may_fetch(self) -> bool:
        return self._fetched_at is None or time.monotonic() - self._fetched_at >= REFETCH_S

    def _fetched(self, url: str) -> dict[str, jwt.PyJWK]:
        answer = fetch_json(url, self._hint)
        keys = answer.get("keys") if isinstance(answer, dict) else None
        public_keys = {}
        for entry in keys if isinstance(keys, list) else ():
            try:
                key = jwt.PyJWK.from_dict(entry)
            except (jwt.PyJWTError, TypeError, AttributeError, ValueError):
                continue  # a kind of key that we do not know: tokens signed with it are refused
            if key.key_id and key.key_type != "oct":
                public_keys[key.key_id] = key
        return public_keys


def fetch_json(url: str, hint: str, *, token: str = "") -> Any:
    """
    Return what a signer publishes at an address, asked with a bearer token if one is given.

    Raises:
        UnreachableError: Nobody answers, or with another status than 200. RemoteError: no JSON.
    """
    headers = {"Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    answer = send("GET", url, headers=headers, timeout_s=TIMEOUT_S)
    if answer.status != _OK:
        raise UnreachableError(f"the keys of a signer: {url} answered {answer.status}", hint=hint)
    return answer.json()


def header(token: str, unproved: Unproved) -> dict[str, Any]:
    """
    Return a token's header, which is not proved yet.

    Raises:
        UnprovedError: It is no signed token.
    """
    try:
        token_header: dict[str, Any] = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError) as error:
        raise unproved("the token is not a signed token") from error
    return token_header
