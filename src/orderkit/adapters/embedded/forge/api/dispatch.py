"""
From an HTTP request to an endpoint and back, the same way for every route of the API.

Endpoints run in worker threads, since git and SQLite block. `ApiError` becomes Gitea's
error body; everything unexpected becomes its 500, whose text only a site admin sees.

Called by ``api.app``, which lists the routes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from orderkit.adapters.embedded.forge.accounts import ANONYMOUS, Actor
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

BODY_MAX_BYTES = 100 * 1024 * 1024


def api_routes(
    forge: EmbeddedForge, table: Iterable[tuple[str, str, str, Endpoint]]
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
        Route(path, _dispatcher(forge, by_method), methods=list(by_method))
        for path, by_method in merged.items()
    ]


def _dispatcher(
    forge: EmbeddedForge, by_method: dict[str, tuple[str, Endpoint]]
) -> Callable[[Request], Any]:
    async def serve(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        resource, endpoint = by_method[method]
        try:
            body = await read_body(request, BODY_MAX_BYTES)
        except ApiError as refusal:
            return error_answer(forge, refusal)
        except ClientDisconnect:
            return empty_answer(400)
        return await run_in_threadpool(_answer, forge, request, body, resource, endpoint)

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


def _answer(
    forge: EmbeddedForge, request: Request, body: bytes, resource: str, endpoint: Endpoint
) -> Response:
    actor = ANONYMOUS
    try:
        actor = access.authenticate(forge.accounts, request)
        access.require_scope(actor, resource, write=request.method not in ("GET", "HEAD"))
        return endpoint(Call(forge, request, body, actor))
    except ApiError as refusal:
        hidden = refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR and not _is_admin(actor)
        return error_answer(forge, ApiError(refusal.status) if hidden else refusal)
    except InvalidInputError as refusal:
        return error_answer(forge, ApiError(422, str(refusal)))
    except ConflictError as refusal:
        return error_answer(forge, ApiError(409, str(refusal)))
    except NotFoundError as refusal:
        return error_answer(forge, ApiError(404, str(refusal)))
    except Exception as error:
        log.exception("%s %s failed", request.method, request.url.path)
        return error_answer(forge, ApiError(500, str(error) if _is_admin(actor) else ""))


def _is_admin(actor: Actor) -> bool:
    return actor.account is not None and actor.account.admin
