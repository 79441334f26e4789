"""
Handlers for orders: place one, register one, look at them.

A caller sees and touches the orders of their teams. For an order of another team the answer is
that of an order that does not exist. Called by ``gate``, listed in ``table``.
"""

from __future__ import annotations

from typing import Any

from orderkit.core.names import OrderId, TeamName
from orderkit.core.order import ledger
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.platform.access import Right
from orderkit.flows.order import listing, tracing
from orderkit.flows.order.order_events import order_events
from orderkit.flows.order.placing import TaskDone, TaskRequest, run_task
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.platform import ledger_snapshot
from orderkit.ports.requesters import Requester
from orderkit.web.operations import Answer, Call, Service


def post_task(service: Service, call: Call) -> Answer:
    """Run a template of the pack; each step makes sure. 201 if the order is new."""
    requester = call.who.requester(call.body.get("requester"))

    def permit(team: TeamName | None) -> None:
        call.noted["team"] = team
        call.who.check("order", team)

    wanted = TaskRequest(
        template=call.body["template"],
        values=call.body["values"],
        requester=requester,
        id=call.body.get("id", ""),
        authorization=call.authorization,
        permit=permit,
    )
    done = run_task(service.platform, wanted)
    call.noted.update(order=done.order, created=done.created)
    return Answer(201 if done.created else 200, _task(done, requester))


def _task(done: TaskDone, requester: Requester) -> dict[str, Any]:
    return {
        "template": done.template,
        "order": done.order,
        "created": done.created,
        "requester": requester.ref,
        "requesterProof": requester.proof,
        "steps": {step: {"output": dict(output)} for step, output in done.steps.items()},
        "output": dict(done.outputs),
    }


def post_order(service: Service, call: Call) -> Answer:
    """Register an order whose repository is there. 201 if it is new in the ledger."""
    body = call.body
    call.noted.update(order=body["order"], team=body["team"])
    call.who.check("order", body["team"])
    asked = call.who.requester(body.get("requester"))
    wanted = Registration(
        OrderId(body["order"]), body["kit"], TeamName(body["team"]), asked.ref, asked.proof
    )
    done = register(service.platform, wanted)
    return Answer(201 if done.changed else 200, done.to_json())


def list_orders(service: Service, call: Call) -> Answer:
    """Show the orders of the caller's teams, by team and id."""
    teams = call.who.teams("read")
    wanted = call.query
    found = [
        report.to_json()
        for report in listing.list_orders(service.platform)
        if (teams is None or report.entry.team in teams)
        and wanted.get("team", report.entry.team) == report.entry.team
        and wanted.get("kit", report.kit) == report.kit
    ]
    return Answer(200, {"orders": found})


def get_order(service: Service, call: Call) -> Answer:
    """Show one order, compared with the head of its repository."""
    entry = entry_for(service, call, "read")
    return Answer(200, listing.status(service.platform, entry.order).to_json())


def get_trace(service: Service, call: Call) -> Answer:
    """Show an order's whole tree and what fails first."""
    entry = entry_for(service, call, "read")
    found = tracing.trace(service.platform, entry.order)
    failing = found.failing
    shown = {"object": failing.key.to_json(), "reason": failing.reason} if failing else None
    body = {"order": found.report.to_json(), "tree": found.root.to_json(), "failing": shown}
    return Answer(200, body)


def get_events(service: Service, call: Call) -> Answer:
    """Tell what the cluster says about an order and its parts, newest first."""
    entry = entry_for(service, call, "read")
    limit = int(call.query.get("limit", "50"))
    found = order_events(service.platform, entry.order, limit=limit)
    return Answer(200, {"order": entry.order, "events": [each.to_json() for each in found]})


def entry_for(service: Service, call: Call, right: Right) -> OrderEntry:
    """
    Return the order that the path names, if the caller has this right for its team.

    Raises:
        NotFoundError: There is none, and the caller may see all.
        RefusedError: There is none, or it is of another team.
    """
    order, teams = call.path["order"], call.who.teams(right)
    paths = ledger_snapshot(service.platform).blobs
    if teams is None:
        found = listing.find(order, paths)
    else:
        entry = ledger.holder(paths, order)
        if entry is None or entry.team not in teams:
            raise call.who.foreign(f"order '{order}'", teams)
        found = entry
    call.noted["team"] = found.team
    return found
