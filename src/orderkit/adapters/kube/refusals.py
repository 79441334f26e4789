"""
Turn an API server's refusal (HTTP status and ``Status`` body) into the port's errors.

The code alone is ambiguous: 404 is a missing object, namespace or kind; 409 an existing object, a
stale version or another field manager; 500 may be a value of the wrong type. So reason and details
of the ``Status``, and then its text, decide too. The message is the server's own, shortened.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ground.errors import (
    AccessError,
    ConflictError,
    NotFoundError,
    OrderkitError,
    RemoteError,
    shorten,
)
from ground.objects.kube_objects import dig
from orderkit.ports.cluster import (
    ApplyConflictError,
    ExpiredError,
    InvalidObjectError,
    NoSuchKindError,
    NoSuchNamespaceError,
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
