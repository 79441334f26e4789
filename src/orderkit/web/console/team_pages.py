"""
What team leads and platform engineers look at: teams, and the platform as a whole.

`PlatformChecks` runs the checks of the page *Platform* beside each other, and each is shown when it
has an answer. A page never waits for a slow check. It shows which checks still run, and for how
long; a check that runs longer than its limit is called late until it answers. However many people
look, a check runs once at a time, and its answer is kept for a while.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from ground.names import OrderId, TeamName
from ground.objects.values import shown
from orderkit.core.order import ledger
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_cost import cost_sums, money
from orderkit.core.order.order_summary import plain
from orderkit.core.order.order_view import OrderQuery, OrderRow, counts, select
from orderkit.core.order.team_file import TeamFile
from orderkit.flows.install import doctor_checks
from orderkit.flows.install.findings import DoctorFinding, check_releases
from orderkit.flows.order.viewing import open_pulls
from orderkit.flows.platform import Platform, ledger_snapshot, published_pack
from orderkit.flows.team.limit_check import check_known, team_of
from orderkit.flows.team.teams import list_teams
from orderkit.web.console.page_exchange import page, paged
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse
from orderkit.web.order_handlers import readable_rows
from orderkit.web.view_handlers import rows_excess

LIMIT_S, KEPT_S = 20.0, 60.0
"""After how long a check is late; how long answers are shown before everything is checked again."""
_AT_ONCE = 6
_FIRST_S = 0.5
"""How long a page waits for checks that answer at once."""
_RELEASES = "releases"
_RANKS = {"fail": 0, "warn": 1, "late": 1, "running": 2}


@dataclass
class _Check:
    """One check: its last answer, and the run that is under way."""

    findings: Sequence[DoctorFinding] = ()
    run: Future[Sequence[DoctorFinding]] | None = None
    begun_s: float = field(default_factory=time.monotonic)

    @property
    def is_running(self) -> bool:
        return self.run is not None and not self.run.done()


class PlatformChecks:
    """The checks of one platform, shared by everybody who looks."""

    def __init__(self, *, limit_s: float = LIMIT_S, kept_s: float = KEPT_S) -> None:
        self._limit_s, self._kept_s = limit_s, kept_s
        self._lock = threading.Lock()
        self._checks: dict[str, _Check] = {}
        self._begun_s = float("-inf")
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="platform check")

    def look(self, platform: Platform) -> list[dict[str, Any]]:
        """Begin what is due, and return what is known of each check, failed ones first."""
        with self._lock:
            if time.monotonic() - self._begun_s > self._kept_s:
                self._begin(platform)
            runs = [check.run for check in self._checks.values() if check.run is not None]
        wait(runs, timeout=_FIRST_S)
        with self._lock:
            lines = {name: self._lines(name, check) for name, check in self._checks.items()}
        failed = [s for s in doctor_checks.SYSTEMS if any(f["verdict"] == "fail" for f in lines[s])]
        shown = [
            line
            for name, found in lines.items()
            if doctor_checks.is_known_without(name, failed)
            for line in found
        ]
        return sorted(shown, key=lambda line: _RANKS.get(line["verdict"], 3))

    def _begin(self, platform: Platform) -> None:
        self._begun_s = time.monotonic()
        runs: dict[str, Callable[[], Sequence[DoctorFinding]]] = {
            name: lambda name=name: (doctor_checks.found(name, platform),)  # type: ignore[misc]
            for name in doctor_checks.CHECKS
        }
        runs[_RELEASES] = lambda: tuple(check_releases(platform, None, without=()))
        for name, run in runs.items():
            check = self._checks.setdefault(name, _Check())
            if not check.is_running:
                check.begun_s = time.monotonic()
                check.run = self._threads.submit(run)

    def _lines(self, name: str, check: _Check) -> list[dict[str, Any]]:
        run = check.run
        if run is not None and run.done():
            error = run.exception()
            check.findings = (
                (DoctorFinding(name, "fail", f"this is a bug in Orderkit: {error!r}"),)
                if error
                else run.result()
            )
        ran_s = time.monotonic() - check.begun_s
        if check.is_running and (not check.findings or ran_s > self._limit_s):
            is_late = ran_s > self._limit_s
            verdict = "late" if is_late else "running"
            detail = f"no answer after {ran_s:.0f} s" if is_late else "is running"
            advice = f"run 'orderkit doctor' to wait for {name}" if is_late else ""
            return [_line(DoctorFinding(name, "warn", detail, advice), verdict, is_running=True)]
        return [_line(f, f.verdict, is_running=check.is_running) for f in check.findings]


def _line(finding: DoctorFinding, verdict: str, *, is_running: bool) -> dict[str, Any]:
    return {
        "check": finding.check,
        "verdict": verdict,
        "detail": finding.detail,
        "advice": finding.advice,
        "running": is_running,
    }


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
        check_known(name, ledger_files.blobs)
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
                for entry, pull in open_pulls(service.platform.forge, entries)
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
