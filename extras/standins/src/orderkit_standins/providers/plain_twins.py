"""
Twins of what has no cloud behind it: provider-nop, and the controllers of other kinds.

provider-nop's resources take the conditions that their ``conditionAfter`` says, when it says so
(``NopResourceParameters`` of the provider). A kind of which nothing is known is Ready at once.

Not here: what an operator would make of its resource, and every status field but conditions.

Started by ``provider_objects``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ground.objects.conditions import AVAILABLE, CREATING, Condition
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig, metadata
from orderkit_standins.controller import Controller
from orderkit_standins.crossplane.reconciler_context import ReconcilerContext, is_deleting
from orderkit_standins.providers.managed_reconciler import TWIN, Allowed, Twin, VisitOutcome

NOP_KINDS = tuple(
    Kind("nop.crossplane.io", "v1alpha1", kind) for kind in ("NopResource", "ClusterNopResource")
)
_PART = re.compile(r"([0-9.]+)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class NopTwin(Twin):
    """The controllers of provider-nop."""

    def __init__(self, site: ReconcilerContext) -> None:
        super().__init__(site, "nop", NOP_KINDS, workers=2)

    def _visit(self, managed: Manifest, policies: Allowed) -> VisitOutcome:  # noqa: ARG002 - Twin's
        entries = dig(managed, "spec", "forProvider", "conditionAfter", default=None) or ()
        wanted = [(_seconds(entry.get("time")), entry) for entry in entries]
        age_s = self._age_s(managed)
        due = [entry for after_s, entry in wanted if after_s <= age_s]
        later = [after_s - age_s for after_s, _ in wanted if after_s > age_s]
        ready = [entry for entry in due if entry.get("conditionType") == "Ready"]
        fields = dig(managed, "spec", "forProvider", "fields", default=None) or {}
        return VisitOutcome(
            _condition(ready[-1]) if ready else CREATING,
            again_s=min(later, default=None),
            status={"atProvider": {"fields": fields}} if fields else None,
        )

    def _leave(self, managed: Manifest, policies: Allowed) -> bool:  # noqa: ARG002 - Twin's
        return True

    def _age_s(self, managed: Manifest) -> float:
        created = datetime.fromisoformat(str(metadata(managed)["creationTimestamp"]))
        return (self._site.clock.now().astimezone(UTC) - created).total_seconds()


def _condition(entry: dict[str, Any]) -> Condition:
    usual = AVAILABLE if entry.get("conditionStatus") == "True" else CREATING
    return Condition("Ready", usual.status, str(entry.get("conditionReason") or usual.reason))


def _seconds(duration: object) -> float:
    """Read a duration of Go: ``1m30s``."""
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(str(duration)))


class OperatorTwin:
    """Says of resources of any kind that they are Ready, as soon as it sees them."""

    def __init__(self, site: ReconcilerContext, kinds: Iterable[Kind]) -> None:
        self._site = site
        self._controller = Controller("operators", site.cluster, self._reconcile, workers=1)
        for kind in kinds:
            self._controller.watch(kind)

    def start(self) -> None:
        self._controller.start()

    def stop(self) -> None:
        self._controller.stop()

    def _reconcile(self, key: ObjectKey) -> float | None:
        found = self._site.cluster.get(key)
        if found is not None and not is_deleting(found):
            self._site.write_status(found, TWIN, AVAILABLE)
        return None
