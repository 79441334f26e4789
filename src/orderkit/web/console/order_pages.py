"""
The pages that show orders: the list, and of one order the overview, parts, history and pulls.

``console`` lists them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.objects.kube_objects import Manifest, dig
from orderkit.core.order.order_selection import OrderQuery, counts, select
from orderkit.flows.order.part_reading import read_part
from orderkit.web.console.api_calls import ApiCalls, page, redirect, sentence
from orderkit.web.console.page_exchange import last
from orderkit.web.console.parts_tree import PartsTree, node_id
from orderkit.web.console.rendering import cut
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse
from orderkit.web.order_handlers import entry_for, readable_rows
from yamlfiles import yaml11

FILTERS = ("team", "kit", "owner", "phase", "text")
ACTIVITY_FILTERS = ("team", "person", "kit", "since")
_OPTIONAL = ("owner", "outputs", "cost", "expires")
"""Columns that stand there if an order has something in them."""
_PAGE, _DIGITS, _TEXT_MAX = 50, 7, 200_000


class OrderPages:
    """What there is to see of orders."""

    def __init__(self, api: ApiCalls) -> None:
        self._api = api

    def orders(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show the orders of the caller's teams that the address asks for, urgent ones first."""
        rows = [live.row for live in readable_rows(service, call)]
        filters = {name: call.query.get(name, "").strip() for name in FILTERS}
        team, kit, owner, phase, text = (filters[name] for name in FILTERS)
        query = OrderQuery(team=team, kit=kit, owner=owner, text=text, sort="phase")
        in_any_phase, _ = select(rows, query)
        chosen = [row for row in in_any_phase if phase in ("", row.phase)]
        number = call.query.get("page", "")
        at = max(1, int(number)) if number.isdecimal() and len(number) < _DIGITS else 1
        shown = [row.to_json() for row in chosen[_PAGE * (at - 1) : _PAGE * at]]
        return page(
            call,
            "orders.html",
            "Orders",
            rows=shown,
            total=len(rows),
            chosen=len(chosen),
            at=at,
            pages=-(-len(chosen) // _PAGE),
            filters=filters,
            has={name: any(row[name] for row in shown) for name in _OPTIONAL},
            choices={
                name: sorted({value for row in rows if (value := getattr(row, name))})
                for name in FILTERS[:3]
            },
            counts=counts(in_any_phase),
        )

    def activity(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show who did what to the orders of the caller's teams, newest first."""
        rows = [live.row for live in readable_rows(service, call)]
        filters = {name: call.query.get(name, "").strip() for name in ACTIVITY_FILTERS}
        asked = {name: text for name, text in filters.items() if text}
        if cursor := call.query.get("cursor", ""):
            asked["cursor"] = cursor
        problem = None
        try:
            told = self._api.ask(service, call, "listActivity", query=asked)
        except (InvalidInputError, NotFoundError) as error:
            told, problem = {"entries": [], "cursor": None}, sentence(error)
        return page(
            call,
            "activity.html",
            "Activity",
            status=400 if problem else 200,
            entries=told["entries"],
            cursor=told["cursor"],
            filters=filters,
            error=problem,
            choices={
                "team": sorted({row.team for row in rows}),
                "kit": sorted({row.kit for row in rows if row.kit}),
            },
            orders={row.order for row in rows},
        )

    def order(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show how an order is, what it gives, and what it waits for."""
        try:
            order = self.view(service, call)
            # after the view: what is seen later is never older than the phase beside it
            tree = PartsTree(self._trace(service, call))
        except (NotFoundError, RefusedError):
            # raises again if it never was, or is another team's; an ended order has its proof
            self._api.ask(service, call, "orderEnd")
            return redirect(f"/orders/{call.path['order']}/end")
        return page(
            call,
            "order.html",
            order["order"],
            order=order,
            tab="overview",
            waiting=tree.waiting(),
            decision=self._decision(service, call, order),
            parts=tree.counts(),
        )

    def _decision(
        self, service: Service, call: ServiceRequest, order: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        """Return what the caller may agree to, if the order waits for them."""
        if order["phase"] != "Waiting":
            return None
        query = {"order": order["order"]}
        listed = self._api.ask(service, call, "listApprovals", query=query)["approvals"]
        approvals = [entry for entry in listed if entry["yours"]]
        is_requester = call.who.proof is not None and order["owner"] == call.who.proof.ref
        return approvals[0] if approvals else {"order": order["order"]} if is_requester else None

    def reveal(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show a secret output once, to somebody who may change the order."""
        names = [last(call.body, "output")]
        answer = self._api.ask(service, call, "revealOutputs", body={"names": names})
        return self._page(service, call, "revealed.html", "", outputs=answer["outputs"])

    def part(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show one object of an order: its conditions, events and YAML."""
        entry, asked = entry_for(service, call, "read"), call.query.get("at", "")
        key, manifest = read_part(
            service.platform, entry.order, lambda key: node_id(key.to_json()) == asked
        )
        answer = self._api.ask(service, call, "orderEvents", query={"limit": "200"})
        events = [event for event in answer["events"] if node_id(event["object"]) == asked]
        return self._page(
            service,
            call,
            "part.html",
            "parts",
            part=key.to_json(),
            conditions=_conditions(manifest),
            events=events,
            text=cut(yaml11.dump_block(manifest), _TEXT_MAX),
        )

    def parts(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show an order's tree; what fails is unfolded."""
        answer = self._api.ask(service, call, "orderEvents", query={"limit": "200"})
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
        view: Mapping[str, Any] = self._api.ask(service, call, "viewOrder")
        return view

    def _trace(self, service: Service, call: ServiceRequest) -> Any:
        return self._api.ask(service, call, "traceOrder")


def _conditions(manifest: Manifest) -> list[dict[str, str]]:
    """Return an object's conditions as texts, whatever somebody wrote there."""
    conditions = dig(manifest, "status", "conditions")
    names = ("type", "status", "reason", "message", "lastTransitionTime")
    return [
        {name: str(entry.get(name) or "") for name in names}
        for entry in (conditions if isinstance(conditions, list) else ())
        if isinstance(entry, dict)
    ]
