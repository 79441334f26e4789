"""Show what happened to all orders: ``orderkit log``."""

from __future__ import annotations

from orderkit.cli.output import emit_json, emit_table, say
from orderkit.cli.views.list_views import in_time
from orderkit.core.order.order_state import short
from orderkit.flows.order.activity import Activity, ActivityEntry

_HEAD = ("WHEN", "ORDER", "WHO", "WHAT")


def show_activity(told: Activity, as_json: bool, *, asked: str) -> None:
    """Show a page, newest first; `asked` is the command, for the hint that names the next page."""
    if as_json:
        emit_json("orderkit.activity/v1", told.to_json())
        return
    if told.entries:
        rows = [
            (in_time(entry.when), entry.order, _who(entry), _what(entry)) for entry in told.entries
        ]
        emit_table(_HEAD, rows, last_below=True)
    else:
        say("nothing happened that these filters select", err=True)
    if told.cursor:
        say(f"hint:  older entries: {asked} --cursor {told.cursor}", err=True)


def _who(entry: ActivityEntry) -> str:
    who = entry.who.removeprefix("user:default/").partition(" <")[0]
    how = "merge" if entry.merge else "by hand"
    return f"{who} ({how})" if entry.by_hand else who


def _what(entry: ActivityEntry) -> str:
    why = f", because {entry.why}" if entry.why else ""
    return f"{entry.what}{why} ({short(entry.commit)})"
