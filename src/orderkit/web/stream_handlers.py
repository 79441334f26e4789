"""
Handler for ``GET /v1/stream``.

Called by ``request_pipeline``, listed in ``operation_table``.
"""

from __future__ import annotations

import time
from functools import partial

from orderkit.web.operations import Service, ServiceRequest, ServiceResponse
from orderkit.web.order_streams import EventStream
from orderkit.web.row_selection import COMPLETE_S, selection


def get_stream(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Open a stream of the orders of the caller's teams; it ends before the caller's proof."""
    is_shown = selection(call)
    service.model.wait_complete(COMPLETE_S)
    log, streams, proof = service.model.log, service.streams, call.who.proof
    position = call.last_event or call.query.get("after", "")
    number = log.number(position) if position else log.last
    expires_s = proof.expires_s if proof and proof.expires_s else float("inf")
    caller = call.who.name
    streams.reserve(caller, is_person=proof is not None)
    events = streams.events(number, is_shown, life_s=expires_s - time.time())
    return ServiceResponse(200, EventStream(events, partial(streams.release, caller)))
