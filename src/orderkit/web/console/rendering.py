"""
What every page shares: templates, headers, and the files below ``/static``.

The only module that knows Jinja. Everything is escaped; characters that a reader cannot see are
shown by their numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response

from ground.visible_text import visible
from orderkit import __version__
from orderkit.core.durations import spoken_duration
from orderkit.core.order.order_cost import money
from orderkit.ports.urgency import longest_wait
from orderkit.web.exchange import without_registered
from yamlfiles import yaml11

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self';"
    " img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # no-referrer would make browsers send 'Origin: null' with our own forms
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_PACKAGE = "orderkit.web.console"
_MEDIA_TYPES = {
    "console.css": "text/css;charset=utf-8",
    "console.js": "text/javascript;charset=utf-8",
    "mark.svg": "image/svg+xml",
}
_TEXT_MAX = 4000
"""Characters of a foreign text on a page."""


def html(template: str, **values: Any) -> str:
    """Return a page. `values` must be data: JSON, strings, numbers."""
    text = _environment().get_template(template).render(**without_registered(values))
    return str(text).encode(errors="replace").decode()


def asset(name: str) -> Response:
    """Return a file of ``static/``; their addresses change with their content."""
    if name not in _MEDIA_TYPES:
        return Response("there is no such file\n", 404, HEADERS, "text/plain")
    headers = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return Response(_file(f"static/{name}"), headers=headers, media_type=_MEDIA_TYPES[name])


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(lambda name: _file(f"templates/{name}").decode()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    names: Any = {
        "version": __version__,
        "static": _static,
        "phases": PHASES,
        "longest_wait": longest_wait,
        "wrong_fields": wrong_fields,
    }
    environment.globals.update(names)
    environment.filters |= {
        "ago": ago,
        "age": age,
        "moment": moment,
        "short": lambda commit: str(commit or "")[:8],
        "person": person,
        "web": web_address,
        "value": value_text,
        "yaml": yaml11.dump_block,
        "part": quote,
        "query": urlencode,
        "cut": cut,
        "count": _count,
        "amount": _amount,
        "dotted": _dotted,
    }
    return environment


def _shown(value: Any) -> Any:
    """Make visible what a page would hide; Markup (what templates wrote) passes."""
    return visible(value) if type(value) is str else value


def _amount(decimal: str) -> str:
    """Write an amount of money with two decimals."""
    return money(Decimal(decimal))


def _dotted(path: str) -> Markup:
    """Let a long path of a field break after its dots only."""
    return Markup(".<wbr>").join(visible(path).split("."))


@cache
def _file(name: str) -> bytes:
    return (files(_PACKAGE) / name).read_bytes()


@cache
def _static(name: str) -> str:
    return f"/static/{name}?{hashlib.sha256(_file(f'static/{name}')).hexdigest()[:12]}"


PHASES: Mapping[str, tuple[str, str]] = {
    "Failing": ("bad", "✕"),
    "Attention": ("warn", "▲"),
    "Waiting": ("warn", "◇"),
    "Written": ("moving", "○"),
    "Delivering": ("moving", "◔"),
    "Assembling": ("moving", "◑"),
    "Ready": ("good", "●"),
    "Ending": ("end", "◌"),
    "Ended": ("end", "■"),
}
"""By phase: its colour's class, and a sign for those who do not see colours."""


def wrong_fields(fields: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the fields of a form with which something is wrong, in groups too."""
    found: list[Mapping[str, Any]] = []
    for field in fields:
        inner = field.get("fields")
        found += wrong_fields(inner) if inner else [field] if field["wrong"] else []
    return found


def ago(text: str | None, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> str:
    """Return how long ago, or in how long, a moment of RFC 3339 is; the text if it is none."""
    at = _parsed(text)
    if at is None:
        return text or ""
    seconds = (now() - at).total_seconds()
    amount = spoken_duration(abs(seconds))
    return f"{amount} ago" if seconds >= 0 else f"in {amount}"


def age(text: str | None) -> str:
    """Return how long something has lasted since a moment of RFC 3339."""
    return ago(text).removesuffix(" ago")


def moment(text: str | None) -> str:
    """Return a moment of RFC 3339 as ``2026-11-23 02:05 UTC``; the text if it is none."""
    at = _parsed(text)
    return at.strftime("%Y-%m-%d %H:%M UTC") if at else text or ""


def _parsed(text: str | None) -> datetime | None:
    try:
        at = datetime.fromisoformat(text or "")
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def person(reference: str | None) -> str:
    """Return ``eve`` of ``user:default/eve``."""
    return (reference or "").removeprefix("user:default/").removeprefix("group:default/")


def web_address(text: object) -> str:
    """Return an address that a page may link to; empty for anything but http and https."""
    try:
        parts = urlsplit(str(text))
    except ValueError:
        return ""
    return str(text) if parts.scheme in {"http", "https"} and parts.hostname else ""


def value_text(value: Any) -> str:
    """Return a value of a field as text; `None` is what is not set."""
    if value is None:
        return "not set"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return cut(text)


def cut(text: object, limit: int = _TEXT_MAX) -> str:
    """Bound a foreign text."""
    whole = str(text)
    return whole if len(whole) <= limit else f"{whole[:limit]}…"


def _count(number: int, singular: str, plural: str = "") -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
