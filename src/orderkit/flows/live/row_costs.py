"""
What the orders of the live model cost: composed in one thread, again only after a change.

The cost of an order follows from its XR's values and the published pack, so a change of a status or
of a part computes nothing. Until the cost is known, the row has none.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable

from ground.errors import OrderkitError
from ground.names import CommitSha
from ground.objects.kube_objects import Manifest, metadata
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.order.order_cost import OrderCost
from orderkit.flows.composing.on_demand import cost_of
from orderkit.flows.platform import Platform

logger = logging.getLogger(__name__)
_RETRY_S = 5.0


class RowCosts:
    """The costs of rows, and the thread that computes new ones. Thread-safe."""

    def __init__(self, platform: Platform, on_known: Callable[[str], None]) -> None:
        """
        Take who is called with an order's id once its cost is known.

        Args:
            platform: Whose pack composes and prices the orders.
            on_known: Has the row made again.
        """
        self._platform, self._on_known = platform, on_known
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._known: dict[str, tuple[int, OrderCost | None]] = {}
        """By order: a hash of what the cost was computed from, and the cost."""
        self._waiting: dict[str, int] = {}
        self._thread = InheritingThreads(1, thread_name_prefix="live costs")

    def stop(self) -> None:
        """Compute nothing more, and wait for the order that is being computed."""
        self._closed.set()
        self._thread.shutdown(cancel_futures=True)

    def forget(self, order: str) -> None:
        """Drop what is known of an order that is gone."""
        with self._lock:
            self._known.pop(order, None)
            self._waiting.pop(order, None)

    def of(self, order: str, xr: Manifest | None, pack: CommitSha | None) -> OrderCost | None:
        """Return what an order costs; None if that is not known yet, or there are no prices."""
        if xr is None or pack is None:
            return None
        state = hash((pack, metadata(xr).get("name"), json.dumps(xr.get("spec"), sort_keys=True)))
        with self._lock:
            known_state, cost = self._known.get(order, (None, None))
            if known_state == state:
                return cost
            if self._waiting.get(order) != state and not self._closed.is_set():
                self._waiting[order] = state
                self._thread.submit(self._compute, order, state, xr)
        return None

    def _compute(self, order: str, state: int, xr: Manifest) -> None:
        while not self._closed.is_set():
            with self._lock:
                if self._waiting.get(order) != state:
                    return  # it changed or ended meanwhile
            try:
                cost = cost_of(self._platform, xr)
            except OrderkitError as error:
                logger.warning("what %s costs cannot be computed now: %s", order, error)
                if error.retryable:
                    self._closed.wait(_RETRY_S)
                    continue
                cost = OrderCost("", None, unknown=(str(error),))
            except Exception:  # whatever somebody pushed: others have costs, too
                logger.exception("a bug while computing what %s costs", order)
                cost = OrderCost("", None, unknown=("this is a bug in Orderkit",))
            with self._lock:
                self._known[order] = (state, cost)
                self._waiting.pop(order, None)
            if cost is not None:
                self._on_known(order)
            return
