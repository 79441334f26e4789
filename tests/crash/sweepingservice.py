"""``orderkit serve`` that sweeps leases every second, as no setting can say; an entry of `zygote`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from orderkit.cli.main import run
from orderkit.cli.serving import standalone

INTERVAL_S = 1.0


def serve(arguments: Sequence[str]) -> int:
    """Run the command."""
    options = standalone.service_options

    def sweeping(*given: Any, **named: Any) -> Any:
        return replace(options(*given, **named), sweep_interval_s=INTERVAL_S)

    standalone.service_options = sweeping
    return run(list(arguments))
