"""
The HTTP service for portals and programs, which need no credential of the forge.

``operation_table`` lists its operations and schemas; ``/openapi.json`` shows them. ``callers``
decides who calls and what they may do. docs/service.md is for those who call it.

`LinkExchange` answers links of an order's page: programs get JSON, people get a page. People come
from the portal, without a token; a session of the console, if they have one, says who they are.
What is refused becomes a page that says what happened to the order and where to go.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast
from urllib.parse import quote

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from orderkit.flows.lease.sweeper import LeaseSweeper
from orderkit.flows.live.order_model import OrderModel
from orderkit.flows.notify.notifying import Notifications
from orderkit.flows.platform import Platform
from orderkit.ports.requesters import UnprovedError
from orderkit.web.auditing import ASSET, AUDIT_KEY, AuditedApp
from orderkit.web.callers import Caller
from orderkit.web.console.console import Console
from orderkit.web.console.page_exchange import SIGN_IN, PageExchange
from orderkit.web.console.rendering import HEADERS, asset, html
from orderkit.web.event_stream import OrderStreams
from orderkit.web.exchange import Exchange, JsonExchange, Refusal, error_answer
from orderkit.web.metrics import Metrics
from orderkit.web.openapi_schemas import document
from orderkit.web.operation_table import operations
from orderkit.web.operations import Service, ServiceOperation, ServiceOptions
from orderkit.web.request_pipeline import RequestPipeline


def asks_for_page(request: Request) -> bool:
    """Say whether a browser asks for something to look at."""
    accepted = request.headers.get("accept", "")
    return "text/html" in accepted and "application/json" not in accepted


class LinkExchange(JsonExchange):
    """Whoever follows a link."""

    def __init__(self, options: ServiceOptions, pages: PageExchange) -> None:
        super().__init__(options.access)
        self._portal_url, self._pages = options.portal_url, pages

    def shows_proof(self, request: Request) -> bool:
        return super().shows_proof(request) or self._signed_in(request) is not None

    def identify(self, request: Request) -> Caller:
        if super().shows_proof(request):
            return super().identify(request)
        caller = self._signed_in(request)
        if caller is None:
            raise UnprovedError("you are not signed in", hint="sign in")
        return caller

    def _signed_in(self, request: Request) -> Caller | None:
        """Return the person of a session; None without one, and if it has expired."""
        if not self._pages.shows_proof(request):
            return None
        try:
            return self._pages.identify(request)
        except UnprovedError:
            return None

    def refuse(self, request: Request, refusal: Refusal) -> Response:
        if not asks_for_page(request):
            answer = super().refuse(request, refusal)
            answer.headers["Vary"] = "Accept"
            return answer
        order = str(request.path_params.get("order", ""))
        page = html(
            "link.html",
            refusal=refusal,
            order=order,
            portal=self._portal_url,
            signed_in=self._signed_in(request) is not None,
            sign_in=f"{SIGN_IN}?onward={quote(request.url.path, safe='')}",
            request_id=request.scope[AUDIT_KEY]["request"],
        )
        headers = {**HEADERS, **refusal.headers, "Vary": "Accept"}
        headers.pop("WWW-Authenticate", None)  # a browser would ask for a password
        return Response(page, refusal.status, headers, "text/html; charset=utf-8")


DOCUMENT_PATH = "/openapi.json"


def service_app(platform: Platform, options: ServiceOptions) -> ASGIApp:
    """
    Make the ASGI app; nothing is contacted yet.

    Its live model, its sweeps of leases and its notifications begin and end with the server (ASGI's
    lifespan).

    Raises:
        OrderkitError: A channel of the platform's notifications cannot be used.
    """
    model = OrderModel(platform)
    streams = OrderStreams(model.log, options.streams)
    sweeper = LeaseSweeper(platform, interval_s=options.sweep_interval_s)
    table = operations()
    console = Console(options, table)
    pages = console.exchange
    notified = options.notifications
    notifications = Notifications(platform, model, notified) if notified else None
    service = Service(platform, options, Metrics(), model, streams, notifications)
    links = LinkExchange(options, pages)
    gate = RequestPipeline(service, pages=pages, watching=console.watching, links=links)
    openapi_text = json.dumps(document(table, secret_header=options.access.header))
    by_path: dict[str, dict[str, ServiceOperation]] = {}
    for operation in (*table, *console.pages()):
        by_path.setdefault(operation.path, {})[operation.method] = operation

    async def openapi(_request: Request) -> Response:
        return Response(openapi_text, media_type="application/json")

    routes = [Route(path, _Place(gate, by_method)) for path, by_method in by_path.items()]
    app = Starlette(
        routes=[
            *routes,
            Route(DOCUMENT_PATH, openapi, methods=["GET"]),
            Route("/static/{name}", _static, methods=["GET"]),
        ],
        exception_handlers={HTTPException: partial(_nothing_there, pages)},
        lifespan=partial(_alive, model, streams, sweeper, notifications),
    )
    audited: Any = AuditedApp(app, options.audit)
    if not options.trusted_proxies:
        return cast("ASGIApp", audited)
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

    proxied: Any = ProxyHeadersMiddleware(audited, list(options.trusted_proxies))
    return cast("ASGIApp", proxied)


@asynccontextmanager
async def _alive(
    model: OrderModel,
    streams: OrderStreams,
    sweeper: LeaseSweeper,
    notifications: Notifications | None,
    _app: Starlette,
) -> AsyncIterator[None]:
    model.start()
    sweeper.start()
    if notifications is not None:
        notifications.start()
    try:
        yield
    finally:
        streams.close()
        if notifications is not None:
            await anyio.to_thread.run_sync(notifications.close)
        await anyio.to_thread.run_sync(sweeper.close)
        await anyio.to_thread.run_sync(model.close)


class _Place:
    """One path, whatever the method."""

    def __init__(self, gate: RequestPipeline, operations: Mapping[str, ServiceOperation]) -> None:
        self._gate, self._operations = gate, operations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        method = "GET" if request.method == "HEAD" else request.method
        operation = self._operations.get(method)
        if operation is None:
            methods = ", ".join(sorted(self._operations))
            message = f"{request.method} is not a method of this path"
            refusal = Refusal.saying(405, message, "", headers={"Allow": methods})
            response: Response = error_answer(refusal)
        else:
            response = await self._gate.answer(operation, request)
        await response(scope, receive, send)


async def _static(request: Request) -> Response:
    request.scope[AUDIT_KEY]["operation"] = ASSET
    return asset(request.path_params["name"])


async def _nothing_there(pages: Exchange, request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    message = "there is nothing at this path"
    if asks_for_page(request):
        return pages.refuse(request, Refusal.saying(status, message, "look among the orders: /"))
    return error_answer(Refusal.saying(status, message, f"see {DOCUMENT_PATH}"))
