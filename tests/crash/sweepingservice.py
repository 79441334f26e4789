"""``orderkit serve``, sweeping leases every three seconds or never: entries of `zygote`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from orderkit.cli.connecting import service_options
from orderkit.cli.main import run
from orderkit.cli.serving import standalone

INTERVAL_S = 3.0
"""Two of them are the Lease: long enough that a whole sweep is of one replica."""
_DAY_S = 86_400.0


def serve(arguments: Sequence[str]) -> int:
    """Run the command."""
    return _served(arguments, INTERVAL_S)


def serve_only(arguments: Sequence[str]) -> int:
    """Run the command; it does not become the one that sweeps, however long it runs."""
    return _served(arguments, _DAY_S)


def _served(arguments: Sequence[str], interval_s: float) -> int:
    def sweeping(*given: Any, **named: Any) -> Any:
        return replace(service_options(*given, **named), sweep_interval_s=interval_s)

    vars(standalone)["service_options"] = sweeping
    return run(list(arguments))
