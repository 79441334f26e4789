"""
Stations in confined processes, and functions of other processes as stations to call.

Connections are kept between calls and shared: a service plans many times. Used by plans and by
``orderkit kit test``.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, replace

from compositions.function_processes import FunctionProcess
from compositions.station import Station
from ground.errors import UsageError
from orderkit.adapters.folders.confined_stations import confined_stations_from
from orderkit.adapters.functions.program_function import program_functions
from yamlfiles.documents import Files

_KEPT = 64


@dataclass(frozen=True, slots=True)
class LocalFunctions:
    """`PipelineFunctions` of this machine."""

    def load_stations(self, files: Files) -> Mapping[str, Station]:
        return confined_stations_from(files, remembers=True)

    def load_programs(self, files: Files) -> Mapping[str, Station]:
        return program_functions(files)

    def connect(self, process: FunctionProcess) -> Station:
        return _connected(replace(process, is_asked=False))


@functools.lru_cache(maxsize=_KEPT)
def _connected(process: FunctionProcess) -> Station:
    if importlib.util.find_spec("crossplane") is None:
        raise UsageError(
            f"calling {process.name} at {process.address} needs gRPC, which is not installed",
            hint="pip install 'orderkit[functions]'",
        )
    from orderkit.adapters.functions.remote_function import RemoteFunction

    return RemoteFunction(process)
