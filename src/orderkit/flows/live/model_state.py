"""
How far the live model can be relied on, and its figures.

How long orders take from being ordered to their first Ready, as this process sees it.

An order that is Ready when it is seen first was so before: it says nothing. Not thread-safe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from orderkit.core.campaign.view import CampaignFigures
from orderkit.core.order.order_view import OrderRow

BOUNDS_S = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)


@dataclass(frozen=True, slots=True)
class Durations:
    """Durations as a histogram has them."""

    within: Mapping[float, int] = field(default_factory=dict)
    """By bound in seconds: how many took at most so long."""
    count: int = 0
    sum_s: float = 0.0


class ReadyTimes:
    """The durations since the process started."""

    def __init__(self) -> None:
        """Know no order yet."""
        self._ready: set[str] = set()
        self._within: Counter[float] = Counter()
        self._count, self._sum_s = 0, 0.0

    def note(self, order: str, former: OrderRow | None, row: OrderRow | None) -> None:
        """Take a row that changed; None: there was none, or it is gone."""
        if row is None:
            self._ready.discard(order)
        elif row.phase == "Ready" and order not in self._ready:
            self._ready.add(order)
            took_s = _seconds(row.created, row.since) if former is not None else None
            if took_s is not None:
                self._count += 1
                self._sum_s += took_s
                self._within.update(bound for bound in BOUNDS_S if took_s <= bound)

    def durations(self) -> Durations:
        """Return all of them."""
        return Durations(dict(self._within), self._count, self._sum_s)


def _seconds(begin: str, end: str) -> float | None:
    try:
        took = datetime.fromisoformat(end) - datetime.fromisoformat(begin)
    except ValueError:  # the cluster does not say it
        return None
    return max(0.0, took.total_seconds())


@dataclass(frozen=True, slots=True)
class ModelState:
    """How far the model can be relied on."""

    is_complete: bool
    """Everything was read once."""
    age_s: float
    """For how long rows may be out of date; 0 while every watch is open."""
    orders: int
    restarts: int
    """How many watches broke or expired."""
    waits_for: str
    """What is not read yet, or cannot be; empty if complete."""
    left_out: Mapping[str, str]
    """Kinds of composed objects that may not be read, and why."""
    ledger_commit: str
    """The ledger that rows are from; empty: none was read."""
    rows_due: int = 0
    """Rows that wait to be made again."""
    to_ready: Durations = Durations()
    """How long orders took to their first Ready."""
    campaigns: CampaignFigures = field(default_factory=CampaignFigures)
