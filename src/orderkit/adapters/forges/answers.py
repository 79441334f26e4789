"""
Answers of a forge, and the errors that stand for missing, incomplete or failed ones.

Texts of the server are shortened and redacted before they enter a message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ground.errors import (
    AccessError,
    MovedError,
    NotFoundError,
    RefusedError,
    RemoteError,
    UnreachableError,
    shorten,
)
from ground.secrets import redact

RACE = re.compile(
    r"cannot lock ref|is at \S+ but expected|non-fast-forward|push ?out ?of ?date|"
    r"fetch first|failed to update ref",
    re.IGNORECASE,
)
"""Messages of a forge when another writer moved the branch first."""


OTHER_FORGE = (
    "do forge.kind and forge.url in platform.yaml point to this forge, and not to a proxy's page?"
)


class LostAnswerError(UnreachableError):
    """The request was sent, but no complete answer arrived: it may have been carried out."""

    timed_out = False


class ServerError(RemoteError):
    """The forge failed (5xx); the request may have been carried out."""

    retryable = True


class GarbledError(RemoteError):
    """A success status with an unexpected body: another server answered, or the body was cut."""

    retryable = True


@dataclass(frozen=True, slots=True)
class ForgeResponse:
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
            GarbledError: It is not JSON, so this is not a forge's API.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise GarbledError(
                f"the forge answered {self.status} without JSON: {foreign(self.body)}",
                hint=OTHER_FORGE
                if self.body
                else "see whether the newest commit's author and message are UTF-8",
            ) from error

    @property
    def text(self) -> str:
        """The server's error message: shortened, on one line, redacted."""
        try:
            document = json.loads(self.body)
        except (ValueError, RecursionError):
            return foreign(self.body)
        if not isinstance(document, dict):
            return foreign(self.body)
        parts = [str(document.get("message") or document.get("error") or "")]
        errors = document.get("errors")
        if isinstance(errors, list):
            parts += [str(error) for error in errors]
        return shorten(redact(": ".join(text for text in parts if text)))


def refusal(answer: ForgeResponse, doing: str) -> Exception:
    """Return the error for an unexpected answer."""
    text, status = answer.text, answer.status
    message = f"{doing}: {status} {text}".rstrip()
    if answer.ok or status >= 500:  # noqa: PLR2004  server errors
        return _unclear(answer, message)
    if status == 401:  # noqa: PLR2004
        return AccessError(
            f"bad credentials: {message}",
            hint="check the token or password, and that it is not expired",
        )
    if status == 403:  # noqa: PLR2004
        return _forbidden(message, text)
    if status == 404:  # noqa: PLR2004
        return NotFoundError(message, hint="it does not exist, or is hidden from these credentials")
    if status == 423:  # noqa: PLR2004
        return RefusedError(
            f"archived, hence read-only: {message}", hint="unarchive it in the forge"
        )
    return RemoteError(message)


def _unclear(answer: ForgeResponse, message: str) -> Exception:
    if answer.ok:
        return GarbledError(message, hint=OTHER_FORGE)
    return ServerError(message, hint="repeat the command; if it stays, look into the forge's log")


def missing_scope(text: str) -> str:
    """Return the token scope that a refusal names as missing, or ""."""
    if "required scope" not in text:
        return ""
    _, _, tail = text.partition("required=")
    return tail.partition(",")[0].strip("[] ") or "the one named in the message"


def _forbidden(message: str, text: str) -> AccessError:
    scope = missing_scope(text)
    if scope:
        return AccessError(f"missing scope: {message}", hint=f"make a token with scope {scope}")
    return AccessError(
        f"no right: {message}", hint="ask an owner of the organisation for write access"
    )


def moved(path: str, answer: ForgeResponse) -> MovedError:
    """Return the error for a redirect, with the new repository name if there is one."""
    target_path = urlsplit(answer.headers.get("location", "")).path
    message = f"{path} has moved to {shorten(redact(target_path))} ({answer.status})"
    new = re.search(r"/repos/([^/]+/[^/]+)", target_path)
    if new:
        return MovedError(
            message,
            hint=f"it is {new[1]} now: give it its old name back on the forge"
            " ('orderkit repair ORDER' does that for an order), or, if platform.yaml names it,"
            " write the new name there",
            place=new[1],
        )
    return MovedError(
        message,
        hint="the owner or repository was renamed, or the base URL lacks a path or https:"
        " use the new name or address",
    )


def untrusted(base_url: str, error: Exception) -> UnreachableError:
    """Return the error for a failed TLS handshake, with a hint for its specific cause."""
    text = str(error)
    reason = re.search(r"certificate verify failed: (.*?) \(_ssl", text)
    message = f"no trusted TLS connection to {base_url}: "
    if reason is None and re.search(r"WRONG_VERSION_NUMBER|RECORD_LAYER", text):
        return UnreachableError(
            f"{message}the port does not speak TLS", hint="use http:// (a lab), or the right port"
        )
    if reason is None:
        return UnreachableError(message + foreign(text), hint="see the forge's TLS settings")
    hints = {
        "expired": "renew the forge's certificate",
        "mismatch": "use the name that the certificate is for in the base URL",
        "not valid for": "use the name that the certificate is for in the base URL",
    }
    default_hint = "name the CA that signed the certificate: forge.caFile in platform.yaml"
    hint = next((way for word, way in hints.items() if word in reason[1]), default_hint)
    return UnreachableError(f"{message}{reason[1]}", hint=hint)


def foreign(body: bytes | str) -> str:
    """Return a text of the server for use in a message: shortened, on one line, redacted."""
    text = body[:4096].decode(errors="replace") if isinstance(body, bytes) else body
    return shorten(redact(text))
