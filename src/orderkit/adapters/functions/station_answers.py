"""
Answers of a folder's stations to requests in Crossplane's function protocol.

The entry of the processes that ``orderkit function`` runs stations in (``adapters.processes``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from orderkit.adapters.folders.station_folder import stations_in
from orderkit.adapters.functions.function_messages import answered
from orderkit.core.crossplane.station import station_runner


def load_answers(folder: bytes) -> tuple[bytes, Callable[[bytes], bytes]]:
    """Load the stations of a folder; return that they are ready, and what answers requests."""
    return b"ready", partial(answered, station_runner(stations_in(Path(folder.decode()))))
