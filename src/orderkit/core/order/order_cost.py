"""
What an order costs a month, as rows, limits and sums use it: exact decimals, and what is not known.

An amount that is not known is never zero: `monthly` is None if nothing is known, and `unknown` says
what an amount does not contain. Pure. Made by ``core.plan.cost``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import Any

import msgspec

from ground.shapes import Answer, Known, exact

DIGITS = 200
"""Enough digits for every product and sum of prices to be exact."""
_CENT = Decimal("0.01")
_SENTENCES_MAX = 20


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

    def to_json(self) -> dict[str, Any]:
        """Return the stable shape of a sum."""
        return {
            "currency": self.currency,
            "monthly": exact(add_up(self.monthly)),
            "upTo": exact(add_up(self.up_to)),
            "orders": len(self.monthly),
            "partlyKnown": self.partly,
        }


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


def sums_json(costs: Iterable[OrderCost | None]) -> dict[str, Any]:
    """Return the sums of several orders as data."""
    sums, not_known = cost_sums(costs)
    return {"sums": [cost_sum.to_json() for cost_sum in sums], "notKnown": not_known}
