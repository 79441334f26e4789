"""How long orders take to their first Ready, and what /metrics says of phases and counts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ground.errors import ConflictError
from orderkit.core.order.order_view import OrderRow
from orderkit.core.telemetry import counts
from orderkit.flows.live.live_row import ReadyTimes
from orderkit.flows.repeating import in_rounds
from orderkit.web.metrics import counts_text, orders_text


def row(order: str, phase: str, *, created: str = "", since: str = "") -> OrderRow:
    return OrderRow(order, "ae86", "garage", phase, created=created, since=since)  # type: ignore[arg-type]  # of the test


BEGAN, AFTER_7_S = "2026-11-28T10:00:00Z", "2026-11-28T10:00:07Z"


def test_the_first_ready_of_an_order_counts_once() -> None:
    times = ReadyTimes()
    new = row("a", "Assembling", created=BEGAN)
    ready = row("a", "Ready", created=BEGAN, since=AFTER_7_S)
    times.note("a", None, new)
    times.note("a", new, ready)
    times.note("a", ready, row("a", "Failing"))
    times.note("a", row("a", "Failing"), ready)

    found = times.durations()
    assert (found.count, found.sum_s) == (1, 7.0)
    assert 5.0 not in found.within
    assert found.within[15.0] == 1


def test_an_order_that_was_ready_before_the_process_says_nothing() -> None:
    times = ReadyTimes()
    ready = row("a", "Ready", created=BEGAN, since=AFTER_7_S)
    times.note("a", None, ready)
    times.note("a", ready, row("a", "Failing"))
    times.note("a", row("a", "Failing"), ready)
    times.note("b", row("b", "Assembling"), row("b", "Ready"))  # without times

    assert times.durations().count == 0


def test_an_id_that_is_ordered_again_counts_again() -> None:
    times = ReadyTimes()
    new, ready = row("a", "Assembling"), row("a", "Ready", created=BEGAN, since=AFTER_7_S)
    for _ in range(2):
        times.note("a", None, new)
        times.note("a", new, ready)
        times.note("a", ready, None)

    assert times.durations().count == 2


def test_phases_and_the_oldest_failing_order_are_told() -> None:
    now = datetime(2026, 11, 28, 11, tzinfo=UTC)
    text = orders_text(
        [
            row("a", "Ready", since=BEGAN),
            row("b", "Failing", since=BEGAN),
            row("c", "Failing", since="2026-11-28T10:59:00Z"),
            row("d", "Failing"),
        ],
        now,
    )

    assert 'orderkit_orders{phase="Failing"} 3' in text
    assert 'orderkit_orders{phase="Ending"} 0' in text, "alerts need every phase from the start"
    assert "orderkit_oldest_failing_seconds 3600" in text


def test_lost_races_are_counted_by_their_end() -> None:
    before = counts()

    def lose() -> None:
        raise ConflictError("somebody was faster")

    with pytest.raises(ConflictError):
        in_rounds(lose, rounds=3)

    after = counts()
    gained = {
        end: after["lost_races", end] - before.get(("lost_races", end), 0)
        for end in ("repeated", "given up")
    }
    assert gained == {"repeated": 2, "given up": 1}
    assert 'orderkit_lost_races_total{end="given up"}' in counts_text(after)
