"""Looks at parts of stuck orders: so many a second, however many orders are stuck."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from typing import Any

from ground.objects.kube_objects import Kind, ObjectKey
from orderkit.core.order.order_view import PartState
from orderkit.flows.live.row_looks import RowCauses
from orderkit.ports.clock import SystemClock
from orderkit_standins.serve_platform import Running

ORDERS, PARTS, LOOKS = 30, 2, 60
PARTS_A_SECOND = 5


class Ticking(SystemClock):
    """Time that passes by looking at it."""

    def __init__(self) -> None:
        self.passed_s = 0.0
        self._ticks = itertools.count(1)

    def monotonic_s(self) -> float:
        self.passed_s = next(self._ticks) * 0.05
        return self.passed_s


class Asked:
    """A cluster that notes which objects somebody reads."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.keys: list[ObjectKey] = []
        self.is_enough = threading.Event()

    def get(self, key: ObjectKey) -> Any:
        self.keys.append(key)
        if len(self.keys) >= LOOKS:
            self.is_enough.set()
        return self._cluster.get(key)


def test_many_stuck_orders_cost_no_more_requests_than_few_and_each_is_looked_at(
    platform: Running,
) -> None:
    clock, asked = Ticking(), Asked(platform.platform.cluster)
    watched: Any = replace(platform.platform, clock=clock, cluster=asked)  # type: ignore[arg-type]
    causes = RowCauses(watched, lambda _: None)
    claims = Kind("", "v1", "PersistentVolumeClaim")
    for order in range(ORDERS):
        keys = [ObjectKey(claims, f"part-{n}", f"garage-{order}") for n in range(PARTS)]
        causes.of(f"garage-{order}", [PartState(key, "-", "-") for key in keys])

    causes.start()
    assert asked.is_enough.wait(60)
    causes.stop()
    causes.join(60)

    first = asked.keys[:LOOKS]
    assert len(set(first)) == LOOKS, "no order twice before every order once"
    assert len(asked.keys) <= clock.passed_s * PARTS_A_SECOND + PARTS
