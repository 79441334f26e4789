"""
Handlers for orders: place, register and show them.

A caller may use the orders of their teams. An order of another team is answered like one that does
not exist. What a request may become that an AI agent sends on behalf of a person is decided by the
team (`must_propose`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from ground.errors import OrderkitError, RefusedError
from ground.names import CommitSha, OrderId, TeamName
from ground.shapes import ObjectReference
from orderkit.core.order import ledger
from orderkit.core.order.damage import Damage, delivered_commits
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_view import OrderQuery, select_by
from orderkit.core.platform.service_access import Right
from orderkit.flows.live.live_row import LiveRow
from orderkit.flows.order import order_damage, order_report, tracing
from orderkit.flows.order.live_order import LiveOrder, find_living
from orderkit.flows.order.order_objects import order_events
from orderkit.flows.order.order_report import KnownReads, OrderReport
from orderkit.flows.order.placing import TaskRequest, run_task
from orderkit.flows.order.registering import Registration, register
from orderkit.flows.order.repository_damage import on_forge
from orderkit.flows.order.template_services import answered_settings
from orderkit.flows.plan.order_plan import plan_new_order
from orderkit.flows.platform import RepositorySnapshot, ledger_snapshot, pack_snapshot
from orderkit.flows.team.limit_check import team_of
from orderkit.web.messages import (
    Events,
    Failing,
    OrdersPage,
    PlanOrder,
    Register,
    RunTask,
    Settings,
    SettingsAnswer,
    TaskDone,
    Trace,
    planned,
)
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse


def must_propose(
    service: Service, call: ServiceRequest, team: TeamName, agent: str | None, command: str
) -> bool:
    """
    Return whether a request becomes a proposal; False without an agent. The audit log names it.

    Args:
        command: What a person types instead.

    Raises:
        RefusedError: The team lets agents only read.
    """
    if not agent:
        return False
    call.audit_fields["agent"] = agent
    right = team_of(service.platform, team, ledger_snapshot(service.platform)).agents
    if right == "read":
        raise RefusedError(
            f"agents may only read the orders of team {team}", hint=f"a person types: {command}"
        )
    return right == "propose"


def post_task(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Run a template of the pack; its steps are idempotent. 201 if the order is new."""
    body = call.read(RunTask)
    requester = replace(call.who.requester(body.requester), agent=body.agent or "")

    def permit(team: TeamName | None) -> None:
        call.audit_fields["team"] = team
        call.who.check("order", team)
        if body.agent and team is None:
            raise RefusedError(
                f"template '{body.template}' orders no kit, and an agent may run no other template",
                hint=f"a person types: orderkit run {body.template}",
            )
        if team is not None:
            must_propose(service, call, team, body.agent, f"orderkit order {body.template}")

    task_request = TaskRequest(
        template=body.template,
        values=body.values,
        requester=requester,
        id=body.id,
        authorization=call.authorization,
        permit=permit,
    )
    task = run_task(service.platform, task_request)
    order = task.entry.order if task.entry else None
    call.audit_fields.update(order=order, created=task.created)
    service.model.reread()
    done = TaskDone(
        template=task.template,
        order=order,
        created=task.created,
        requester=requester.ref,
        requester_proof=requester.proof,
        steps={step: {"output": dict(output)} for step, output in task.result.steps.items()},
        output=task.result.outputs,
    )
    return ServiceResponse(201 if task.created else 200, done.to_json())


def post_new_plan(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Return what an order would compose and cost, with the same checks. Nothing is written."""
    body = call.read(PlanOrder)
    request = TaskRequest(
        template=call.path["kit"],
        values=body.values,
        requester=call.who.requester(body.requester),
        permit=lambda team: call.who.check("order", team),
    )
    order, plan = plan_new_order(service.platform, request)
    call.audit_fields.update(order=order.entry.order, team=order.entry.team)
    return ServiceResponse(200, planned(plan, order.entry.order, order.entry.team).to_json())


def post_settings(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Read the YAML of an order form: what every caller may read of a kit suffices."""
    settings = answered_settings(service.platform, call.path["kit"], call.read(Settings).text)
    return ServiceResponse(200, SettingsAnswer(settings).to_json())


def post_order(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Register an order whose repository exists. 201 if it is new in the ledger."""
    body = call.read(Register)
    order, team = OrderId(body.order), TeamName(body.team)
    call.audit_fields.update(order=order, team=team)
    call.who.check("order", team)
    requester = call.who.requester(body.requester)
    registration = Registration(order, body.kit, team, requester.ref, requester.proof)
    registered = register(service.platform, registration)
    service.model.reread()
    return ServiceResponse(201 if registered.changed else 200, registered.to_json())


def list_orders(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Show the orders of the caller's teams that a query selects, as the live model has them."""
    query = order_query(call.query)
    service.model.wait_complete()
    position = service.model.log.position()  # before the rows: a stream from here misses nothing
    rows = readable_rows(service, call)
    page, cursor = select_by(rows, query, attrgetter("row"), are_by_team=True)
    orders = b",".join(live.data for live in page)
    state = service.model.state()
    page_end = OrdersPage(
        cursor=cursor or None,
        position=position,
        age=round(state.age_s, 3),
        ledger=state.ledger_commit,
    )
    tail = json.dumps(page_end.to_json()).encode()
    return ServiceResponse(200, b'{"orders":[%s],%s' % (orders, tail[1:]))


def readable_rows(service: Service, call: ServiceRequest) -> Sequence[LiveRow]:
    """
    Return the rows of the caller's teams, by team and id.

    Raises:
        RefusedError: The caller may read nothing.
        InProgressError: The live model is not complete yet.
    """
    teams = call.who.teams("read")
    service.model.wait_complete()
    rows = service.model.rows()
    return rows if teams is None else [row for row in rows if row.row.team in teams]


def order_query(query: Mapping[str, str]) -> OrderQuery:
    """Return what the parameters of an address select."""
    return OrderQuery(
        team=query.get("team", ""),
        kit=query.get("kit", ""),
        owner=query.get("owner", ""),
        phase=tuple(filter(None, query.get("phase", "").split(","))),
        text=query.get("text", ""),
        sort=query.get("sort", "team"),
        limit=int(query["limit"]) if "limit" in query else None,
        cursor=query.get("cursor", ""),
    )


def get_order(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Show one order, compared with the head of its repository."""
    entry, ledger_files = located_for(service, call, "read")

    def make(known: KnownReads) -> Mapping[str, Any]:
        look = forge_look(service, ledger_files)
        report = order_damage.status(service.platform, entry.order, known, look)
        return tracing.trace_of(service.platform, report).report.to_json()

    return ServiceResponse(200, _shared(service, "order", entry, ledger_files, make))


def get_trace(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Show an order's whole tree and what fails first."""
    entry, ledger_files = located_for(service, call, "read")

    def make(known: KnownReads) -> Mapping[str, Any]:
        trace = tracing.trace(service.platform, entry.order, known)
        failing = trace.failing
        return Trace(
            trace.report.to_json(),
            trace.root.answer,
            Failing(ObjectReference.to(failing.key), failing.reason) if failing else None,
        ).to_json()

    return ServiceResponse(200, _shared(service, "trace", entry, ledger_files, make))


class _Versions(NamedTuple):
    """What changes whenever the answer about an order does."""

    ledger: CommitSha
    head: CommitSha | None
    cluster: int
    """The live model's version of the order."""
    fault: tuple[type[OrderkitError], str] | None = None
    """Why there is no head."""


def _shared(
    service: Service,
    question: str,
    entry: OrderEntry,
    ledger_files: RepositorySnapshot,
    make: Callable[[KnownReads], Mapping[str, Any]],
) -> Mapping[str, Any]:
    """Return an answer about an order that is the same for all who may read it."""

    def versions() -> _Versions:
        version = service.model.version(entry.order)
        try:
            head = service.platform.forge.head(entry.repository)
        except OrderkitError as error:  # the answer says what is wrong with it
            return _Versions(ledger_files.commit, None, version, (type(error), str(error)))
        return _Versions(ledger_files.commit, head, version)

    def made(now: _Versions) -> Mapping[str, Any]:
        pack = service.reads.read("pack", partial(pack_snapshot, service.platform))
        return make(KnownReads(ledger_files, pack, now.head))

    return service.answers.get((question, entry), versions, made)


def forge_look(service: Service, ledger_files: RepositorySnapshot) -> order_damage.ForgeLook:
    """Return what looks at an order's repository, and keeps that while only the cluster moves."""

    def look(report: OrderReport) -> tuple[Damage, ...]:
        entry, application = report.entry, report.sources.application
        versions = (ledger_files.commit, report.state.head, report.kit,
                    tuple(delivered_commits(application)))  # fmt: skip
        return service.forge_looks.get(
            entry,
            lambda: versions,
            lambda _: tuple(on_forge(service.platform, entry, report)),
        )

    return look


def get_events(service: Service, call: ServiceRequest) -> ServiceResponse:
    """List the cluster's events about an order and its parts, newest first."""
    entry, ledger_files = located_for(service, call, "read")
    limit = int(call.query.get("limit", "50"))
    events = order_events(service.platform, entry.order, ledger_files, limit=limit)
    return ServiceResponse(200, Events(entry.order, tuple(events)).to_json())


def entry_for(service: Service, call: ServiceRequest, right: Right) -> OrderEntry:
    """
    Return the order that the path names, if the caller has this right for its team.

    Raises:
        NotFoundError: There is none, and the caller may see all.
        RefusedError: There is none, or it is of another team.
    """
    return located_for(service, call, right)[0]


def located_for(
    service: Service, call: ServiceRequest, right: Right
) -> tuple[OrderEntry, RepositorySnapshot]:
    """Return the same, and the ledger's files."""
    order, teams = call.path["order"], call.who.teams(right)
    ledger_files = service.reads.read("ledger", partial(ledger_snapshot, service.platform))
    if teams is None:
        living_entry = order_report.find(order, ledger_files.blobs)
    else:
        entry = ledger.living_order(ledger_files.blobs, order)
        if entry is None or entry.team not in teams:
            raise call.who.foreign(f"order '{order}'", teams)
        living_entry = entry
    call.audit_fields["team"] = living_entry.team
    return living_entry, ledger_files


def living_for(service: Service, call: ServiceRequest, right: Right) -> LiveOrder:
    """
    Return the same with its kit, record and team, for who changes it.

    Raises:
        OrderkitError: As `located_for` and `find_living` say.
    """
    entry, ledger_files = located_for(service, call, right)
    return find_living(service.platform, entry.order, ledger_files)
