"""
Find orders and say how they are doing: ``list``, ``status``.

The ledger says which orders exist; Application and XR say how they are. One ledger read and
one list per kind, whatever the number of orders.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from orderkit.core import ledger, orderstate
from orderkit.core.errors import NotFoundError
from orderkit.core.ledger import OrderEntry
from orderkit.core.names import OrderId
from orderkit.core.objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    dig,
    labels_of,
    metadata,
)
from orderkit.core.orderstate import OrderState
from orderkit.flows.platform import Platform, get_object, ledger_snapshot, published_pack
from orderkit.flows.refreshing import application_key
from orderkit.ports.cluster import NoSuchKindError


@dataclass(frozen=True, slots=True)
class OrderReport:
    """One order: where it is written, what it became, how it is."""

    entry: OrderEntry
    kit: str
    state: OrderState
    repository_url: str
    xr: ObjectKey | None

    def to_json(self) -> dict[str, Any]:
        """Return the stable shape that command line and service both answer with."""
        return {
            "order": self.entry.order,
            "team": self.entry.team,
            "kit": self.kit,
            "phase": self.state.phase,
            "ready": self.state.ready,
            "reason": self.state.reason,
            "head": self.state.head,
            "revision": self.state.revision,
            "repository": self.repository_url,
            "xr": self.xr.to_json() if self.xr else None,
        }


def list_orders(platform: Platform) -> list[OrderReport]:
    """
    Report every order of the ledger, by team and id.

    Revisions are those Argo CD saw last; `status` compares with the repository's head.
    """
    paths = ledger_snapshot(platform).blobs
    applications = {
        metadata(found)["name"]: found
        for found in platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
    }
    kinds = {kit.name: kit.kind for kit in published_pack(platform).kits()}
    xrs = {ObjectKey.of(found): found for kind in kinds.values() for found in _all(platform, kind)}
    reports = []
    for entry in ledger.entries(paths):
        application = applications.get(entry.order)
        kit = labels_of(application or {}).get(ledger.KIT_LABEL, "")
        key = xr_key(entry.order, application, kinds, kit)
        xr = xrs.get(key) if key else None
        state = orderstate.judge(application, xr, head=None, ending=entry.end_path in paths)
        reports.append(_report(platform, entry, kit, state, key))
    return reports


def status(platform: Platform, order: str) -> OrderReport:
    """
    Report one order, compared with the head of its repository.

    Raises:
        NotFoundError: The ledger has no such order; the message says if it ended.
    """
    paths = ledger_snapshot(platform).blobs
    entry = find(order, paths)
    application = platform.cluster.get(application_key(entry.order))
    kinds = {kit.name: kit.kind for kit in published_pack(platform).kits()}
    kit = labels_of(application or {}).get(ledger.KIT_LABEL, "")
    key = xr_key(entry.order, application, kinds, kit)
    xr = get_object(platform, key) if key else None
    head = platform.forge.head(entry.repository)
    state = orderstate.judge(application, xr, head=head, ending=entry.end_path in paths)
    return _report(platform, entry, kit, state, key)


def find(order: str, paths: Collection[PurePosixPath]) -> OrderEntry:
    """
    Find an order among the ledger's paths.

    Raises:
        NotFoundError: There is none; the hint names close ones, or its tombstone.
    """
    known = {entry.order: entry for entry in ledger.entries(paths)}
    found = known.get(OrderId(order))
    if found:
        return found
    ended = ledger.tombstones(paths, order)
    if ended:
        raise NotFoundError(f"{order} has ended", hint=f"its tombstone in the ledger: {ended[-1]}")
    near = difflib.get_close_matches(order, known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else "see 'orderkit list'"
    raise NotFoundError(f"no order '{order}' in the ledger", hint=hint)


def xr_key(
    order: OrderId, application: Manifest | None, kinds: dict[str, Kind], kit: str
) -> ObjectKey | None:
    """Return the order's XR as Argo CD delivered it, else by the kit's naming rule."""
    by_group_kind = {(kind.group, kind.kind): kind for kind in kinds.values()}
    for resource in dig(application, "status", "resources", default=()):
        kind = by_group_kind.get((resource.get("group", ""), resource.get("kind")))
        if kind:
            return ObjectKey(kind, resource["name"], resource.get("namespace", ""))
    return ObjectKey(kinds[kit], order) if kit in kinds else None


def _all(platform: Platform, kind: Kind) -> tuple[Manifest, ...]:
    try:
        return platform.cluster.list(kind).items
    except NoSuchKindError:
        return ()  # its XRD is not established yet


def _report(
    platform: Platform, entry: OrderEntry, kit: str, state: OrderState, xr: ObjectKey | None
) -> OrderReport:
    url = f"{platform.forge.base_url}/{entry.repository}"
    return OrderReport(entry, kit, state, url, xr)
