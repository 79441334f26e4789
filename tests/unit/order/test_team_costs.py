"""What the orders of a team may cost together, and what a list says of their costs."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import pytest
from ownforge import OwnForge
from tests.unit.order.test_team_limits import KITS, RX7, STORE, team

from ground.errors import InvalidInputError, RefusedError
from ground.names import OrderId, TeamName
from ground.shapes import changed
from orderkit.core.kit.model import Kit
from orderkit.core.order import team_limits
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_cost import OrderCost, cost_sums, money, sums_answer
from orderkit.core.order.team_file import CostLimit, TeamFile, TeamLimits
from orderkit.flows.order.cost_limit import git_xr

LIMITED = TeamFile(RX7, limits=TeamLimits(cost=CostLimit(Decimal(100), "EUR")))
FREE_TEAM = TeamFile(RX7)
NO_TABLE = "the platform has no price table"


def costs(monthly: str | None, up_to: str = "0", *unknown: str, currency: str = "EUR") -> OrderCost:
    amount = None if monthly is None else Decimal(monthly)
    return OrderCost(currency, amount, Decimal(up_to), unknown)


@pytest.mark.parametrize(
    ("cost", "others", "told"),
    [
        (costs("60"), {"b": costs("40")}, ""),
        (costs("0", currency=""), {"b": costs("100")}, ""),
        (
            costs("60.01"),
            {"b": costs("40")},
            (
                "a costs 60.01 EUR a month, and the other orders of team rx7 40.00: together"
                " 100.01, above the team's cost limit of 100.00"
            ),
        ),
        (
            costs("10", "90"),
            {"b": costs("1")},
            (
                "a costs 100.00 EUR a month, and the other orders of team rx7 1.00: together"
                " 101.00, above the team's cost limit of 100.00"
            ),
        ),
        (costs("60"), {"a": costs("999"), "b": costs("40")}, ""),
        (None, {}, f"what a costs is not known ({NO_TABLE}), so team rx7 cannot be held to its"),
        (costs("1"), {"b": None}, f"what b costs is not known ({NO_TABLE}), so team rx7"),
        (costs(None), {}, "what a costs is not known (), so team rx7"),
        (costs("1", "0", "no price"), {}, "what a costs is not known (no price), so"),
        (costs("1", "0", "x", "y", "z"), {}, "what a costs is not known (x and 2 more), so"),
        (
            costs("1", currency="USD"),
            {},
            "what a costs is not known (prices are in USD, the limit is in EUR), so",
        ),
    ],
)
def test_all_orders_of_a_team_are_held_to_what_it_may_spend(
    cost: OrderCost | None, others: Mapping[str, OrderCost | None], told: str
) -> None:
    refusal = team_limits.cost_excess(LIMITED, "a", cost, others)

    assert (refusal is not None) is bool(told)
    assert str(refusal or "").startswith(told)
    assert team_limits.cost_excess(FREE_TEAM, "a", cost, others) is None


@pytest.mark.parametrize(
    ("cost", "hint"),
    [
        (costs("101"), "orderkit list --team rx7 --sort=-cost"),
        (None, "give every kind a price in gitops/prices.yaml"),
        (costs("1", currency="USD"), "orderkit team change rx7 --limit cost=…USD"),
    ],
)
def test_a_cost_that_is_too_much_has_a_way_out(cost: OrderCost | None, hint: str) -> None:
    refusal = team_limits.cost_excess(LIMITED, "a", cost, {})

    assert refusal is not None
    assert hint in refusal.hint


@pytest.mark.parametrize(
    ("of", "told"),
    [
        ({"a": costs("60"), "b": costs("40")}, ""),
        (
            {"a": costs("60"), "b": costs("40", "0.5")},
            "the orders of team rx7 cost 100.50 EUR a month, above its limit of 100.00",
        ),
        ({"a": None}, f"what a costs is not known ({NO_TABLE}), so team rx7 cannot be held to"),
        ({}, ""),
    ],
)
def test_a_sum_above_the_limit_is_told(of: Mapping[str, OrderCost | None], told: str) -> None:
    said = team_limits.sum_excess(LIMITED, of)

    assert said.startswith(told)
    assert bool(said) is bool(told)
    assert team_limits.sum_excess(FREE_TEAM, of) == ""


@pytest.mark.parametrize(
    ("cost", "before", "is_dearer"),
    [
        (costs("5"), costs("5"), False),
        (costs("5.01"), costs("5"), True),
        (costs("4"), costs("5"), False),
        (costs("5", "1"), costs("5"), True),
        (costs("4", "0", "x"), costs("5"), True),
        (costs("4", "0", "x"), costs("5", "0", "x", "y"), False),
        (None, costs("5"), True),
        (costs(None), costs("5"), True),
        (costs(None), costs(None), False),
        (costs("5"), costs(None), True),
    ],
)
def test_an_order_that_may_cost_more_than_before_is_dearer(
    cost: OrderCost | None, before: OrderCost, *, is_dearer: bool
) -> None:
    assert team_limits.is_dearer(cost, before) is is_dearer


@pytest.mark.parametrize(
    ("text", "currency", "cost"),
    [
        ("500", "EUR", CostLimit(Decimal(500), "EUR")),
        ("499.50 EUR", "EUR", CostLimit(Decimal("499.50"), "EUR")),
        ("0", "USD", CostLimit(Decimal(0), "USD")),
    ],
)
def test_a_cost_limit_is_in_the_currency_of_the_prices(
    text: str, currency: str, cost: CostLimit
) -> None:
    limits = team_limits.with_limits(TeamLimits(), {"cost": text}, (), KITS, currency)

    assert limits.cost == cost
    assert team_limits.with_limits(limits, {}, ("cost",), KITS) == TeamLimits()


@pytest.mark.parametrize(
    ("text", "currency", "told"),
    [
        ("05", "EUR", "is not an amount"),
        ("5,5", "EUR", "is not an amount"),
        ("-5", "EUR", "is not an amount"),
        ("5", "", "needs prices, and the platform's pack has none"),
        ("5USD", "EUR", "is not in the currency of the prices, EUR"),
    ],
)
def test_a_cost_limit_that_cannot_be_compared_is_refused(
    text: str, currency: str, told: str
) -> None:
    with pytest.raises(InvalidInputError, match=told):
        team_limits.with_limits(TeamLimits(), {"cost": text}, (), KITS, currency)


def test_a_team_that_may_ask_for_more_is_not_refused() -> None:
    asking = changed(
        team(orders="1", store__nodes="2"),
        limits=changed(team(orders="1", store__nodes="2").limits, over="ask"),
    )

    team_limits.check_count(asking, "store", [OrderId("store-a")], KITS)
    team_limits.check_values(asking, STORE, {"nodes": 9})

    assert team_limits.count_excess(asking, "store", [OrderId("store-a")], KITS) is not None
    assert len(team_limits.value_excesses(asking, STORE, {"nodes": 9})) == 1


@pytest.mark.parametrize(
    ("limits", "is_counted"),
    [({}, False), ({"orders": "3"}, True), ({"orders__store": "3"}, True),
     ({"orders__store-x": "3"}, False)],
)  # fmt: skip
def test_orders_are_counted_where_a_limit_counts_them(
    limits: dict[str, str], *, is_counted: bool
) -> None:
    assert team_limits.is_counted(team(**limits), "store") is is_counted


def test_sums_are_by_currency_and_say_what_they_lack() -> None:
    found = [
        costs("1.005"), costs("2", "3", "x"), costs("7", currency="USD"), costs(None), None,
    ]  # fmt: skip

    sums, not_known = cost_sums(found)

    assert [str(cost_sum) for cost_sum in sums] == [
        "3.00 EUR and up to 3.00 more",
        "7.00 USD",
    ]
    assert not_known == 2
    answer = sums_answer(found)
    assert [(one.currency, one.orders, one.partly_known) for one in answer.sums] == [
        ("EUR", 2, 1),
        ("USD", 1, 0),
    ]
    assert answer.not_known == 2


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (costs(None), "not known"),
        (costs("1234.5"), "1,234.50 EUR"),
        (costs("1", "2"), "1.00 EUR and up to 2.00 more"),
        (costs("1", "0", "x"), "at least 1.00 EUR"),
        (changed(costs("1"), stale=("old",)), "1.00 EUR (old prices)"),
    ],
)
def test_a_cost_says_what_it_does_not_contain(cost: OrderCost, text: str) -> None:
    assert str(cost) == text
    assert OrderCost.from_json(cost.to_json()) == cost


def test_halves_of_a_cent_are_rounded_to_the_even_one() -> None:
    assert (money(Decimal("0.125")), money(Decimal("0.135"))) == ("0.12", "0.14")


@pytest.mark.parametrize(
    ("kits", "told"),
    [
        ((), "the pack has no kit for {order}"),
        (("garage",), "{team}/{order} has no commit on main, or does not exist"),
    ],
)
def test_an_order_whose_kit_or_repository_is_gone_has_no_cost(
    forge: OwnForge, kits: tuple[str, ...], told: str
) -> None:
    entry = OrderEntry(TeamName(forge.named("ae86")), OrderId("garage-a"))
    published = {name: Kit(name=name, xrd={}) for name in kits}

    with pytest.raises(RefusedError) as refused:
        git_xr(forge.platform(), entry, published)

    assert str(refused.value) == told.format(order=entry.order, team=entry.team)
