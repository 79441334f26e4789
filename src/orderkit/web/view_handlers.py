"""
Handlers for what people look at: an order's view and secret outputs, kits, a team, campaigns.

`get_stream` answers ``GET /v1/stream``.

The service shows campaigns and carries none out: a campaign acts for whoever runs the command.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from functools import partial

from ground.names import TeamName
from ground.shapes import changed
from orderkit.core.campaign.record import CampaignView, WaveView
from orderkit.core.kit.change_forms import changes_of, title_of
from orderkit.core.kit.field_names import label_of
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import fields_of
from orderkit.core.order import ledger
from orderkit.core.order.order_cost import sums_answer
from orderkit.core.order.order_view import OrderQuery, OrderRow, counts, select
from orderkit.core.order.team_file import TeamFile
from orderkit.core.order.team_limits import sum_excess
from orderkit.core.plan.cost_statement import period_of
from orderkit.flows.campaign.showing import campaigns
from orderkit.flows.order import order_outputs, viewing
from orderkit.flows.order.activity import LIMIT, LIMIT_MAX, ActivityQuery, activity
from orderkit.flows.plan.cost_statements import StatementRequest, make_statement
from orderkit.flows.platform import ledger_snapshot, published_pack
from orderkit.flows.team.limit_check import check_known, team_of
from orderkit.web.change_handlers import member
from orderkit.web.event_stream import EventStream
from orderkit.web.messages import (
    Campaigns,
    Kits,
    KitTeams,
    ListedChange,
    ListedField,
    ListedKit,
    Reveal,
    Revealed,
    RevealedOutput,
    Team,
)
from orderkit.web.openapi_schemas import named
from orderkit.web.operations import Service, ServiceOperation, ServiceRequest, ServiceResponse
from orderkit.web.order_handlers import forge_look, located_for

_TEAM_ROWS = 50
"""Orders that a team's page names, those that fail first."""


def get_view(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Show one order with everything people want to see of it."""
    entry, ledger_files = located_for(service, call, "read")
    proof = call.who.proof
    viewer = viewing.Viewer(
        member(call, None, entry.team), may_change=proof is None or "change" in proof.rights
    )
    shown = viewing.view(
        service.platform,
        entry.order,
        viewer,
        ledger_files=ledger_files,
        forge_look=forge_look(service, ledger_files),
    )
    return ServiceResponse(200, shown.to_json())


def post_outputs(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Reveal secret outputs of an order to somebody who may change it; the audit log has it."""
    entry, ledger_files = located_for(service, call, "change")
    names = list(dict.fromkeys(call.read(Reveal).names))
    call.audit_fields["outputs"] = ", ".join(names)
    values = order_outputs.reveal(service.platform, entry.order, names, ledger_files)
    outputs = tuple(RevealedOutput(name, value) for name, value in values.items())
    body = Revealed(entry.order, outputs).to_json()
    return ServiceResponse(200, body, {"Cache-Control": "no-store"})


def get_kits(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Show what the platform offers."""
    call.who.teams("read")
    kits = published_pack(service.platform).kits()
    portal = service.options.portal_url
    return ServiceResponse(200, Kits(tuple(_kit(kit, portal) for kit in kits)).to_json())


def kit_operations() -> tuple[ServiceOperation, ...]:
    """Return the operations that say what can be ordered, and for whom."""
    return (
        ServiceOperation(
            "listKits",
            "GET",
            "/v1/kits",
            "List what the platform offers: fields, changes and the form of each kit.",
            get_kits,
            {200: ("The kits of the published pack.", named("Kits"))},
            "read",
        ),
        ServiceOperation(
            "listKitTeams",
            "GET",
            "/v1/kits/{kit}/teams",
            "List the teams for which the caller may order a kit.",
            get_kit_teams,
            {
                200: ("Their names, sorted.", named("KitTeams")),
                404: ("No such kit.", named("Error")),
            },
            "order",
        ),
    )


def _kit(kit: Kit, portal_url: str) -> ListedKit:
    fields = tuple(
        ListedField(
            path=field.path,
            parameter=kit.parameter(field.path),
            title=field.hints.title or label_of(field.name),
            description=field.hints.help or str(field.schema.get("description") or ""),
            type=str(field.schema.get("type") or ""),
            required=field.required,
            choices=field.schema.get("enum"),
            labels={str(value): text for value, text in field.hints.labels.items()},
        )
        for field in fields_of(kit).form
        if field.visible
    )
    return ListedKit(
        name=kit.name,
        title=kit.title,
        description=kit.description,
        owner=kit.owner,
        tags=kit.tags,
        fields=fields,
        changes=tuple(
            ListedChange(change.name, title_of(change), change.fields, change.how, change.who)
            for change in changes_of(kit)
        ),
        form=f"{portal_url}/create/templates/default/{kit.name}" if portal_url else "",
    )


def get_kit_teams(service: Service, call: ServiceRequest) -> ServiceResponse:
    """List the teams for which the caller may order a kit."""
    kit = published_pack(service.platform).kit(call.path["kit"]).name
    snapshot, mine = ledger_snapshot(service.platform), call.who.teams("order")
    teams = (team for team in ledger.teams(snapshot.blobs) if mine is None or team in mine)
    may = tuple(team for team in teams if team_of(service.platform, team, snapshot).may_order(kit))
    return ServiceResponse(200, KitTeams(kit, may).to_json())


def get_activity(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Tell what happened to the orders of the caller's teams, newest first."""
    query = call.query
    asked = ActivityQuery(
        team=query.get("team", ""),
        person=query.get("person", ""),
        kit=query.get("kit", ""),
        since=query.get("since", ""),
        limit=min(int(query.get("limit", LIMIT)), LIMIT_MAX),
        cursor=query.get("cursor", ""),
        teams=call.who.teams("read"),
    )
    service.model.wait_complete()
    told = activity(service.platform, asked, service.model.deliveries())
    return ServiceResponse(200, told.to_json())


def get_statement(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Compute what a team's orders cost in a period, from Git."""
    team = TeamName(call.path["team"])
    call.who.check("read", team)
    check_known(team, ledger_snapshot(service.platform).blobs)
    call.audit_fields["team"] = team
    since, until = period_of(
        call.query.get("since", ""), call.query.get("until", ""), service.platform.clock.now()
    )
    request = StatementRequest(since, until, team, call.query.get("kit", ""))
    return ServiceResponse(200, make_statement(service.platform, request).answer.to_json())


def rows_excess(team: TeamFile, rows: Iterable[OrderRow]) -> str:
    """Say that a team's orders cost more than its limit, as far as rows know; empty if not."""
    living = (row for row in rows if row.phase not in ("Ending", "Ended"))
    return sum_excess(team, {row.order: row.costs for row in living if row.costs})


def get_team(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Show a team: its people, its limits, and how its orders are."""
    team, teams = TeamName(call.path["team"]), call.who.teams("read")
    if teams is not None and team not in teams:
        raise call.who.foreign(f"team '{team}'", teams)
    snapshot = ledger_snapshot(service.platform)
    check_known(team, snapshot.blobs)
    call.audit_fields["team"] = team
    file = team_of(service.platform, team, snapshot)
    service.model.wait_complete()
    rows = [live.row for live in service.model.rows() if live.row.team == team]
    page, cursor = select(rows, OrderQuery(sort="phase", limit=_TEAM_ROWS))
    answer = Team(
        team=team,
        members=file.members,
        kits=file.kits or None,
        namespaces=(ledger.team_namespace(team), *file.namespaces),
        limits=file.limits.to_json(),
        costs=sums_answer(row.costs for row in rows),
        cost_excess=rows_excess(file, rows),
        total=len(rows),
        phases=counts(rows),
        orders=tuple(page),
        more=bool(cursor),
    )
    return ServiceResponse(200, answer.to_json())


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


def get_campaigns(service: Service, call: ServiceRequest) -> ServiceResponse:
    """List campaigns; of their orders, callers see those of their teams by name."""
    teams = call.who.teams("read")
    views = campaigns(service.platform)
    if teams is not None:
        blobs = ledger_snapshot(service.platform).blobs
        own = {entry.order for entry in ledger.entries(blobs) if entry.team in teams}
        views = [shown_to(view, own) for view in views]
    return ServiceResponse(200, Campaigns(tuple(views)).to_json())


def shown_to(view: CampaignView, own: Collection[str]) -> CampaignView:
    """Return a campaign as the members of some teams see it: others' orders are counted only."""
    waves = tuple(_wave_for(wave, own) for wave in view.waves)
    return changed(view, waves=waves, why="")  # it may name an order of others


def _wave_for(wave: WaveView, own: Collection[str]) -> WaveView:
    reasons = (
        changed(reason, orders=tuple(order for order in reason.orders if order in own))
        for reason in wave.reasons
    )
    return changed(wave, reasons=tuple(reason for reason in reasons if reason.orders))


def operations() -> tuple[ServiceOperation, ...]:
    """Return the operations on campaigns."""
    return (
        ServiceOperation(
            "listCampaigns",
            "GET",
            "/v1/campaigns",
            "List campaigns with their waves, as the ledger's records say.",
            get_campaigns,
            {200: ("The campaigns, by name.", named("Campaigns"))},
            "read",
            slow=True,
        ),
    )
