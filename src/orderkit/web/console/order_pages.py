"""
The pages that show orders: the list, and of one order the overview, parts, history and pulls.

`EndPages` end an order: what goes and what stays, the confirmation, the steps, and the proof. An
ended order keeps this page: its proof is in the ledger.

`PartsTree` (which parts of an order to unfold, how many are ready, what it waits for) is made from
the answers of ``traceOrder`` and ``orderEvents``.

`LeasePages` say how long an order lives, with a form to extend its lease.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ground.errors import InvalidInputError, NotFoundError, OrderkitError, RefusedError
from ground.names import LABEL, check_label
from ground.objects.kube_objects import Manifest, dig
from orderkit.core.durations import PATTERN as DURATION
from orderkit.core.durations import parse_duration
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.kit.change_forms import TAKE
from orderkit.core.order.order_view import SORTS, OrderQuery, OrderRow, counts, select
from orderkit.flows.order.order_objects import read_part
from orderkit.ports.forge import OpenPullRef
from orderkit.web.console.page_exchange import (
    ApiCalls,
    cookie,
    last,
    own_path,
    page,
    paged,
    redirect,
    sentence,
)
from orderkit.web.console.rendering import cut
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse
from orderkit.web.order_handlers import entry_for, readable_rows
from yamlfiles import yaml11

Node = dict[str, Any]
_EVENTS_MAX = 5


class PartsTree:
    """`root` is the Application; every node has an `id` and its newest `events`."""

    def __init__(self, trace: Mapping[str, Any], events: Sequence[Mapping[str, Any]] = ()) -> None:
        by_object: dict[str, list[Mapping[str, Any]]] = {}
        for event in events:
            by_object.setdefault(node_id(event["object"]), []).append(event)
        self.root = _node(trace["tree"], by_object)
        self._is_ready = trace["failing"] is None

    def walk(self) -> Iterator[Node]:
        """Yield every node, each before those below it."""
        yield from _walk(self.root)

    def parts(self) -> list[Node]:
        """Return what the order's XR composes, at any depth."""
        return [part for xr in self.root["children"] for part in _walk(xr) if part is not xr]

    def counts(self) -> dict[str, int]:
        """Return how many parts there are, and how many are ready."""
        parts = self.parts()
        return {"ready": sum(not _is_unready(part) for part in parts), "total": len(parts)}

    def waiting(self) -> list[Node]:
        """Return what is not ready, the deepest first: an XR waits for what it composes."""
        if self._is_ready:
            return []
        unready = [node for node in self.walk() if _is_unready(node)]
        deepest = [
            node for node in unready if not any(_is_unready(child) for child in node["children"])
        ]
        return [node for node in deepest if node is not self.root] or unready[:1]

    def open(self) -> list[str]:
        """Return the ids of the nodes to unfold: what leads to a failing one, else the first."""
        ids = [self.root["id"], *(child["id"] for child in self.root["children"])]
        return ids + [
            node["id"] for node in self.walk() if any(_is_unready(part) for part in _walk(node))
        ]


def node_id(key: Mapping[str, Any]) -> str:
    """Return a name for an object that an address can hold."""
    text = "/".join(str(key.get(n) or "") for n in ("apiVersion", "kind", "namespace", "name"))
    return f"part-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _node(node: Mapping[str, Any], events: Mapping[str, Sequence[Any]]) -> Node:
    children = [_node(child, events) for child in node["children"]]
    name = node_id(node)
    return {**node, "id": name, "events": events.get(name, ())[:_EVENTS_MAX], "children": children}


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in node["children"]:
        yield from _walk(child)


def _is_unready(node: Node) -> bool:
    return bool(node["reason"]) or "False" in (node["synced"], node["ready"])


FILTERS = ("team", "kit", "owner", "phase", "text", "cost", "expires", "only")
ACTIVITY_FILTERS = ("team", "person", "kit", "since")
_OPTIONAL = ("owner", "outputs", "cost", "expires")
"""Columns that stand there if an order has something in them."""
_DIGITS, _TEXT_MAX = 7, 200_000
PULLS_KEPT_S = 30.0
FAVOURITES_MAX = 40
"""Favourites of a browser: their ids fill a cookie."""
_YEAR_S = 365 * 86_400


class OrderPages:
    """What there is to see of orders."""

    def __init__(self, api: ApiCalls) -> None:
        self._api = api
        self._pulls: dict[str, tuple[float, tuple[OpenPullRef, ...]]] = {}
        """By team: when its open pull requests were read, and which there were."""

    def orders(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show the orders of the caller's teams that the address asks for, urgent ones first."""
        rows = [live.row for live in readable_rows(service, call)]
        filters = {name: call.query.get(name, "").strip() for name in FILTERS}
        team, kit, owner, phase, text, cost, expires, only = (filters[name] for name in FILTERS)
        favourites = set(_favourites(call))
        sort = call.query.get("sort", "")
        sort = sort if sort.removeprefix("-") in SORTS else ""
        query = OrderQuery(team=team, kit=kit, owner=owner, text=text, sort=sort or "phase")
        now = service.platform.clock.now()
        matching = (
            row
            for row in rows
            if _costs(row, cost)
            and _expires(row, expires, now)
            and (not only or row.order in favourites)
        )
        in_any_phase, _ = select(matching, query)
        chosen = [row for row in in_any_phase if phase in ("", row.phase)]
        of_page, at, pages = paged(call, chosen)
        shown = [row.to_json() for row in of_page]
        return page(
            call,
            "orders.html",
            "Orders",
            rows=shown,
            total=len(rows),
            chosen=len(chosen),
            at=at,
            pages=pages,
            filters=filters,
            sort=sort,
            pulls=self._open_pulls(service, shown),
            has={name: any(row[name] for row in shown) for name in _OPTIONAL},
            choices={
                name: sorted({value for row in rows if (value := getattr(row, name))})
                for name in FILTERS[:3]
            },
            mine=call.who.proof.ref if call.who.proof else "",
            counts=counts(in_any_phase),
            favourites=[row.order for row in rows if row.order in favourites],
        )

    def favourite(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Make an order a favourite of this browser, or no favourite any more."""
        del service
        order, before = check_label("favourite", last(call.body, "favourite")), _favourites(call)
        kept = [name for name in before if name != order]
        if order not in before:
            kept = [order, *kept][:FAVOURITES_MAX]
        name, secure = call.headers["favourites-name"], bool(call.headers["secure"])
        kept_line = cookie(name, ".".join(kept), secure=secure, max_age_s=_YEAR_S)
        address = f"{own_path(last(call.body, 'back'))}#star-{order}"
        return redirect(address, **{"Set-Cookie": kept_line})

    def _open_pulls(
        self, service: Service, rows: Sequence[Mapping[str, Any]]
    ) -> dict[str, list[int]]:
        """Return the numbers of open proposals by order; one request for each team of the page."""

        def read(team: str) -> tuple[OpenPullRef, ...]:
            read_s, known = self._pulls.get(team, (float("-inf"), ()))
            if time.monotonic() - read_s > PULLS_KEPT_S:
                try:
                    known = tuple(service.platform.forge.open_pulls(team))
                except OrderkitError:
                    known = ()  # the list is better without marks than not at all
                self._pulls[team] = (time.monotonic(), known)
            return known

        numbers: dict[str, list[int]] = {}
        with InheritingThreads() as threads:
            for refs in threads.map(read, sorted({str(row["team"]) for row in rows})):
                for ref in refs:
                    numbers.setdefault(ref.repo.name, []).append(ref.number)
        return {order: sorted(found) for order, found in numbers.items()}

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
        return self._page(service, call, "history.html", "history", entries=_folded(entries))

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


def _folded(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return a history in which neighbouring notes of the lease are one entry with `folded`."""
    shown: list[Mapping[str, Any]] = []
    for entry in entries:
        if not entry["leaseNote"]:
            shown.append({**entry, "folded": []})
        elif shown and shown[-1]["folded"]:
            shown[-1]["folded"].append(entry)
        else:
            shown.append({"folded": [entry]})
    return shown


def _favourites(call: ServiceRequest) -> list[str]:
    """Return the ids in the cookie of this browser, the newest first; they may be of any order."""
    names = call.headers.get("favourites", "").split(".")
    return [name for name in names if LABEL.fullmatch(name)][:FAVOURITES_MAX]


def _costs(row: OrderRow, least: str) -> bool:
    """Say whether an order costs at least so much a month; what is not a number filters nothing."""
    if least == "unknown":
        return row.costs is None or row.costs.monthly is None
    if not least.isdecimal() or len(least) > _DIGITS:
        return True
    most = row.costs.most if row.costs else None
    return most is not None and most >= int(least)


def _expires(row: OrderRow, within: str, now: datetime) -> bool:
    """Say whether an order expires within a duration, or never."""
    if within == "never":
        return not row.expires
    if not re.fullmatch(DURATION, within):
        return True
    latest = now + parse_duration(within, field="expires")
    try:
        return bool(row.expires) and datetime.fromisoformat(row.expires) <= latest
    except ValueError:
        return False


def _conditions(manifest: Manifest) -> list[dict[str, str]]:
    """Return an object's conditions as texts, whatever somebody wrote there."""
    conditions = dig(manifest, "status", "conditions")
    names = ("type", "status", "reason", "message", "lastTransitionTime")
    return [
        {name: str(entry.get(name) or "") for name in names}
        for entry in (conditions if isinstance(conditions, list) else ())
        if isinstance(entry, dict)
    ]


_ANSWER_S = 11.0
"""An end reports after a second; the page shows its steps from then on."""


def quick(service: Service) -> Service:
    """Return a service whose ends are answered while they go on."""
    return replace(service, options=replace(service.options, answer_s=_ANSWER_S))


class EndPages:
    """The ends of one console's orders."""

    def __init__(self, api: ApiCalls, orders: OrderPages) -> None:
        self._api, self._orders = api, orders

    def show(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show what an end would do, how far it is, or its proof."""
        return self._shown(service, call)

    def submit(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """End an order whose id was typed, or continue an end that was cut off."""
        form = call.body
        taken = {
            name.removeprefix(TAKE): True for name in form if name.startswith(TAKE) and form[name]
        }
        body: dict[str, Any] = {"confirm": last(form, "confirm").strip(), "take": taken}
        if reason := last(form, "reason"):
            body["reason"] = reason
        try:
            self._api.ask(quick(service), call, "endOrder", body=body)
        except OrderkitError as error:
            return self._shown(service, call, error=error)
        return redirect(f"/orders/{call.path['order']}/end")

    def _shown(
        self, service: Service, call: ServiceRequest, *, error: OrderkitError | None = None
    ) -> ServiceResponse:
        problem = sentence(error) if error else None
        status = error.http_status if error else 200
        title = f"End of {call.path['order']}"
        try:
            end = self._api.ask(service, call, "orderEnd")
        except NotFoundError:
            end = None  # it lives, or never did; the next answer says which
        if end is not None:
            return page(call, "ended.html", title, status=status, end=end, error=problem)
        order = self._orders.view(service, call)
        trace = self._api.ask(service, call, "traceOrder")
        preview = self._api.ask(service, call, "endPreview")
        takes = [{**take, "name": f"{TAKE}{take['name']}"} for take in preview["takes"]]
        return page(
            call,
            "end.html",
            title,
            status=status,
            tab="end",
            parts=PartsTree(trace).parts(),
            error=problem,
            **{**preview, "order": order, "takes": takes},
        )


class LeasePages:
    """The leases of one console's orders."""

    def __init__(self, api: ApiCalls, orders: OrderPages) -> None:
        self._api, self._orders = api, orders

    def show(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show when the order expires, and what its kit allows."""
        return self._shown(service, call)

    def submit(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Extend the lease, or say why not beside the form."""
        body = {name: last(call.body, name).strip() for name in ("by", "reason")}
        try:
            self._api.ask(service, call, "extendLease", body=body)
        except OrderkitError as error:
            return self._shown(service, call, error=error)
        return redirect(f"/orders/{call.path['order']}?done=extended")

    def _shown(
        self, service: Service, call: ServiceRequest, *, error: OrderkitError | None = None
    ) -> ServiceResponse:
        order = self._orders.view(service, call)
        return page(
            call,
            "lease.html",
            f"Lease of {call.path['order']}",
            status=error.http_status if error else 200,
            order=order,
            tab="lease",
            lease=self._api.ask(service, call, "orderLease"),
            error=sentence(error) if error else None,
            entered={name: last(call.body, name) for name in ("by", "reason")},
        )
