"""
Status conditions as Crossplane writes them.

A condition is replaced as a whole, time included, as soon as anything but its time differs;
an equal one stays untouched, so writing it again changes nothing. The clock is the caller's:
times come in as RFC 3339 text.

Used by ``compositions.pipeline`` and by the embedded Crossplane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "AVAILABLE",
    "CREATING",
    "DELETING",
    "RECONCILE_PAUSED",
    "RECONCILE_SUCCESS",
    "RESPONSIVE",
    "SYSTEM_TYPES",
    "Condition",
    "ConditionStatus",
    "first_and_more",
    "merged",
    "reconcile_error",
    "unknown_after_fatal",
]

ConditionStatus = Literal["True", "False", "Unknown"]

SYSTEM_TYPES = frozenset({"Ready", "Synced", "Healthy", "UpToDate", "Responsive"})
"""Types that belong to Crossplane; what a function says about them is ignored."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One statement about an object, without time and generation."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""
    dated: bool = field(default=True, compare=False)
    """Whether it says of which generation it is. What a function says does not, in Crossplane."""


_NAMED = 3
RESPONSIVE = Condition("Responsive", "True", "WatchCircuitClosed")
RECONCILE_SUCCESS = Condition("Synced", "True", "ReconcileSuccess")
RECONCILE_PAUSED = Condition(
    "Synced",
    "False",
    "ReconcilePaused",
    "Reconciliation (including deletion) is paused via the pause annotation",
)
AVAILABLE = Condition("Ready", "True", "Available")
CREATING = Condition("Ready", "False", "Creating")
DELETING = Condition("Ready", "False", "Deleting")


def reconcile_error(message: str) -> Condition:
    """Return ``Synced=False`` with this error."""
    return Condition("Synced", "False", "ReconcileError", message)


def unknown_after_fatal(type_: str) -> Condition:
    """Return what becomes of a function's condition that a fatal result left unsaid."""
    return Condition(
        type_,
        "Unknown",
        "FatalError",
        "A fatal error occurred before the status of this condition could be determined.",
    )


def merged(
    present: Sequence[dict[str, Any]], *new: Condition, generation: int, now: str
) -> list[dict[str, Any]]:
    """
    Return `present` with `new` set in it.

    Known types keep their position, new ones are appended. `present` is not changed.
    """
    result = [dict(entry) for entry in present]
    for condition in new:
        _set(result, condition, generation, now)
    return result


def _set(entries: list[dict[str, Any]], new: Condition, generation: int, now: str) -> None:
    entry: dict[str, Any] = {
        "type": new.type,
        "status": new.status,
        "reason": new.reason,
        "lastTransitionTime": now,
    }
    if new.dated:
        entry["observedGeneration"] = generation
    if new.message:
        entry["message"] = new.message
    for index, old in enumerate(entries):
        if old.get("type") == new.type:
            if not _same(old, entry):
                entries[index] = entry
            return
    entries.append(entry)


def _same(old: dict[str, Any], new: dict[str, Any]) -> bool:
    keys = ("status", "reason", "message", "observedGeneration")
    return all((old.get(key) or "") == (new.get(key) or "") for key in keys)


def first_and_more(names: Sequence[str]) -> str:
    """Join sorted names as Crossplane does: ``a, b, and c`` or ``a, b, c, and 2 more``."""
    ordered = sorted(names)
    if len(ordered) > _NAMED:
        return f"{', '.join(ordered[:_NAMED])}, and {len(ordered) - _NAMED} more"
    if len(ordered) == _NAMED:
        return f"{', '.join(ordered[:-1])}, and {ordered[-1]}"
    return ", ".join(ordered)
