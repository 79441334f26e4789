"""
One HTTP call as an endpoint sees it, and the answers it can give.

An endpoint is a plain function ``(Call) -> Response``; what it refuses it raises as `ApiError`.
Nothing here is async and nothing knows a route (``api.routes`` does).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from orderkit_standins.forge.accounts import Account, Actor

VERSION = "1.27.3+orderkit"
UNSHOWN = "surrogateescape"
"""How to decode what Gitea cannot write as JSON if it is not UTF-8."""
"""The release whose answers this forge gives, and that it is not that release."""
PAGE_DEFAULT = 30
PAGE_MAX = 50
"""Gitea's, as it is installed (`default_paging_num`, `max_response_items`)."""
DIGITS_MAX = 18
"""What fits into 64 bits for certain; SQLite knows no larger number."""
_Item = TypeVar("_Item")
_Typed = TypeVar("_Typed", str, bool, int, dict[str, Any], list[Any])
_GO_TYPES = {str: "string", bool: "bool", int: "int64", dict: "object", list: "[]string"}


@dataclass(slots=True)
class RootUrl:
    """The address that links in answers begin with (Gitea's ROOT_URL), known once it is served."""

    text: str = "http://127.0.0.1"

    def __str__(self) -> str:
        return self.text


class ApiError(Exception):
    """An answer other than success."""

    def __init__(
        self,
        status: int,
        message: str = "",
        *,
        errors: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.errors = status, message, tuple(errors)
        self.headers = dict(headers or {})


class Fields(dict[str, Any]):
    """
    The fields of a JSON object; every method refuses a value of another type.

    Raises:
        ApiError: 422 in the words of Gitea's binding.
    """

    def optional(self, key: str, kind: type[_Typed]) -> _Typed | None:
        """Return a value, or None if it is absent."""
        value = self.get(key)
        if value is not None and type(value) is not kind:
            raise _mismatch(key, _GO_TYPES[kind])
        return value

    def text(self, key: str) -> str:
        """Return a text, empty if absent."""
        return self.optional(key, str) or ""

    def required(self, key: str, name: str = "") -> str:
        """Return a text that is not empty; `name` is what the refusal calls it."""
        value = self.text(key)
        if not value:
            raise ApiError(422, f"[{name or key.capitalize()}]: Required")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean, False if absent."""
        return self.optional(key, bool) or False

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, empty if absent."""
        values = self.optional(key, list) or []
        if not all(isinstance(value, str) for value in values):
            raise _mismatch(key, "[]string")
        return tuple(values)

    def mapping(self, key: str) -> Fields:
        """Return an object, empty if absent."""
        return Fields(self.optional(key, dict) or {})

    def text_mapping(self, key: str) -> dict[str, str]:
        """Return an object whose values are texts, empty if absent."""
        values = self.mapping(key)
        if not all(isinstance(value, str) for value in values.values()):
            raise _mismatch(key, "map[string]string")
        return values

    def refuse_unsupported(self, *keys: str) -> None:
        """Refuse what Gitea can do and this forge cannot, instead of ignoring it."""
        for key in keys:
            if self.get(key):
                raise ApiError(422, f"{key} is not supported by the embedded forge")


def _mismatch(key: str, kind: str) -> ApiError:
    return ApiError(422, f"[]: json: cannot unmarshal into field {key} of type {kind}")


@dataclass(frozen=True, slots=True)
class Call:
    """One request with its caller."""

    request: Request
    body: bytes
    actor: Actor
    root_url: str

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

    def query_number(self, name: str, default: int) -> int:
        """Return a query parameter as a number; what is none counts as the default."""
        value = self.query(name)
        return int(value) if _is_number(value) else default

    def fields(self) -> Fields:
        """
        Return the fields of the JSON object in the body.

        Raises:
            ApiError: 422, no JSON object.
        """
        try:
            value = json.loads(self.body or b"{}")
        except (ValueError, RecursionError) as error:
            raise ApiError(422, f"invalid JSON: {error}") from error
        if not isinstance(value, dict):
            raise ApiError(422, "json: cannot unmarshal into an object")
        return Fields(value)

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
    try:
        body = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # as Gitea does: an empty answer if it holds texts that are `UNSHOWN`
        body = b""
    return Response(body, status, headers, media_type="application/json;charset=utf-8")


def empty_answer(status: int = 204) -> Response:
    """Return an answer without a body."""
    return Response(status_code=status)


@dataclass(frozen=True, slots=True)
class Window:
    """One page of a list: `page` counts from 1, `limit` is clamped as in Gitea."""

    page: int
    limit: int

    @property
    def part(self) -> slice:
        return slice((self.page - 1) * self.limit, self.page * self.limit)

    def pages(self, total: int) -> int:
        """Return how many pages `total` items fill, at least one."""
        return max((total + self.limit - 1) // self.limit, 1)

    def headers(self, call: Call, total: int) -> dict[str, str]:
        """Return ``X-Total-Count`` and ``Link``; links begin with ROOT_URL, not with our host."""
        last = self.pages(total)
        pages = {"next": self.page + 1, "last": last} if self.page < last else {}
        if self.page > 1:
            pages |= {"first": 1, "prev": self.page - 1}
        base = f"{call.root_url}{call.request.url.path}"
        query = dict(call.request.query_params)
        links = [
            f'<{base}?{urlencode(sorted((query | {"page": str(number)}).items()))}>; rel="{rel}"'
            for rel, number in pages.items()
        ]
        exposed = "X-Total-Count, Link"
        headers = {"X-Total-Count": str(total), "Access-Control-Expose-Headers": exposed}
        return headers | ({"Link": ",".join(links)} if links else {})


def window(call: Call) -> Window:
    """Return which page of a list the query asks for."""
    limit = min(call.query_number("limit", PAGE_DEFAULT) or PAGE_DEFAULT, PAGE_MAX)
    return Window(max(call.query_number("page", 1), 1), limit)


def paged(call: Call, items: Sequence[_Item], shape: Callable[[_Item], object]) -> Response:
    """Return one page of a list, the total in a header."""
    page = window(call)
    shapes = [shape(item) for item in items[page.part]]
    return json_answer(shapes, headers=page.headers(call, len(items)))


def error_answer(call: Call, refusal: ApiError) -> Response:
    """Return Gitea's error body; it has none for a merge that git refuses."""
    if refusal.status == HTTPStatus.CONFLICT and not refusal.message:
        return Response(status_code=refusal.status, media_type="application/json")
    body: dict[str, object] = {"message": refusal.message, "url": f"{call.root_url}/api/swagger"}
    if refusal.status == HTTPStatus.NOT_FOUND:
        body["errors"] = list(refusal.errors) or None
        body["message"] = refusal.message or "not found"
    return json_answer(body, refusal.status, refusal.headers)
