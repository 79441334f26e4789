"""How long ``orderkit --help`` takes, against bare Python."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.figure import Figure, timed_s

RUNS = 15


def figures() -> Iterator[Figure]:
    ours = [str(Path(sys.executable).with_name("orderkit")), "--help"]
    bare = [sys.executable, "-c", "pass"]
    pairs = [(_run_s(ours), _run_s(bare)) for _ in range(RUNS)]
    help_s, bare_s = (statistics.median(column) for column in zip(*pairs, strict=True))
    yield Figure(
        "startup.help",
        help_s * 1000,
        "ms",
        peer="bare python",
        peer_value=bare_s * 1000,
        ratio=statistics.median(one / other for one, other in pairs),
        aim="<= 5",
        aim_of="ratio",
    )


def _run_s(command: list[str]) -> float:
    return timed_s(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
