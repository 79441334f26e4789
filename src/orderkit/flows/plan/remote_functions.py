"""
Functions that run as processes of their own, as stations that this process can call.

Connections are kept between calls and shared: a service plans many times. Called by plans and
by ``orderkit kit test``.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import replace

from orderkit.core.crossplane.function_processes import FunctionProcess
from orderkit.core.crossplane.station import Station
from orderkit.core.errors import UsageError

_KEPT = 64


def stations_of(processes: Iterable[FunctionProcess]) -> Mapping[str, Station]:
    """
    Return what calls each process, by the function's name. Nothing is contacted yet.

    Raises:
        UsageError: The extra that speaks gRPC is not installed.
        NotFoundError: A certificate file is missing.
    """
    return {process.name: _connected(replace(process, is_asked=False)) for process in processes}


@functools.lru_cache(maxsize=_KEPT)
def _connected(process: FunctionProcess) -> Station:
    if importlib.util.find_spec("crossplane") is None:
        raise UsageError(
            f"calling {process.name} at {process.address} needs gRPC, which is not installed",
            hint="pip install 'orderkit[functions]'",
        )
    from orderkit.adapters.functions.remote_function import RemoteFunction

    return RemoteFunction(process)
