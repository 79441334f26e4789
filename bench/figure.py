"""One measured figure and what it is compared with."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

_SMALLEST = "ORDERKIT_BENCH_SMALLEST"
"""In the environment, so that processes which a suite starts know it too."""
if "--smallest" in sys.argv:
    os.environ[_SMALLEST] = "yes"
T = TypeVar("T")


def size(full: T, smallest: T) -> T:
    """Return how much a suite does: all, or (--smallest) so little that it only must not fail."""
    return smallest if os.environ.get(_SMALLEST) else full


@dataclass(frozen=True, slots=True)
class Figure:
    """
    A value with its unit, its peer's value, and the aim.

    `aim` is a text such as ``<= 1`` or ``>= 50``; it judges the ratio if `aim_of` is "ratio",
    otherwise the value. Without an aim the figure only informs.
    """

    name: str
    value: float
    unit: str
    peer: str | None = None
    peer_value: float | None = None
    ratio: float | None = None
    aim: str | None = None
    aim_of: str = "value"

    @property
    def met(self) -> bool | None:
        if self.aim is None:
            return None
        sign, _, bound = self.aim.partition(" ")
        judged = self.ratio if self.aim_of == "ratio" else self.value
        if judged is None:
            return None
        return judged <= float(bound) if sign == "<=" else judged >= float(bound)

    def line(self) -> str:
        """Return the figure as one JSON object."""
        aim = f"{self.aim_of} {self.aim}" if self.aim else None
        return json.dumps(
            {
                "name": self.name,
                "value": _rounded(self.value),
                "unit": self.unit,
                "peer": self.peer,
                "peer_value": _rounded(self.peer_value),
                "ratio": _rounded(self.ratio),
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
