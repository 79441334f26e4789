"""
Keep secrets out of everything a person or a log may read.

Whoever loads a token or password registers it here once; whoever puts foreign text into a
message passes it through `redact`. The registry lives as long as the process. It does not
load secrets and does not search for texts that merely look like one.

Called by the adapters that carry credentials and by the logging set-up of the CLI.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
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
    """
    Return how a secret may stand in a text.

    Plain, URL-encoded, escaped as in JSON, in hexadecimal, and in base64, alone or inside a longer
    encoded text such as ``user:password``.
    """
    raw = secret.encode(errors="surrogatepass")
    standard = base64.b64encode(raw).decode()
    in_base64 = {standard, standard.rstrip("="), *_inside_base64(raw)}
    return {
        secret,
        quote(raw, safe=""),
        quote_plus(raw),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        raw.hex(),
        *in_base64,
        *(form.replace("+", "-").replace("/", "_") for form in in_base64),
    }


def _inside_base64(raw: bytes) -> Iterator[str]:
    """Yield the characters that the bytes alone decide, wherever they begin in an encoded text."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw).decode()
        inside = encoded[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
        if len(inside) > SHORTEST:
            yield inside
