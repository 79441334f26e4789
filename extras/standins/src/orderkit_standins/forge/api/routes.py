"""
From an HTTP request to an endpoint and back, the same way for every route.

A class of endpoints marks its methods with `route`; `routes_of` collects them. Endpoints run in
worker threads, since git and SQLite block. `ApiError` becomes Gitea's error body, or a page;
everything unexpected becomes a 500, whose text only a site admin sees.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ground.errors import ConflictError, InvalidInputError, NotFoundError
from orderkit.web.serving import BodyTooLargeError, read_body
from orderkit_standins.forge.accounts import ANONYMOUS
from orderkit_standins.forge.api.access import Access, require_scope
from orderkit_standins.forge.api.calls import (
    DIGITS_MAX,
    ApiError,
    Call,
    Endpoint,
    RootUrl,
    empty_answer,
    error_answer,
)

log = logging.getLogger(__name__)

API = "/api/v1"
REPO = f"{API}/repos/{{owner}}/{{repo}}"
BODY_MAX_BYTES = 100 * 1024 * 1024
STRANGERS_BODY_MAX_BYTES = 64 * 1024
"""Of somebody who may write nothing anyway."""
_STATUSES = ((InvalidInputError, 422), (ConflictError, 409), (NotFoundError, 404))
_Method = TypeVar("_Method", bound=Callable[..., Response])

InProcess = Callable[[Request, bytes], Response]
Refuse = Callable[[Call, ApiError], Response]
"""Makes the answer to a request that is refused."""


class _Number(Convertor[int]):
    """A number in an address; with more digits than SQLite knows it is another address."""

    regex = f"[0-9]{{1,{DIGITS_MAX}}}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("number", _Number())


def route(method: str, path: str, scope: str = "") -> Callable[[_Method], _Method]:
    """
    Mark a method as the endpoint of an address; one method may have several.

    Args:
        method: The HTTP method.
        path: The address in Starlette's notation.
        scope: What a token must be for: ``read:`` for GET and HEAD, ``write:`` otherwise; words
            between spaces are several; empty where no scope is needed.
    """

    def mark(function: _Method) -> _Method:
        marks = getattr(function, "routes", ())
        function.routes = ((method, path, scope), *marks)  # type: ignore[attr-defined]  # our mark
        return function

    return mark


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Makes routes of endpoints."""

    access: Access
    root_url: RootUrl
    in_process: list[tuple[Route, InProcess]] = field(default_factory=list)
    """Each route with a function that answers a request and its body without a connection."""

    def routes_of(self, endpoints: object, refuse: Refuse = error_answer) -> Iterator[Route]:
        """Yield the routes of a class of endpoints, in the order of its methods."""
        for name, function in vars(type(endpoints)).items():
            for method, path, scope in getattr(function, "routes", ()):
                endpoint: Endpoint = getattr(endpoints, name)
                yield self.route(method, path, scope, endpoint, refuse)

    def route(
        self, method: str, path: str, scope: str, endpoint: Endpoint, refuse: Refuse = error_answer
    ) -> Route:
        """Return one route."""

        async def serve(request: Request) -> Response:
            call = Call(request, b"", ANONYMOUS, str(self.root_url))
            try:
                if request.method not in ("GET", "HEAD"):
                    call = replace(call, body=await self._body(request))
            except ApiError as refusal:
                return refuse(call, refusal)
            except BodyTooLargeError as error:
                # the rest of the body stays unread
                close = {"Connection": "close"}
                return refuse(call, ApiError(413, str(error), headers=close))
            except ClientDisconnect:
                return empty_answer(400)
            return await run_in_threadpool(self._answer, call, scope, endpoint, refuse)

        def answer(request: Request, body: bytes) -> Response:
            call = Call(request, body, ANONYMOUS, str(self.root_url))
            return self._answer(call, scope, endpoint, refuse)

        made = Route(path, serve, methods=[method])
        self.in_process.append((made, answer))
        return made

    async def _body(self, request: Request) -> bytes:
        actor = await run_in_threadpool(self.access.authenticate, request)
        return await read_body(
            request, BODY_MAX_BYTES if actor.may_write else STRANGERS_BODY_MAX_BYTES
        )

    def _answer(self, call: Call, scope: str, endpoint: Endpoint, refuse: Refuse) -> Response:
        request = call.request
        try:
            call = replace(call, actor=self.access.authenticate(request))
            write = request.method not in ("GET", "HEAD")
            require_scope(call.actor, scope, write=write)
            return endpoint(call)
        except Exception as error:  # noqa: BLE001  every failure becomes an answer
            return refuse(call, _refusal(call, error))


def _refusal(call: Call, error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        hidden = error.status >= HTTPStatus.INTERNAL_SERVER_ERROR and not call.is_admin
        return ApiError(error.status) if hidden else error
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return ApiError(status, str(error))
    path = call.request.url.path
    log.error("%s %s failed", call.request.method, path, exc_info=error)
    return ApiError(500, str(error) if call.is_admin else "")


def unknown_address(_call: Call) -> Response:
    """
    Answer an address that nothing is at.

    Raises:
        ApiError: 404, always.
    """
    raise ApiError(404)
