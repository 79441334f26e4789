"""What notifications remember of orders that are gone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

from orderkit.core.notify.order_event import row_events
from orderkit.core.order.order_view import OrderRow
from orderkit.flows.notify.due_events import PastStates, due_events
from orderkit.flows.notify.notified_events import NotifiedEvents

NOW = datetime(2026, 11, 23, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
ORDER = "garage-a"


def test_the_decision_about_an_order_that_is_gone_is_not_told_for_ever() -> None:
    row = OrderRow(ORDER, "ae86", "garage", "Waiting", approval="finance")
    (wanted,) = row_events(row, None)
    past = PastStates(waiting={ORDER: (row, wanted)})
    notified = NotifiedEvents(cast("Any", None), "orderkit", "chat")
    notified.note(wanted)
    (decided,) = due_events([], notified, {}, past)
    notified.note(decided)

    early = past.forgotten(notified.orders(), set(), NOW)
    late = past.forgotten(notified.orders(), set(), LATER)
    notified.forget(ORDER)

    assert (early, late) == (set(), {ORDER})
    assert list(due_events([], notified, {}, past)) == []
    assert past.forgotten(notified.orders(), set(), LATER) == set()


def test_an_order_that_came_back_is_not_forgotten() -> None:
    past = PastStates()

    assert past.forgotten({ORDER}, set(), NOW) == set()
    assert past.forgotten({ORDER}, {ORDER}, LATER) == set()
    assert past.forgotten({ORDER}, set(), LATER) == set()
