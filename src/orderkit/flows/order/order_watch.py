"""
List orders with their owners, and notice when a list is out of date.

`OrderChanges` watches Applications and XRs and reads none of them: a list is read again only after
something changed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from ground.errors import OrderkitError
from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, Kind, Manifest
from ground.shapes import changed
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.order.order_cost import OrderCost
from orderkit.core.order.order_view import LIMIT_MAX, OrderQuery, matches, select
from orderkit.flows.composing.on_demand import cost_of
from orderkit.flows.platform import Platform, published_pack
from orderkit.ports.cluster import Cluster

_WATCH_S = 60.0
_RETRY_S, _RETRY_LONGEST_S = 1.0, 15.0
_NOTHING = {"orderkit.dev/no-such-label": "none"}
"""Selects no object: the answer is only the version from which to watch."""
_LOOKED_UP_MAX = 30
_ORDERS = "/proxy/orderkit/v1/orders"
_OK, _ANSWER_S = 200, 3.0


def selected_orders(
    platform: Platform, query: OrderQuery, *, with_costs: bool = False
) -> list[Mapping[str, Any]]:
    """
    Return the orders that a query selects, sorted, as ``GET /v1/orders`` shows them.

    The service answers, unless its live model is behind the ledger: then see `read_orders`.

    Args:
        platform: Whose orders.
        query: Which, and in which order.
        with_costs: Compute what each costs, which runs its pipeline.

    Raises:
        RemoteError: The platform does not answer, or not to us.
    """
    rows = None if with_costs else _of_service(platform, query)
    return read_orders(platform, query, {}, with_costs=with_costs) if rows is None else rows


def _of_service(platform: Platform, query: OrderQuery) -> list[Mapping[str, Any]] | None:
    """Return what the service answers; None if it cannot be asked, or lags behind the ledger."""
    asked = {"team": query.team, "kit": query.kit, "owner": query.owner, "text": query.text}
    asked |= {"phase": ",".join(query.phase), "sort": query.sort, "limit": str(LIMIT_MAX)}
    rows: list[Mapping[str, Any]] = []
    try:
        head = platform.forge.head(platform.ledger)
        while True:
            query_text = urlencode({name: text for name, text in asked.items() if text})
            path = f"{_ORDERS}?{query_text}"
            answer = platform.portal.request(
                "GET", path, headers={}, body=None, timeout_s=_ANSWER_S
            )
            page: Any = json.loads(answer.body) if answer.code == _OK else {}
            if not isinstance(page, dict) or page.get("age") != 0 or page.get("ledger") != head:
                return None  # behind, or of an earlier version
            rows += page["orders"]
            if not page["cursor"]:
                return rows
            asked["cursor"] = page["cursor"]
    except (OrderkitError, ValueError):
        return None


def read_orders(
    platform: Platform, query: OrderQuery, owners: dict[str, str], *, with_costs: bool = False
) -> list[Mapping[str, Any]]:
    """
    Return the same from ledger and cluster, with who ordered as far as it is known.

    Args:
        owners: Who ordered what, as read before; new ones are added.
        with_costs: Compute what each order costs, which runs its pipeline.

    Raises:
        RemoteError: The platform does not answer, or not to us.
    """
    from orderkit.flows.order import order_report, tracing  # lazy: the service's rows need neither
    from orderkit.flows.order.ledger_records import registered_by, registered_owners

    listed = tracing.with_failing_parts(platform, order_report.list_orders(platform))
    reports = {str(report.entry.order): report for report in listed}
    rows = [report.row() for report in reports.values()]
    if not owners and not all(row.owner for row in rows):
        owners.update(registered_owners(platform))
    rows = [row if row.owner else changed(row, owner=owners.get(row.order, "")) for row in rows]
    if with_costs:
        shown = [row for row in rows if matches(row, query)]
        rows = [
            changed(row, costs=_costs(platform, reports[row.order].sources.xr)) for row in shown
        ]
    chosen, _ = select(rows, query)
    unknown = [reports[row.order] for row in chosen if not row.owner and row.order not in owners]
    with InheritingThreads() as threads:
        looked_up = unknown[:_LOOKED_UP_MAX]
        names = threads.map(lambda report: registered_by(platform, report.entry), looked_up)
        owners.update(
            {str(report.entry.order): name for report, name in zip(looked_up, names, strict=True)}
        )
    return [
        reports[row.order].to_json(
            row if row.owner else changed(row, owner=owners.get(row.order, ""))
        )
        for row in chosen
    ]


def _costs(platform: Platform, xr: Manifest | None) -> OrderCost | None:
    return cost_of(platform, xr) if xr else None


class OrderChanges:
    """Notices changes of any order, from the moment it is made. Costs one watch per kind."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._changed, self._closed = threading.Event(), threading.Event()

    def wait(self, timeout_s: float) -> bool:
        """Wait until something has changed since the last call; False: not in time."""
        changed = self._changed.wait(timeout_s)
        self._changed.clear()
        return changed

    def _follow(self, kind: Kind, namespace: str | None) -> None:
        pause_s = _RETRY_S
        while not self._closed.is_set():
            try:
                none = self._cluster.list(kind, namespace=namespace, labels=_NOTHING)
                self._changed.set()  # whatever happened while nobody watched
                for _ in self._events(kind, namespace, none.resource_version):
                    pause_s = _RETRY_S
                    self._changed.set()
            except OrderkitError:
                if pause_s == _RETRY_S:
                    self._changed.set()  # whoever lists will see why
                self._closed.wait(pause_s)
                pause_s = min(2 * pause_s, _RETRY_LONGEST_S)

    def _events(self, kind: Kind, namespace: str | None, version: str) -> Iterator[None]:
        for event in self._cluster.watch(
            kind, namespace=namespace, since=version, timeout_s=_WATCH_S
        ):
            if self._closed.is_set():
                return
            if event.type != "BOOKMARK":
                yield

    def _start(self, kinds: Mapping[Kind, str | None]) -> None:
        for kind, namespace in kinds.items():
            threading.Thread(target=self._follow, args=(kind, namespace), daemon=True).start()

    @classmethod
    @contextmanager
    def of(cls, platform: Platform) -> Iterator[OrderChanges]:
        """
        Watch Applications, and XRs of the published kits, meanwhile.

        Raises:
            RemoteError: The platform does not answer.
        """
        changes = cls(platform.cluster)
        kits: Iterable[Kind] = (kit.kind for kit in published_pack(platform).kits())
        changes._start({APPLICATION: ARGOCD_NAMESPACE, **dict.fromkeys(kits)})
        try:
            yield changes
        finally:
            changes._closed.set()
