"""What is so now, and which of it a channel is to be told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from orderkit.core.notify.order_event import OrderEvent, approval_decided, due, row_events
from orderkit.core.order.order_view import OrderRow
from orderkit.core.platform.notification_settings import NotificationSettings, seconds
from orderkit.flows.notify.ledger_notes import LedgerNotes
from orderkit.flows.notify.notified_events import NotifiedEvents

_FORGOTTEN_AFTER = timedelta(hours=1)
"""For how long an order is absent before what was told of it is forgotten."""


@dataclass(slots=True)
class PastStates:
    """What rows alone do not say: since when an order fails, and that it waited for approval."""

    failing: dict[str, datetime] = field(default_factory=dict)
    waiting: dict[str, tuple[OrderRow, OrderEvent]] = field(default_factory=dict)
    absent: dict[str, datetime] = field(default_factory=dict)
    events: dict[str, tuple[OrderRow, tuple[OrderEvent, ...]]] = field(default_factory=dict)
    """Of rows that do not fail: they depend on the row alone."""

    def failing_since(self, row: OrderRow, now: datetime, after_s: float) -> datetime | None:
        """Return since when an order fails, if that is long enough; it was not Ready meanwhile."""
        if row.phase == "Failing":
            since = min(_time(row.since) or now, now)
            since = min(since, self.failing.setdefault(row.order, since))
            self.failing[row.order] = since
            return since if (now - since).total_seconds() >= after_s else None
        if row.phase in ("Ready", "Attention", "Ending"):
            self.failing.pop(row.order, None)
        return None

    def forgotten(self, notified: set[str], kept: set[str], now: datetime) -> set[str]:
        """
        Return the orders that have been absent for long enough to be forgotten.

        Args:
            notified: Those that any channel was told of.
            kept: Those that are there, or ended lately.
        """
        absent = (notified | self.waiting.keys()) - kept
        self.absent = {order: self.absent.get(order, now) for order in absent}
        old = {order for order, since in self.absent.items() if now - since >= _FORGOTTEN_AFTER}
        for order in old:
            self.waiting.pop(order, None)
        return old


def present_events(
    rows: Mapping[str, OrderRow],
    notes: LedgerNotes,
    past: PastStates,
    settings: NotificationSettings,
    now: datetime,
) -> Iterator[OrderEvent]:
    """Yield what is so now, whoever was told of it."""
    for row in rows.values():
        since = past.failing_since(row, now, seconds(settings.failing_after))
        former, events = past.events.get(row.order, (None, ()))
        if former is not row or row.phase == "Failing":
            events = tuple(row_events(row, since))
            past.events[row.order] = (row, events)
        for event in events:
            if event.kind == "approval-wanted":
                past.waiting[row.order] = (row, event)
            yield event
    for order in past.events.keys() - rows.keys():
        del past.events[order]
        past.failing.pop(order, None)
    for event in notes.ends:
        if event.order not in rows:
            yield event


def due_events(
    events: Iterable[OrderEvent],
    notified: NotifiedEvents,
    rows: Mapping[str, OrderRow],
    past: PastStates,
) -> Iterator[OrderEvent]:
    """Yield what a channel is to be told."""
    for event in events:
        numbered = due(event, notified.of(event.order), began=notified.began)
        if numbered is not None:
            yield numbered
    for order in _decided(notified, rows, past):
        row, last = rows.get(order), notified.of(order).get("approval")
        before, wanted = past.waiting.get(order, (None, last))
        if wanted is None:
            continue
        event = approval_decided(row, wanted, before)
        numbered = due(event, notified.of(order), began=notified.began)
        if numbered is not None:
            yield numbered


def _decided(notified: NotifiedEvents, rows: Mapping[str, OrderRow], past: PastStates) -> set[str]:
    """Return the orders that waited for approval, as far as anybody knows, and do not now."""
    waited = past.waiting.keys() | {
        order
        for order in notified.orders()
        if order in rows
        and (last := notified.of(order).get("approval"))
        and last.kind == "approval-wanted"
    }
    return {
        order
        for order in waited
        if order not in rows or not (rows[order].approval or rows[order].change_approval)
    }


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
