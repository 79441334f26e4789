"""
HTTP to one forge: credentials, time-outs, size limits, and our own errors.

Addresses are built from our base URL only. A GET is repeated if the connection broke or the forge
failed; no other request is repeated here, because only the caller knows whether that is safe.

This uses urllib3 itself, and not requests, which takes as much processor time again for each
request (0.35 and 0.8 ms). Neither reads the environment's proxies or netrc here.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import quote, urlencode

import certifi
import urllib3
from urllib3 import exceptions

from ground.errors import InvalidInputError, MovedError, OrderkitError, UnreachableError
from ground.secrets import register
from orderkit.adapters.forges import answers
from orderkit.adapters.forges.answers import (
    ForgeResponse,
    LostAnswerError,
    foreign,
    moved,
    untrusted,
)
from orderkit.adapters.http import (
    CHUNK_BYTES,
    CONNECT_TIMEOUT_S,
    READ_TIMEOUT_S,
    check_url,
    joined,
    unsendable,
)
from orderkit.core.telemetry import Attributes, count, span

ANSWER_MAX_BYTES = 64 * 1024 * 1024
_UNKNOWN, _SERVER_FAILED = 401, 500
_CONNECTIONS_KEPT = 128
"""More than threads that ask at once: the service answers 72 requests, some with helpers."""
_MOVED = (301, 302, 303, 307, 308)
GIT = "git:"
"""The beginning of paths that lead to a repository, for git: ``git:/OWNER/NAME.git/…``."""
_GIT_HEADERS = {"Content-Type": "application/x-git-receive-pack-request", "Accept": "*/*"}
Query = Mapping[str, str | int]
"""Query parameters; values are encoded."""
_IS_IT_UP = "is the platform up? orderkit up"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A token, or a name and password. Never printed."""

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


class ForgeTransport:
    """
    Sends requests to one forge. Safe to use from several threads.

    Each request borrows a connection from a pool of idle ones.
    """

    def __init__(
        self,
        base_url: str,
        credentials: Credentials,
        *,
        api_url: str,
        headers: Mapping[str, str] = MappingProxyType({}),
        ca_bundle: str | None = None,
        allow_http: bool = False,
        read_timeout_s: float = READ_TIMEOUT_S,
        renew: Callable[[], Credentials] | None = None,
    ) -> None:
        """
        Prepare; nothing is sent.

        Args:
            base_url: Where people find the forge.
            api_url: Where its API is, without a final slash; "/PATH" means below `base_url`.
            headers: Sent with every request.
            renew: Called for new credentials when the forge rejects the current ones.

        Raises:
            InvalidInputError: `base_url` is not a forge address, or `ca_bundle` is unreadable.
            RefusedError: Plain HTTP to another machine without `allow_http`.
        """
        self.base_url = _check_base(base_url, api_url, allow_http=allow_http)
        self.api_url = (
            self.base_url + api_url
            if api_url.startswith("/")
            else check_url("forge.apiUrl", api_url, allow_http=allow_http)
        )
        self._headers = {"Accept": "application/json", "Accept-Encoding": "gzip", **headers}
        self._credentials, self._renew = _registered(credentials), renew
        self._connections = urllib3.PoolManager(
            maxsize=_CONNECTIONS_KEPT,
            ca_certs=_check_bundle(ca_bundle) if ca_bundle else certifi.where(),
            timeout=urllib3.Timeout(CONNECT_TIMEOUT_S, read_timeout_s),
        )
        self._lock = threading.Lock()
        self._renewing = threading.Lock()
        self._answers: dict[object, ForgeResponse] | None = None
        self._asking: defaultdict[object, threading.Lock] = defaultdict(threading.Lock)

    def remember(self) -> None:
        """Ask each thing once from now on, until something is written."""
        self._answers = {}

    def get(self, path: str, query: Query | None = None) -> ForgeResponse:
        """
        Send a GET; try again if the connection broke or the answer was a 5xx.

        Raises:
            UnreachableError: No answer.
            RemoteError: The address has moved.
        """
        answers = self._answers
        if answers is None:
            return self._get(path, query)
        key = (path, *(query or {}).items())
        with self._lock:
            asking = self._asking[key]
        with asking:  # threads that want the same wait for one answer
            if key not in answers:
                answers[key] = self._get(path, query)
            return answers[key]

    def _get(self, path: str, query: Query | None) -> ForgeResponse:
        for attempt in range(1, answers.GET_TRIES):
            try:
                answer = self.send("GET", path, query=query)
            except LostAnswerError as error:
                if error.timed_out:
                    raise
            else:
                if answer.status < _SERVER_FAILED:
                    return answer
            time.sleep(answers.GET_PAUSE_S * attempt)
        return self.send("GET", path, query=query)

    def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Query | None = None,
        as_: Credentials | None = None,
    ) -> ForgeResponse:
        """
        Send one request, once.

        Args:
            as_: Somebody else's credentials; None: ours.

        Raises:
            LostAnswerError: It was sent and may have been carried out.
            UnreachableError: It was never sent.
            RemoteError: The address has moved, or the answer is too large.
        """
        if method != "GET" and self._answers is not None:
            # our write may change what was read
            self._answers = {}
        credentials = as_ or self._credentials
        answer = self._try(credentials, method, path, body, query)
        if answer.status == _UNKNOWN and as_ is None and self._renewed(credentials):
            answer = self._try(self._credentials, method, path, body, query)
        if answer.status in _MOVED:
            raise self._moved(path, answer)
        return answer

    def _moved(self, path: str, answer: ForgeResponse) -> MovedError:
        return moved(path, answer)

    def _authorization(self, credentials: Credentials, path: str) -> str:  # noqa: ARG002  by forge
        """Return the header that says who we are, where `path` leads."""
        return credentials.header

    def _basic(self, user: str, secret: str) -> str:
        """Return the header that git takes: whoever pushes gives a token as a password."""
        pair = base64.b64encode(f"{user}:{secret}".encode()).decode()
        register(pair)
        return f"Basic {pair}"

    def _url(self, path: str) -> str:
        is_git = path.startswith(GIT)
        return f"{self.base_url}{path[len(GIT) :]}" if is_git else f"{self.api_url}{path}"

    def _headers_for(self, method: str, path: str, query: Query | None) -> Mapping[str, str]:  # noqa: ARG002  by forge
        """Return headers of one request only."""
        return _GIT_HEADERS if path.startswith(GIT) else {}

    def _renewed(self, rejected: Credentials) -> bool:
        """Get new credentials after a 401; say whether they differ from the rejected ones."""
        if self._renew is None:
            return False
        with self._renewing:
            # unless another thread renewed them while we waited for the lock
            if self._credentials is rejected:
                try:
                    self._credentials = _registered(self._renew())
                except OrderkitError:
                    return False
            return self._credentials != rejected

    def _try(
        self, credentials: Credentials, method: str, path: str, body: object, query: Query | None
    ) -> ForgeResponse:
        outcome = "no answer"
        about: Attributes = {"http.request.method": method, "url.path": path}
        with span(f"forge {method}", about) as notes:
            try:
                authorization = self._authorization(credentials, path)
                answer = self._exchange(authorization, method, path, body, query)
            except exceptions.SSLError as error:
                raise untrusted(self.base_url, error) from error
            except exceptions.NewConnectionError as error:
                text = f"nobody answers at {self.base_url}"
                raise UnreachableError(text, hint=_IS_IT_UP) from error
            except exceptions.ConnectTimeoutError as error:
                raise UnreachableError(
                    f"no connection to {self.base_url} within {CONNECT_TIMEOUT_S:g} s",
                    hint=_IS_IT_UP,
                ) from error
            except (exceptions.HTTPError, OSError) as error:
                raise self._no_answer(error) from error
            except ValueError:  # http.client's names the value
                raise unsendable("the forge's token or password") from None
            else:
                notes["http.response.status_code"] = answer.status
                outcome = f"{answer.status // 100}xx"
                return answer
            finally:
                count("forge_requests", outcome)

    def _exchange(
        self, authorization: str, method: str, path: str, body: object, query: Query | None
    ) -> ForgeResponse:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {**self._headers, "Authorization": authorization}
        if data is not None:
            headers["Content-Type"] = "application/json"
        headers.update(self._headers_for(method, path, query))
        response = self._connections.urlopen(
            method,
            f"{self._url(path)}?{urlencode(query)}" if query else self._url(path),
            body=data,
            headers=headers,
            # a 301 would turn a POST into a GET of another address
            redirect=False,
            retries=False,
            preload_content=False,
        )
        try:
            answer = joined(response.stream(CHUNK_BYTES, decode_content=True), ANSWER_MAX_BYTES)
        except BaseException:
            response.close()
            raise
        response.release_conn()
        return ForgeResponse(response.status, response.headers, answer)

    def _no_answer(self, error: Exception) -> UnreachableError:
        lost_answer = LostAnswerError(
            f"{self.base_url} did not answer completely: {foreign(str(error))}",
            hint=f"repeat the command; {_IS_IT_UP}",
        )
        lost_answer.timed_out = isinstance(error, exceptions.TimeoutError)
        return lost_answer

    def close(self) -> None:
        """Close idle connections. The transport stays usable."""
        self._connections.clear()


def _check_base(base_url: str, api_url: str, *, allow_http: bool) -> str:
    url = check_url("base_url", base_url, allow_http=allow_http)
    if api_url.startswith("/") and url.endswith(api_url):
        raise InvalidInputError(
            "base_url", url, f"must not contain {api_url}", hint=f"use {url.removesuffix(api_url)}"
        )
    return url


def _check_bundle(ca_bundle: str) -> str:
    try:
        ssl.create_default_context(cafile=ca_bundle)
    except OSError as error:  # includes SSLError
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
