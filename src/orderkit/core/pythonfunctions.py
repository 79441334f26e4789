"""
The Composition functions that run in this process: the pack's stations, and auto-ready.

Every other function (go-templating, KCL, ...) is foreign here: it can be delivered, but neither
the embedded platform nor a simulation runs it. Used by the embedded assembly, by kit checks and
by plans, so that all of them run the same code.
"""

from __future__ import annotations

from collections.abc import Mapping

from orderkit.core.autoready import auto_ready
from orderkit.core.station import Station, station_runner

STATION_FUNCTION = "function-orderkit"
AUTO_READY_FUNCTION = "function-auto-ready"
NAMES = frozenset({STATION_FUNCTION, AUTO_READY_FUNCTION})


def python_functions(stations: Mapping[str, Station]) -> dict[str, Station]:
    """Return the functions by the name that a Composition's step gives them."""
    return {STATION_FUNCTION: station_runner(stations), AUTO_READY_FUNCTION: auto_ready}
