"""
HTTP to one Gitea: credentials, time-outs, size caps, and errors in our own words.

Redirects are off (a 301 turns a POST into a GET elsewhere), proxies and netrc of the
environment are ignored (netrc would replace our credentials), addresses are built from our
base URL only. A GET is tried again when the connection broke or the forge failed; nothing
else is repeated here, since only who writes knows whether a write can be.

Called by every module of this package.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import requests

from orderkit.adapters.http import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, check_url, read_capped
from orderkit.core.errors import (
    AccessError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    RemoteError,
    UnreachableError,
    shorten,
)
from orderkit.core.secrets import redact, register

ANSWER_MAX_BYTES = 64 * 1024 * 1024
_GET_TRIES = 3
GET_PAUSE_S = 0.05
_UNKNOWN, _SERVER_FAILED = 401, 500
_MOVED = (301, 302, 303, 307, 308)
Query = Mapping[str, str | int]
"""Query parameters; values are encoded."""
_IS_IT_UP = "is the platform up? orderkit up"
RACE = re.compile(
    r"cannot lock ref|is at \S+ but expected|non-fast-forward|push ?out ?of ?date|"
    r"fetch first|failed to update ref",
    re.IGNORECASE,
)
"""What a forge says when another writer moved the branch first."""


class LostAnswerError(UnreachableError):
    """The request went out, and no complete answer came back: it may have been carried out."""

    timed_out = False


class ServerError(RemoteError):
    """The forge failed (5xx); what was asked for may have been carried out."""

    retryable = True


class GarbledError(RemoteError):
    """Success without what a Gitea says then: somebody else answered, or it was cut."""

    retryable = True


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300  # noqa: PLR2004  what 2xx means

    def json(self) -> Any:
        """
        Return the body as JSON.

        Raises:
            GarbledError: It is none, so this is no Gitea API.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise GarbledError(
                f"the forge answered {self.status} without JSON: {_foreign(self.body)}",
                hint="does the base URL point to Gitea, and not to a proxy's page?",
            ) from error

    @property
    def text(self) -> str:
        """What the server says went wrong: cut, on one line, without secrets."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            return _foreign(self.body)
        if not isinstance(found, dict):
            return _foreign(self.body)
        parts = [str(found.get("message") or found.get("error") or "")]
        errors = found.get("errors")
        if isinstance(errors, list):
            parts += [str(each) for each in errors]
        return shorten(redact(": ".join(part for part in parts if part)))


@dataclass(frozen=True, slots=True)
class Credentials:
    """A token, or a name and password. Never shown."""

    token: str = ""
    user: str = ""
    password: str = ""

    @property
    def header(self) -> str:
        """The Authorization header's value."""
        if self.token:
            return f"token {self.token}"
        pair = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        return f"Basic {pair}"

    def __repr__(self) -> str:
        return f"Credentials(user={self.user!r})"


class Transport:
    """
    Sends requests to one Gitea. Safe to use from several threads.

    Each request borrows a session (a connection) from a pool of idle ones.
    """

    def __init__(
        self,
        base_url: str,
        credentials: Credentials,
        *,
        ca_bundle: str | None = None,
        allow_http: bool = False,
        read_timeout_s: float = READ_TIMEOUT_S,
        renew: Callable[[], Credentials] | None = None,
    ) -> None:
        """
        Prepare; nothing is sent.

        Args:
            renew: Asked for credentials again when the forge no longer knows ours.

        Raises:
            InvalidInputError: `base_url` is no address of a forge, or `ca_bundle` no bundle.
            RefusedError: Plain HTTP to another machine without `allow_http`.
        """
        self.base_url = _check_base(base_url, allow_http=allow_http)
        self._credentials, self._renew = _registered(credentials), renew
        self._verify: str | bool = _check_bundle(ca_bundle) if ca_bundle else True
        self._timeouts = (CONNECT_TIMEOUT_S, read_timeout_s)
        self._idle: list[requests.Session] = []
        self._lock = threading.Lock()
        self._renewing = threading.Lock()

    @property
    def has_password(self) -> bool:
        """Whether we have user and password, which a few calls insist on."""
        return bool(self._credentials.password) and not self._credentials.token

    def get(self, path: str, query: Query | None = None) -> Answer:
        """
        Send a GET; try again if the connection broke or the answer was a 5xx.

        Raises:
            UnreachableError: No answer.
            RemoteError: The address has moved.
        """
        for attempt in range(1, _GET_TRIES):
            try:
                answer = self.send("GET", path, query=query)
            except LostAnswerError as error:
                if error.timed_out:
                    raise
            else:
                if answer.status < _SERVER_FAILED:
                    return answer
            time.sleep(GET_PAUSE_S * attempt)
        return self.send("GET", path, query=query)

    def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Query | None = None,
    ) -> Answer:
        """
        Send one request, once.

        Raises:
            LostAnswerError: It went out and may have been carried out.
            UnreachableError: It never went out.
            RemoteError: The address has moved, or the answer is too large.
        """
        used = self._credentials
        answer = self._try(used, method, path, body, query)
        if answer.status == _UNKNOWN and self._renewed(used):
            answer = self._try(self._credentials, method, path, body, query)
        if answer.status in _MOVED:
            raise _moved(path, answer)
        return answer

    def _renewed(self, used: Credentials) -> bool:
        """Get credentials again after a 401; say if they are other ones."""
        if self._renew is None:
            return False
        with self._renewing:
            if self._credentials is used:
                try:
                    self._credentials = _registered(self._renew())
                except OrderkitError:
                    return False
            return self._credentials != used

    def _try(
        self, credentials: Credentials, method: str, path: str, body: object, query: Query | None
    ) -> Answer:
        with self._session() as session:
            session.headers["Authorization"] = credentials.header
            try:
                return self._exchange(session, method, path, body, query)
            except requests.exceptions.SSLError as error:
                raise _untrusted(self.base_url, error) from error
            except requests.exceptions.ConnectTimeout as error:
                raise UnreachableError(
                    f"no connection to {self.base_url} within {CONNECT_TIMEOUT_S:g} s",
                    hint=_IS_IT_UP,
                ) from error
            except (requests.exceptions.RequestException, OSError) as error:
                raise self._no_answer(error) from error

    def _exchange(
        self,
        session: requests.Session,
        method: str,
        path: str,
        body: object,
        query: Query | None,
    ) -> Answer:
        data = None if body is None else json.dumps(body).encode()
        with session.request(
            method,
            f"{self.base_url}/api/v1{path}",
            params=query,
            data=data,
            headers={"Content-Type": "application/json"} if data is not None else None,
            timeout=self._timeouts,
            allow_redirects=False,
            stream=True,
            verify=self._verify,
        ) as response:
            return Answer(
                response.status_code, response.headers, read_capped(response, ANSWER_MAX_BYTES)
            )

    @contextmanager
    def _session(self) -> Iterator[requests.Session]:
        with self._lock:
            session = self._idle.pop() if self._idle else self._new_session()
        try:
            yield session
        finally:
            with self._lock:
                self._idle.append(session)

    def _new_session(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False
        session.headers["Accept"] = "application/json"
        return session

    def _no_answer(self, error: Exception) -> UnreachableError:
        if _never_sent(error):
            return UnreachableError(f"nobody answers at {self.base_url}", hint=_IS_IT_UP)
        lost = LostAnswerError(
            f"{self.base_url} did not answer completely: {_foreign(str(error))}",
            hint=f"repeat the command; {_IS_IT_UP}",
        )
        lost.timed_out = isinstance(error, requests.exceptions.Timeout)
        return lost

    def close(self) -> None:
        """Close idle connections. The transport stays usable."""
        with self._lock:
            idle, self._idle = self._idle, []
        for session in idle:
            session.close()


def _check_base(base_url: str, *, allow_http: bool) -> str:
    url = check_url("base_url", base_url, allow_http=allow_http)
    if url.endswith("/api/v1"):
        raise InvalidInputError(
            "base_url", url, "must not contain /api/v1", hint=f"use {url.removesuffix('/api/v1')}"
        )
    return url


def _check_bundle(ca_bundle: str) -> str:
    try:
        ssl.create_default_context(cafile=ca_bundle)
    except OSError as error:  # SSLError is one
        raise InvalidInputError(
            "CA bundle",
            ca_bundle,
            "cannot be read as certificates",
            hint="give a PEM file: -----BEGIN CERTIFICATE-----",
        ) from error
    return ca_bundle


def _registered(credentials: Credentials) -> Credentials:
    for secret in (credentials.token, credentials.password):
        register(secret)
    if credentials.password:
        register(f"{credentials.user}:{credentials.password}")
    return credentials


def path_of(*segments: str) -> str:
    """Return a path of percent-encoded segments; slashes inside a segment are encoded too."""
    return "".join("/" + quote(segment, safe="") for segment in segments)


def refusal(answer: Answer, doing: str) -> Exception:
    """Return the error that an answer other than success means."""
    text, status = answer.text, answer.status
    said = f"{doing}: {status} {text}".rstrip()
    if status == 401:  # noqa: PLR2004
        return AccessError(
            f"bad credentials: {said}",
            hint="check the token or password, and that it is not expired",
        )
    if status == 403:  # noqa: PLR2004
        return _forbidden(said, text)
    if status == 404:  # noqa: PLR2004
        return NotFoundError(said, hint="it does not exist, or is hidden from these credentials")
    if status == 423:  # noqa: PLR2004
        return RefusedError(f"archived, hence read-only: {said}", hint="unarchive it in the forge")
    if status >= 500:  # noqa: PLR2004  server errors
        return ServerError(said, hint="repeat the command; if it stays, look into the forge's log")
    return RemoteError(said)


def missing_scope(text: str) -> str:
    """Return the token scope that a refusal asks for; "" if it asks for none."""
    if "required scope" not in text:
        return ""
    _, _, tail = text.partition("required=")
    return tail.partition(",")[0].strip("[] ") or "the one named in the message"


def _forbidden(said: str, text: str) -> AccessError:
    scope = missing_scope(text)
    if scope:
        return AccessError(f"missing scope: {said}", hint=f"make a token with scope {scope}")
    return AccessError(
        f"no right: {said}", hint="ask an owner of the organisation for write access"
    )


def _moved(path: str, answer: Answer) -> RemoteError:
    where = urlsplit(answer.headers.get("location", "")).path
    said = f"{path} has moved to {shorten(redact(where))} ({answer.status})"
    new = re.search(r"/repos/([^/]+/[^/]+)", where)
    if new:
        return RemoteError(said, hint=f"it was renamed: write {new[1]} wherever it is named")
    return RemoteError(
        said,
        hint="the owner or repository was renamed, or the base URL lacks a path or https:"
        " use the new name or address",
    )


def _untrusted(base_url: str, error: Exception) -> UnreachableError:
    """Say what is wrong with the certificate, and the way out of exactly that."""
    text = str(error)
    reason = re.search(r"certificate verify failed: (.*?) \(_ssl", text)
    said = f"no trusted TLS connection to {base_url}: "
    if reason is None and re.search(r"WRONG_VERSION_NUMBER|RECORD_LAYER", text):
        return UnreachableError(
            f"{said}the port does not speak TLS", hint="use http:// (a lab), or the right port"
        )
    if reason is None:
        return UnreachableError(said + _foreign(text), hint="see the forge's TLS settings")
    hints = {
        "expired": "renew the forge's certificate",
        "mismatch": "use the name that the certificate is for in the base URL",
        "not valid for": "use the name that the certificate is for in the base URL",
    }
    own = "name the CA that signed the certificate: forge.caFile in platform.yaml"
    hint = next((way for word, way in hints.items() if word in reason[1]), own)
    return UnreachableError(f"{said}{reason[1]}", hint=hint)


def _never_sent(error: Exception) -> bool:
    return "NewConnectionError" in repr(error) or "NameResolutionError" in repr(error)


def _foreign(body: bytes | str) -> str:
    text = body[:4096].decode(errors="replace") if isinstance(body, bytes) else body
    return shorten(redact(text))
