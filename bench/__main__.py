"""
Run the benchmarks; print one JSON object a line.

``python -m bench [NAME...]`` runs all, or the named ones; with ``--smallest``, each as small as it
can be: then its figures say nothing, and only a crash counts (CI).
Machines are shared and noisy, so aims for times are ratios: to the peer of the same run (`ratio`),
or to a fixed piece of work beside the figure (`yardsticks`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from bench import (
    agents,
    campaign,
    change,
    delivery,
    edit,
    forge,
    forge_limits,
    functions,
    kits,
    kittest,
    ledger,
    live,
    planning,
    platform,
    rendering,
    service,
    startup,
    validating,
    watching,
    yardstick,
)
from bench.figure import Figure

SUITES: dict[str, Callable[[], Iterator[Figure]]] = {
    "agents": agents.figures,
    "startup": startup.figures,
    "render": rendering.figures,
    "order": platform.figures,
    "faces": platform.face_figures,
    "change": change.figures,
    "campaign": campaign.figures,
    "validate": validating.figures,
    "edit": edit.figures,
    "kits": kits.figures,
    "kittest": kittest.figures,
    "planning": planning.figures,
    "forge": forge.figures,
    "limits": forge_limits.figures,
    "functions": functions.figures,
    "delivery": delivery.figures,
    "service": service.figures,
    "watcher": watching.figures,
    "ledger": ledger.figures,
    "live": live.figures,
}


def main(names: list[str]) -> int:
    smallest = "--smallest" in names
    names = [name for name in names if name != "--smallest"]
    wanted = [suite for suite in SUITES if not names or suite in names]
    missed = 0
    for suite in wanted:
        begun_s = time.monotonic()
        before = yardstick.measured()
        for measured in SUITES[suite]():
            after = yardstick.measured()
            figure = replace(measured, yardstick=before.between(after))
            before = after
            print(figure.line(), flush=True)
            missed += figure.met is False
        print(f"bench: {suite} took {time.monotonic() - begun_s:.1f} s", file=sys.stderr)
    return int(missed > 0 and not smallest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
