"""
Look at orders one after the other, at a bounded rate, for what no watch tells.

One thread for each kind of look: rows need no request. It makes so many requests a second, however
many orders there are: those not looked at yet come first, then those whose last look is longest
ago.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ground.errors import OrderkitError
from orderkit.flows.platform import Platform
from orderkit.flows.worker_thread import WorkerThread

_REQUEST_S = 0.2
"""What a request costs in time: no more are made in a large fleet."""
logger = logging.getLogger(__name__)

Target = TypeVar("Target")
Found = TypeVar("Found")


@dataclass(slots=True)
class _Looked(Generic[Target, Found]):
    target: Target
    next_s: float
    found: Found | None = None


class RowLooks(WorkerThread, Generic[Target, Found]):
    """What was found out about orders, and the thread that finds it out. Thread-safe."""

    EVERY_S: float
    """How long after a look the next one at the same order comes at the earliest."""

    def __init__(self, name: str, platform: Platform, on_found: Callable[[str], None]) -> None:
        """
        Take who is called with an order's id once a look found something else than the one before.

        Args:
            name: The thread's.
            platform: Where the orders are.
            on_found: Has the row made again.
        """
        super().__init__(name)
        self._platform, self._on_found = platform, on_found
        self._orders: dict[str, _Looked[Target, Found]] = {}
        self._free_s = 0.0
        """When the next order may be looked at."""

    def forget(self, order: str) -> None:
        """Look no more at an order."""
        with self._wake:
            self._orders.pop(order, None)

    def look_again(self, order: str, *, in_s: float = 0.0) -> None:
        """Look at an order soon, if it is looked at."""
        with self._wake:
            if order in self._orders:
                self._orders[order].next_s = self._platform.clock.monotonic_s() + in_s
                self._wake.notify_all()

    def _last(self, order: str, target: Target) -> Found | None:
        """Return what the last look found; have the order looked at from now on."""
        with self._wake:
            looked = self._orders.setdefault(order, _Looked(target, 0.0))
            if looked.target != target:
                looked.target, looked.next_s = target, self._platform.clock.monotonic_s()
            self._wake.notify_all()
            return looked.found

    def _look(self, order: str, target: Target) -> Found:
        """Look at an order."""
        raise NotImplementedError

    def _requests(self, target: Target) -> int:  # noqa: ARG002 - subclasses look at both
        """Return about how many requests a look makes."""
        return 1

    def _run(self) -> None:
        while (due := self._next()) is not None:
            order, target = due
            try:
                found = self._look(order, target)
            except OrderkitError as error:
                logger.warning("%s cannot be looked at now: %s", order, error)
                continue
            except Exception:
                logger.exception("a bug while looking at %s", order)
                continue
            with self._wake:
                looked = self._orders.get(order)
                is_new = looked is not None and looked.found != found
                if looked is not None:
                    looked.found = found
            if is_new:
                self._on_found(order)

    def _next(self) -> tuple[str, Target] | None:
        """Wait for an order to look at; None: closed."""
        with self._wake:
            while not self._is_closed:
                now_s = self._platform.clock.monotonic_s()
                order = min(self._orders, key=lambda each: self._orders[each].next_s, default=None)
                if order is None:
                    self._wake.wait()
                    continue
                looked = self._orders[order]
                wait_s = max(looked.next_s, self._free_s) - now_s
                if wait_s <= 0:
                    looked.next_s = now_s + self.EVERY_S
                    self._free_s = now_s + self._requests(looked.target) * _REQUEST_S
                    return order, looked.target
                self._wake.wait(max(0.01, wait_s))
            return None
