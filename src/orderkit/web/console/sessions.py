"""
Sessions of the console: signed cookies, one-time links, and sign-ins under way.

A session is what its cookie says: who, with which groups, until when. Who signs out is remembered
until their session would have ended. Thread-safe.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from itsdangerous import BadSignature, URLSafeTimedSerializer

from ground.errors import RefusedError
from orderkit.core.platform.service_access import RIGHTS
from orderkit.ports.requesters import Requester, SignInAttempt, UnprovedError
from orderkit.web.callers import Caller

LINK_S = 600
"""How long a one-time link can be opened."""
ATTEMPT_S = 600
COOKIE_MAX_BYTES = 3800
"""Browsers keep 4096 bytes with the name and the attributes."""
CLOCKS_APART_S = 30
"""By how much the clock of the replica that signed may be ahead: as long as tokens may be early."""
_REVOKED_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Session:
    """One signed-in browser."""

    id: str
    requester: Requester
    csrf: str = field(repr=False)
    """What its forms send back."""
    ends_at: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class SessionCaller(Caller):
    """A caller who is known by a session."""

    session: Session


class Sessions:
    """Everything that a browser may show, by one key."""

    def __init__(self, secret: str, *, session_s: int) -> None:
        """Prepare; `secret` is the service's, `session_s` how long a session lasts."""
        self._session_s = session_s
        self._cookies, self._attempts, self._links = (
            _serializer(secret, purpose) for purpose in ("session", "sign-in", "link")
        )
        self._lock = threading.Lock()
        self._revoked: dict[str, float] = {}
        """When what was revoked or used would have ended."""
        self._began_at = time.time()

    def cookie(self, requester: Requester) -> str:
        """
        Begin a session and return its cookie.

        Raises:
            RefusedError: The person is in so many groups that no browser keeps the cookie.
        """
        payload = {
            "id": secrets.token_urlsafe(12),
            "ref": requester.ref,
            "proof": requester.proof,
            "groups": sorted(requester.groups),
            "rights": None if requester.rights == RIGHTS else sorted(requester.rights),
            "everywhere": requester.everywhere,
            "csrf": secrets.token_urlsafe(24),
            "ends": time.time() + self._session_s,
        }
        text = str(self._cookies.dumps(payload))
        if len(text) > COOKIE_MAX_BYTES:
            raise RefusedError(
                f"{requester.ref} is in {len(requester.groups)} groups: no browser keeps so many",
                hint="set service.access.signIn.groupPrefix in platform.yaml, or use fewer groups",
            )
        return text

    def session(self, cookie: str) -> Session:
        """
        Return the session of a cookie.

        Raises:
            UnprovedError: It is not ours, is over, or its person has signed out.
        """
        payload = _loaded(self._cookies, cookie, self._session_s)
        if payload["ends"] < time.time() or self._is_revoked(payload["id"]):
            raise _unproved("your session is over")
        requester = replace(_requester(payload), expires_s=payload["ends"])
        return Session(payload["id"], requester, payload["csrf"], payload["ends"])

    def end(self, session: Session) -> None:
        """Accept this session no more."""
        self._revoke(session.id, session.ends_at)

    def attempt_cookie(self, attempt: SignInAttempt, onward: str) -> str:
        """Return what a browser keeps while its person signs in, to return to `onward`."""
        return str(self._attempts.dumps({**asdict(attempt), "onward": onward}))

    def attempt(self, cookie: str, state: str) -> tuple[SignInAttempt, str]:
        """
        Return the sign-in of a browser, and where it leads.

        Raises:
            UnprovedError: This browser began none with this `state`, or did long ago.
        """
        payload = _loaded(self._attempts, cookie, ATTEMPT_S)
        if not secrets.compare_digest(payload["state"].encode(), state.encode()):
            raise _unproved("this sign-in was begun elsewhere")
        attempt = SignInAttempt(payload["state"], payload["nonce"], payload["verifier"])
        return attempt, payload["onward"]

    def redeem(self, token: str) -> Requester:
        """
        Return whom a one-time link signs in. A second time it does not.

        Raises:
            UnprovedError: It is not ours, is too old, was used, or is older than this process.
        """
        payload = _loaded(self._links, token, LINK_S)
        with self._lock:
            is_used = payload["id"] in self._revoked
            self._note(payload["id"], payload["at"] + LINK_S)
        # which links were used before this process began is not known
        if is_used or payload["at"] < self._began_at:
            raise _unproved("this link was used already, or the service restarted since")
        return _requester(payload)

    def _is_revoked(self, session: str) -> bool:
        with self._lock:
            return session in self._revoked

    def _revoke(self, session: str, ends_at: float) -> None:
        with self._lock:
            self._note(session, ends_at)

    def _note(self, name: str, ends_at: float) -> None:
        if len(self._revoked) >= _REVOKED_MAX:
            now = time.time()
            self._revoked = {key: at for key, at in self._revoked.items() if at > now}
        self._revoked[name] = ends_at


def link_token(secret: str, requester: Requester) -> str:
    """Return the token of a one-time link: whoever has the service's secret can make one."""
    return str(
        _serializer(secret, "link").dumps(
            {
                "id": secrets.token_urlsafe(12),
                "at": time.time(),
                "ref": requester.ref,
                "proof": requester.proof,
                "groups": sorted(requester.groups),
                "rights": sorted(requester.rights),
                "everywhere": requester.everywhere,
            }
        )
    )


def _serializer(secret: str, purpose: str) -> URLSafeTimedSerializer:
    # made from the service's secret, so that every replica knows it
    key = hmac.digest(secret.encode(), b"orderkit console", "sha256")
    options = {"digest_method": hashlib.sha256, "key_derivation": "hmac"}
    return URLSafeTimedSerializer(key, salt=f"orderkit.console.{purpose}", signer_kwargs=options)


def _loaded(serializer: URLSafeTimedSerializer, text: str, max_age_s: int) -> Mapping[str, Any]:
    why = "your session is over, or was never ours"
    try:
        # not by its own max_age: that refuses whatever another clock signed a second from now
        payload, signed_at = serializer.loads(text, return_timestamp=True)
    except BadSignature as error:
        raise _unproved(why) from error
    if not -CLOCKS_APART_S <= time.time() - signed_at.timestamp() <= max_age_s:
        raise _unproved(why)
    return cast("Mapping[str, Any]", payload)


def _requester(payload: Mapping[str, Any]) -> Requester:
    rights = payload["rights"]
    return Requester(
        payload["ref"],
        payload["proof"],
        frozenset(payload["groups"]),
        RIGHTS if rights is None else frozenset(rights),
        everywhere=payload["everywhere"],
    )


def _unproved(why: str) -> UnprovedError:
    return UnprovedError(f"you are not signed in: {why}", hint="sign in again")
