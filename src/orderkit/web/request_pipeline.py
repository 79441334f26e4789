"""
The path of every request: caller, rights, rate limit, handler, audit log, metrics.

Requests are handled in threads, because keys may have to be fetched from a portal or provider. Slow
operations have separate threads, because they may call the service again. They are answered within
a time limit: the work continues, and a repeated request finds it.
Called by ``service``.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Mapping
from typing import Any

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from orderkit.core.errors import InvalidInputError, OrderkitError, RefusedError
from orderkit.ports.requesters import UnprovedError
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
from orderkit.web.request_schemas import KEY, LABEL
from orderkit.web.token_buckets import RateLimit

SLOW_AT_ONCE, QUICK_AT_ONCE = 8, 32
_JSON = "application/json"

logger = logging.getLogger(__name__)


class RequestPipeline:
    """Checks, limits, logs and counts every request of one service."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._limit = RateLimit(service.options.requests_per_minute)
        self._threads: dict[bool, anyio.CapacityLimiter] = {}

    async def answer(self, operation: ServiceOperation, request: Request) -> Response:
        """Answer a request; errors become answers too."""
        began, metrics = time.monotonic(), self._service.metrics
        audit_entry: dict[str, Any] = {"request": uuid.uuid4().hex, "operation": operation.id}
        metrics.begin()
        status = 500
        try:
            response = await self._answer(operation, request, audit_entry)
            status = response.status_code
        finally:
            duration_s = time.monotonic() - began
            metrics.end(operation.id, status, duration_s)
            if operation.right is not None or operation.optional or operation.hook:
                address = request.client.host if request.client else ""
                ended = {"status": status, "ms": round(duration_s * 1000), "address": address}
                self._audit({**audit_entry, **ended})
        response.headers["X-Request-Id"] = audit_entry["request"]
        return response

    async def _answer(
        self, operation: ServiceOperation, request: Request, audit_entry: dict[str, Any]
    ) -> Response:
        try:
            max_bytes = HOOK_MAX_BYTES if operation.hook else BODY_MAX_BYTES
            has_body = operation.body is not None
            data = await read_body(request, max_bytes=max_bytes) if has_body else b""
        except InvalidInputError as error:
            return refusal(error)
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
        access = self._service.options.access
        shows = any(name in request.headers for name in (access.header, "authorization"))
        if operation.right is None and not (operation.optional and shows):
            address = request.client.host if request.client else ""
            return self._limited(f"address {address}", audit_entry)
        caller = identify(request, access)
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

    def _audit(self, entry: Mapping[str, Any]) -> None:
        if self._service.options.audit is None:
            return
        try:
            self._service.options.audit.write(entry)
        except OSError:
            logger.exception("the audit log cannot be written")


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
    return ServiceRequest(caller, body, path, query, request.headers.get("authorization", ""), key)


def _response(operation: ServiceOperation, answer: ServiceResponse) -> Response:
    if answer.body is None:
        return Response(status_code=answer.status, headers=dict(answer.headers))
    if operation.media == _JSON or isinstance(answer.body, dict):
        return JSONResponse(answer.body, answer.status, dict(answer.headers))
    return Response(answer.body, answer.status, dict(answer.headers), operation.media)
