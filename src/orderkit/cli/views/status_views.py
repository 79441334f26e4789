"""
Show one order with everything that people want to see of it, and what happened to orders.

``orderkit status``, ``orderkit history``, and ``orderkit log`` for all orders: for people, or as
one JSON object.
"""

from __future__ import annotations

from collections.abc import Iterator

from ground.visible_text import visible
from kubeschema.validate.findings import remedy, sentence
from orderkit.cli.output import (
    emit_fields,
    emit_json,
    emit_table,
    in_color,
    phase_color,
    say,
    say_colored,
)
from orderkit.cli.views.list_views import age, in_time
from orderkit.core.order.order_state import SENTENCES, short
from orderkit.core.order.order_view import Attention, OrderRow, OrderView
from orderkit.flows.order.activity import Activity, ActivityEntry
from orderkit.flows.order.commit_judging import SignatureVerdict
from orderkit.flows.order.order_history import HistoryEntry
from orderkit.flows.order.order_report import OrderReport
from orderkit.ports.forge import OPERATION_TRAILER, REASON_TRAILER

_OF_REPORT = ("phase", "reason", "head", "revision", "delivered", "findings", "repository")
"""Fields that the report and the view both have: the report compares with Git's newest commit."""

Pairs = Iterator[tuple[str, str]]


def show_status(report: OrderReport, view: OrderView, as_json: bool) -> None:
    """Show one order."""
    if as_json:
        reported = report.to_json()
        kept = {name: reported[name] for name in _OF_REPORT}
        emit_json("orderkit.status/v1", {**reported, **view.to_json(), **kept})
        return
    state = report.state
    phase = in_color(state.phase, phase_color(state.phase))
    say_colored(f"{visible(f'{report.entry.order} of team {report.entry.team}')}: {phase}")
    emit_fields(
        [
            ("phase", SENTENCES[state.phase]),
            *_troubles(report, view),
            *given_values(view),
            *_around(view),
            *_observed(report, view),
            ("commit", f"{short(state.head or '-')} in {report.repository_url}"),
            ("delivered", short(report.delivered or "-")),
            ("XR", str(report.xr or "-")),
        ]
    )


def _troubles(report: OrderReport, view: OrderView) -> Pairs:
    state, attention = report.state, view.attention
    if state.reason and not any(state.reason == entry.sentence for entry in attention):
        yield "reason", state.reason
    elif view.reason and not attention:
        yield "reason", view.reason
    for entry in attention:
        yield "attention", entry.sentence
        if entry.change:
            yield "", _command(view, entry)
    if state.advice and not any(entry.change for entry in attention):
        yield "what to do", state.advice
    for finding in report.check.findings if report.check else ():
        if not state.reason.startswith(sentence(finding)):
            yield "finding", sentence(finding)
            yield "", remedy(finding)


def _observed(report: OrderReport, view: OrderView) -> Pairs:
    """Yield what the order takes over, how it differs, and the change that manages it."""
    for observed_part in view.observed:
        name = f" '{observed_part.external_name}'" if observed_part.external_name else ""
        count = len(observed_part.differences)
        text = f"{count} difference{'s' * (count != 1)}" if count else "as the order wants it"
        if not observed_part.is_found:
            text = observed_part.reason
        yield "observed", f"{observed_part.key}{name}: {text}"
        yield from (("", str(difference)) for difference in observed_part.differences)
    imports = report.declared.imports if report.declared else None
    if imports and view.observed:
        yield "to manage", f"orderkit change {view.order} {imports.manage}=true"


def _command(view: OrderView, attention: Attention) -> str:
    """Return the command that makes the change that helps."""
    fields = next((c.fields for c in view.changes if c.name == attention.change), ())
    values = " ".join(f"{field}=VALUE" for field in fields)
    return f"orderkit change {view.order} {values} --change {attention.change}"


def given_values(view: OrderRow) -> Pairs:
    """Yield what the order was made for, and what its kit declares to be worth seeing."""
    absent = "none" if view.phase == "Ready" else "not known yet"
    for output in view.outputs:
        hidden = "hidden: members see it in the console" if output.is_secret else absent
        yield output.title, hidden if output.value is None else output.value
    for fact in view.facts:
        yield fact.title, absent if fact.value is None else fact.value


def price_and_expiry(row: OrderRow) -> Pairs:
    """Yield what an order costs a month, and when its lease ends."""
    if row.cost:
        yield "cost", row.cost if row.cost == "not known" else f"{row.cost} a month"
    if row.expires:
        yield "expires", f"{in_time(row.expires)}, {row.expires}"


def _around(view: OrderView) -> Pairs:
    row, parts = view, view.parts
    if parts.total:
        yield "parts", f"{parts.ready} of {parts.total} ready"
    if parts.failing:
        yield "first", f"{parts.failing.key}: {parts.failing.reason or 'is not ready'}"
    for pull in view.pulls:
        yield f"pull #{pull.number}", f"{pull.title}, by {pull.requester}"
        yield "", f"plan: {pull.plan or 'not there yet'}"
        yield "", pull.url
    yield from price_and_expiry(row)
    if row.owner or row.created:
        ago = f", {age(row.created)} ago" if row.created else ""
        yield "ordered", f"by {row.owner or 'nobody knows'}{ago}"


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
    claimed = f"; claims {entry.commit.requester}" if entry.commit.requester else ""
    if entry.commit.is_merge:
        return f" (merge{claimed})"
    if entry.signature is SignatureVerdict.NONE:
        return " (by hand)"
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
    how = "merge" if entry.merge else "by hand"
    return f"{who} ({how})" if entry.by_hand else who


def _what(entry: ActivityEntry) -> str:
    why = f", because {entry.why}" if entry.why else ""
    return f"{entry.what}{why} ({short(entry.commit)})"
