"""One measured figure and what it is compared with."""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bench.yardstick import REFERENCE_S, Yardstick

_SMALLEST = "ORDERKIT_BENCH_SMALLEST"
"""In the environment, so that processes which a suite starts know it too."""
if "--smallest" in sys.argv:
    os.environ[_SMALLEST] = "yes"
T = TypeVar("T")
_TIMES = {"s": 1, "ms": 1_000, "s for 1,000": 1}
_CPU_S = {"s of CPU": 1, "ms of CPU": 1_000}
_RATES = {"per s", "1/s", "per second", "edits/s"}


def size(full: T, smallest: T) -> T:
    """Return how much a suite does: all, or (--smallest) so little that it only must not fail."""
    return smallest if os.environ.get(_SMALLEST) else full


@dataclass(frozen=True, slots=True)
class Figure:
    """
    A value with its unit, its peer's value, and the aim.

    `aim` is a text such as ``<= 1`` or ``>= 50``; it judges the ratio if `aim_of` is "ratio",
    otherwise the value. Without an aim the figure only informs. A time, or a rate, is judged in
    yardsticks of the same run: the aim holds for the machine of ``yardstick.REFERENCE_S``.
    """

    name: str
    value: float
    unit: str
    peer: str | None = None
    peer_value: float | None = None
    ratio: float | None = None
    aim: str | None = None
    aim_of: str = "value"
    yardstick: Yardstick | None = None
    """How fast the machine was meanwhile; None: not known."""

    @property
    def yardsticks(self) -> float | None:
        """How often the fixed piece of work fits into the time of this, or into one of a rate."""
        if self.yardstick is None:
            return None
        is_cpu = self.unit in _CPU_S
        one_s = self.yardstick.cpu_s if is_cpu else self.yardstick.wall_s
        taken_s = self._seconds(self.value)
        return None if taken_s is None else taken_s / one_s

    def _seconds(self, value: float) -> float | None:
        if self.unit in _RATES:
            return 1 / value if value else math.inf
        per_s = (_CPU_S | _TIMES).get(self.unit)
        return None if per_s is None else value / per_s

    def _judged(self) -> tuple[str, float | None, str]:
        """Return what the aim judges: its name, the value, and the aim for it."""
        if self.aim is None:
            return "", None, ""
        if self.aim_of == "ratio":
            return "ratio", self.ratio, self.aim
        yardsticks, bound_s = self.yardsticks, self._seconds(float(self.aim.split()[1]))
        if yardsticks is None or bound_s is None:
            return "value", self.value, self.aim
        return "yardsticks", yardsticks, f"<= {bound_s / REFERENCE_S:.4g}"

    @property
    def met(self) -> bool | None:
        _, judged, aim = self._judged()
        if judged is None:
            return None
        sign, _, bound = aim.partition(" ")
        return judged <= float(bound) if sign == "<=" else judged >= float(bound)

    def line(self) -> str:
        """Return the figure as one JSON object."""
        name, _, bound = self._judged()
        aim = f"{name} {bound}" if self.aim else None
        return json.dumps(
            {
                "name": self.name,
                "value": _rounded(self.value),
                "unit": self.unit,
                "peer": self.peer,
                "peer_value": _rounded(self.peer_value),
                "ratio": _rounded(self.ratio),
                "yardsticks": _rounded(self.yardsticks),
                "aim": aim,
                "met": self.met,
            }
        )


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def timed_s(work: Callable[[], object]) -> float:
    """Return how long one call takes, in seconds."""
    begin_s = time.perf_counter()
    work()
    return time.perf_counter() - begin_s


def median_s(work: Callable[[], object], *, runs: int) -> float:
    """Return the median of `runs` calls, in seconds."""
    return statistics.median(timed_s(work) for _ in range(runs))
