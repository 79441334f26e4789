"""
Show many orders: once, or again and again while they change.

The JSON shapes are stable: fields are added, never renamed, while the ``schema`` stays.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ground.errors import InvalidInputError, RemoteError
from ground.suggestions import did_you_mean
from orderkit.cli.output import (
    Progress,
    Row,
    draw_screen,
    draws_in_place,
    emit_json,
    emit_table,
    is_lost,
    phase_color,
    say,
    screen,
    table_lines,
)
from orderkit.core.order.order_cost import OrderCost, cost_sums, sums_answer
from orderkit.core.order.order_selection import PHASES_BY_URGENCY, OrderQuery
from orderkit.core.order.order_state import Phase, short
from orderkit.flows.order.order_watch import OrderChanges, read_orders
from orderkit.flows.platform import Platform

_HEAD = ("ORDER", "TEAM", "KIT", "PHASE", "AGE", "OWNER", "REVISION", "REASON")
_COLORS = {_HEAD.index("PHASE"): phase_color}
_SHORTEST_S, _LONGEST_S, _SHARE = 1.0, 60.0, 4
"""Between two lists: at least a second and four times what the last one took, at most a minute."""
_RETRY_S = 3.0
_UNITS = (("d", 86_400, 2), ("h", 3_600, 2), ("m", 60, 2), ("s", 1, 0))
"""Letter, seconds, and from how many on it is used."""

Listed = Sequence[Mapping[str, Any]]
"""Rows of ``GET /v1/orders``."""


def phases_of(texts: Iterable[str], *, failing: bool) -> tuple[Phase, ...]:
    """
    Return the phases that options name.

    Raises:
        InvalidInputError: There is no such phase.
    """
    names = {phase.lower(): phase for phase in PHASES_BY_URGENCY}
    for text in texts:
        if text.lower() not in names:
            hint = did_you_mean(text.title(), PHASES_BY_URGENCY, ", ".join(PHASES_BY_URGENCY))
            raise InvalidInputError("--phase", text, "is not a phase", hint=hint)
    chosen = dict.fromkeys(names[text.lower()] for text in texts)
    return (*chosen, *(("Failing",) if failing and "Failing" not in chosen else ()))


def show_list(listed: Listed, as_json: bool, *, with_costs: bool = False) -> None:
    """Show orders once, with what they cost and the sums, or without."""
    if as_json:
        costs = {"costs": sums_answer(map(_cost_in, listed)).to_json()} if with_costs else {}
        emit_json("orderkit.orders/v1", {"orders": list(listed), **costs})
    elif listed and with_costs:
        rows = [(*_cells(row)[:-2], row["cost"] or "-", row["reason"]) for row in listed]
        emit_table((*_HEAD[:-2], "COST A MONTH", _HEAD[-1]), rows, _COLORS)
        sums, not_known = cost_sums(map(_cost_in, listed))
        of = f", {not_known} not known" if not_known else ""
        say(f"together: {'; '.join(map(str, sums)) or 'not known'} a month{of}")
    elif listed:
        emit_table(_HEAD, [_cells(row) for row in listed], _COLORS)
    else:
        say("no orders", err=True)


def watch(platform: Platform, query: OrderQuery, *, as_json: bool) -> None:
    """Show orders until Ctrl-C, or until nobody reads any more."""
    show: Callable[[Listed], None] = _Changes(as_json=as_json)
    owners: dict[str, str] = {}
    progress, clock = Progress(), platform.clock
    with contextlib.ExitStack() as undo, contextlib.suppress(KeyboardInterrupt):
        if not as_json and draws_in_place(sys.stdout):
            show = _drawn
            undo.enter_context(screen())
        changes: OrderChanges | None = None
        while True:
            begin_s = clock.monotonic_s()
            try:
                changes = changes or undo.enter_context(OrderChanges.of(platform))
                show(read_orders(platform, query, owners))
            except RemoteError as error:
                progress("watching", f"… {error}; trying again")
                clock.sleep(_RETRY_S)
                continue
            if is_lost(sys.stdout):
                break
            clock.sleep(max(_SHORTEST_S, _SHARE * (clock.monotonic_s() - begin_s)))
            changes.wait(_LONGEST_S)


def _cost_in(row: Mapping[str, Any]) -> OrderCost | None:
    return OrderCost.from_json(row["costs"]) if row["costs"] else None


def _drawn(listed: Listed) -> None:
    """Draw the list over the one before, as far as the window has room."""
    rows = [_cells(row) for row in listed]
    table = table_lines(_HEAD, rows, _COLORS) if rows else []
    draw_screen([f"{datetime.now(UTC):%H:%M:%S} UTC, {len(rows)} orders; Ctrl-C ends", "", *table])


class _Changes:
    """Prints all orders first, then those that changed: as rows, or each as an object."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._before: Mapping[str, Mapping[str, Any]] | None = None

    def __call__(self, listed: Listed) -> None:
        now = {row["order"]: row for row in listed}
        changed = list(_differences(self._before or {}, now))
        if self._as_json:
            for what, row in changed:
                at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
                emit_json(
                    "orderkit.order-change/v1",
                    {"change": what, "at": at, **row},
                    indent=None,
                )
        elif changed:
            rows = [_cells(row, is_gone=what == "removed") for what, row in changed]
            emit_table(_HEAD, rows, _COLORS, has_head=self._before is None)
        self._before = now


def _differences(
    before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for order, row in now.items():
        if order not in before:
            yield "added", row
        elif row != before[order]:
            yield "changed", row
    yield from (("removed", row) for order, row in before.items() if order not in now)


def _cells(row: Mapping[str, Any], *, is_gone: bool = False) -> Row:
    phase, parts = row["phase"], row["parts"]
    if phase == "Assembling" and parts["total"]:
        phase = f"{phase} {parts['ready']}/{parts['total']}"
    return (
        row["order"],
        row["team"],
        row["kit"] or "-",
        "not listed" if is_gone else phase,
        age(row["created"]),
        (row["owner"] or "-").removeprefix("user:default/"),
        short(row["revision"] or "-"),
        row["reason"],
    )


def age(since: str | None) -> str:
    """Return how long ago a time was, as ``5m`` or ``3d``; "-" if nobody knows."""
    try:
        begin = datetime.fromisoformat(since or "")
        seconds = int((datetime.now(UTC) - begin).total_seconds())
    except (ValueError, TypeError):
        return "-"
    letter, unit, _ = next(
        entry for entry in _UNITS if seconds >= entry[1] * entry[2] or entry[0] == "s"
    )
    return f"{max(seconds, 0) // unit}{letter}"
