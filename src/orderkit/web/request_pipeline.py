"""
The path of every request: caller, rights, rate limit, handler, metrics.

Requests are handled in threads, because keys may have to be fetched from a portal or provider. Slow
operations have separate threads, because they may call the service again. They are answered within
a time limit: the work continues, and a repeated request finds it. Probes need no thread.

Callers are limited by name. Requests without a proof are limited by address, and so are those whose
proof fails: after too many, further ones get 429. A good proof is never limited by address, because
many people may share one.
Called by ``service``.
"""

from __future__ import annotations

import ipaddress
import logging
import time
from typing import Any

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from orderkit.core.errors import InvalidInputError, OrderkitError, RefusedError, UnreachableError
from orderkit.ports.requesters import UnprovedError
from orderkit.web.auditing import AUDIT_KEY
from orderkit.web.callers import Caller, identify
from orderkit.web.exchange import (
    BODY_MAX_BYTES,
    HOOK_MAX_BYTES,
    check,
    error_answer,
    parse_body,
    parse_query,
    read_body,
    refusal,
)
from orderkit.web.operations import Service, ServiceOperation, ServiceRequest, ServiceResponse
from orderkit.web.request_schemas import KEY, LABEL, POSITION
from orderkit.web.token_buckets import RateLimit

SLOW_AT_ONCE, QUICK_AT_ONCE = 8, 32
_JSON = "application/json"
_IPV6_SITE_BITS = 64
"""One customer usually has so many bits of an address to themselves."""

logger = logging.getLogger(__name__)


class RequestPipeline:
    """Checks, limits, logs and counts every request of one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._limit = RateLimit(service.options.requests_per_minute)
        self._threads: dict[bool, anyio.CapacityLimiter] = {}

    async def answer(self, operation: ServiceOperation, request: Request) -> Response:
        """Answer a request; errors become answers too."""
        began_s, metrics = time.monotonic(), self._service.metrics
        audit_entry: dict[str, Any] = request.scope[AUDIT_KEY]
        audit_entry["operation"] = operation.id
        metrics.begin()
        status = 500
        try:
            response = await self._answer(operation, request, audit_entry)
            status = response.status_code
        finally:
            metrics.end(operation.id, status, time.monotonic() - began_s)
        return response

    async def _answer(
        self, operation: ServiceOperation, request: Request, audit_entry: dict[str, Any]
    ) -> Response:
        if operation.inline:
            return _response(operation, operation.handler(self._service, _probe()))
        try:
            max_bytes = HOOK_MAX_BYTES if operation.hook else BODY_MAX_BYTES
            has_body = operation.body is not None
            data = await read_body(request, max_bytes=max_bytes) if has_body else b""
        except InvalidInputError as error:
            audit_entry["reason"] = str(error)
            return refusal(error)
        except ClientDisconnect:
            audit_entry["reason"] = "the client left, or sent its body too slowly"
            return error_answer(400, "the request has no end", "send it again")
        limiter = self._threads.setdefault(
            operation.slow, anyio.CapacityLimiter(SLOW_AT_ONCE if operation.slow else QUICK_AT_ONCE)
        )
        answer_s = self._service.options.answer_s
        with anyio.move_on_after(answer_s if operation.slow else None):
            return await anyio.to_thread.run_sync(
                self._handled,
                operation,
                request,
                data,
                audit_entry,
                abandon_on_cancel=operation.slow,
                limiter=limiter,
            )
        audit_entry["reason"] = f"not finished after {answer_s:g} s"
        return error_answer(
            503,
            f"not finished after {answer_s:g} s",
            "send the same request again: it continues where this one stopped",
        )

    def _handled(
        self,
        operation: ServiceOperation,
        request: Request,
        data: bytes,
        audit_entry: dict[str, Any],
    ) -> Response:
        try:
            caller = self._let_in(operation, request, audit_entry)
            if isinstance(caller, Response):
                return caller
            call = _call(operation, request, data, caller)
            audit_entry.update(call.path)
            try:
                answer = operation.handler(self._service, call)
            finally:
                audit_entry.update(call.audit_fields)
        except OrderkitError as error:
            return self._refused(error, audit_entry)
        except Exception as error:
            logger.exception("%s", audit_entry["request"])
            audit_entry["reason"] = f"bug: {type(error).__name__}"
            hint = f"report it with the request's id {audit_entry['request']}"
            return error_answer(500, "this is a bug in Orderkit", hint)
        return _response(operation, answer)

    def _let_in(
        self, operation: ServiceOperation, request: Request, audit_entry: dict[str, Any]
    ) -> Caller | Response | None:
        """Return the caller (None: no authentication), or the refusal by the rate limit."""
        access, address = self._service.options.access, _network(request)
        shows = any(name in request.headers for name in (access.header, "authorization"))
        if operation.right is None and not (operation.optional and shows):
            return self._limited(address, audit_entry)
        try:
            caller = identify(request, access)
        except (UnprovedError, UnreachableError):
            limited = self._limited(address, audit_entry)
            if limited is not None:
                return limited
            raise
        audit_entry.update(caller=caller.name, via=caller.via)
        limited = self._limited(caller.name, audit_entry)
        if limited is not None:
            return limited
        if operation.person:
            caller.check_person()
        if operation.right is not None:
            caller.teams(operation.right)
        return caller

    def _limited(self, caller: str, audit_entry: dict[str, Any]) -> Response | None:
        wait_s = self._limit.wait_s(caller)
        if not wait_s:
            return None
        self._service.metrics.refuse("limited")
        audit_entry["reason"] = "too many requests"
        after = str(max(1, round(wait_s + 0.5)))
        rate_note = f"{self._service.options.requests_per_minute} a minute are allowed"
        return error_answer(
            429, f"too many requests of {caller}", rate_note, headers={"Retry-After": after}
        )

    def _refused(self, error: OrderkitError, audit_entry: dict[str, Any]) -> JSONResponse:
        if isinstance(error, UnprovedError):
            self._service.metrics.refuse("unproved")
        elif isinstance(error, RefusedError):
            self._service.metrics.refuse("forbidden")
        audit_entry["reason"] = str(error)
        return refusal(error)


def _network(request: Request) -> str:
    """Return what limits a request without a proof: its address, or its network in IPv6."""
    host = request.client.host if request.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return f"address {host}"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped  # a socket of both families shows all of IPv4 so
    if isinstance(address, ipaddress.IPv4Address):
        return f"address {address}"
    return f"network {ipaddress.ip_network((address, _IPV6_SITE_BITS), strict=False)}"


def _probe() -> ServiceRequest:
    return ServiceRequest(None, {}, {}, {})


def _call(
    operation: ServiceOperation, request: Request, data: bytes, caller: Caller | None
) -> ServiceRequest:
    path = {name: str(value) for name, value in request.path_params.items()}
    for name, value in path.items():
        check(value, LABEL, f"path.{name}")
    query = parse_query(request, operation.query)
    if operation.hook:
        return ServiceRequest(caller, {}, path, query, raw=data, headers=dict(request.headers))
    body = parse_body(data, operation.body) if operation.body is not None else {}
    key = request.headers.get("idempotency-key", "") if operation.keyed else ""
    if key:
        check(key, KEY, "Idempotency-Key")
    last_event = request.headers.get("last-event-id", "") if operation.resumes else ""
    check(last_event, POSITION, "Last-Event-ID")
    authorization = request.headers.get("authorization", "")
    return ServiceRequest(caller, body, path, query, authorization, key, last_event)


def _response(operation: ServiceOperation, answer: ServiceResponse) -> Response:
    if answer.body is None:
        return Response(status_code=answer.status, headers=dict(answer.headers))
    if isinstance(answer.body, Response):
        return answer.body
    is_json = operation.media == _JSON and not isinstance(answer.body, bytes)
    if is_json or isinstance(answer.body, dict):
        return JSONResponse(answer.body, answer.status, dict(answer.headers))
    return Response(answer.body, answer.status, dict(answer.headers), operation.media)
