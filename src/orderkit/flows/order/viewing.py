"""
Show one order with everything people want to see of it.

`view` takes the row from the cluster and adds what only the forge knows. The number of requests to
the forge is bounded, whatever people pushed; a part that cannot be read is left empty.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from msgspec.structs import asdict

from ground.errors import OrderkitError, RefusedError
from ground.names import MAIN
from ground.shapes import changed
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.kit.change_forms import changes_of, title_of
from orderkit.core.order.change.change_rules import ChangeRequester, ChangeVerdict, judge_who
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_cost import OrderCost
from orderkit.core.order.order_summary import plain
from orderkit.core.order.order_view import Attention, OfferedChange, OpenPull, OrderView
from orderkit.flows.composing.on_demand import cost_of
from orderkit.flows.order import cost_limit, order_damage
from orderkit.flows.order.commit_judging import CommitJudge
from orderkit.flows.order.ledger_records import registered_by
from orderkit.flows.order.live_order import LiveOrder, find_living, read_xr
from orderkit.flows.order.order_damage import ForgeLook
from orderkit.flows.order.order_history import HistoryEntry, history_of
from orderkit.flows.order.order_report import KnownReads, OrderReport
from orderkit.flows.order.tracing import Trace, trace_of
from orderkit.flows.platform import Platform, RepositorySnapshot, ledger_snapshot
from orderkit.ports.forge import Forge
from orderkit.ports.pulls import PLAN_CONTEXT, PullRequest
from orderkit.ports.requesters import Requester

PULLS_MAX = 10
"""Open pull requests that are shown, the newest first."""
_VALUE_MAX = 20_000
"""Characters of one value as JSON; larger ones are left out."""
_AT_ONCE = 4
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks. Without a proof, `requester` is a claim and no change is refused for it."""

    requester: Requester
    may_change: bool = True
    """Whether they have the right ``change`` for the order's team."""


def view(
    platform: Platform,
    order: str,
    viewer: Viewer,
    *,
    ledger_files: RepositorySnapshot | None = None,
    tree: Trace | None = None,
    forge_look: ForgeLook | None = None,
) -> OrderView:
    """
    Return an order's view.

    Args:
        ledger_files: The ledger's files, if they were read already.
        tree: The order's tree, if it was read already.
        forge_look: See `order_damage.status`.

    Raises:
        NotFoundError: The ledger has no such order; the message says if it ended.
    """
    if tree is None:
        known = KnownReads(ledger_files)
        tree = trace_of(platform, order_damage.status(platform, order, known, forge_look))
    report, entry = tree.report, tree.report.entry
    with InheritingThreads(_AT_ONCE) as threads:
        costs = threads.submit(costs_of, platform, report)
        live = _tried(lambda: find_living(platform, order, ledger_files))
        pulls = threads.submit(_tried, lambda: _pulls(platform, entry))
        owner = threads.submit(_tried, lambda: registered_by(platform, entry))
        entries = threads.submit(
            _tried, lambda: history_of(platform, live, limit=1, notes=False) if live else None
        )
        at_head = _tried(lambda: _values(platform, live)) if live else None
        excess = threads.submit(_tried, lambda: _excess(platform, live, entries.result() or []))
    ordered_by = owner.result() or ""
    newest = entries.result() or []
    head, values = at_head or (None, {})
    row = report.row(tuple(tree.part_states()), costs.result())
    if pushed := excess.result():
        row = changed(row, attention=(*row.attention, Attention(plain(pushed))))
    return OrderView(
        **asdict(changed(row, owner=plain(ordered_by) or row.owner)),
        head=report.state.head or head or "",
        values=values,
        pulls=tuple(pulls.result() or ()),
        changes=_changes(live, viewer, ordered_by) if live else (),
        last_change=newest[0].answer.to_json() if newest else None,
        findings=report.check.answers if report.check else (),
        observed=tuple(node.observed for _, node in tree.root.walk() if node.observed),
    )


def _tried(read: Callable[[], _Read]) -> _Read | None:
    """Return what is read, or None if it cannot be: a view without it is better than none."""
    try:
        return read()
    except OrderkitError:
        return None


def costs_of(platform: Platform, report: OrderReport) -> OrderCost | None:
    """Return what an order costs a month; None: it cannot be computed, or nothing has a price."""
    xr = report.sources.xr
    return _tried(lambda: cost_of(platform, xr, report.pack)) if xr else None


def _excess(platform: Platform, live: LiveOrder | None, newest: Sequence[HistoryEntry]) -> str:
    """Say that the team is above its cost limit, if a push past Orderkit may be the reason."""
    if live is None or not newest or newest[0].proved:
        return ""
    return cost_limit.team_excess(platform, live.team, ledger_snapshot(platform).blobs)


def _values(platform: Platform, live: LiveOrder) -> tuple[str, Mapping[str, Any]]:
    head = platform.forge.head(live.repository)
    if head is None:
        return "", {}
    spec = read_xr(platform, live, head).xr.get("spec")
    fields = live.kit.spec_schema.get("properties", {})
    return head, {
        name: value
        for name, value in (spec if isinstance(spec, dict) else {}).items()
        if name in fields and len(json.dumps(value, default=str)) <= _VALUE_MAX
    }


def _pulls(platform: Platform, entry: OrderEntry) -> tuple[OpenPull, ...]:
    repo = entry.repository
    newest = list(islice(platform.forge.pulls(repo, state="open", base=MAIN), PULLS_MAX))
    with InheritingThreads(_AT_ONCE) as threads:
        return tuple(threads.map(lambda pull: _pull(platform, entry, pull), newest))


def open_pulls(forge: Forge, entries: Sequence[OrderEntry]) -> list[tuple[OrderEntry, OpenPull]]:
    """
    Return the open pull requests of several orders, without their plans and proofs.

    Costs one request for each order; orders that cannot be read are left out.
    """

    def read(entry: OrderEntry) -> list[tuple[OrderEntry, OpenPull]]:
        pulls = forge.pulls(entry.repository, state="open", base=MAIN)
        return [
            (
                entry,
                OpenPull(pull.number, plain(pull.title), pull.web_url, plain(pull.author.login)),
            )
            for pull in islice(pulls, PULLS_MAX)
        ]

    with InheritingThreads(_AT_ONCE) as threads:
        pulls_of = threads.map(lambda entry: _tried(lambda: read(entry)) or [], entries)
        return [pull for pulls in pulls_of for pull in pulls]


def _pull(platform: Platform, entry: OrderEntry, pull: PullRequest) -> OpenPull:
    statuses = _tried(lambda: platform.forge.statuses(entry.repository, pull.head_commit)) or ()
    plan = next((status for status in statuses if status.context == PLAN_CONTEXT), None)
    return OpenPull(
        pull.number,
        plain(pull.title),
        pull.web_url,
        plain(_tried(lambda: _proved_requester(platform, entry, pull)) or pull.author.login),
        plain(plan.description) if plan else "",
        plan.state if plan else "",
    )


def _proved_requester(platform: Platform, entry: OrderEntry, pull: PullRequest) -> str:
    """Return who asked for a pull request, if a signature proves it; its text is anybody's."""
    if not pull.requester:
        return ""
    commits = platform.forge.commits(entry.repository, ref=pull.head_commit, limit=1)
    judge = CommitJudge(platform, entry.repository, pull.head_commit)
    return judge.requester(commits[0]) if commits else ""


def _changes(live: LiveOrder, viewer: Viewer, ordered_by: str) -> tuple[OfferedChange, ...]:
    asking = ChangeRequester(
        viewer.requester.ref,
        viewer.requester.groups,
        ordered_by,
        live.entry.team,
        live.kit.owner,
    )
    offered = []
    for change in changes_of(live.kit):
        why_not = "" if viewer.may_change else "you lack the right 'change' for this team"
        if not why_not and viewer.requester.proof:
            why_not = _refusal(ChangeVerdict((change,)), asking)
        offered.append(
            OfferedChange(
                change.name, title_of(change), change.fields, change.how, not why_not, why_not
            )
        )
    return tuple(offered)


def _refusal(verdict: ChangeVerdict, asking: ChangeRequester) -> str:
    try:
        judge_who(verdict, asking)
    except RefusedError as error:
        return str(error)
    return ""
