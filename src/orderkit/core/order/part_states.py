"""
Read what the cluster says about one part of an order: its XR, or an object that it composes.

Pure.
"""

from __future__ import annotations

from compositions.paused import is_paused
from ground.objects.kube_objects import Manifest, ObjectKey, condition, metadata
from orderkit.core.order.order_state import THROTTLED, is_throttled, object_unready
from orderkit.core.order.order_view import PartState
from orderkit.core.order.part_failures import part_failure

MISSING, UNREAD = "not in the cluster", "is being read"


def part_state(manifest: Manifest) -> PartState:
    """Return the state of an object that the cluster has."""
    failure = part_failure(manifest)
    return PartState(
        ObjectKey.of(manifest),
        _status(manifest, "Synced"),
        _status(manifest, "Ready"),
        _reason(manifest, failure.sentence if failure else ""),
        failure.counts_from if failure else "",
    )


def _status(manifest: Manifest, type_: str) -> str:
    entry = condition(manifest, type_)
    return str(entry.get("status") or "-") if entry else "-"


def _reason(manifest: Manifest, failure: str) -> str:
    if metadata(manifest).get("deletionTimestamp"):
        unready = object_unready(manifest) if is_paused(manifest) else ""
        return f"is being deleted; {unready}" if unready else "is being deleted"
    throttled = THROTTLED if is_throttled(manifest) else ""
    return "; ".join(filter(None, (failure or object_unready(manifest), throttled)))
