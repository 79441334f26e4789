"""
What was done to an order past Orderkit, as data, and what Application and XR show of it.

Pure. ``flows.order.order_damage`` asks ledger and forge; ``flows.order.repairing`` mends what it
safely can.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from ground.argocd.delivery_hindrances import hindrance, pinned
from ground.names import CommitSha
from ground.objects.kube_objects import Manifest, dig, metadata
from orderkit.core.order import ledger

_CLOCKS_DIFFER = timedelta(seconds=3)
"""How much the clocks of API server and Argo CD may differ."""


class DamageKind(StrEnum):
    """What was damaged."""

    TEAM = "team"
    LEDGER = "ledger"
    MOVED = "moved"
    DELETED = "deleted"
    ARCHIVED = "archived"
    NO_MAIN = "no main"
    PROTECTED = "protected"
    RECORD = "record"
    REWRITTEN = "rewritten"
    STUCK = "stuck"
    RECREATED = "recreated"
    LEASE = "lease"
    MISLEADING = "misleading"
    FINALIZER = "finalizer"
    HIDDEN = "hidden"


_REMARKS = (
    *(DamageKind.REWRITTEN, DamageKind.RECREATED, DamageKind.STUCK),
    *(DamageKind.MISLEADING, DamageKind.FINALIZER, DamageKind.LEASE, DamageKind.HIDDEN),
)
"""The order's state says how it is; these only add to it."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that was done to an order, in words, and what helps."""

    kind: DamageKind
    what: str
    remedy: str = ""
    """What a person does; empty if ``orderkit repair`` does it."""
    place: str = ""
    """Where the repository is now, or the commit to go back to."""

    @property
    def is_remark(self) -> bool:
        """Whether the order works nevertheless."""
        return self.kind in _REMARKS

    def advice(self, order: str) -> str:
        """Return what to do."""
        return self.remedy or f"orderkit repair {order}"


def delivered_commits(application: Manifest | None) -> list[str]:
    """Return the commits that Argo CD delivered, oldest first; it keeps ten."""
    entries = dig(application or {}, "status", "history", default=()) or ()
    return [str(entry["revision"]) for entry in entries if entry.get("revision")]


def in_cluster(
    application: Manifest | None, xr: Manifest | None, head: CommitSha | None
) -> Iterator[Damage]:
    """Yield what Application and XR show by themselves."""
    if application is None:
        return
    commit = ledger.delivered_commit(application) or head
    if (commit and pinned(application) not in ("", commit)) or _gave_up(application):
        obstacle = hindrance(application, commit)
        if obstacle and (obstacle.failing or obstacle.waits_for):
            yield Damage(DamageKind.STUCK, "")
    yield from _recreated(application, xr)
    if finalizers := _delivered_finalizers(xr or {}):
        yield Damage(
            DamageKind.FINALIZER,
            f"Git gives its XR the finalizer {', '.join(finalizers)}: 'orderkit destroy' would wait"
            " until somebody removes it",
            "take metadata.finalizers out of the XR's file, unless something removes it at the end",
        )


def _delivered_finalizers(xr: Manifest) -> list[str]:
    """Return the finalizers that Argo CD wrote: those of controllers are not in Git."""
    return sorted(
        key.removeprefix("v:").strip('"')
        for fields in metadata(xr).get("managedFields") or ()
        if str(fields.get("manager", "")).startswith("argocd")
        for key in dig(fields, "fieldsV1", "f:metadata", "f:finalizers", default={})
        if key != "."
    )


def _gave_up(application: Manifest) -> bool:
    """Say whether Argo CD tried a commit as often as it may, and never will again."""
    return dig(application, "status", "operationState", "phase") in ("Failed", "Error")


def _recreated(application: Manifest, xr: Manifest | None) -> Iterator[Damage]:
    """Report an XR that is younger than the delivery of its commit: the one before was deleted."""
    history = dig(application, "status", "history", default=()) or ()
    born = metadata(xr or {}).get("creationTimestamp")
    if not born:
        return
    newest_before_it = datetime.fromisoformat(born) - _CLOCKS_DIFFER
    delivered_before = [
        entry["revision"]
        for entry in history
        if datetime.fromisoformat(entry["deployedAt"]) < newest_before_it
    ]
    if delivered_before[-1:] == [dig(application, "status", "sync", "revision")]:
        yield Damage(
            DamageKind.RECREATED,
            f"its XR was deleted in the cluster, and Argo CD made it again at {born}: what it held"
            " is not restored, and Git does not know who deleted it",
            "see whether something is missing; 'orderkit events' shows the last hour",
        )
