"""
Show many orders: once, or again and again while they change.

The JSON shapes are stable: fields are added, never renamed, while the ``schema`` stays.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
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
from orderkit.core.durations import spoken_duration
from orderkit.core.order.order_cost import OrderCost, cost_sums, sums_answer
from orderkit.core.order.order_state import Phase, short
from orderkit.core.order.order_view import PHASES_BY_URGENCY, OrderQuery
from orderkit.flows.order.order_watch import OrderChanges, read_orders, selected_orders
from orderkit.flows.platform import Platform, published_pack

_HEAD = ("PHASE", "ORDER", "AGE", "REASON")
_WIDE = ("TEAM", "KIT", "OWNER", "EXPIRES", "REVISION")
"""Further columns, before the last one."""
_COST = "COST A MONTH"
_COLORS = {_HEAD.index("PHASE"): phase_color}
_SHORTEST_S, _LONGEST_S, _SHARE = 1.0, 60.0, 4
"""Between two lists: at least a second and four times what the last one took, at most a minute."""
_RETRY_S = 3.0

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


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns a list has besides those that fit into 80 columns of a terminal."""

    is_wide: bool = False
    with_costs: bool = False

    @property
    def head(self) -> Row:
        """The names of the columns."""
        return (*_HEAD[:-1], *(_WIDE * self.is_wide), *((_COST,) * self.with_costs), _HEAD[-1])

    def cells(self, row: Mapping[str, Any], *, is_gone: bool = False) -> Row:
        """Return the texts of an order."""
        phase, order, since, reason = _cells(row, is_gone=is_gone)
        cost = (row["cost"] or "-",) * self.with_costs
        return (phase, order, since, *(_wide_cells(row) * self.is_wide), *cost, reason)


def show_selected(
    platform: Platform, query: OrderQuery, columns: Columns, *, as_json: bool
) -> None:
    """Read the orders that a query selects, and show them once."""
    listed = selected_orders(platform, query, with_costs=columns.with_costs)
    none = "" if listed or as_json else no_orders(platform, query)
    show_list(listed, as_json, columns, none)


def show_list(listed: Listed, as_json: bool, columns: Columns, none: str) -> None:
    """Show orders once; with their costs also the sums. Without an order, say `none` and why."""
    if as_json:
        answer: dict[str, Any] = {"orders": list(listed)}
        if columns.with_costs:
            answer["costs"] = sums_answer(map(_cost_in, listed)).to_json()
        emit_json("orderkit.orders/v1", answer)
        return
    if not listed:
        say(none, err=True)
        return
    rows = [columns.cells(row) for row in listed]
    emit_table(columns.head, rows, _COLORS, last_below=True)
    if columns.with_costs:
        sums, not_known = cost_sums(map(_cost_in, listed))
        of = f", {not_known} not known" if not_known else ""
        say(f"together: {'; '.join(map(str, sums)) or 'not known'} a month{of}")


def no_orders(platform: Platform, query: OrderQuery) -> str:
    """Say why a list is empty, and what to type."""
    filters = (query.team, query.kit, query.owner, query.phase, query.text)
    if any(filters):
        return "no order matches these filters\nhint:  'orderkit list' without filters shows all"
    kits = published_pack(platform).kit_names
    if not kits:
        return "no orders, and the pack has no kit\nhint:  orderkit kit new NAME"
    others = f"; kits: {', '.join(kits)}" if len(kits) > 1 else ""
    return f"no orders yet\nhint:  'orderkit order {kits[0]}' lists the fields to fill in{others}"


def watch(platform: Platform, query: OrderQuery, columns: Columns, *, as_json: bool) -> None:
    """Show orders until Ctrl-C, or until nobody reads any more."""
    show: Callable[[Listed], None] = _Changes(columns, as_json=as_json)
    owners: dict[str, str] = {}
    progress, clock = Progress(), platform.clock
    with contextlib.ExitStack() as undo, contextlib.suppress(KeyboardInterrupt):
        if not as_json and draws_in_place(sys.stdout):
            show = partial(_drawn, columns)
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


def _drawn(columns: Columns, listed: Listed) -> None:
    """Draw the list over the one before, as far as the window has room."""
    rows = [columns.cells(row) for row in listed]
    table = table_lines(columns.head, rows, _COLORS, last_below=True) if rows else []
    draw_screen([f"{datetime.now(UTC):%H:%M:%S} UTC, {len(rows)} orders; Ctrl-C ends", "", *table])


class _Changes:
    """Prints all orders first, then those that changed: as rows, or each as an object."""

    def __init__(self, columns: Columns, *, as_json: bool) -> None:
        self._columns, self._as_json = columns, as_json
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
            cells = self._columns.cells
            rows = [cells(row, is_gone=what == "removed") for what, row in changed]
            has_head = self._before is None
            emit_table(self._columns.head, rows, _COLORS, has_head=has_head, last_below=True)
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


def _cells(row: Mapping[str, Any], *, is_gone: bool) -> tuple[str, str, str, str]:
    phase, parts = row["phase"], row["parts"]
    if phase == "Assembling" and parts["total"]:
        phase = f"{phase} {parts['ready']}/{parts['total']}"
    return "not listed" if is_gone else phase, row["order"], age(row["created"]), row["reason"]


def _wide_cells(row: Mapping[str, Any]) -> Row:
    return (
        row["team"],
        row["kit"] or "-",
        (row["owner"] or "-").removeprefix("user:default/"),
        in_time(row["expires"]) or "-",
        short(row["revision"] or "-"),
    )


def age(since: str | None) -> str:
    """Return how long something has lasted, ``5 min``, ``3 days``; "-" if that is not known."""
    seconds = _seconds_since(since)
    return "-" if seconds is None else spoken_duration(max(seconds, 0))


def in_time(at: str | None) -> str:
    """Return in how long a time is, or how long ago it was; empty if it is none."""
    seconds = _seconds_since(at)
    if seconds is None:
        return ""
    amount = spoken_duration(abs(seconds))
    return f"{amount} ago" if seconds >= 0 else f"in {amount}"


def _seconds_since(time: str | None) -> float | None:
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(time or "")).total_seconds()
    except (ValueError, TypeError):
        return None
