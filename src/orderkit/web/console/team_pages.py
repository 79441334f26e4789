"""
What team leads and platform engineers look at: teams, and the platform as a whole.

``console`` lists them.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ground.names import OrderId, TeamName
from ground.objects.values import shown
from orderkit.core.order import ledger
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_cost import cost_sums, money
from orderkit.core.order.order_selection import OrderQuery, counts, select
from orderkit.core.order.order_summary import plain
from orderkit.core.order.order_view import OrderRow
from orderkit.core.order.team_file import TeamFile
from orderkit.flows.order.viewing import open_pulls
from orderkit.flows.platform import ledger_snapshot, published_pack
from orderkit.flows.team.limit_check import team_of, unknown_team
from orderkit.flows.team.teams import list_teams
from orderkit.web.console.api_calls import page, paged
from orderkit.web.console.platform_checks import PlatformChecks
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse
from orderkit.web.order_handlers import readable_rows
from orderkit.web.view_handlers import rows_excess

_URGENT = ("Failing", "Attention", "Waiting", "Written", "Delivering", "Assembling")
_REASON_MAX = 160
_PULLS_OF, PULLS_KEPT_S = 30, 30.0
"""Orders whose pull requests are read, one request each, and for how long that is shown."""
_REASONS = 12


class TeamPages:
    """Teams, and the platform as a whole."""

    def __init__(self) -> None:
        self._checks = PlatformChecks()
        self._pulls: list[dict[str, Any]] = []
        self._pulls_read_s = float("-inf")

    def teams(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show the caller's teams whose names have a text, those that need a look first."""
        mine, text = call.who.teams("read"), call.query.get("text", "").strip().lower()
        rows_of = defaultdict[str, list[OrderRow]](list)
        for live in readable_rows(service, call):
            rows_of[live.row.team].append(live.row)
        teams = [
            {"team": team, "phases": counts(rows_of[team])}
            for team in list_teams(service.platform)
            if mine is None or team in mine
        ]
        found = [team for team in teams if text in team["team"]]
        found.sort(key=lambda team: not {"Failing", "Attention", "Waiting"} & {*team["phases"]})
        shown, at, pages = paged(call, found)
        return page(
            call,
            "teams.html",
            "Teams",
            teams=shown,
            total=len(teams),
            found=len(found),
            text=text,
            at=at,
            pages=pages,
        )

    def team(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show a team: what fails, waits and expires, what it costs, and its limits."""
        name = TeamName(call.path["team"])
        call.who.check("read", name)
        ledger_files = ledger_snapshot(service.platform)
        known = list(ledger.teams(ledger_files.blobs))
        if name not in known:
            raise unknown_team(name, known)
        team = team_of(service.platform, name, ledger_files)
        orders = [live.row for live in readable_rows(service, call)]
        chosen, _ = select(orders, OrderQuery(team=name, sort="phase"))
        rows = [row.to_json() for row in chosen]
        return page(
            call,
            "team.html",
            f"Team {name}",
            team={
                "team": name,
                "members": team.members,
                "agents": team.agents,
                "kits": team.kits,
                "namespaces": [ledger.team_namespace(name), *team.namespaces],
            },
            phases_of=counts(chosen),
            urgent=[row for row in rows if row["phase"] in _URGENT],
            expiring=sorted(
                (row for row in rows if row["expires"]), key=lambda row: str(row["expires"])
            )[:10],
            costs=[row for row in rows if row["cost"]],
            together=_together(chosen),
            total=len(rows),
            limits=_limits(team, rows, chosen),
        )

    def platform(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show how the platform is, to those who may act for every team."""
        call.who.check("read", None)
        rows = [live.row for live in readable_rows(service, call)]
        pack = published_pack(service.platform)
        return page(
            call,
            "platform.html",
            "Platform",
            findings=self._checks.look(service.platform),
            kits=[
                {
                    "name": kit.name,
                    "title": kit.title,
                    "phases": counts(row for row in rows if row.kit == kit.name),
                }
                for kit in pack.kits()
            ],
            reasons=_reasons(rows),
            pulls=self._open_pulls(service, rows),
            pulls_of=min(len(rows), _PULLS_OF),
            total=len(rows),
            phases_of=counts(rows),
            pack={"name": pack.name, "commit": service.platform.forge.head(
                service.platform.pack_repo)},
            forge=service.platform.forge.base_url,
        )  # fmt: skip

    def _open_pulls(self, service: Service, rows: Sequence[OrderRow]) -> list[dict[str, Any]]:
        """Return what is proposed to the orders that changed last, as read moments ago."""
        now_s = time.monotonic()
        if now_s - self._pulls_read_s > PULLS_KEPT_S:
            newest = sorted(rows, key=lambda row: row.since, reverse=True)[:_PULLS_OF]
            entries = [OrderEntry(TeamName(row.team), OrderId(row.order)) for row in newest]
            self._pulls = [
                {"order": entry.order, "number": pull.number, "title": pull.title}
                for entry, pull in open_pulls(service.platform, entries)
            ]
            self._pulls_read_s = now_s
        return self._pulls


def _reasons(rows: Iterable[OrderRow]) -> list[dict[str, Any]]:
    """Return what is wrong with orders, the most common first; names in it are left out."""
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        if row.phase in ("Failing", "Attention"):
            text = _first_reason(row).replace(row.order, "…")
            by_reason.setdefault(plain(text, _REASON_MAX), []).append(row.order)
    ordered = sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        {"reason": reason, "orders": orders[:5], "number": len(orders)}
        for reason, orders in ordered[:_REASONS]
    ]


def _first_reason(row: OrderRow) -> str:
    sentences = (attention.sentence for attention in row.attention)
    return next(filter(None, (row.reason, *sentences)), "no reason is known")


def _together(rows: Iterable[OrderRow]) -> str:
    """Return what orders cost together, and of how many that is not known."""
    sums, not_known = cost_sums(row.costs for row in rows)
    partly = sum(cost_sum.partly for cost_sum in sums)
    notes = [f"{not_known} not known"] if not_known else []
    notes += [f"{partly} known in part"] if partly else []
    return ", ".join(("; ".join(map(str, sums)) or "not known", *notes))


def _limits(
    team: TeamFile, rows: Iterable[Mapping[str, Any]], orders: Iterable[OrderRow]
) -> list[dict[str, Any]]:
    """Return the team's bounds, with how much of them is used."""
    limits, orders = team.limits, tuple(orders)
    living = [row for row in rows if row["phase"] != "Ended"]
    used_by = {kit: sum(row["kit"] == kit for row in living) for kit in limits.orders_of}
    counted = [] if limits.orders is None else [("orders", len(living), limits.orders)]
    counted += [(f"orders of {kit}", used_by[kit], most) for kit, most in limits.orders_of.items()]
    bounds = [{"what": what, "used": used, "most": most} for what, used, most in counted]
    if limits.cost is not None:
        most = f"{money(limits.cost.amount)} {limits.cost.currency} a month"
        excess = rows_excess(team, orders)
        now = f"{_together(orders)}{f'; {excess}' if excess else ''}"
        bounds.append({"what": "cost", "used": None, "most": f"{most}; now {now}"})
    return bounds + [
        {"what": f"{kit}: {path}", "used": None, "most": shown(most)}
        for kit, fields in limits.fields.items()
        for path, most in fields.items()
    ]
