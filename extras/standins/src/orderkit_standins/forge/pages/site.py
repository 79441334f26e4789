"""
What every page shares: templates, headers, style sheet, and who is looking.

The only module that knows Jinja and the files in ``templates/``. Links are relative to the host, so
pages work through a forwarded port too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from jinja2 import Environment, FunctionLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from orderkit_standins.forge.api.calls import VERSION, ApiError, Call, Window
from orderkit_standins.forge.api.routes import route
from orderkit_standins.markdown_html import cut, path, plain, visible, words

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
PAGE = 50
"""Entries on one page of a list."""
_Item = TypeVar("_Item")
_Page = TypeVar("_Page", bound=Callable[..., Response])
_PACKAGE = "orderkit_standins.forge.pages"
_STYLE_FILE = "style.css"
_MARK_FILE = "mark.svg"
_MEDIA_TYPES = {_STYLE_FILE: "text/css;charset=utf-8", _MARK_FILE: "image/svg+xml"}


def page_route(path: str) -> Callable[[_Page], _Page]:
    """Mark a method as the page of an address, which may end in a slash, as in Gitea."""

    def mark(function: _Page) -> _Page:
        return route("GET", path, "repository")(route("GET", f"{path}/", "repository")(function))

    return mark


def page(
    call: Call,
    template: str,
    title: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **values: Any,
) -> Response:
    """
    Return a page.

    Args:
        call: The request; says who looks and where they are.
        template: File in ``templates/``.
        title: Begins the window's title.
        status: Of the answer.
        headers: More headers.
        values: What the template shows.
    """
    account = call.actor.account
    html = (
        _environment()
        .get_template(template)
        .render(
            title=title,
            root=root(call),
            style=f"{root(call)}/assets/{_STYLE_FILE}?{_digest(_STYLE_FILE)}",
            mark=f"{root(call)}/assets/{_MARK_FILE}?{_digest(_MARK_FILE)}",
            viewer=account.name if account else "",
            sign_in=sign_in_address(call),
            version=VERSION,
            **values,
        )
    )
    return HTMLResponse(html, status, {**HEADERS, **(headers or {})})


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a longer list; the addresses of its neighbours are empty where there is none."""

    number: int
    last: int
    total: int
    before: str
    after: str


def page_of(call: Call, items: Sequence[_Item]) -> tuple[Sequence[_Item], ListPage]:
    """Return the page of a list that ``?page=`` asks for."""
    last = Window(1, PAGE).pages(len(items))
    number = min(max(call.query_number("page", 1), 1), last)
    query = {key: value for key, value in call.request.query_params.items() if value}
    before, after = (f"?{urlencode({**query, 'page': n})}" for n in (number - 1, number + 1))
    page = ListPage(
        number,
        last,
        len(items),
        before if number > 1 else "",
        after if number < last else "",
    )
    return items[Window(number, PAGE).part], page


def root(call: Call) -> str:
    """Return the path below which the forge is reached: empty, or ``/prefix``."""
    return urlsplit(call.root_url).path.rstrip("/")


def sign_in_address(call: Call) -> str:
    """
    Return the address that asks for credentials and leads back here.

    It is the first page, because browsers send credentials to everything below the address
    that asked for them.
    """
    current_url = call.request.url
    back = quote(current_url.path) + (f"?{current_url.query}" if current_url.query else "")
    return f"{root(call)}/?{urlencode({'sign_in': back})}"


def asset(name: str) -> Response:
    """
    Return the style sheet or the mark; their addresses change with the content.

    Raises:
        ApiError: 404, another name.
    """
    if name not in _MEDIA_TYPES:
        raise ApiError(404)
    headers = {"Cache-Control": "public, max-age=86400", "X-Content-Type-Options": "nosniff"}
    return Response(_file(name), headers=headers, media_type=_MEDIA_TYPES[name])


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(lambda name: _file(name).decode()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "visible": visible,
        "words": words,
        "path": path,
        "plain": plain,
        "moment": moment,
        "count": _count,
        "cut": cut,
    }
    return environment


@cache
def _file(name: str) -> bytes:
    return (files(_PACKAGE) / "templates" / name).read_bytes()


@cache
def _digest(name: str) -> str:
    return hashlib.sha256(_file(name)).hexdigest()[:12]


def moment(stamp: int, form: str = "%Y-%m-%d %H:%M UTC") -> str:
    """Return a time as text; git accepts times that no calendar has."""
    try:
        return datetime.fromtimestamp(stamp, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return "at an impossible time"


def _count(number: int, singular: str, plural: str = "") -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
