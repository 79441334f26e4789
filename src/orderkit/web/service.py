"""
The HTTP service: what a portal's template step calls.

    POST /v1/tasks           run a template of the pack (idempotent)   200 known, 201 new
    POST /v1/orders          register an order (idempotent)            200 known, 201 new
    GET  /v1/orders          all orders
    GET  /v1/orders/{order}  one order
    GET  /healthz            open

The caller proves itself by a secret header that the portal's proxy adds and templates cannot
see. Who asks is proved by the portal's signature where the platform names a Backstage that signs
(``portal.signedBy``); otherwise the requester in a body is a claim, recorded as such.
"""

from __future__ import annotations

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
from orderkit.flows import orders
from orderkit.flows.platform import Platform
from orderkit.flows.registering import Registered, Registration, register
from orderkit.ports.requesters import Requester, Requesters
from orderkit.web.exchange import error_answer, read_json, refusal, requester_of
from orderkit.web.tasks import Tasks

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

Handler = Callable[[Request], Awaitable[Response]]


def service_app(
    platform: Platform, *, secret: str, header: str, requesters: Requesters | None = None
) -> Starlette:
    """
    Make the ASGI app.

    Args:
        header: Name of the header in which callers send `secret`.
        requesters: Who checks the portal's signatures; None: every requester is a claim.
    """

    def guarded(handler: Handler) -> Handler:
        async def answer(request: Request) -> Response:
            given = request.headers.get(header, "").encode()
            if not secrets.compare_digest(given, secret.encode()):
                return error_answer(401, f"header {header} is missing or wrong", "")
            try:
                return await handler(request)
            except errors.OrderkitError as error:
                return refusal(error)

        return answer

    async def post_order(request: Request) -> Response:
        found = await read_json(request, _REGISTRATION)

        def done() -> Registered:
            asked = requester_of(request, requesters, found.get("requester"))
            return register(platform, _registration(found, asked))

        registered = await run_in_threadpool(done)
        return JSONResponse(_registered(registered), 201 if registered.changed else 200)

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
            Route("/v1/tasks", guarded(Tasks(platform, requesters)), methods=["POST"]),
            Route("/v1/orders", guarded(post_order), methods=["POST"]),
            Route("/v1/orders", guarded(list_orders), methods=["GET"]),
            Route("/v1/orders/{order}", guarded(get_order), methods=["GET"]),
            Route("/healthz", healthz),
        ]
    )


def _registration(found: dict[str, Any], requester: Requester) -> Registration:
    return Registration(
        OrderId(found["order"]),
        found["kit"],
        TeamName(found["team"]),
        requester.ref,
        requester.proof,
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
