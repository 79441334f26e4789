"""Handler for ``GET /v1/stream``."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from orderkit.core.order.order_view import OrderRow
from orderkit.web.event_stream import EventStream
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse


def get_stream(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Open a stream of the orders of the caller's teams; it ends before the caller's proof."""
    is_shown = _selection(call)
    service.model.wait_complete()
    log, streams, proof = service.model.log, service.streams, call.who.proof
    position = call.last_event or call.query.get("after", "")
    number = log.number(position) if position else log.last
    expires_s = proof.expires_s if proof and proof.expires_s else float("inf")
    caller = call.who.name
    streams.reserve(caller, is_person=proof is not None)
    events = streams.events(number, is_shown, life_s=expires_s - time.time())
    return ServiceResponse(200, EventStream(events, partial(streams.release, caller)))


def _selection(call: ServiceRequest) -> Callable[[OrderRow], bool]:
    """Return what says whether a row is shown: of the caller's teams, and asked for."""
    teams = call.who.teams("read")
    asked = [(name, call.query[name]) for name in ("team", "kit", "order") if name in call.query]

    def is_shown(row: OrderRow) -> bool:
        return (teams is None or row.team in teams) and all(
            getattr(row, name) == value for name, value in asked
        )

    return is_shown
