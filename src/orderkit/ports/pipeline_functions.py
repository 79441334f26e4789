"""
The functions of pipelines: a pack's stations, and functions that run as processes of their own.

Implemented by ``adapters.functions.local_functions``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from compositions.function_processes import FunctionProcess
from compositions.station import Station
from ground.names import Files


class PipelineFunctions(Protocol):
    """Makes functions callable in this process. Can be pickled for a child (`ports.processes`)."""

    def load_stations(self, files: Files) -> Mapping[str, Station]:
        """
        Load the stations of a pack; one that cannot be loaded refuses every order.

        They run confined, in processes of their own, which end with the last of the stations.
        """
        ...

    def load_programs(self, files: Files) -> Mapping[str, Station]:
        """Return the functions of a pack whose programs are on this machine, by their names."""
        ...

    def connect(self, process: FunctionProcess) -> Station:
        """
        Return what calls a function that runs somewhere. Nothing is contacted yet.

        Raises:
            UsageError: The extra that speaks gRPC is not installed.
            NotFoundError: A certificate file is missing.
        """
        ...
