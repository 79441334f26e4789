"""
Whether whoever uses an XR may go on: what its status says, by the words of its kit.

Pure. The status is the only truth: conditions, ages and other objects are not looked at, because
two who infer the same thing from different signs will disagree. So a measuring that fails changes
nothing here; the stations decide what then stands in the status.

Used by ``flows.order.gate_check``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orderkit.core.kit.model import Gate
from orderkit.core.objects.kube_objects import Manifest, dig


class GateState(StrEnum):
    """May the user go on?"""

    OPEN = "open"
    EXHAUSTED = "exhausted"
    """No: what was paid for is used up."""
    UNKNOWN = "unknown"
    """Nobody knows, or it is paused for a reason that the user cannot mend by paying."""


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """What an XR's status says."""

    state: GateState
    cause: str
    """As the status has it; empty: not said."""
    why: str
    """For a person."""


def verdict_of(gate: Gate, xr: Manifest) -> GateVerdict:
    """Read a verdict from an XR's status. Never raises, whatever stands there."""
    paused = dig(xr, "status", *gate.paused.split("."))
    cause_value = dig(xr, "status", *gate.cause.split("."))
    cause = cause_value if isinstance(cause_value, str) else ""
    if not isinstance(paused, bool):
        problem = "was never written" if paused is None else f"is {paused!r}, not true or false"
        return GateVerdict(GateState.UNKNOWN, cause, f"status.{gate.paused} {problem}")
    if not paused:
        return GateVerdict(GateState.OPEN, cause, "not paused")
    if cause in gate.exhausted:
        return GateVerdict(GateState.EXHAUSTED, cause, f"paused: {cause}")
    return GateVerdict(GateState.UNKNOWN, cause, f"paused, but status.{gate.cause} is '{cause}'")
