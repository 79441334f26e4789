"""
The pages that show orders: the list, and of one order the overview, parts, history and pulls.

Called by ``request_pipeline``; ``console`` lists them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderkit.web.console.api_calls import ApiCalls, page
from orderkit.web.console.parts_tree import PartsTree
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse

FILTERS = ("team", "kit", "owner", "phase", "text")
_OPTIONAL = ("owner", "outputs", "cost", "expires")
"""Columns that stand there if an order has something in them."""
_ROW: Mapping[str, Any] = {
    "since": None, "created": None, "owner": None, "outputs": [], "facts": [], "attention": [],
    "parts": {"ready": 0, "total": 0, "failing": None}, "cost": None, "expires": None,
    "pulls": [], "changes": [], "lastChange": None, "values": {},
}  # fmt: skip


class OrderPages:
    """What there is to see of orders."""

    def __init__(self, api: ApiCalls) -> None:
        self._api = api

    def orders(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show the orders of the caller's teams, filtered as the address says."""
        rows = [_row(row) for row in self._api.ask(service, call, "listOrders")["orders"]]
        filters = {name: call.query.get(name, "").strip() for name in FILTERS}
        shown = [row for row in rows if _matches(row, filters)]
        return page(
            call,
            "orders.html",
            "Orders",
            rows=shown,
            total=len(rows),
            filters=filters,
            has={name: any(row[name] for row in shown) for name in _OPTIONAL},
            choices={name: sorted({r[name] for r in rows if r[name]}) for name in FILTERS[:3]},
            counts=_counts(row for row in rows if _matches(row, {**filters, "phase": ""})),
        )

    def order(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show how an order is, what it gives, and what it waits for."""
        tree = PartsTree(self._trace(service, call))
        values = {"waiting": tree.waiting(), "parts": tree.counts()}
        return self._page(service, call, "order.html", "overview", **values)

    def parts(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show an order's tree; what fails is unfolded."""
        path = {"order": call.path["order"]}
        answer = self._api.ask(service, call, "orderEvents", path=path, query={"limit": "200"})
        tree = PartsTree(self._trace(service, call), answer["events"])
        values = {"root": tree.root, "open": tree.open(), "parts": tree.counts()}
        return self._page(service, call, "parts.html", "parts", **values)

    def history(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show who changed what, when and why."""
        entries = self._api.ask(service, call, "orderHistory", query={"limit": "100"})["entries"]
        return self._page(service, call, "history.html", "history", entries=entries)

    def _page(
        self, service: Service, call: ServiceRequest, template: str, tab: str, **values: Any
    ) -> ServiceResponse:
        order = self.view(service, call)
        return page(call, template, order["order"], order=order, tab=tab, **values)

    def view(self, service: Service, call: ServiceRequest) -> Mapping[str, Any]:
        """Return what the header of every page of an order shows."""
        path = {"order": call.path["order"]}
        return _row(self._api.ask(service, call, "getOrder", path=path))

    def _trace(self, service: Service, call: ServiceRequest) -> Any:
        return self._api.ask(service, call, "traceOrder", path={"order": call.path["order"]})


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**_ROW, **row, "remedy": row.get("remedy", row.get("advice", ""))}


def _matches(row: Mapping[str, Any], filters: Mapping[str, str]) -> bool:
    exact = all(row[name] == filters[name] for name in FILTERS[:4] if filters[name])
    text = filters["text"].lower()
    haystack = " ".join(str(row[name]) for name in ("order", "team", "kit", "owner", "reason"))
    return exact and text in haystack.lower()


def _counts(rows: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["phase"]] = counts.get(row["phase"], 0) + 1
    return counts
