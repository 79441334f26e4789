"""Handlers for the lease of an order; called by ``request_pipeline``, in ``operation_table``."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from ground.shapes import changed, json_schema
from orderkit.core.durations import parse_duration
from orderkit.flows.lease.agent_requests import propose_extension
from orderkit.flows.lease.extending import ExtendRequest, extend_lease, lease_of
from orderkit.web.agents import must_propose
from orderkit.web.change_handlers import member
from orderkit.web.openapi_schemas import named
from orderkit.web.operations import Service, ServiceOperation, ServiceRequest, ServiceResponse
from orderkit.web.order_handlers import entry_for
from orderkit.web.request_bodies import Extend


def get_lease(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Show when an order expires, and how it was extended."""
    entry = entry_for(service, call, "read")
    return ServiceResponse(200, lease_of(service.platform, entry.order).answer.to_json())


def post_lease(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Extend the lease of an order, or propose to. 201 if it is new, 200 if it was done before."""
    entry = entry_for(service, call, "change")
    body = call.read(Extend)
    request = ExtendRequest(
        entry.order,
        parse_duration(body.by, field="by"),
        replace(member(call, body.requester, entry.team), agent=body.agent or ""),
        body.reason,
        _operation(call),
    )
    command = f"orderkit lease extend {entry.order} {body.by} --reason TEXT"
    if must_propose(service, call, entry.team, body.agent, command):
        pull = propose_extension(service.platform, request)
        answer = changed(
            lease_of(service.platform, entry.order).answer,
            message=f"a person extends it by merging {pull.web_url}",
            url=pull.web_url,
        )
        return ServiceResponse(201, answer.to_json())
    view = extend_lease(service.platform, request)
    return ServiceResponse(201 if view.changed else 200, view.answer.to_json())


def _operation(call: ServiceRequest) -> str:
    """Derive the operation's name from the caller's key and the request."""
    if not call.key:
        return ""
    text = json.dumps([call.who.name, call.path, call.key, call.body], sort_keys=True)
    return f"extend-{hashlib.sha256(text.encode()).hexdigest()[:20]}"


def operations(order: str) -> tuple[ServiceOperation, ...]:
    """Return the operations on the lease of an order; `order` is the path of one."""
    missing = {404: ("No such order.", named("Error"))}
    return (
        ServiceOperation(
            "orderLease",
            "GET",
            f"{order}/lease",
            "Show when an order expires, its warnings, and how it was extended.",
            get_lease,
            {
                200: ("Its lease; expires is null if it lives until it is ended.", named("Lease")),
                **missing,
            },
            "read",
        ),
        ServiceOperation(
            "extendLease",
            "POST",
            f"{order}/lease",
            "Let an order live longer, as far as its kit allows; gives a lease to one without.",
            post_lease,
            {
                200: ("The same request extended it before.", named("Lease")),
                201: ("It is extended, or an agent's pull request asks for it.", named("Lease")),
                **missing,
            },
            "change",
            body=json_schema(Extend),
            slow=True,
            person=True,
            keyed=True,
        ),
    )
