"""
What the help texts of the command line cost, against bare Python.

Each round runs bare Python and every command once, one after the other, so that a busy machine
slows all of them alike. Modules are compiled beforehand, whatever the environment says. The ratio
is of processor time, which other programs disturb less than the time that passes.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.figure import Figure, size

ROUNDS = size(15, 1)
BARE = (sys.executable, "-c", "pass")
ORDERKIT = str(Path(sys.executable).with_name("orderkit"))
COMMANDS = {
    "help": ("--help",),
    "version": ("--version",),
    "order help": ("order", "--help"),
    "plan help": ("plan", "--help"),
    "kit check help": ("kit", "check", "--help"),
    "platform help": ("platform", "--help"),
}
"""A command of its own file, the one with most options, one of a group, and a group."""


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="orderkit-bench-") as compiled:
        environment = _compiling(compiled)
        _round(environment)  # compiles
        rounds = [_round(environment) for _ in range(ROUNDS)]
    bare_s = statistics.median(costs["bare"] for costs in rounds)
    for name in COMMANDS:
        yield Figure(
            f"startup.{name}, processor time",
            statistics.median(costs[name] for costs in rounds) * 1000,
            "ms",
            peer="bare python",
            peer_value=bare_s * 1000,
            ratio=statistics.median(costs[name] / costs["bare"] for costs in rounds),
            aim="<= 2" if name in {"help", "version"} else "<= 6",
            aim_of="ratio",
        )


def _compiling(folder: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": folder}


def _round(environment: dict[str, str]) -> dict[str, float]:
    """Return the seconds of processor time that each command took."""
    lines = {"bare": BARE, **{name: (ORDERKIT, *words) for name, words in COMMANDS.items()}}
    return {name: _run_s(line, environment) for name, line in lines.items()}


def _run_s(command: Sequence[str], environment: dict[str, str]) -> float:
    begun = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime
