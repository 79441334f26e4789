"""
Run kits' pipelines in processes with other hash seeds: a pure station gives the same in each.

Python orders sets by hashes that differ from process to process; a station that lets this
order through changes what it composes whenever it is restarted. `Probes` starts the processes
and, later, compares; as a program this module is one of them.

Called by ``flows.kit.check_kits``.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from orderkit.core.errors import OrderkitError

SEEDS = ("1", "2", "3", "4")
"""Two entries of a set swap with every second seed, so four seeds rarely miss it."""
_TIMEOUT_S = 120.0

Prints = dict[str, dict[str, dict[str, str]]]
"""Kit -> run -> part -> digest."""


class ProbeError(OrderkitError):
    """A process that runs pipelines did not answer."""


class Probes:
    """Processes that run the pipelines of some kits. Use as a context: it ends them."""

    def __init__(self, pack: Path, kits: Sequence[str]) -> None:
        self._running = [self._start(pack, kits, seed) for seed in SEEDS] if kits else []

    @staticmethod
    def _start(pack: Path, kits: Sequence[str], seed: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own module, no shell
            [sys.executable, "-m", "orderkit.flows.kit.purity_probe", str(pack), *kits],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            with contextlib.suppress(OSError):
                process.kill()
            process.communicate()

    def differing(self) -> dict[str, dict[str, list[str]]]:
        """
        Wait for the processes and return what differs: kit -> run -> parts.

        Raises:
            ProbeError: A process failed or took more than two minutes.
        """
        if not self._running:
            return {}
        first, *other_answers = [self._answer(process) for process in self._running]
        differing: dict[str, dict[str, list[str]]] = {}
        for kit, runs in first.items():
            for run, parts in runs.items():
                other_parts = [other.get(kit, {}).get(run, {}) for other in other_answers]
                names = {*parts, *(name for other in other_parts for name in other)}
                changed = [n for n in names if any(o.get(n) != parts.get(n) for o in other_parts)]
                if changed:
                    differing.setdefault(kit, {})[run] = sorted(changed)
        return differing

    def _answer(self, process: subprocess.Popen[bytes]) -> Prints:
        try:
            stdout, err = process.communicate(timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise ProbeError(f"running the pipelines took more than {_TIMEOUT_S:g} s") from error
        if process.returncode != 0:
            last = err.decode(errors="replace").strip().rpartition("\n")[2]
            raise ProbeError(f"running the pipelines in a process of its own failed: {last}")
        prints: Prints = json.loads(stdout)
        return prints


def probe(pack: Path, kits: Sequence[str]) -> Prints:
    """
    Run the pipelines of kits in this process and return digests of what came out.

    Raises:
        InvalidInputError: The pack cannot be read.
    """
    from orderkit.adapters.folders.pack_folder import read_folder
    from orderkit.adapters.folders.station_folder import load_stations
    from orderkit.core.check import KitUnderCheck, PackFacts, try_kit
    from orderkit.core.check.trial_runs import fingerprints

    facts = PackFacts(read_folder(pack), load_stations(pack))
    return {kit: fingerprints(try_kit(KitUnderCheck(kit, facts))) for kit in kits}


if __name__ == "__main__":
    answer = probe(Path(sys.argv[1]), sys.argv[2:])
    sys.stdout.write(json.dumps(answer))
