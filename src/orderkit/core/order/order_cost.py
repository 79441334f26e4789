"""
What an order costs a month, as rows, limits and sums use it: exact decimals, and what is not known.

An amount that is not known is never zero: `monthly` is None if nothing is known, and `unknown` says
what an amount does not contain. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import Any

import msgspec

from ground.shapes import Answer, Known

DIGITS = 200
"""Enough digits for every product and sum of prices to be exact."""
_CENT = Decimal("0.01")


def money(amount: Decimal) -> str:
    """Write an amount with two decimals."""
    with localcontext(prec=DIGITS):
        return f"{amount.quantize(_CENT, ROUND_HALF_EVEN):,f}"


def add_up(amounts: Iterable[Decimal]) -> Decimal:
    """Add amounts up exactly."""
    with localcontext(prec=DIGITS):
        return sum(amounts, Decimal(0))


class OrderCost(Answer, frozen=True):
    """The monthly cost of one order, from its values and the platform's price table."""

    currency: Known
    """Empty if there is no readable table."""
    monthly: Decimal | None
    """What is certainly paid; None: nothing is known."""
    up_to: Decimal = Decimal(0)
    """The maximum that may be paid in addition."""
    unknown: tuple[str, ...] = msgspec.field(default=(), name="notKnown")
    """What the amounts do not contain, as sentences."""
    stale: tuple[str, ...] = ()
    """Which prices are older than the table allows, as sentences."""

    @property
    def most(self) -> Decimal | None:
        """What may have to be paid at most, as far as it is known; None: nothing is."""
        return None if self.monthly is None else add_up((self.monthly, self.up_to))

    def __str__(self) -> str:
        """Return the amount for a list: at least this if a part of it is not known."""
        if self.monthly is None:
            return "not known"
        text = f"{money(self.monthly)} {self.currency}"
        text = f"{text} and up to {money(self.up_to)} more" if self.up_to else text
        text = f"at least {text}" if self.unknown else text
        return f"{text} (old prices)" if self.stale else text

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> OrderCost:
        """Read what was answered."""
        monthly = content["monthly"]
        return cls(
            content["currency"] or "",
            None if monthly is None else Decimal(monthly),
            Decimal(content["upTo"]),
            tuple(content["notKnown"]),
            tuple(content["stale"]),
        )


class MonthlySum(Answer, frozen=True):
    """The monthly cost of orders in one currency, as it is answered."""

    currency: str
    monthly: Decimal
    up_to: Decimal
    orders: int
    partly_known: int


class CostSums(Answer, frozen=True):
    """The monthly cost of orders by currency, and how many have none that is known."""

    sums: tuple[MonthlySum, ...]
    not_known: int


@dataclass(slots=True)
class CostSum:
    """The monthly cost of several orders in one currency."""

    currency: str
    monthly: list[Decimal] = field(default_factory=list)
    up_to: list[Decimal] = field(default_factory=list)
    partly: int = 0
    """Orders of which a part is not known."""

    def __str__(self) -> str:
        return str(OrderCost(self.currency, add_up(self.monthly), add_up(self.up_to)))

    @property
    def answer(self) -> MonthlySum:
        """What is said of it."""
        monthly, up_to = add_up(self.monthly), add_up(self.up_to)
        return MonthlySum(self.currency, monthly, up_to, len(self.monthly), self.partly)


def cost_sums(costs: Iterable[OrderCost | None]) -> tuple[Sequence[CostSum], int]:
    """Return the sums by currency, and the number of orders whose cost is not known at all."""
    sums: dict[str, CostSum] = {}
    not_known = 0
    for cost in costs:
        if cost is None or cost.monthly is None:
            not_known += 1
            continue
        sums_of = sums.setdefault(cost.currency, CostSum(cost.currency))
        sums_of.monthly.append(cost.monthly)
        sums_of.up_to.append(cost.up_to)
        sums_of.partly += bool(cost.unknown)
    return [sums[currency] for currency in sorted(sums)], not_known


def sums_answer(costs: Iterable[OrderCost | None]) -> CostSums:
    """Return what is said of the cost of several orders."""
    sums, not_known = cost_sums(costs)
    return CostSums(tuple(cost_sum.answer for cost_sum in sums), not_known)
