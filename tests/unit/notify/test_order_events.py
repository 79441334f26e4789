"""Which events an order has now, and which of them a channel was not told of yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ground.shapes import changed
from orderkit.core.notify.order_event import (
    NOTHING,
    Notified,
    OrderEvent,
    approval_decided,
    due,
    row_events,
)
from orderkit.core.order.order_state import Phase
from orderkit.core.order.order_view import Attention, OrderRow
from orderkit.core.platform.notification_settings import NotificationSettings
from orderkit.flows.notify.due_events import LedgerNotes, PastStates, present_events

NOW = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
BEGAN = "2026-11-22T00:00:00Z"
READY = OrderRow(
    "garage-ae86", "ae86", "garage", "Ready", since="2026-11-23T05:00:00Z", delivered="a" * 40
)


def failing(minutes: int) -> OrderRow:
    since = (NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return changed(READY, phase="Failing", reason="no quota", since=since, revision="a" * 40)


def kinds(
    row: OrderRow, notified: Mapping[str, Notified] = NOTHING, past: PastStates | None = None
) -> list[str]:
    """Return what a channel is to be told now."""
    events = present_events({row.order: row}, LedgerNotes(), past or PastStates(), SETTINGS, NOW)
    return [event.kind for event in events if due(event, notified, began=BEGAN)]


SETTINGS = NotificationSettings()
WAITING = changed(READY, phase="Waiting", approval="leads have to agree")
CHANGING = changed(READY, change_approval="#3 at 1234abcd waits for leads")
EXPIRING = changed(READY, phase="Assembling", expires="2026-11-24T05:00:00Z", lease_warning="24h")


@pytest.mark.parametrize(
    ("reason", "row", "expected"),
    [
        ("everything is ready", READY, ["ready"]),
        ("it failed a moment ago", failing(3), []),
        ("it has been failing for long", failing(11), ["failing"]),
        ("it waits for approval", WAITING, ["approval-wanted"]),
        ("a change of it waits for approval", CHANGING, ["ready", "approval-wanted"]),
        ("its lease ends", EXPIRING, ["expiring"]),
        ("no warning is recorded yet", changed(EXPIRING, lease_warning=""), []),
        (
            "its budget is used up",
            changed(READY, phase="Attention", attention=(Attention("Its budget is used up."),)),
            ["attention"],
        ),
        ("Argo CD is at work", changed(READY, phase="Delivering"), []),
        ("it ends", changed(READY, phase="Ending"), []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_events_of_a_row(reason: str, row: OrderRow, expected: list[str]) -> None:
    assert kinds(row) == expected, reason


def one(row: OrderRow, number: int = 0) -> OrderEvent:
    (event,) = row_events(row, NOW)
    return event.numbered(number)


def notified(*events: OrderEvent) -> dict[str, Notified]:
    return {event.topic: Notified(event.number, event.kind, event.subject) for event in events}


def test_what_was_told_is_not_due_again() -> None:
    assert kinds(READY, notified(one(READY))) == []


def test_a_new_commit_is_due() -> None:
    assert kinds(changed(READY, delivered="b" * 40), notified(one(READY))) == ["ready"]


def test_ready_again_after_it_was_told_to_fail_is_due() -> None:
    assert kinds(READY, notified(one(failing(11)))) == ["ready"]


def test_ready_again_after_it_failed_for_a_moment_only_is_not_due() -> None:
    past = PastStates()
    assert kinds(failing(3), notified(one(READY)), past) == []
    assert kinds(READY, notified(one(READY)), past) == []


def test_an_order_fails_since_it_was_ready_last_whatever_it_does_in_between() -> None:
    past = PastStates()
    kinds(failing(8), past=past)
    kinds(changed(READY, phase="Delivering"), past=past)

    assert past.failing_since(failing(0), NOW + timedelta(minutes=3), 600) is not None


def test_an_amount_that_grows_is_no_news() -> None:
    spent = [
        changed(READY, phase="Attention", attention=(Attention(f"{amount} % of it is spent."),))
        for amount in (91, 94)
    ]
    assert kinds(spent[1], notified(one(spent[0]))) == []


def test_another_warning_and_another_expiry_are_news() -> None:
    known = notified(one(EXPIRING))
    assert kinds(EXPIRING, known) == []
    assert kinds(changed(EXPIRING, lease_warning="1h"), known) == ["expiring"]
    assert kinds(changed(EXPIRING, expires="2026-11-30T05:00:00Z"), known) == ["expiring"]


@pytest.mark.parametrize(
    ("expires", "warning", "when"),
    [
        ("2026-11-24T05:00:00Z", "24h", "2026-11-23T05:00:00Z"),
        ("2026-11-24T05:00:00+02:00", "1h", "2026-11-24T02:00:00Z"),
        ("0001-01-01T00:00:00Z", "1h", ""),
        ("soon", "24h", ""),
        ("2026-11-24T05:00:00Z", "a day", ""),
    ],
)
def test_a_warning_fell_due_that_long_before_the_end(expires: str, warning: str, when: str) -> None:
    (event,) = row_events(changed(EXPIRING, expires=expires, lease_warning=warning), None)

    assert (event.kind, event.when) == ("expiring", when)


def test_the_same_event_has_the_same_id_and_its_repetition_another() -> None:
    first = due(one(READY), NOTHING, began=BEGAN)
    again = due(one(READY), NOTHING, began=BEGAN)
    later = due(one(READY), notified(one(failing(11), number=1)), began=BEGAN)
    assert first is not None
    assert again is not None
    assert later is not None
    assert first.id == again.id != later.id


def test_a_new_channel_learns_what_needs_somebody_and_nothing_that_was_well() -> None:
    rows = ((READY, False), (failing(11), True), (WAITING, True))
    for row, expected in rows:
        event = replace(one(row), when="2026-11-01T00:00:00Z")
        assert bool(due(event, NOTHING, began=BEGAN)) is expected, event


@pytest.mark.parametrize(
    ("before", "phase", "sentence"),
    [
        (WAITING, "Delivering", ""),
        (WAITING, None, "It was withdrawn."),
        (changed(CHANGING, phase="Written"), None, "The order has ended."),
    ],
)
def test_a_decided_approval_follows_the_one_that_was_wanted(
    before: OrderRow, phase: Phase | None, sentence: str
) -> None:
    wanted = one(before)
    row = changed(READY, phase=phase) if phase else None
    event = due(approval_decided(row, wanted, before), notified(wanted), began=BEGAN)
    assert event is not None
    assert (event.kind, event.team, event.detail) == ("approval-decided", "ae86", sentence)
    assert due(event, notified(event), began=BEGAN) is None
