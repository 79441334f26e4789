"""Filters, sorting and pages of lists of orders."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ground.errors import InvalidInputError, NotFoundError
from ground.shapes import changed
from orderkit.core.order.order_cost import OrderCost
from orderkit.core.order.order_state import SENTENCES
from orderkit.core.order.order_view import (
    PHASES_BY_URGENCY,
    SORTS,
    OrderQuery,
    OrderRow,
    Output,
    counts,
    select,
    select_by,
)

CHAT = Output("chat", "Chat", "https://bot.example/")
ROWS = [
    OrderRow("agent-bot", "blue", "agent", "Failing", "No Pod", owner="user:default/eve"),
    OrderRow("agent-old", "blue", "agent", "Ready", since="2026-01-01T00:00:00Z", outputs=(CHAT,)),
    OrderRow("garage-a", "red", "garage", "Ready", since="2026-02-01T00:00:00Z"),
    OrderRow("garage-b", "red", "garage", "Attention", owner="user:default/Mallory"),
]


def names(**query: Any) -> list[str]:
    return [row.order for row in select(ROWS, OrderQuery(**query))[0]]


@pytest.mark.parametrize(
    ("query", "orders"),
    [
        ({}, ["agent-bot", "agent-old", "garage-a", "garage-b"]),
        ({"team": "red"}, ["garage-a", "garage-b"]),
        ({"kit": "agent"}, ["agent-bot", "agent-old"]),
        ({"phase": ("Failing", "Attention")}, ["agent-bot", "garage-b"]),
        ({"owner": "eve"}, ["agent-bot"]),
        ({"owner": "user:default/mallory"}, ["garage-b"]),
        ({"owner": "ve"}, []),
        ({"text": "no pod"}, ["agent-bot"]),
        ({"text": "BOT.example"}, ["agent-old"]),
        ({"text": ".*"}, []),
        ({"sort": "phase"}, ["agent-bot", "garage-b", "agent-old", "garage-a"]),
        ({"sort": "-since"}, ["garage-a", "agent-old", "garage-b", "agent-bot"]),
        ({"team": "red", "phase": ("Failing",)}, []),
    ],
)
def test_a_query_selects_and_sorts(query: dict[str, Any], orders: list[str]) -> None:
    shown = names(**query)

    assert shown == orders if "sort" in query else sorted(shown) == orders


@pytest.mark.parametrize("sort", ["team", "-team", "phase"])
@pytest.mark.parametrize("limit", [1, 2, 3, 4, None])
@pytest.mark.parametrize("kit", ["", "garage"])
def test_pages_of_sorted_rows_are_those_of_any_rows(sort: str, limit: int | None, kit: str) -> None:
    query = OrderQuery(sort=sort, limit=limit, kit=kit)
    while True:
        page, cursor = select_by(ROWS, query, lambda row: row, are_by_team=True)
        assert (page, cursor) == select(ROWS[::-1], query)
        if not cursor:
            break
        query = replace(query, cursor=cursor)


def test_rows_after_the_first_page_by_team_are_not_looked_at() -> None:
    rows = iter(ROWS)

    page, cursor = select_by(rows, OrderQuery(limit=1), lambda row: row, are_by_team=True)

    assert [row.order for row in page] == ["agent-bot"]
    assert cursor
    assert next(rows).order == "garage-a"


def test_costs_are_sorted_by_their_amount_and_unknown_ones_are_the_smallest() -> None:
    amounts = {"a": "9.5", "b": "110", "c": None, "d": "0.000000001", "e": "12345678901.25"}
    rows = [
        OrderRow(
            name,
            "red",
            "garage",
            "Ready",
            costs=OrderCost("EUR", Decimal(amount) if amount else None),
        )
        for name, amount in amounts.items()
    ]

    def order(sort: str) -> str:
        return "".join(row.order for row in select(rows, OrderQuery(sort=sort))[0])

    assert (order("cost"), order("-cost")) == ("cdabe", "ebadc")


def test_every_phase_has_an_urgency_and_is_counted_by_it() -> None:
    assert set(PHASES_BY_URGENCY) == set(SENTENCES)
    assert counts(ROWS) == {"Failing": 1, "Attention": 1, "Ready": 2}


@pytest.mark.parametrize("sort", [*SORTS, *(f"-{name}" for name in SORTS)])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_together_are_the_whole_list(sort: str, limit: int) -> None:
    pages: list[str] = []
    cursor = ""
    for _ in range(len(ROWS) + 1):
        rows, cursor = select(ROWS, OrderQuery(sort=sort, limit=limit, cursor=cursor))
        pages += [row.order for row in rows]
        if not cursor:
            break

    assert pages == names(sort=sort)
    assert not cursor


@given(st.sets(st.integers(0, 99), min_size=8), st.sets(st.integers(0, 99)), st.data())
def test_orders_that_come_and_go_between_pages_move_no_other(
    before: set[int], after: set[int], data: st.DataObject
) -> None:
    """What is in both lists is on exactly one page."""
    old = [OrderRow(f"o-{n:02}", f"t{n % 3}", "kit", "Ready") for n in before]
    new = [OrderRow(f"o-{n:02}", f"t{n % 3}", "kit", "Ready") for n in after]
    limit = data.draw(st.integers(1, 7))

    first, cursor = select(old, OrderQuery(limit=limit))
    rest = select(new, OrderQuery(cursor=cursor))[0] if cursor else []

    shown = [row.order for row in (*first, *rest)]
    assert len(shown) == len(set(shown))
    assert {row.order for row in old} & {row.order for row in new} <= set(shown)


@pytest.mark.parametrize("cursor", ["x", "!", "W10", "WyJ0ZWFtIiwxLCIiXQ", "a" * 2000])
def test_a_cursor_of_something_else_is_refused(cursor: str) -> None:
    with pytest.raises(NotFoundError, match="no page of a list sorted by 'team' begins at cursor"):
        select(ROWS, OrderQuery(cursor=cursor))


def test_a_cursor_of_another_sorting_is_refused() -> None:
    _, cursor = select(ROWS, OrderQuery(sort="kit", limit=1))

    with pytest.raises(NotFoundError):
        select(ROWS, OrderQuery(sort="phase", limit=1, cursor=cursor))


def test_an_unknown_sorting_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidInputError) as caught:
        select(ROWS, OrderQuery(sort="colour"))

    assert "one of team, order, kit" in caught.value.hint


def test_hostile_texts_of_rows_are_compared_as_they_are() -> None:
    hostile = changed(ROWS[0], reason="\x1b[2J" * 1000, owner="\u202e")

    assert select([hostile], OrderQuery(text="\x1b[2j"))[0] == [hostile]
