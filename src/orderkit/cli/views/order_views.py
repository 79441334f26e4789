"""
Show results about orders: one function per result, as text or as one JSON object.

The JSON shapes are stable: fields are added, never renamed, while the ``schema`` stays.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import click

from ground.errors import RefusedError, UsageError
from ground.shapes import plain
from orderkit.cli.output import Row, emit_fields, emit_json, emit_table, say
from orderkit.cli.views.status_views import given_values, price_and_expiry
from orderkit.core.order.order_cost import OrderCost
from orderkit.core.order.order_state import short
from orderkit.flows.end.destroying import EndPreview
from orderkit.flows.end.end_request import Ended
from orderkit.flows.install.pack_rendering import PlatformValues
from orderkit.flows.order.adopting import Adopted
from orderkit.flows.order.order_objects import OrderEvent
from orderkit.flows.order.placing import Ordered
from orderkit.flows.order.registering import Registered
from orderkit.flows.order.repairing import Repaired
from orderkit.flows.order.tracing import Trace, TraceNode

if TYPE_CHECKING:
    from orderkit.flows.change import Changed
    from orderkit.flows.change.declared_order import Declared
    from orderkit.flows.order.awaiting import Waited
    from orderkit.flows.order.order_report import OrderReport


def assignments(texts: Iterable[str], *, example: str = "stage=stage2") -> dict[str, str]:
    """
    Read ``field=value`` arguments.

    Raises:
        UsageError: One has no ``=``, or a field is given twice.
    """
    values: dict[str, str] = {}
    for text in texts:
        field, separator, value = text.partition("=")
        if not separator or not field:
            raise UsageError(f"'{text}' is not FIELD=VALUE", hint=f"for example {example}")
        if field in values:
            raise UsageError(
                f"{field} is given twice: '{values[field]}' and '{value}'",
                hint=f"{field}=VALUE, once",
            )
        values[field] = value
    return values


def show_ordered(result: Ordered, shown: OrderedFacts, as_json: bool) -> None:
    """Show the outcome of an order."""
    _show_order(result.report, shown, as_json, created=result.created, commit=result.commit)


def show_declared(
    result: Declared, report: OrderReport, shown: OrderedFacts, as_json: bool
) -> None:
    """Show what became of the order that a file declares."""
    changed, created = result.changed, result.ordered is not None and result.ordered.created
    if changed is None or as_json:
        commit = (changed.commit if changed else None) or report.state.head
        _show_order(report, shown, as_json, created=created, commit=commit, changed=changed)
    else:
        from orderkit.cli.views.change_views import Finished, show_changed

        state = report.state if changed.state == "committed" else None
        show_changed(Finished(changed, state), as_json=False)


def show_every(results: Mapping[str, tuple[str, str]]) -> None:
    """Show what became of the orders that one file declares: a word, and a state or an error."""
    rows = [(order, *result) for order, result in results.items()]
    emit_table(("ORDER", "RESULT", "STATE"), rows)


@dataclass(frozen=True, slots=True)
class OrderedFacts:
    """What an order came to, beside its state: its price, and where its page is."""

    costs: OrderCost | None
    page: str
    """Its address in the console; empty if the platform has no service."""


def _show_order(
    report: OrderReport,
    shown: OrderedFacts,
    as_json: bool,
    *,
    created: bool,
    commit: str | None,
    changed: Changed | None = None,
) -> None:
    row = report.row(costs=shown.costs)
    if as_json:
        order_json = {**report.to_json(row), "created": created, "commit": commit}
        order_json["page"] = shown.page or None
        order_json |= {"change": changed.answer.to_json()} if changed else {}
        emit_json("orderkit.order/v1", order_json)
        return
    state, order = report.state, report.entry.order
    words = "ordered" if created else "was ordered already with these values"
    say(f"{order} {words}: {state.phase}{_reason_text(state.reason)}")
    emit_fields(
        [
            *given_values(row),
            *price_and_expiry(row),
            ("repository", f"{report.repository_url} at {short(commit or '-')}"),
            *([("page", shown.page)] if shown.page else []),
            ("look", f"orderkit {'status' if state.ready else 'trace'} {order}"),
        ]
    )


def show_waited(result: Waited, as_json: bool) -> None:
    """Show what was waited for and reached."""
    state = result.state
    if as_json:
        emit_json(
            "orderkit.wait/v1",
            {
                "order": result.order,
                "for": result.goal,
                "phase": state.phase if state else "Ended",
                "ready": state is not None,
                "revision": state.revision if state else None,
                "tombstone": result.tombstone or None,
            },
        )
    elif state:
        say(f"{result.order}: {state.phase} at {short(state.revision or '')}")
    else:
        say(f"{result.order}: Ended, nothing is left of it")


def _reason_text(reason: str) -> str:
    return f" ({reason})" if reason else ""


def show_trace(result: Trace, as_json: bool) -> None:
    """Show an order's tree."""
    failing = result.failing
    if as_json:
        failing_json = (
            {"object": failing.key.to_json(), "reason": failing.reason} if failing else None
        )
        emit_json(
            "orderkit.trace/v1",
            {
                **result.report.to_json(),
                "tree": result.root.answer.to_json(),
                "failing": failing_json,
            },
        )
        return
    rows = list(_rows(result.root, "", ""))
    emit_table(("OBJECT", "SYNCED", "READY", "REASON"), rows)
    if failing:
        say(f"\nfirst failing: {failing.key}: {failing.reason}")
    if result.report.state.advice:
        say(f"what to do: {result.report.state.advice}")


def _rows(node: TraceNode, prefix: str, below: str) -> Iterator[Row]:
    """Yield a node and its children as lines of a drawn tree."""
    yield f"{prefix}{node.key}", node.synced, node.ready, node.reason
    for number, child in enumerate(node.children, start=1):
        last = number == len(node.children)
        yield from _rows(
            child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")
        )


def show_registered(result: Registered, as_json: bool) -> None:
    """Show the outcome of registering."""
    if as_json:
        emit_json("orderkit.register/v1", result.to_json())
        return
    words = "is registered" if result.changed else "was registered already"
    say(f"{result.order} {words}: kit {result.kit}, team {result.team}")


def show_adopted(result: Adopted, *, dry_run: bool, as_json: bool) -> None:
    """Show the outcome of adopting."""
    if as_json:
        emit_json("orderkit.adopt/v1", {**result.to_json(), "dryRun": dry_run})
        return
    words = "is an order already"
    if result.changed:
        words = "would be an order" if dry_run else "is an order now"
    entry = result.entry
    say(f"{entry.order} {words}: kit {result.kit}, team {entry.team}")
    for path in result.files_written:
        say(f"  {'would add' if dry_run else 'added':9}  {path}")


def show_repaired(result: Repaired, *, dry_run: bool, as_json: bool) -> None:
    """Show what was done to an order, what was repaired, and what is left for a person."""
    if as_json:
        emit_json("orderkit.repair/v1", result.to_json(dry_run=dry_run))
        return
    if not result.steps:
        say(f"{result.entry.order}: nothing to repair")
        if result.reason:
            say(f"  reason      {result.reason}")
        if result.advice:
            say(f"  what to do  {result.advice}")
    for step in result.steps:
        say(step.what)
        if step.done:
            say(f"  {'would be' if dry_run else 'repaired':9}   {step.done}")
        if step.remains:
            say(f"  what to do  {step.remains}")


def show_events(order: str, events: list[OrderEvent], as_json: bool) -> None:
    """Show the cluster's events."""
    if as_json:
        events_json = [event.to_json() for event in events]
        emit_json("orderkit.events/v1", {"order": order, "events": events_json})
        return
    for event in events:
        often = f" ({event.count} times)" if event.count > 1 else ""
        say(f"{event.at}  {event.type:7}  {event.object}  {event.reason}{often}")
        say(f"          {event.message}")


def confirm_end(preview: EndPreview | None, *, is_sure: bool, is_silent: bool) -> None:
    """
    Show what an end does, and ask on a terminal; nothing if the end has begun.

    Raises:
        RefusedError: The answer is no, or there is no one to ask.
    """
    if preview is None:
        return
    if not is_silent:
        for title, lines in (("goes", preview.goes), ("stays", preview.stays)):
            for text in lines:
                say(f"  {title:<7}{text}", err=True)
    if is_sure:
        return
    if is_silent or not sys.stdin.isatty():
        raise RefusedError(
            f"{preview.order}: there is no terminal to ask whether it shall end",
            hint=f"in scripts: orderkit destroy {preview.order} --yes",
        )
    if not click.confirm(f"End {preview.order}?", err=True):
        raise RefusedError(f"{preview.order} was not ended", hint="nothing was written")


def show_ended(result: Ended, as_json: bool) -> None:
    """Show the proof of an end."""
    record = result.record
    if as_json:
        emit_json(
            "orderkit.end/v1",
            {
                "order": record.order,
                "team": result.team,
                "repository": record.repository,
                "startedAt": record.started_at,
                "endedAt": record.ended_at,
                "gone": plain(record.must_be_gone),
                "survives": list(record.survives),
                "changed": result.changed,
            },
        )
        return
    words = "ended" if result.changed else "had ended already"
    say(f"{record.order} {words}, its repository is {record.repository_is}")
    for key in record.must_be_gone:
        say(f"  gone  {key}")
    for kept in record.survives:
        say(f"  kept  {kept}")


def show_rendered_pack(
    values: PlatformValues, paths: list[PurePosixPath], out_folder: str, as_json: bool
) -> None:
    """Show what `orderkit platform render` wrote."""
    if as_json:
        rendered = {
            "profile": str(values.profile),
            "packCommit": values.pack_commit,
            "forge": values.forge_url,
            "out": out_folder,
            "files": [str(path) for path in paths],
        }
        emit_json("orderkit.platform-render/v1", rendered)
        return
    say(f"{len(paths)} files of pack {short(values.pack_commit)} in {out_folder}")
    say(f"  profile  {values.profile}")
    say(f"  forge    {values.forge_url}")
