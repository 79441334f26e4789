"""
The agents' pack: one round of its 22-part pipeline, in this process.

The round is the one that a settled agent lives in: everything observed, everything wanted again.
The peer copies the same request and answer through JSON once, without any station.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.figure import Figure, median_s, size

ROOT = Path(__file__).parents[1]
ROUNDS = size(40, 1)


def figures() -> Iterator[Figure]:
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from agentrounds import prepared

    for case, name in (
        ("datasetagent/watched-only/settled", "agent: 22 parts, 7 steps"),
        ("agentbudget/over-budget/settled", "budget: 2 parts, 4 steps"),
    ):
        settled = prepared(case)
        done = settled.run()
        parts = [desired.manifest for desired in done.resources.values()]
        taken_s = median_s(settled.run, runs=ROUNDS)
        copied_s = median_s(
            lambda: json.loads(json.dumps([settled.xr, settled.observed, parts])),  # noqa: B023 - called here
            runs=ROUNDS,
        )
        yield Figure(
            f"pipeline round, {name}",
            taken_s * 1000,
            "ms",
            "JSON there and back",
            copied_s * 1000,
            taken_s / copied_s,
            "<= 10",
        )
