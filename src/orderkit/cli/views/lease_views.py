"""Show leases and sweeps. The JSON shapes are stable: fields are added, never renamed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from ground.errors import InvalidInputError
from ground.visible_text import visible
from orderkit.cli.output import emit_fields, emit_json, emit_table, say
from orderkit.core.durations import duration_text, parse_duration
from orderkit.core.order.lease import time_text
from orderkit.flows.lease.extending import LeaseView
from orderkit.flows.lease.sweeping import Swept

_HEAD = ("ORDER", "TEAM", "WHAT", "EXPIRES", "DETAILS")


def moment(text: str, now: datetime) -> datetime:
    """
    Read a time, or one that lies after now: ``+9h``.

    Raises:
        InvalidInputError: It is neither.
    """
    if text.startswith("+"):
        return now + parse_duration(text[1:], field="--at")
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        hint = "for example 2027-01-31T12:00:00Z, or +9h"
        raise InvalidInputError("--at", text, "is not a time", hint=hint) from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def show_lease(view: LeaseView, as_json: bool) -> None:
    """Show the lease of one order."""
    if as_json:
        emit_json("orderkit.lease/v1", view.answer.to_json())
        return
    say(visible(view.message))
    emit_fields([(name, visible(text)) for name, text in _fields(view)])
    if view.remark:
        say(visible(view.remark), err=True)


def _fields(view: LeaseView) -> Iterator[tuple[str, str]]:
    record, policy = view.leased.record, view.leased.policy
    if record is None:
        return
    for stage, when in sorted(record.warned.items(), key=lambda entry: entry[1]):
        yield "warned", f"{stage} before, at {time_text(when)}"
    if record.extensions:
        yield "extended", f"{record.extensions} times, last by {record.by}: {record.reason}"
    elif record.by:
        yield "granted", f"to {record.by}, at {time_text(record.began)}"
    if policy and policy.maximum:
        latest = time_text(record.began + policy.maximum)
        yield "at most", f"until {latest}, {duration_text(policy.maximum)} after its beginning"


def show_swept(swept: Swept, *, dry_run: bool, as_json: bool) -> None:
    """Show what a sweep did, or would do."""
    if as_json:
        emit_json("orderkit.sweep/v1", {"dryRun": dry_run, **swept.to_json()})
        return
    if swept.doubt:
        say(f"nothing was done about leases: {swept.doubt}", err=True)
    if not swept.orders:
        say(f"no lease is due at {swept.at}", err=True)
        return
    rows = [
        (
            order.order,
            order.team,
            f"{order.action} {order.stage}".strip() if order.done else f"{order.action}: failed",
            order.expires or "-",
            order.what,
        )
        for order in swept.orders
    ]
    emit_table(_HEAD, rows)
