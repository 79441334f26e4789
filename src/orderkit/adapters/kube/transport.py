"""
One API server: requests with time-outs, credentials from a kubeconfig, answers as JSON.

Uses only the lowest layer of the official client (`Configuration`, `kube_config`,
`RESTClientObject`: TLS, proxies, credential plug-ins, connection pool). The layers above do not
fit: models refuse fields that other versions write; `DynamicClient` keeps a discovery file that
processes share, its watch cannot be resumed, and it has no time-outs. urllib3's retries are off,
because they would send a stuck GET four times; a GET whose connection broke before an answer is
sent once more. Redirects are not followed.

Tokens appear only in headers, never in messages.

`refusal` turns an API server's refusal (HTTP status and ``Status`` body) into the port's errors.
The HTTP code alone is ambiguous: 404 is a missing object, namespace or kind; 409 an existing
object, a stale version or another field manager; 500 may be a value of the wrong type. So reason
and details of the ``Status``, and then its text, decide too. The message is the server's own,
shortened.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Literal, Self, cast
from urllib.parse import urlencode

from ground.errors import (
    AccessError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RemoteError,
    UnreachableError,
    shorten,
)
from ground.objects.kube_objects import dig
from orderkit.core.gc_pause import uncollected
from orderkit.core.telemetry import Attributes, span
from orderkit.ports.cluster import (
    ApplyConflictError,
    ExpiredError,
    InvalidObjectError,
    NoSuchKindError,
    NoSuchNamespaceError,
    WatchStop,
    WrongTypeError,
)

MESSAGE_LIMIT = 2000
"""Longer than elsewhere, so that one line per invalid field remains."""

NOT_TYPED = "failed to create typed patch object"
BUSY_CODES = frozenset({429, 500, 502, 503, 504})
_NAMESPACE_ITSELF = "/api/v1/namespaces/{name}"
_BAD_REQUESTS = frozenset({400, 405, 415})


class BusyError(RemoteError):
    """The server cannot handle the request now (429, 5xx)."""

    retryable = True


class TerminatingNamespaceError(AccessError):
    """The namespace is being deleted; nothing can be created in it."""

    retryable = True


def refusal(code: int, data: bytes, method: str, path: str) -> OrderkitError:
    """Return the error for a failed request to `path`; the caller raises it."""
    status = _status(data)
    message = shorten(status.get("message") or _text(data) or f"HTTP {code}", limit=MESSAGE_LIMIT)
    if code == 404:  # noqa: PLR2004 - HTTP: not found
        return _missing(status, message, path)
    if code in _READERS:
        return _READERS[code](code, status, message)
    if code in _BAD_REQUESTS and method != "GET":
        return InvalidObjectError(message)
    if code in BUSY_CODES:
        return BusyError(f"the API server failed ({code}): {message}", hint="try again")
    return RemoteError(f"the API server answered {code}: {message}")


def refusal_of_event(status: dict[str, Any]) -> OrderkitError:
    """Return the error for an ERROR event of a watch."""
    return refusal(int(status.get("code") or 500), json.dumps(status).encode(), "GET", "")


def _status(data: bytes) -> dict[str, Any]:
    try:
        status = json.loads(data)
    except ValueError:
        return {}
    return status if isinstance(status, dict) else {}


def _text(data: bytes) -> str:
    return data.decode(errors="replace").strip()


def _access(code: int, status: dict[str, Any], message: str) -> OrderkitError:
    causes = dig(status, "details", "causes") or ()
    if any(cause.get("reason") == "NamespaceTerminating" for cause in causes):
        return TerminatingNamespaceError(message, hint="wait until the namespace is gone")
    hint = (
        "the credentials are missing or no longer valid"
        if code == 401  # noqa: PLR2004 - HTTP: unauthenticated
        else "ask for the right that the message names"
    )
    return AccessError(message, hint=hint)


def _missing(status: dict[str, Any], message: str, path: str) -> OrderkitError:
    kind, name = dig(status, "details", "kind"), dig(status, "details", "name")
    if status.get("reason") != "NotFound" or not name:
        return NoSuchKindError(message, hint="is its CustomResourceDefinition applied?")
    if kind == "namespaces" and not path.endswith(_NAMESPACE_ITSELF.format(name=name)):
        return NoSuchNamespaceError(message)
    return NotFoundError(message)


def _conflict(_code: int, status: dict[str, Any], message: str) -> OrderkitError:
    causes = dig(status, "details", "causes") or ()
    if any(cause.get("reason") == "FieldManagerConflict" for cause in causes):
        hint = "leave these fields out, or apply with force to take them over"
        return ApplyConflictError(message, hint=hint)
    return ConflictError(message, hint="read it again and repeat the change")


def _failed(code: int, _status: dict[str, Any], message: str) -> OrderkitError:
    if NOT_TYPED in message:
        return WrongTypeError(message)
    return BusyError(f"the API server failed ({code}): {message}", hint="try again")


def _expired(_code: int, _status: dict[str, Any], message: str) -> OrderkitError:
    return ExpiredError(message, hint="list again and watch from there")


def _invalid(_code: int, _status: dict[str, Any], message: str) -> OrderkitError:
    return InvalidObjectError(message)


_READERS: dict[int, Callable[[int, dict[str, Any], str], OrderkitError]] = {
    401: _access,
    403: _access,
    409: _conflict,
    410: _expired,
    422: _invalid,
    500: _failed,
}


CONNECT_TIMEOUT_S = 5.0
_CONNECTIONS_KEPT = 128
"""Each watch occupies one. Beyond this number, every request needs its own handshake."""
READ_TIMEOUT_S = 30.0

Loader = Callable[..., None]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class KubeRequest:
    """One request with its query and body."""

    method: Method
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    content_type: str = JSON

    @property
    def target(self) -> str:
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


class KubeTransport:
    """
    A connection pool to one API server, safe to use from several threads.

    Every call may raise UnreachableError, AccessError and RemoteError.
    """

    def __init__(self, configuration: Any, *, read_timeout_s: float = READ_TIMEOUT_S) -> None:
        from kubernetes.client.rest import RESTClientObject  # lazy: heavy

        configuration.retries = False
        configuration.connection_pool_maxsize = _CONNECTIONS_KEPT
        self._configuration, self._read_timeout_s = configuration, read_timeout_s
        self._rest: Any = RESTClientObject(configuration)

    @classmethod
    def from_kubeconfig(
        cls, path: Path, context: str | None = None, *, read_timeout_s: float = READ_TIMEOUT_S
    ) -> Self:
        """
        Connect as the kubeconfig says; nothing is sent yet.

        Raises:
            InvalidInputError: The file cannot be read or has no such context.
        """
        from kubernetes.client.configuration import Configuration  # lazy: heavy
        from kubernetes.config import kube_config
        from kubernetes.config.config_exception import ConfigException
        from yaml import YAMLError

        configuration, load = Configuration(), cast("Loader", kube_config.load_kube_config)
        try:
            load(str(path), context, client_configuration=configuration, persist_config=False)
        except (
            ConfigException,
            YAMLError,
            OSError,
            TypeError,
            ValueError,
            AttributeError,
        ) as error:
            why = " ".join(str(error).split()) or type(error).__name__
            hint = "name a kubeconfig that kubectl can use, and one of its contexts"
            raise InvalidInputError(
                "kubeconfig", str(path), f"cannot be used: {why}", hint=hint
            ) from error
        hooked: Any = configuration  # the hook is missing in its type stubs
        hooked.refresh_api_key_hook = _rereading(path, context)
        return cls(configuration, read_timeout_s=read_timeout_s)

    @property
    def server(self) -> str:
        """The address of the API server, without the user and password that it may hold."""
        return re.sub("//[^/@]*@", "//", str(self._configuration.host))

    def close(self) -> None:
        """Close idle connections."""
        self._rest.close()

    def json(self, call: KubeRequest) -> Any:
        """Return the answer of a request as JSON."""
        response = self._send(call)
        try:
            data = self._read(response)
        finally:
            response.response.release_conn()
        if not response.status < 300:  # noqa: PLR2004 - HTTP: 2xx is success
            raise refusal(response.status, data, call.method, call.path)
        try:
            with uncollected():
                return json.loads(data)
        except ValueError as error:
            raise RemoteError(
                f"{self.server}{call.path} answered no JSON",
                hint="does this address belong to a Kubernetes API server?",
            ) from error

    def date(self) -> datetime | None:
        """Return the time in the header of an answer; None if there is none."""
        response = self._send(KubeRequest("GET", "/version"))
        self._read(response)
        response.response.release_conn()
        try:
            return parsedate_to_datetime(response.response.headers.get("Date"))
        except (TypeError, ValueError):
            return None

    def events(
        self, call: KubeRequest, *, silence_s: float, stop: WatchStop | None = None
    ) -> Iterator[dict[str, Any]]:
        """
        Yield the events of a watch until the server ends it or sends nothing for `silence_s`.

        `stop` shuts the connection down.

        Raises:
            ExpiredError: The server no longer knows the version to start from.
            UnreachableError: It had to end the watch before `silence_s`, and did not.
        """
        from urllib3.exceptions import HTTPError, ReadTimeoutError  # lazy: comes with the client

        response = self._send(call)
        try:
            if response.status != 200:  # noqa: PLR2004 - HTTP: a watch is 200
                data = self._read(response)
                raise refusal(response.status, data, call.method, call.path)
            _wait_at_most(response.response, silence_s)
            with stop.ending(_shutting(response.response)) if stop else nullcontext():
                for line in _lines(response.response.stream(None, decode_content=True)):
                    event = json.loads(line)
                    if event.get("type") == "ERROR":
                        raise refusal_of_event(event.get("object") or {})
                    yield event
        except ReadTimeoutError as error:
            if silence_s > float(call.query["timeoutSeconds"]):
                raise self._unreachable(error) from error
        except (HTTPError, ValueError) as error:
            raise self._unreachable(error) from error
        finally:
            # closed, and not given back to the pool: the server may still be sending
            response.response.close()

    def _send(self, call: KubeRequest) -> Any:
        from urllib3.exceptions import HTTPError, ProtocolError, ReadTimeoutError  # lazy

        try:
            return self._send_once(call)
        except ReadTimeoutError as error:
            raise self._unreachable(error) from error
        except ProtocolError as error:
            # it may have been carried out; only a GET is sent once more
            if call.method != "GET":
                raise self._unreachable(error) from error
        except HTTPError as error:
            raise self._unreachable(error) from error
        try:
            return self._send_once(call)
        except HTTPError as error:
            raise self._unreachable(error) from error

    def _send_once(self, call: KubeRequest) -> Any:
        from kubernetes.client.exceptions import ApiException  # lazy: heavy

        headers = {"Accept": JSON, "Content-Type": call.content_type, "User-Agent": "orderkit"}
        token = self._configuration.get_api_key_with_prefix("BearerToken", "authorization")
        if token:
            headers["authorization"] = token
        about: Attributes = {"http.request.method": call.method, "url.path": call.path}
        try:
            with span(f"cluster {call.method}", about) as notes:
                response = self._rest.request(
                    call.method,
                    self._configuration.host + call.target,
                    headers=headers,
                    body=_readable(call.body) if call.content_type == APPLY_PATCH else call.body,
                    _request_timeout=(CONNECT_TIMEOUT_S, self._read_timeout_s),
                )
                notes["http.response.status_code"] = response.status
                return response
        except ApiException as error:  # raised by the client when the TLS handshake fails
            raise RemoteError(
                f"{self.server}: {' '.join(str(error.reason).split())}",
                hint="check certificate-authority and server in the kubeconfig",
            ) from error

    def _read(self, response: Any) -> bytes:
        from urllib3.exceptions import HTTPError  # lazy: comes with the client

        try:
            return bytes(response.read())
        except HTTPError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> UnreachableError:
        why = _reason(error)
        return UnreachableError(
            f"no answer from the API server at {self.server}: {why}",
            hint="is the cluster running, and does the kubeconfig name its address?",
        )


_ESCAPED = re.compile(
    "[^\\t\\n\\r\\x20-\\x7e\\xa0-\\u2027\\u202a-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd\\U00010000-\\U0010ffff]"
)
"""Characters that YAML does not allow or reads as a line break."""


def _readable(body: Any) -> bytes:
    """Write JSON that every YAML parser can read, because server-side apply is sent as YAML."""
    # not beyond 16 bits: JSON escapes those as surrogate pairs, which the API server refuses with
    # "invalid Unicode character escape code"
    text = json.dumps(body, ensure_ascii=False)
    return _ESCAPED.sub(lambda escape: f"\\u{ord(escape[0]):04x}", text).encode()


def _rereading(path: Path, context: str | None) -> Callable[[Any], None] | None:
    """Return a hook that reads the token file before each request; None if the user has none."""
    import yaml

    config: Any = yaml.safe_load(path.read_text(encoding="utf-8"))  # the client has just read it
    context_name = context or config.get("current-context")
    user = _entry_by_name(config, "contexts", context_name, "context").get("user")
    file = _entry_by_name(config, "users", user, "user").get("tokenFile")
    if not file:
        return None

    # Kubernetes replaces the tokens of Pods within the hour, and the client reads a file only once
    def reread(configuration: Any) -> None:
        with suppress(OSError):  # the file is being replaced; the old token may still be valid
            token = (path.parent / file).read_text(encoding="utf-8").strip()
            configuration.api_key["BearerToken"] = f"Bearer {token}"

    return reread


def _entry_by_name(config: Any, kind: str, name: object, section: str) -> dict[str, Any]:
    entries = [entry.get(section) for entry in config.get(kind) or () if entry.get("name") == name]
    return entries[0] if entries and isinstance(entries[0], dict) else {}


def _reason(error: Exception) -> str:
    """Return a short reason for an error of urllib3; it never contains the request."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return "connection refused"
        cause = cause.__cause__ or cause.__context__
    names = {"ConnectTimeoutError": "time-out", "ReadTimeoutError": "time-out"}
    names |= {"NameResolutionError": "unknown host name", "ProtocolError": "connection broken"}
    return names.get(type(error).__name__, type(error).__name__)


def _wait_at_most(response: Any, silence_s: float) -> None:
    """Lower the read time-out: `silence_s` replaces the time-out for the first byte."""
    sock = getattr(response.connection, "sock", None)
    if sock is not None:
        # 0 would mean: never wait
        sock.settimeout(max(silence_s, 0.001))


def _shutting(response: Any) -> Callable[[], None]:
    """Return what ends a blocked read of an answer from another thread."""
    sock = getattr(response.connection, "sock", None)

    def shut() -> None:
        with suppress(OSError):  # it is closed already
            if sock is not None:
                sock.shutdown(socket.SHUT_RDWR)

    return shut


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Split a stream of chunks of any size into lines."""
    unfinished = b""
    for chunk in chunks:
        *complete, unfinished = (unfinished + chunk).split(b"\n")
        yield from (line for line in complete if line.strip())
