"""Show one order with everything that people want to see of it: ``orderkit status``."""

from __future__ import annotations

from collections.abc import Iterator

from ground.visible_text import visible
from kubeschema.validate.findings import remedy, sentence
from orderkit.cli.output import emit_fields, emit_json, in_color, phase_color, say_colored
from orderkit.cli.views.list_views import age, in_time
from orderkit.core.order.order_state import SENTENCES, short
from orderkit.core.order.order_view import Attention, OrderRow, OrderView
from orderkit.flows.order.order_report import OrderReport

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
