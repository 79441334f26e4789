"""
One HTTP call as an endpoint sees it, and the answers it can give.

An endpoint is a plain function ``(Call) -> Response``; what it refuses it raises as
`ApiError`. Nothing here is async and nothing knows a route (``api.dispatch`` does).

Called by every endpoint module.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from orderkit.adapters.embedded.forge.accounts import Account, Actor

if TYPE_CHECKING:
    from orderkit.adapters.embedded.forge.forge import EmbeddedForge

PAGE_DEFAULT = 30
PAGE_MAX = 50
DIGITS_MAX = 18
"""What fits into 64 bits for certain; SQLite knows no larger number."""
_Item = TypeVar("_Item")


class ApiError(Exception):
    """An answer other than success."""

    def __init__(
        self,
        status: int,
        message: str = "",
        *,
        errors: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.errors = status, message, tuple(errors)
        self.headers = dict(headers or {})
        self.body = body
        """What is answered instead of Gitea's usual error body."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request with its caller."""

    forge: EmbeddedForge
    request: Request
    body: bytes
    actor: Actor

    def param(self, name: str) -> str:
        """Return a path parameter."""
        return str(self.request.path_params[name])

    def path_number(self, name: str) -> int:
        """
        Return a path parameter as a number.

        Raises:
            ApiError: 404, it is none.
        """
        value = self.param(name)
        if not _is_number(value):
            raise ApiError(404)
        return int(value)

    def query(self, name: str, default: str = "") -> str:
        """Return the first value of a query parameter."""
        return self.request.query_params.get(name, default)

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a query parameter as Go's ParseBool reads it."""
        value = self.query(name)
        return default if not value else value.lower() in ("1", "t", "true")

    def number(self, name: str, default: int) -> int:
        """Return a query parameter as a number; what is none counts as the default."""
        value = self.query(name)
        return int(value) if _is_number(value) else default

    def json(self) -> dict[str, Any]:
        """
        Return the JSON object in the body.

        Raises:
            ApiError: 422, no JSON object.
        """
        try:
            found = json.loads(self.body or b"{}")
        except (ValueError, RecursionError) as error:
            raise ApiError(422, f"invalid JSON: {error}") from error
        if not isinstance(found, dict):
            raise ApiError(422, "json: cannot unmarshal into an object")
        return found

    @property
    def user(self) -> Account:
        """
        The account behind the credentials.

        Raises:
            ApiError: 401, nobody.
        """
        if self.actor.account is None:
            raise ApiError(401, "token is required")
        return self.actor.account

    @property
    def is_admin(self) -> bool:
        return self.actor.account is not None and self.actor.account.admin


def _is_number(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= DIGITS_MAX


Endpoint = Callable[[Call], Response]


def json_answer(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON answer."""
    body = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    return Response(body, status, headers, media_type="application/json;charset=utf-8")


def empty_answer(status: int = 204) -> Response:
    """Return an answer without a body."""
    return Response(status_code=status)


@dataclass(frozen=True, slots=True)
class Window:
    """The part of a list that a caller asked for: `page` from 1, `limit` clamped, as in Gitea."""

    page: int
    limit: int

    @property
    def part(self) -> slice:
        return slice((self.page - 1) * self.limit, self.page * self.limit)

    def pages(self, total: int) -> int:
        """Return how many pages `total` items fill."""
        return (total + self.limit - 1) // self.limit


def window(call: Call) -> Window:
    """Return which part of a list the query asks for."""
    limit = min(call.number("limit", PAGE_DEFAULT) or PAGE_DEFAULT, PAGE_MAX)
    return Window(max(call.number("page", 1), 1), limit)


def paged(call: Call, items: Sequence[_Item], shape: Callable[[_Item], object]) -> Response:
    """Return one page of a list, the total in a header."""
    wanted = window(call)
    return json_answer(
        [shape(item) for item in items[wanted.part]],
        headers=page_headers(call, wanted, len(items)),
    )


def page_headers(call: Call, seen: Window, total: int) -> dict[str, str]:
    """Return ``X-Total-Count`` and ``Link``; the links begin with ROOT_URL, not with our host."""
    page, last = seen.page, max(seen.pages(total), 1)
    wanted = {"next": page + 1, "last": last} if page < last else {}
    if page > 1:
        wanted |= {"first": 1, "prev": page - 1}
    base = f"{call.forge.base_url}{call.request.url.path}"
    asked = dict(call.request.query_params)
    links = [
        f'<{base}?{urlencode(sorted((asked | {"page": str(number)}).items()))}>; rel="{rel}"'
        for rel, number in wanted.items()
    ]
    headers = {"X-Total-Count": str(total), "Access-Control-Expose-Headers": "X-Total-Count, Link"}
    return headers | ({"Link": ",".join(links)} if links else {})


def error_answer(forge: EmbeddedForge, refusal: ApiError) -> Response:
    """Return Gitea's error body."""
    if refusal.body is not None:
        return json_answer(refusal.body, refusal.status, refusal.headers)
    body: dict[str, object] = {
        "message": refusal.message,
        "url": f"{forge.base_url}/api/swagger",
    }
    if refusal.status == HTTPStatus.NOT_FOUND:
        body["errors"] = list(refusal.errors) or None
        body["message"] = refusal.message or "not found"
    return json_answer(body, refusal.status, refusal.headers)
