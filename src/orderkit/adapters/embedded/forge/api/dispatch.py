"""
From an HTTP request to an endpoint and back, the same way for every route of the API.

Endpoints run in worker threads, since git and SQLite block. `ApiError` becomes Gitea's
error body, or a page; everything unexpected becomes a 500, whose text only a site admin sees.

Called by ``api.app``, which lists the routes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from orderkit.adapters.embedded.forge.accounts import ANONYMOUS
from orderkit.adapters.embedded.forge.api import access
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    Endpoint,
    empty_answer,
    error_answer,
)
from orderkit.core.errors import ConflictError, InvalidInputError, NotFoundError

if TYPE_CHECKING:
    from orderkit.adapters.embedded.forge.forge import EmbeddedForge

log = logging.getLogger(__name__)

API = "/api/v1/"
BODY_MAX_BYTES = 100 * 1024 * 1024


Refuse = Callable[[Call, ApiError], Response]
"""Makes the answer to a request that is refused."""


def refuse_as_api(call: Call, refusal: ApiError) -> Response:
    """Return Gitea's error body."""
    return error_answer(call.forge, refusal)


def api_routes(
    forge: EmbeddedForge,
    table: Iterable[tuple[str, str, str, Endpoint]],
    refuse: Refuse = refuse_as_api,
) -> list[Route]:
    """
    Return Starlette routes for ``(method, path, scope resource, endpoint)``.

    The resource names the token scope: ``read:`` for GET and HEAD, ``write:`` otherwise; it
    is empty where no scope is needed.
    """
    merged: dict[str, dict[str, tuple[str, Endpoint]]] = {}
    for method, path, resource, endpoint in table:
        merged.setdefault(path, {})[method] = (resource, endpoint)
    return [
        Route(path, _dispatcher(forge, by_method, refuse), methods=list(by_method))
        for path, by_method in merged.items()
    ]


def _dispatcher(
    forge: EmbeddedForge, by_method: dict[str, tuple[str, Endpoint]], refuse: Refuse
) -> Callable[[Request], Any]:
    async def serve(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        resource, endpoint = by_method[method]
        try:
            body = await read_body(request, BODY_MAX_BYTES)
        except ApiError as refusal:
            return refuse(Call(forge, request, b"", ANONYMOUS), refusal)
        except ClientDisconnect:
            return empty_answer(400)
        call = Call(forge, request, body, ANONYMOUS)
        return await run_in_threadpool(_answer, call, resource, endpoint, refuse)

    return serve


async def read_body(request: Request, limit: int) -> bytes:
    """
    Return the body of a request.

    Raises:
        ApiError: 413, larger than `limit` bytes.
    """
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise ApiError(413, "request body too large", headers={"Connection": "close"})
        chunks.append(chunk)
    return b"".join(chunks)


def _answer(call: Call, resource: str, endpoint: Endpoint, refuse: Refuse) -> Response:
    request = call.request
    try:
        call = replace(call, actor=access.authenticate(call.forge.accounts, request))
        write = request.method not in ("GET", "HEAD")
        if write:
            access.require_own_site(request)
        if request.url.path.startswith(API):
            call = replace(call, actor=access.impersonated(call))
        access.require_scope(call.actor, resource, write=write)
        return endpoint(call)
    except ApiError as refusal:
        hidden = refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR and not call.is_admin
        return refuse(call, ApiError(refusal.status) if hidden else refusal)
    except InvalidInputError as refusal:
        return refuse(call, ApiError(422, str(refusal)))
    except ConflictError as refusal:
        return refuse(call, ApiError(409, str(refusal)))
    except NotFoundError as refusal:
        return refuse(call, ApiError(404, str(refusal)))
    except Exception as error:
        log.exception("%s %s failed", request.method, request.url.path)
        return refuse(call, ApiError(500, str(error) if call.is_admin else ""))
