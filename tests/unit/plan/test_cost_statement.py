"""The arithmetic of statements: no second is lost or counted twice, and no cent appears."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ground.errors import InvalidInputError
from orderkit.core.order.order_cost import OrderCost
from orderkit.core.plan.cost_statement import (
    CostInterval,
    csv_row,
    joined,
    month_of,
    period_of,
    rounded,
    spans,
    sums_of,
)

START = datetime(2026, 10, 1, tzinfo=UTC)
LENGTH = 1_000
MOMENTS = st.integers(-LENGTH, 2 * LENGTH)
PRICES = st.one_of(st.none(), st.decimals(0, 10**6, places=4))
CHANGES = st.lists(st.tuples(MOMENTS, PRICES), max_size=12)


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def cost(monthly: Decimal | None) -> OrderCost:
    return OrderCost("EUR", monthly, unknown=() if monthly is not None else ("no price",))


def intervals(
    changes: list[tuple[int, Decimal | None]], begin: int, end: int
) -> tuple[CostInterval, ...]:
    history = [(at(since), monthly) for since, monthly in changes]
    return joined(
        CostInterval("ae86", "garage", "garage-x", span.begin, span.end, cost(span.state))
        for span in spans(history, at(begin), at(end))
    )


def by_second(changes: list[tuple[int, Decimal | None]], begin: int, end: int) -> Fraction:
    """Add up each second alone, by the last change whose time, or one before it, has come."""
    total = Fraction(0)
    for second in range(begin, end):
        monthly, latest = None, -(10**9)
        for since, price in changes:
            latest = max(latest, since)
            monthly = price if latest <= second else monthly
        total += Fraction(monthly or 0) / (730 * 3600)
    return total


def amount(parts: tuple[CostInterval, ...]) -> Fraction:
    return sum((part.amount or Fraction(0) for part in parts), Fraction(0))


@given(CHANGES)
def test_intervals_cost_what_each_second_costs(changes: list[tuple[int, Decimal | None]]) -> None:
    assert amount(intervals(changes, 0, LENGTH)) == by_second(changes, 0, LENGTH)


@given(CHANGES, st.lists(st.integers(0, LENGTH), max_size=5))
def test_splitting_a_period_changes_no_sum(
    changes: list[tuple[int, Decimal | None]], cuts: list[int]
) -> None:
    bounds = sorted({0, LENGTH, *cuts})
    whole = intervals(changes, 0, LENGTH)

    parts = [
        part for begin, end in itertools.pairwise(bounds) for part in intervals(changes, begin, end)
    ]

    assert [*joined(parts)] == [*whole]
    line, of_parts = sums_of(whole), sums_of(parts)
    assert [x.amount for x in line] == [x.amount for x in of_parts]
    assert [(x.seconds, x.unknown_s) for x in line] == [(x.seconds, x.unknown_s) for x in of_parts]


@given(CHANGES)
def test_there_are_no_gaps_and_no_overlaps(changes: list[tuple[int, Decimal | None]]) -> None:
    found = intervals(changes, 0, LENGTH)

    assert all(a.end == b.begin for a, b in itertools.pairwise(found))
    assert all(part.begin < part.end for part in found)
    if any(since <= 0 for since, _ in changes[:1]):
        assert (found[0].begin, found[-1].end) == (at(0), at(LENGTH))


def test_what_is_not_known_has_seconds_and_no_amount() -> None:
    parts = intervals([(0, Decimal(730)), (400, None)], 0, LENGTH)

    (line,) = sums_of(parts)

    assert (line.seconds, line.unknown_s, line.currency) == (1000, 600, "EUR")
    assert line.amount == Fraction(400, 3600)
    assert line.answer.to_json()["amount"] == "0.111111"
    assert line.answer.to_json()["notKnown"] == ["no price"]
    assert [part.answer.to_json()["amount"] for part in parts] == ["0.111111", None]


def test_a_month_of_730_hours_costs_the_price_of_a_month() -> None:
    hours = CostInterval(
        "ae86", "garage", "x", START, START + timedelta(hours=730), cost(Decimal("19.99"))
    )
    assert hours.amount == Fraction("19.99")
    assert rounded(Fraction(2, 3)) == "0.666667"


def test_no_cell_is_a_formula() -> None:
    hostile = OrderCost("EUR", None, unknown=("=HYPERLINK(1)",))
    row = csv_row(CostInterval("ae86", "garage", "x", START, at(5), hostile))
    assert "'=HYPERLINK(1)" in row


def test_periods_are_days_months_or_times() -> None:
    now = datetime(2026, 11, 23, 6, 30, tzinfo=UTC)

    assert period_of("", "", now) == (datetime(2026, 11, 1, tzinfo=UTC), now)
    assert month_of("2026-12") == (
        datetime(2026, 12, 1, tzinfo=UTC),
        datetime(2027, 1, 1, tzinfo=UTC),
    )
    assert period_of("2026-10-01T02:00:00+02:00", "2026-10-02", now) == (START, at(24 * 3600))
    for wrong in ("2026-13", "26", "2026-1"):
        with pytest.raises(InvalidInputError, match="is not a month"):
            month_of(wrong)
