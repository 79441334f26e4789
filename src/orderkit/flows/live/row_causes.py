"""
Look closer at parts of orders that assemble: at their events and Pods, which nobody follows.

One thread does so, every few seconds, as long as an order assembles; rows need no request. It looks
at so many parts a second, however many orders are stuck: those not looked at yet come first, then
those whose last look is longest ago.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ground.errors import OrderkitError
from ground.objects.kube_objects import ObjectKey
from orderkit.core.order.order_view import PartState
from orderkit.flows.order.closer_look import closer_state, is_worth_a_look
from orderkit.flows.platform import Platform, get_object
from orderkit.flows.worker_thread import WorkerThread

_EVERY_S = 10.0
_AT_MOST = 20
"""Parts of one order."""
_PART_S = 0.2
"""What a look at a part costs in time: no more requests are made in a large fleet."""
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Looked:
    """An order that assembles, and what was found out about its parts."""

    keys: tuple[ObjectKey, ...]
    next_s: float
    found: dict[ObjectKey, PartState]


class RowCauses(WorkerThread):
    """Why parts fail that do not say it themselves, and the thread that finds it out."""

    def __init__(self, platform: Platform, on_found: Callable[[str], None]) -> None:
        """
        Take who is called with an order's id once a part turned out to fail, or not to any more.

        Args:
            platform: Where the parts are.
            on_found: Has the row made again.
        """
        super().__init__("live causes")
        self._platform, self._on_found = platform, on_found
        self._orders: dict[str, _Looked] = {}
        self._free_s = 0.0
        """When the next order may be looked at."""

    def forget(self, order: str) -> None:
        """Look no more at an order."""
        with self._wake:
            self._orders.pop(order, None)

    def of(self, order: str, parts: Sequence[PartState]) -> tuple[PartState, ...]:
        """Return the parts of an order that assembles, with what was found out about them."""
        keys = tuple(part.key for part in parts if is_worth_a_look(part))[:_AT_MOST]
        if not keys:
            self.forget(order)
            return tuple(parts)
        with self._wake:
            now_s = self._platform.clock.monotonic_s()
            looked = self._orders.setdefault(order, _Looked(keys, 0.0, {}))
            if looked.keys != keys:
                looked.keys, looked.next_s = keys, now_s
            self._wake.notify_all()
            return tuple(looked.found.get(part.key, part) for part in parts)

    def _run(self) -> None:
        while (due := self._next()) is not None:
            order, keys = due
            found: dict[ObjectKey, PartState] = {}
            try:
                for key in keys:
                    manifest = get_object(self._platform, key)
                    state = closer_state(self._platform, manifest) if manifest else None
                    if state and state.fails_from:
                        found[key] = state
            except OrderkitError as error:
                logger.warning("the parts of %s cannot be looked at now: %s", order, error)
                continue
            except Exception:
                logger.exception("a bug while looking at the parts of %s", order)
                continue
            with self._wake:
                looked = self._orders.get(order)
                is_new = looked is not None and looked.found != found
                if looked is not None:
                    looked.found = found
            if is_new:
                self._on_found(order)

    def _next(self) -> tuple[str, tuple[ObjectKey, ...]] | None:
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
                    looked.next_s = now_s + _EVERY_S
                    self._free_s = now_s + len(looked.keys) * _PART_S
                    return order, looked.keys
                self._wake.wait(max(0.01, wait_s))
            return None
