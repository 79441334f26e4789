"""
The path of every request: caller, rights, rate limit, handler, metrics.

Requests are handled in threads, because keys may have to be fetched from a portal or provider.

Callers are limited by name. Requests without a proof are limited by address, and so are those whose
proof fails: after too many, further ones get 429.

`RateLimit` has a token bucket for each caller that fills at a steady rate. It is kept in memory,
per process. Thread-safe.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ground.errors import InvalidInputError, OrderkitError, RefusedError, UnreachableError
from orderkit.core.telemetry import Attributes, root_span
from orderkit.ports.requesters import UnprovedError
from orderkit.web.auditing import AUDIT_KEY
from orderkit.web.callers import Caller
from orderkit.web.exchange import (
    BODY_MAX_BYTES,
    HOOK_MAX_BYTES,
    Exchange,
    JsonExchange,
    Refusal,
    read_body,
)
from orderkit.web.operations import Service, ServiceOperation, ServiceRequest, ServiceResponse

_CALLERS_MAX = 10_000
"""Bound on the callers in memory; the one idle longest is dropped, and starts anew."""
_IPV6_SITE_BITS = 64
"""One customer usually has so many bits of an address to themselves."""
_BURST_S = 10.0
_BURST_MIN = 5.0


class RateLimit:
    """The buckets of all callers."""

    def __init__(
        self, per_minute: int, *, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Allow bursts of ten seconds' worth of requests, at least five."""
        self._per_s = per_minute / 60
        self._burst = max(_BURST_MIN, self._per_s * _BURST_S)
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, caller: str) -> float:
        """Take a permit; return 0, or the seconds until one is available."""
        now = self._monotonic_s()
        with self._lock:
            level, updated_s = self._buckets.pop(caller, (self._burst, now))
            level = min(self._burst, level + (now - updated_s) * self._per_s)
            is_allowed = level >= 1
            self._buckets[caller] = (level - 1 if is_allowed else level, now)
            if len(self._buckets) > _CALLERS_MAX:
                self._buckets.popitem(last=False)
        return 0.0 if is_allowed else (1 - level) / self._per_s


def network_of(request: Request) -> str:
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


SLOW_AT_ONCE, QUICK_AT_ONCE = 8, 64

logger = logging.getLogger(__name__)


class RequestPipeline:
    """Checks, limits, logs and counts every request of one service."""

    def __init__(
        self,
        service: Service,
        *,
        pages: Exchange | None = None,
        watching: Exchange | None = None,
        links: Exchange | None = None,
    ) -> None:
        """
        Prepare.

        Args:
            service: What handlers work with.
            pages: How the console's pages are read and answered; None: there are none.
            watching: How the streams are that those pages follow; None: as other operations.
            links: How links are that people follow from the portal; None: as other operations.
        """
        self._service = service
        self._programs: Exchange = JsonExchange(service.options.access)
        self._pages, self._watching = pages or self._programs, watching or self._programs
        self._links = links or self._programs
        self._limit = RateLimit(service.options.requests_per_minute)
        self._threads: dict[bool, anyio.CapacityLimiter] = {}

    async def answer(self, operation: ServiceOperation, request: Request) -> Response:
        """Answer a request; errors become answers too."""
        began_s, metrics = time.monotonic(), self._service.metrics
        audit_entry: dict[str, Any] = request.scope[AUDIT_KEY]
        audit_entry["operation"] = operation.id
        metrics.begin()
        status = 500
        about: Attributes = {
            "http.request.method": operation.method,
            "url.template": operation.path,
        }
        try:
            with root_span(operation.id, about, request.headers) as notes:
                answer = await self._answer(operation, request, audit_entry)
                exchange = self._exchange(operation)
                if isinstance(answer, Refusal):
                    audit_entry.setdefault("reason", answer.error.message)
                    response = exchange.refuse(request, answer)
                else:
                    response = exchange.write(operation, answer)
                status = notes["http.response.status_code"] = response.status_code
                notes["orderkit.request"] = audit_entry["request"]
                if "order" in audit_entry:
                    notes["orderkit.order"] = audit_entry["order"]
        finally:
            metrics.end(operation.id, status, time.monotonic() - began_s)
        return response

    def _exchange(self, operation: ServiceOperation) -> Exchange:
        """Return who recognises the caller, reads the request and writes the answer."""
        if operation.page:
            return self._pages
        if operation.link:
            return self._links
        return self._watching if operation.resumes else self._programs

    async def _answer(
        self, operation: ServiceOperation, request: Request, audit_entry: dict[str, Any]
    ) -> ServiceResponse | Refusal:
        # probes need no thread
        if operation.inline:
            return operation.handler(self._service, _probe())
        try:
            max_bytes = HOOK_MAX_BYTES if operation.hook else BODY_MAX_BYTES
            has_body = operation.body is not None
            data = await read_body(request, max_bytes=max_bytes) if has_body else b""
        except InvalidInputError as error:
            return Refusal.of(error)
        except ClientDisconnect:
            audit_entry["reason"] = "the client left, or sent its body too slowly"
            return Refusal.saying(400, "the request has no end", "send it again")
        # slow operations have threads of their own, because they may call the service again
        limiter = self._threads.setdefault(
            operation.slow, anyio.CapacityLimiter(SLOW_AT_ONCE if operation.slow else QUICK_AT_ONCE)
        )
        answer_s = self._service.options.answer_s
        # the work continues: a repeated request finds it
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
        return Refusal.saying(
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
    ) -> ServiceResponse | Refusal:
        try:
            caller = self._let_in(operation, request, audit_entry)
            if isinstance(caller, Refusal):
                return caller
            call = self._exchange(operation).read(operation, request, data, caller)
            audit_entry.update(call.path)
            try:
                return operation.handler(self._service, call)
            finally:
                audit_entry.update(call.audit_fields)
        except OrderkitError as error:
            return self._refused(error)
        except Exception as error:
            logger.exception("%s", audit_entry["request"])
            audit_entry["reason"] = f"bug: {type(error).__name__}"
            hint = f"report it with the request's id {audit_entry['request']}"
            return Refusal.saying(500, "this is a bug in Orderkit", hint)

    def _let_in(
        self, operation: ServiceOperation, request: Request, audit_entry: dict[str, Any]
    ) -> Caller | Refusal | None:
        """Return the caller (None: no authentication), or the refusal by the rate limit."""
        exchange, address = self._exchange(operation), network_of(request)
        shows = exchange.shows_proof(request)
        if operation.right is None and not (operation.optional and shows):
            return self._limited(address, audit_entry)
        try:
            caller = exchange.identify(request)
        except (UnprovedError, UnreachableError):
            limited = self._limited(address, audit_entry)
            if limited is not None:
                return limited
            raise
        audit_entry.update(caller=caller.name, via=caller.via)
        # by name, never by address: many people may share one
        limited = self._limited(caller.name, audit_entry)
        if limited is not None:
            return limited
        if operation.person:
            caller.check_person()
        if operation.right is not None:
            caller.teams(operation.right)
        return caller

    def _limited(self, caller: str, audit_entry: dict[str, Any]) -> Refusal | None:
        wait_s = self._limit.wait_s(caller)
        if not wait_s:
            return None
        self._service.metrics.refuse("limited")
        audit_entry["reason"] = "too many requests"
        after = str(max(1, round(wait_s + 0.5)))
        rate_note = f"{self._service.options.requests_per_minute} a minute are allowed"
        return Refusal.saying(
            429, f"too many requests of {caller}", rate_note, headers={"Retry-After": after}
        )

    def _refused(self, error: OrderkitError) -> Refusal:
        if isinstance(error, UnprovedError):
            self._service.metrics.refuse("unproved")
        elif isinstance(error, RefusedError):
            self._service.metrics.refuse("forbidden")
        return Refusal.of(error)


def _probe() -> ServiceRequest:
    return ServiceRequest(None, {}, {}, {})
