"""What people read of an event, whatever strangers wrote into it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from ground.shapes import changed
from orderkit.core.notify.event_texts import (
    digest_of,
    for_chat,
    message_of,
    to_cloud_event,
    to_markdown,
    to_text,
)
from orderkit.core.notify.order_event import OrderEvent, ended, row_events
from orderkit.core.order.end_record import EndRecord
from orderkit.core.order.order_view import Attention, OrderRow

ADDRESS = "https://orders.example.org"
SINCE = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
ROW = OrderRow("garage-ae86", "ae86", "garage", "Ready", delivered="a" * 40)
ENDED = EndRecord(
    order="garage-ae86",  # type: ignore[arg-type]  # a name is enough here
    kit="garage",
    requester="user:default/eve",
    repository="archive",
    step="closing",
    started_at="2026-11-23T05:00:00+00:00",
    ended_at="2026-11-23T06:00:00+00:00",
    must_be_gone=(),
)
HOSTILE = (
    "<img src=x onerror=alert(1)> [click](https://evil.example) <!channel> <https://evil|bank> "
    "`` @everyone\r\nBcc: all@example.org\x1b[2J\u202e"
)


def event(row: OrderRow) -> OrderEvent:
    (made,) = row_events(row, SINCE)
    return made


@pytest.mark.parametrize(
    ("made", "title", "sentence"),
    [
        (
            event(ROW),
            "garage-ae86 is Ready",
            "Everything it consists of is ready at commit aaaaaaaa.",
        ),
        (
            event(changed(ROW, phase="Failing", reason="no quota", remedy="ask for more")),
            "garage-ae86 is failing",
            "It has been failing since 2026-11-23T06:00:00Z: no quota. What helps: ask for more.",
        ),
        (
            event(changed(ROW, attention=(Attention("Its budget is used up."),))),
            "garage-ae86 needs attention",
            "Its budget is used up.",
        ),
        (
            event(changed(ROW, phase="Waiting", approval="ae86-leads have to agree")),
            "garage-ae86 waits for approval",
            "ae86-leads have to agree.",
        ),
        (
            event(
                changed(
                    ROW,
                    phase="Waiting",
                    approval="ae86-leads, because of its cost",
                    reason="waits for approval by ae86-leads, because of its cost",
                )
            ),
            "garage-ae86 waits for approval",
            "It waits for approval by ae86-leads, because of its cost.",
        ),
        (
            event(changed(ROW, phase="Written", change_approval="#3 at 1234abcd waits for leads")),
            "A change of garage-ae86 waits for approval",
            "Change #3 at 1234abcd waits for leads.",
        ),
        (
            event(
                changed(ROW, phase="Written", expires="2026-11-24T06:00:00Z", lease_warning="24h")
            ),
            "garage-ae86 expires in less than 24h",
            "Its lease ends at 2026-11-24T06:00:00Z. Extend it if it is still needed.",
        ),
        (
            ended("garage-ae86", "ae86", ENDED),
            "garage-ae86 has ended",
            "Nothing of it is left; the ledger keeps the proof. user:default/eve asked for it.",
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, OrderEvent) else "",
)
def test_each_event_says_what_is_so(made: OrderEvent, title: str, sentence: str) -> None:
    message = message_of(made, address=ADDRESS)
    assert (message.title, message.sentence) == (title, sentence)
    assert message.link.startswith(ADDRESS)


def test_a_digest_names_the_first_orders_and_counts_the_others() -> None:
    events = [event(changed(ROW, order=f"garage-{number:03}")) for number in range(100)]
    message = digest_of(events, address=ADDRESS)
    assert message.title == "100 orders are Ready"
    assert "garage-019, and 80 more" in message.sentence
    assert message.id == digest_of(events[::-1], address=ADDRESS).id


def test_nothing_of_a_stranger_is_markup() -> None:
    row = changed(ROW, phase="Failing", reason=HOSTILE, remedy=HOSTILE)
    message = message_of(event(row), address=ADDRESS)

    for text in (message.title, message.sentence):
        assert text.isprintable()
    chat = for_chat(to_text(message))
    assert not set("<>`|") & set(chat)
    assert "](" not in chat
    assert "@everyone" not in chat
    markdown = to_markdown(message)
    code = markdown.partition("\n\n")[2].partition("\n\n")[0]
    assert code.startswith("``` ")
    assert code.endswith(" ```")
    assert "```" not in code[3:-3]


def test_a_text_of_ten_megabytes_is_cut() -> None:
    row = changed(ROW, phase="Failing", reason="x" * 10_000_000)
    content = json.dumps(to_cloud_event(message_of(event(row), address=ADDRESS), source=ADDRESS))
    assert len(content) < 5_000


@pytest.mark.parametrize(
    ("owner", "recipients"),
    [
        ("user:default/eve", ("group:default/ae86", "user:default/eve")),
        ("", ("group:default/ae86",)),
        ("user:default/eve\nuser:default/bob", ("group:default/ae86",)),
        ("everybody", ("group:default/ae86",)),
    ],
)
def test_the_owners_are_the_recipients(owner: str, recipients: tuple[str, ...]) -> None:
    message = message_of(event(changed(ROW, owner=owner)), address=ADDRESS)
    assert message.recipients == recipients
