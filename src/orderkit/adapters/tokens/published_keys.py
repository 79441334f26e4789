"""
Tokens signed with keys that their signer publishes (JSON Web Key Sets, RFC 7517).

Keys are kept by id and fetched again when an unknown id appears: once at a time, and at most every
few seconds, also after a failure, so that a stranger's tokens cause no endless requests and keep
nobody waiting whose key is known. Signatures, algorithms, audience and times are judged by PyJWT.

`SingleFlight` fetches a value that many requests need once at a time, and remembers a failure.
Strangers can make the service ask an identity provider: their tokens name keys that nobody knows.
If the provider is slow, only one thread may wait for it and a few for that thread; all others are
answered at once.

Both are thread-safe.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Generic, TypeVar

import jwt

from ground.errors import RemoteError, UnreachableError
from orderkit.adapters.backstage.backstage_client import send
from orderkit.ports.requesters import UnprovedError

WAITERS_MAX = 4
"""Bound on the threads that wait for an identity provider."""
WAIT_S = 12.0

Value = TypeVar("Value")


class SingleFlight(Generic[Value]):
    """The last fetched value, and the fetch under way."""

    def __init__(self, fetch: Callable[[], Value], *, kept_s: Callable[[], float]) -> None:
        """
        Prepare; nothing is fetched.

        Args:
            fetch: Fetches the value; called without a lock, by one thread at a time.
            kept_s: How long a value or a failure lasts before it is fetched again.
        """
        self._fetch, self._kept_s = fetch, kept_s
        self._state = threading.Condition()
        self._under_way = False
        self._waiting = 0
        self._ended_at: float | None = None
        self.value: Value | None = None
        """The value fetched last; None: never."""
        self._failure: RemoteError | None = None

    def refresh(self) -> Value:
        """
        Return the value, fetched now unless that was tried moments ago.

        Raises:
            UnreachableError: It cannot be had, could not moments ago, or too many wait for it.
        """
        with self._state:
            if self._under_way:
                self._join()
            is_due = not self._is_recent()
            self._under_way = is_due
        if is_due:
            self._fly()
        if self._failure is not None:
            raise UnreachableError(str(self._failure), hint=self._failure.hint) from self._failure
        if self.value is None:
            raise AssertionError("the fetch ended without a value")
        return self.value

    def _is_recent(self) -> bool:
        ended_at = self._ended_at
        return ended_at is not None and time.monotonic() - ended_at < self._kept_s()

    def _join(self) -> None:
        """Wait for the fetch under way; the caller holds the condition."""
        # strangers' tokens name keys that nobody knows: all but a few are answered at once
        if self._waiting >= WAITERS_MAX:
            raise provider_busy()
        self._waiting += 1
        try:
            if not self._state.wait_for(lambda: not self._under_way, WAIT_S):
                raise provider_busy()
        finally:
            self._waiting -= 1

    def _fly(self) -> None:
        value, failure = self.value, None
        try:
            value = self._fetch()
        except RemoteError as error:
            failure = error
        finally:
            with self._state:
                self.value, self._failure = value, failure
                self._ended_at, self._under_way = time.monotonic(), False
                self._state.notify_all()


def provider_busy() -> UnreachableError:
    """Make the error for a request that would have to wait behind others."""
    return UnreachableError(
        "the identity provider is slow, and others wait for it already",
        hint="send the request again in a few seconds",
    )


LEEWAY_S = 30
"""How far the clocks of signer and service may differ."""
# also after a failure: a stranger's tokens cause no endless requests
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

    def __init__(
        self,
        address: Callable[[], str],
        unproved: Unproved,
        *,
        hint: str,
        ca_file: PurePath | None = None,
    ) -> None:
        """
        Prepare; nothing is sent.

        Args:
            address: Where the keys are published; may ask the signer itself.
            unproved: Makes the error from the reason.
            hint: What to do if they cannot be had.
            ca_file: The certificates to trust; None: those that requests trusts.
        """
        self._address, self._unproved, self._hint = address, unproved, hint
        self._ca_file = ca_file
        self._keys = SingleFlight(self._fetched, kept_s=lambda: REFETCH_S)

    def verified(self, token: str, expected: ExpectedClaims) -> dict[str, Any]:
        """
        Return the claims of a token that this signer signed, as expected, and lately.

        Raises:
            UnprovedError: It did not. UnreachableError: the keys cannot be had.
        """
        key = self._key(str(header(token, self._unproved).get("kid", "")))
        required = ["iat", "exp", "sub", *(["iss"] if expected.issuer else [])]
        try:
            # the algorithms are those that we expect, never what the token names
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(expected.algorithms),
                audience=expected.audience,
                issuer=expected.issuer,
                leeway=LEEWAY_S,
                options={"require": required, "verify_aud": expected.audience is not None},
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise self._unproved(f"the token is not valid: {error}") from error
        return claims

    def fetch(self) -> int:
        """
        Fetch the keys, unless that was tried moments ago; return how many there are.

        Raises:
            UnreachableError: They cannot be had.
        """
        return len(self._keys.refresh())

    def _key(self, key_id: str) -> jwt.PyJWK:
        # who has a known key does not wait for a fetch that a stranger's token caused
        public_key = (self._keys.value or {}).get(key_id) or self._keys.refresh().get(key_id)
        if public_key is None:
            raise self._unproved("the token is signed with a key that its signer does not publish")
        return public_key

    def _fetched(self) -> dict[str, jwt.PyJWK]:
        answer = fetch_json(self._address(), self._hint, ca_file=self._ca_file)
        keys = answer.get("keys") if isinstance(answer, dict) else None
        public_keys = {}
        for entry in keys if isinstance(keys, list) else ():
            try:
                key = jwt.PyJWK.from_dict(entry)
            except (jwt.PyJWTError, TypeError, AttributeError, ValueError):
                continue  # a kind of key that we do not know: tokens signed with it are refused
            # a symmetric key that is published would let everybody sign
            if key.key_id and key.key_type != "oct":
                public_keys[key.key_id] = key
        return public_keys


def fetch_json(url: str, hint: str, *, token: str = "", ca_file: PurePath | None = None) -> Any:
    """
    Return what a signer publishes at an address, asked with a bearer token if one is given.

    Raises:
        UnreachableError: Nobody answers, or with another status than 200. RemoteError: no JSON.
    """
    headers = {"Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    answer = send("GET", url, headers=headers, timeout_s=TIMEOUT_S, ca_file=ca_file)
    if answer.status != _OK:
        raise UnreachableError(f"the keys of a signer: {url} answered {answer.status}", hint=hint)
    return answer.json()


def header(token: str, unproved: Unproved) -> dict[str, Any]:
    """
    Return a token's header, which is not proved yet.

    Raises:
        UnprovedError: It is not a signed token.
    """
    try:
        token_header: dict[str, Any] = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise unproved("the token is not a signed token") from error
    return token_header
