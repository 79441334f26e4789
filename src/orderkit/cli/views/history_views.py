"""
Show the history of an order, for people or as one JSON object.

Show what happened to all orders: ``orderkit log``.
"""

from __future__ import annotations

from orderkit.cli.output import emit_json, emit_table, say
from orderkit.cli.views.list_views import in_time
from orderkit.core.order.order_state import short
from orderkit.flows.order.activity import Activity, ActivityEntry
from orderkit.flows.order.commit_judging import SignatureVerdict
from orderkit.flows.order.order_history import HistoryEntry
from orderkit.ports.forge import OPERATION_TRAILER, REASON_TRAILER


def show_history(order: str, entries: list[HistoryEntry], as_json: bool) -> None:
    """Show what happened to an order, newest first."""
    if as_json:
        report = {"order": order, "entries": [entry.answer.to_json() for entry in entries]}
        emit_json("orderkit.history/v1", report)
        return
    for entry in entries:
        say(f"{short(entry.commit.id)}  {entry.commit.when}  {entry.who}{_by_hand(entry)}")
        for line in _entry_lines(entry):
            say(f"          {line}")


_WHY_UNPROVED = {
    SignatureVerdict.MISSING: "not signed",
    SignatureVerdict.UNKNOWN_KEY: "signed with an unknown key",
    SignatureVerdict.INVALID: "the signature is another commit's",
    SignatureVerdict.COPIED: "a copy of another commit",
}


def _by_hand(entry: HistoryEntry) -> str:
    if entry.proved:
        return ""
    if len(entry.commit.parents) > 1:
        return " (merge)"
    if entry.signature is SignatureVerdict.NONE:
        return " (by hand)"
    claimed = f"; claims {entry.commit.requester}" if entry.commit.requester else ""
    return f" (by hand: {_WHY_UNPROVED[entry.signature]}{claimed})"


def _entry_lines(entry: HistoryEntry) -> list[str]:
    if entry.unreadable:
        lines = [f"unreadable: {entry.unreadable}"]
    elif entry.first:
        lines = ["ordered", *(f"{f.path} {f.new_shown}" for f in entry.fields)]
    else:
        lines = [str(field) for field in entry.fields] or [f"no field: {entry.commit.summary}"]
    reason, operation = entry.trailer(REASON_TRAILER), entry.trailer(OPERATION_TRAILER)
    lines += [f"because {reason}"] if reason else []
    lines += [f"operation {operation}"] if operation else []
    return lines


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
    return f"{who} (by hand)" if entry.by_hand else who


def _what(entry: ActivityEntry) -> str:
    why = f", because {entry.why}" if entry.why else ""
    return f"{entry.what}{why} ({short(entry.commit)})"
