"""
Keep secrets out of everything a person or a log may read.

Whoever loads a token or password registers it here once; whoever puts foreign text into a
message passes it through `redact`. The registry lives as long as the process. It does not
load secrets and does not search for texts that merely look like one.

Called by the adapters that carry credentials and by the logging set-up of the CLI.
"""

from __future__ import annotations

import base64
import threading
from urllib.parse import quote, quote_plus

MASK = "***"
SHORTEST = 4
"""Shorter values are not registered: masking them would eat ordinary words."""

_lock = threading.Lock()
_forms: tuple[str, ...] = ()


def register(secret: str) -> None:
    """
    Remember a secret, plain and in its URL-encoded and base64 forms. Idempotent.

    Values shorter than `SHORTEST` characters are ignored.
    """
    global _forms  # noqa: PLW0603  one registry per process is the point
    if len(secret) < SHORTEST:
        return
    with _lock:
        _forms = tuple(sorted({*_forms, *forms_of(secret)}, key=lambda form: (-len(form), form)))


def redact(text: str) -> str:
    """Return `text` with every registered secret replaced by `MASK`, longest form first."""
    for form in _forms:
        text = text.replace(form, MASK)
    return text


def forms_of(secret: str) -> set[str]:
    """Return how a secret may stand in a text: plain, URL-encoded, base64."""
    raw = secret.encode()
    standard = base64.b64encode(raw).decode()
    url_safe = base64.urlsafe_b64encode(raw).decode()
    return {
        secret,
        quote(secret, safe=""),
        quote_plus(secret),
        standard,
        standard.rstrip("="),
        url_safe,
        url_safe.rstrip("="),
    }
