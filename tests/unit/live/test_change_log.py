"""The numbered log of changes: complete, or a reader is told that it is not."""

from __future__ import annotations

from orderkit.core.order.order_view import OrderRow
from orderkit.flows.live.live_row import ChangeLog, LiveRow


def row(number: int) -> LiveRow:
    return LiveRow.of(OrderRow(f"order-{number}", "ae86", "garage", "Ready"), None, is_ready=True)


def test_a_reader_gets_each_change_once_and_in_order() -> None:
    log = ChangeLog(size=10)
    log.add((row(number), False) for number in range(3))
    first = log.after(0)
    log.add([(row(3), True)])

    assert first is not None
    assert [change.number for change in first] == [1, 2, 3]
    assert [(c.number, c.is_gone) for c in log.after(3) or ()] == [(4, True)]
    assert log.after(4) == ()


def test_a_reader_that_lags_too_far_is_told() -> None:
    log = ChangeLog(size=10)
    log.add((row(number), False) for number in range(12))

    assert log.after(1) is None
    assert [change.number for change in log.after(2) or ()] == list(range(3, 13))


def test_a_position_counts_in_its_own_log_only() -> None:
    log, other = ChangeLog(), ChangeLog()
    log.add([(row(1), False)])

    assert log.number(log.position()) == 1
    assert [log.number(text) for text in (other.position(), "x", "-1", log.position(2))] == [
        None
    ] * 4


def test_subscribers_are_called_until_they_leave() -> None:
    log, calls = ChangeLog(), []
    leave = log.subscribe(lambda: calls.append(log.last))
    log.add([(row(1), False)])
    leave()
    log.add([(row(2), False)])

    assert calls == [1]
