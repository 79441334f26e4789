"""Show campaigns. The JSON shapes are stable: fields are added, never renamed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ground.visible_text import visible
from orderkit.cli import output
from orderkit.cli.output import emit_fields, emit_json, emit_table, say
from orderkit.core.campaign.record import CampaignView, WaveView, view_of
from orderkit.core.plan.cost import Sums
from orderkit.core.plan.fleet_plan import counted
from orderkit.flows.campaign.campaign_reads import CampaignFiles
from orderkit.flows.campaign.planning import CampaignPlan, Fold, PlannedOrder
from orderkit.flows.campaign.running import Progress

_FOLDS_MAX = 40
_WAVES = ("WAVE", "ORDERS", "STATE", "RESULT")
_LIST = ("CAMPAIGN", "STATE", "KIT", "ORDERS", "REASON")
_COLORS = {"refused": "red", "unknown": "red", "danger": "yellow"}


def show_plan(plan: CampaignPlan, as_json: bool) -> None:
    """Show what a campaign would do."""
    if as_json:
        emit_json("orderkit.campaign-plan/v1", plan.to_json())
        return
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in plan.counts.items())
    say(f"{plan.campaign.name}: {counted(len(plan.orders))}: {counts or 'none'}")
    _say_folds(plan.folds, plan.costs)
    waves = ", ".join(f"{wave.name} ({len(wave.orders):,})" for wave in plan.waves)
    say(f"  {'waves':<8}  {visible(waves)}")
    for note in plan.notes:
        say(f"  {'note':<8}  {visible(note)}")


def _say_folds(folds: Sequence[Fold], costs: Sums | None = None) -> None:
    for fold in folds[:_FOLDS_MAX]:
        word = output.in_color(f"{fold.kind:<8}", _COLORS.get(fold.kind, ""))
        output.say_colored(f"  {word}  {visible(str(fold))}")
    if len(folds) > _FOLDS_MAX:
        say(f"  and {len(folds) - _FOLDS_MAX} more; --json shows all")
    if costs:
        say(f"  {'costs':<8}  {costs}")


def show_drift(orders: tuple[PlannedOrder, ...], folds: Sequence[Fold], as_json: bool) -> None:
    """Show how far orders are from the pack."""
    if as_json:
        emit_json("orderkit.drift/v1", {"orders": [order.to_json() for order in orders]})
        return
    drifted = sum(order.verdict != "same" for order in orders)
    say(f"{counted(len(orders))}: {drifted:,} differ from the pack")
    _say_folds(folds)


def show_campaigns(views: Sequence[CampaignView], as_json: bool) -> None:
    """Show all campaigns."""
    if as_json:
        emit_json("orderkit.campaigns/v1", {"campaigns": [view.to_json() for view in views]})
        return
    rows = [
        (view.name, view.state, view.kit, str(view.orders or "-"), visible(view.reason))
        for view in views
    ]
    if rows:
        emit_table(_LIST, rows)
    else:
        say("no campaigns", err=True)


def show_campaign(view: CampaignView, as_json: bool) -> None:
    """Show one campaign."""
    if as_json:
        emit_json("orderkit.campaign/v1", view.to_json())
        return
    say(f"{view.name}: {view.state}{f': {visible(view.why)}' if view.why else ''}")
    emit_fields([("reason", visible(view.reason)), ("kit", view.kit)])
    for line in table(view):
        output.say_colored(line)
    for wave in view.waves:
        for reason in wave.reasons:
            shown, more = ", ".join(reason.orders[:3]), len(reason.orders) - 3
            named = f"{shown} and {more} more" if more > 0 else shown
            say(f"  {reason.result}: {visible(reason.why)}: {named}")


def table(view: CampaignView) -> list[str]:
    """Return the table of waves."""
    rows = [(visible(w.name), f"{w.orders:,}", _state(w), _result(w)) for w in view.waves]
    return output.table_lines(_WAVES, rows) if rows else []


def _state(wave: WaveView) -> str:
    if wave.closed:
        return "over"
    return "open" if wave.counts else "-"


def _result(wave: WaveView) -> str:
    return ", ".join(f"{count} {result}" for result, count in wave.counts.items()) or "-"


def watcher(files: CampaignFiles, *, is_live: bool) -> Callable[[Progress], None]:
    """
    Return what shows a campaign that goes on.

    Args:
        is_live: Draw the table of waves anew each time; else a line for each change.
    """
    progress = output.Progress()
    last: list[str] = []

    def show(seen: Progress) -> None:
        view = view_of(files.campaign, seen.record, seen.facts)
        if is_live:
            head = [f"{view.name}: {view.state}", ""]
            output.draw_screen([*head, *table(view), "", visible(seen.why)])
            return
        number = seen.wave or 0
        if number < len(view.waves) and (result := _result(view.waves[number])) not in last:
            last[:] = [result]
            progress(visible(view.waves[number].name), result)
        elif seen.why and (on_wait := progress.on_wait):
            on_wait(visible(seen.why))

    return show
