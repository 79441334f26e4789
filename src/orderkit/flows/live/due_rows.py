"""When rows are made again without a change: an error of a part has lasted too long to pass."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

from orderkit.core.order.order_view import PartState
from orderkit.core.order.part_failures import seconds_until


class DueRows:
    """By order, when its row is due. For one thread: that of rows."""

    def __init__(self) -> None:
        self._due_s: dict[str, float] = {}

    def note(self, order: str, parts: Sequence[PartState], now: datetime) -> None:
        """Have an order's row made again when the first error of a part is too old to pass."""
        begin = [seconds_until(part.fails_from, now) for part in parts if part.fails_from]
        waits_s = min((wait_s for wait_s in begin if wait_s > 0), default=None)
        if waits_s is None:
            self.forget(order)
        else:
            self._due_s[order] = time.monotonic() + waits_s

    def forget(self, order: str) -> None:
        """The order has no row, or none of its parts fails."""
        self._due_s.pop(order, None)

    def wait_s(self) -> float:
        """Return in how many seconds the next row is due; infinity if none is."""
        return min(self._due_s.values(), default=float("inf")) - time.monotonic()

    def taken(self) -> list[str]:
        """Return the orders whose rows are due, once."""
        now_s = time.monotonic()
        orders = [order for order, due_s in self._due_s.items() if due_s <= now_s]
        for order in orders:
            del self._due_s[order]
        return orders
