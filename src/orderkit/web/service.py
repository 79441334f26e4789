"""
The HTTP service: what a portal's template step calls to register an order.

    POST /v1/orders          register (idempotent)    200 known, 201 new
    GET  /v1/orders          all orders
    GET  /v1/orders/{order}  one order
    GET  /healthz            open

Errors are short and readable as they are, because a portal shows them only in a log line
(measured on Backstage 1.55): ``{"error": {"message", "hint"}}``. The caller proves itself by a
secret header that the portal's proxy adds and templates cannot see; the requester in a body
is a claim, recorded as such, until the portal's own signature is checked (a later issue).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from orderkit.core import errors
from orderkit.core.names import OrderId, TeamName
from orderkit.core.secrets import redact
from orderkit.flows import orders
from orderkit.flows.platform import Platform
from orderkit.flows.registering import Registered, Registration, register

_BODY_MAX_BYTES = 100_000
_TEXT = {"type": "string", "minLength": 1, "maxLength": 253}
_REGISTRATION: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["order", "kit", "team"],
    "properties": {
        "order": _TEXT,
        "kit": _TEXT,
        "team": _TEXT,
        "repository": _TEXT,
        "requester": _TEXT,
    },
}

_STATUS: tuple[tuple[type[errors.OrderkitError], int], ...] = (
    (errors.UsageError, 400),
    (errors.NotFoundError, 404),
    (errors.ConflictError, 409),
    (errors.RefusedError, 403),
    (errors.UnreachableError, 503),
    (errors.RemoteError, 502),
)
"""First match wins; anything else of ours is a 500 with its message."""

Handler = Callable[[Request], Awaitable[Response]]


def service_app(platform: Platform, *, secret: str, header: str) -> Starlette:
    """
    Make the ASGI app.

    Args:
        header: Name of the header in which callers send `secret`.
    """

    def guarded(handler: Handler) -> Handler:
        async def answer(request: Request) -> Response:
            if not secrets.compare_digest(request.headers.get(header, ""), secret):
                return _error(401, f"header {header} is missing or wrong", "")
            try:
                return await handler(request)
            except errors.OrderkitError as error:
                status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
                return _error(status, str(error), error.hint)

        return answer

    async def post_order(request: Request) -> Response:
        wanted = _registration(await _body(request))
        done = await run_in_threadpool(register, platform, wanted)
        return JSONResponse(_registered(done), status_code=201 if done.changed else 200)

    async def list_orders(_request: Request) -> Response:
        found = await run_in_threadpool(orders.list_orders, platform)
        return JSONResponse({"orders": [report.to_json() for report in found]})

    async def get_order(request: Request) -> Response:
        order = request.path_params["order"]
        return JSONResponse((await run_in_threadpool(orders.status, platform, order)).to_json())

    async def healthz(_request: Request) -> Response:
        return Response("ok\n", media_type="text/plain")

    return Starlette(
        routes=[
            Route("/v1/orders", guarded(post_order), methods=["POST"]),
            Route("/v1/orders", guarded(list_orders), methods=["GET"]),
            Route("/v1/orders/{order}", guarded(get_order), methods=["GET"]),
            Route("/healthz", healthz),
        ]
    )


async def _body(request: Request) -> bytes:
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > _BODY_MAX_BYTES:
            raise errors.InvalidInputError("body", len(data), "bytes are too many")
    return data


def _registration(data: bytes) -> Registration:
    import jsonschema

    try:
        found = json.loads(data)
    except ValueError as error:
        raise errors.InvalidInputError("body", data[:80], f"is no JSON: {error}") from error
    problem = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(_REGISTRATION).iter_errors(found)
    )
    if problem is not None:
        field = ".".join(str(step) for step in problem.absolute_path) or "body"
        raise errors.InvalidInputError(field, problem.instance, f"is refused: {problem.message}")
    return Registration(
        OrderId(found["order"]),
        found["kit"],
        TeamName(found["team"]),
        found.get("requester", "user:default/unknown"),
    )


def _registered(done: Registered) -> dict[str, Any]:
    return {
        "order": done.order,
        "team": done.team,
        "kit": done.kit,
        "repository": str(done.repository),
        "ledgerCommit": done.commit,
        "changed": done.changed,
    }


def _error(status: int, message: str, hint: str) -> JSONResponse:
    body = {"message": redact(message), "hint": redact(hint)}
    return JSONResponse({"error": body}, status_code=status)
