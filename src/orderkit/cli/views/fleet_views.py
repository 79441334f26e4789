"""How a plan over many orders looks: for people on a terminal, as JSON, or as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from orderkit.cli.output import emit_json, say
from orderkit.cli.views.plan_views import Line, Screen
from orderkit.core.order.change import shown
from orderkit.core.plan import Action
from orderkit.core.plan.fleet_markdown import fleet_markdown
from orderkit.core.plan.fleet_plan import (
    FleetCosts,
    FleetPlan,
    Fold,
    OrderVerdict,
    counted,
    folds,
    of_categories,
)
from orderkit.core.plan.plan_json import fleet_json

_COLORS = {
    Action.ADDED: "green",
    Action.CHANGED: "yellow",
    Action.REMOVED: "red",
    Action.REPLACED: "red",
}
_FIELDS_MAX, _FOLDS_MAX, _UNREAD_MAX = 8, 40, 20


def show(
    fleet: FleetPlan, shape: Literal["json", "markdown"] | None, screen: Screen | None = None
) -> None:
    """Print a plan to stdout."""
    if shape == "json":
        # megabytes, which no person reads: with line breaks it takes ten times as long to write
        emit_json("orderkit.fleet-plan/v1", fleet_json(fleet), indent=None)
    elif shape == "markdown":
        say(fleet_markdown(fleet))
    else:
        screen = screen or Screen.of()
        screen.echo(_lines(fleet, screen))


_FOLD_LEADS = (
    ("fault", "refused     ", "red"),
    ("standing-fault", "as before   refused by both packs: ", "yellow"),
    ("danger", "danger      ", "red"),
    ("accepted", "accepted    by the kit: ", ""),
    ("paused", "paused      ", "yellow"),
    ("pinned", "not affected: pinned: ", "yellow"),
)
"""Categories of folds that are a sentence, in the order shown; how a line begins; its colour."""


def _lines(fleet: FleetPlan, screen: Screen) -> Iterator[Line]:
    yield f"{', '.join(fleet.kits)}: {fleet.summary}", ""
    yield f"  from        {fleet.base.title}", ""
    yield f"  to          {fleet.candidate.title}", ""
    all_folds = folds(fleet)
    for category, lead, color in _FOLD_LEADS:
        for fold in of_categories(all_folds, category):
            code = f" ({fold.code})" if fold.code else ""
            yield f"  {lead}{fold.title}{code}: {_orders(fold)}", color
    for change in fleet.defaults:
        step = f"{change.path} {shown(change.old)} → {shown(change.new)}"
        keep = f"{counted(change.orders)} keep the old value; only new orders get the new one"
        yield f"  default     {step}: {keep}", "yellow"
    yield from _changes(of_categories(all_folds, "resource", "field", "status"), screen)
    yield from _unread(fleet, screen)
    unread = {order_plan.order for order_plan in fleet.of(OrderVerdict.UNKNOWN)}
    for fold in of_categories(all_folds, "unknown"):
        if not unread.issuperset(fold.orders):
            yield f"  not known   {fold.title}: {_orders(fold)}", "yellow"
    if (costs := fleet.costs) is not None:
        yield from _costs(costs, screen)
    for text in fleet.notes:
        yield f"  note        {text}", ""
    yield f"  in          {fleet.read_s:.1f} s reading, {fleet.planned_s:.1f} s planning", ""


def _costs(costs: FleetCosts, screen: Screen) -> Iterator[Line]:
    yield f"  costs       {costs.summary}", ""
    if costs.unpriced:
        yield f"  not priced  {', '.join(costs.unpriced)}", "yellow"
    unread_shown = costs.unread if screen.full else costs.unread[:_UNREAD_MAX]
    yield from ((f"  not known   costs: {text}", "yellow") for text in unread_shown)
    if len(costs.unread) > len(unread_shown):
        count_hidden = len(costs.unread) - len(unread_shown)
        yield f"  not known   costs: {count_hidden:,} more amounts (--full names them)", "yellow"
    table = costs.sums.table
    yield f"  prices      {table.origin}", "yellow" if table.stale else ""


def _orders(fold: Fold) -> str:
    return f"{counted(fold.count)} ({fold.examples()})"


def _changes(change_folds: tuple[Fold, ...], screen: Screen) -> Iterator[Line]:
    folds_shown = change_folds if screen.full else change_folds[:_FOLDS_MAX]
    for fold in folds_shown:
        path_prefix = {"field": "spec.", "status": "status."}.get(fold.category, "")
        color = _COLORS[fold.action] if fold.action else ""
        sign = fold.action.sign if fold.action else "~"
        if fold.category != "resource":
            yield f"  ~ {path_prefix}{fold.fields[0]}   {_orders(fold)}", color
            continue
        yield f"  {sign} {fold.title}   {_orders(fold)}", color
        fields = fold.fields if screen.full else fold.fields[:_FIELDS_MAX]
        yield from ((f"      {field}", "") for field in fields)
        if len(fold.fields) > len(fields):
            yield f"      and {len(fold.fields) - len(fields)} more fields (--full shows them)", ""
    if len(change_folds) > len(folds_shown):
        yield f"  and {len(change_folds) - len(folds_shown)} more changes (--full shows them)", ""


def _unread(fleet: FleetPlan, screen: Screen) -> Iterator[Line]:
    missing = fleet.of(OrderVerdict.UNKNOWN)
    plans_shown = missing if screen.full else missing[:_UNREAD_MAX]
    for order_plan in plans_shown:
        yield f"  no plan     {order_plan.order}: {order_plan.why_not}", "red"
    if len(missing) > len(plans_shown):
        yield (
            f"  no plan     of {len(missing) - len(plans_shown):,} more orders (--full names them)",
            "red",
        )
