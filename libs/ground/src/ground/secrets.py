"""
Keep secrets out of everything a person or a log may read.

Whoever loads a token or password registers it here once; whoever puts foreign text into a message
passes it through `redact`. The registry lives as long as the process. It does not load secrets and
does not search for texts that merely look like one.
"""

from __future__ import annotations

import base64
import html
import json
import re
import threading
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

__all__ = ["MASK", "SHORTEST", "forms_of", "redact", "register"]

MASK = "***"
SHORTEST = 4
"""Shorter values are not registered: masking them would eat ordinary words."""

_ESCAPED_BYTE = re.compile("%[0-9A-F]{2}")
_GO = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
"""What Go's encoding/json escapes beside what JSON requires."""
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
        # the longest first, so that a secret inside another one leaves no rest of it
        _forms = tuple(sorted({*_forms, *forms_of(secret)}, key=lambda form: (-len(form), form)))


def redact(text: str) -> str:
    """Return `text` with every registered secret replaced by `MASK`, longest form first."""
    for form in _forms:
        text = text.replace(form, MASK)
    return text


def forms_of(secret: str) -> set[str]:
    """
    Return how a secret may stand in a text.

    Plain, URL-encoded, escaped as in HTML and JSON (also as Go and PHP do, and in JSON inside
    JSON), in hexadecimal, and in base64, alone or inside a longer encoded text such as
    ``user:password``, and in base64 of base64.
    """
    raw = secret.encode(errors="surrogatepass")
    standard = base64.b64encode(raw).decode()
    in_base64 = {standard, standard.rstrip("="), *_inside_base64(raw)}
    in_base64 |= {*_inside_base64(standard.encode())}
    in_urls = {quote(raw, safe=""), quote_plus(raw)}
    in_json = {_in_json(secret), _in_json(secret, ensure_ascii=False)}
    return {
        secret,
        html.escape(secret),
        *in_urls,
        *(_ESCAPED_BYTE.sub(lambda match: match[0].lower(), form) for form in in_urls),
        *in_json,
        *(form.translate(_GO) for form in in_json),
        *(form.replace("/", "\\/") for form in in_json),
        *(_in_json(form, ensure_ascii=False) for form in in_json),
        raw.hex(),
        raw.hex().upper(),
        *in_base64,
        *(form.replace("+", "-").replace("/", "_") for form in in_base64),
    }


def _in_json(text: str, *, ensure_ascii: bool = True) -> str:
    return json.dumps(text, ensure_ascii=ensure_ascii)[1:-1]


def _inside_base64(raw: bytes) -> Iterator[str]:
    """Yield the characters that the bytes alone decide, wherever they begin in an encoded text."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw).decode()
        inside = encoded[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
        if len(inside) > SHORTEST:
            yield inside
