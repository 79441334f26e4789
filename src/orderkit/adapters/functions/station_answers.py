"""
Answer requests in Crossplane's function protocol with the stations of a folder.

The entry point of the processes in which ``orderkit stations`` runs stations
(``adapters.processes``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from compositions.station import station_runner
from orderkit.adapters.folders.station_process import stations_in
from orderkit.adapters.functions.function_messages import answered


def load_answers(folder: bytes) -> tuple[bytes, Callable[[bytes], bytes]]:
    """Load the stations of a folder; return ``ready`` and the function that answers requests."""
    return b"ready", partial(answered, station_runner(stations_in(Path(folder.decode()))))
