"""``orderkit serve``, sweeping leases every three seconds: an entry of `zygote`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from orderkit.cli.connecting import service_options
from orderkit.cli.main import run
from orderkit.cli.serving import standalone

INTERVAL_S = 3.0
"""Two of them are the Lease: long enough that a whole sweep is of one replica."""


def serve(arguments: Sequence[str]) -> int:
    """Run the command."""

    def sweeping(*given: Any, **named: Any) -> Any:
        return replace(service_options(*given, **named), sweep_interval_s=INTERVAL_S)

    vars(standalone)["service_options"] = sweeping
    return run(list(arguments))
