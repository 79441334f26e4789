"""
The budget gate: whether the user of an XR may continue, as the XR's status says.

Pure. Only the status counts, not conditions, ages or other objects: two readers that infer the same
fact from different signs would disagree. So a failing measurement changes nothing here; the
stations decide what the status says then.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ground.objects.kube_objects import Manifest, dig
from orderkit.core.kit.kit_file import Gate


class GateState(StrEnum):
    """Whether the user may continue."""

    OPEN = "open"
    EXHAUSTED = "exhausted"
    """No: the budget is used up."""
    UNKNOWN = "unknown"
    """Unknown, or paused for a reason that payment does not resolve."""


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The verdict of an XR's status."""

    state: GateState
    cause: str
    """As in the status; empty: not set."""
    why: str
    """For a person."""


def verdict_of(gate: Gate, xr: Manifest) -> GateVerdict:
    """Read the verdict from an XR's status. Never raises, whatever the status contains."""
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
