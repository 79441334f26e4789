"""
A fixed piece of work of the interpreter, timed beside every figure.

Machines differ by two, and a busy one slows everything on it. So an aim in seconds holds for a
machine on which this work takes `REFERENCE_S`: elsewhere, a figure is judged by how often the work
fits into it. The work is what Orderkit does most, objects read from JSON, walked, sorted and
written, so that a faster processor or interpreter helps both alike.
"""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass

REFERENCE_S = 0.00143
"""How long the work takes where the aims hold: the fastest of 2,000 (28 November 2026)."""
_RUNS = 5
_TEXT = json.dumps(
    [
        {
            "name": f"part-{number}",
            "labels": {f"label-{n}": str(n) for n in range(8)},
            "spec": {"replicas": number % 3, "env": [{"name": f"V{n}"} for n in range(9)]},
        }
        for number in range(100)
    ]
)


@dataclass(frozen=True, slots=True)
class Yardstick:
    """How long the work took, in time that passed and in time of this process's processor."""

    wall_s: float
    cpu_s: float

    def between(self, other: Yardstick) -> Yardstick:
        """Return the mean of two: before and after a figure."""
        return Yardstick((self.wall_s + other.wall_s) / 2, (self.cpu_s + other.cpu_s) / 2)


def measured() -> Yardstick:
    """Return how long the work takes now, the median of a few."""
    walls, cpus = [], []
    for _ in range(_RUNS):
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall_s)
        cpus.append(time.process_time() - cpu_s)
    return Yardstick(statistics.median(walls), statistics.median(cpus))


def work() -> str:
    """Do the work once."""
    objects = json.loads(_TEXT)
    pending, texts = [objects], []
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            pending += part.values()
        elif isinstance(part, list):
            pending += part
        else:
            texts.append(str(part))
    texts.sort()
    return json.dumps([objects, texts])
