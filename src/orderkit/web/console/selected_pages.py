"""
Do one thing to several orders: extend their leases, change a field, or end them.

Each order is asked for by itself, through the operation that the page of that order uses, so each
is planned, judged and refused as if it were alone. What is refused stops no other order. For more
orders than a page can plan there are campaigns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ground.errors import InvalidInputError, NotFoundError, OrderkitError
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.kit.change_forms import BASE, ORDER, REASON, changes_of
from orderkit.core.kit.kit_file import KitChange
from orderkit.core.kit.model import Kit
from orderkit.core.order.change.change_page import filled_in
from orderkit.core.order.order_view import OrderRow
from orderkit.flows.platform import published_kit
from orderkit.web.console.html_form import PREFIX, FormPage, Values, with_problems
from orderkit.web.console.order_pages import quick
from orderkit.web.console.page_exchange import ApiCalls, last, page, sentence
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse
from orderkit.web.order_handlers import readable_rows

SELECTED_MAX = 20
"""Orders of one action: all of them are planned while somebody waits for the page."""
_AT_ONCE = 4
_TITLES = {"extend": "Extend", "change": "Change a field of", "end": "End"}


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of one order, or would."""

    order: str
    text: str
    plan: Mapping[str, Any] | None = None
    href: str = ""
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Field:
    """A field that may be changed, and the change of the kit that it belongs to."""

    change: KitChange
    form: FormPage
    name: str
    title: str

    def body(self, values: Values) -> dict[str, Any]:
        return {"change": self.change.name, "values": {self.name: values.get(self.name)}}


class SelectedPages:
    """Actions on orders that were selected in the list."""

    def __init__(self, api: ApiCalls) -> None:
        self._api = api

    def submit(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show the form of an action, its plan for each order, or what became of each."""
        do, step = last(call.body, "do"), last(call.body, "step")
        actions = {"extend": self._extend, "change": self._change, "end": self._end}
        if do not in actions:
            raise InvalidInputError("do", do, "is no action", hint=f"one of {', '.join(actions)}")
        rows = _selected(service, call)
        try:
            return actions[do](service, call, rows, step)
        except OrderkitError as error:
            return _shown(call, rows, do, error=error)

    def _extend(
        self, service: Service, call: ServiceRequest, rows: Sequence[OrderRow], step: str
    ) -> ServiceResponse:
        if step != "go":
            return _shown(call, rows, "extend")
        body = {name: last(call.body, name).strip() for name in ("by", "reason")}
        if not body["reason"]:
            raise InvalidInputError("reason", "", "is missing", hint="say why; Git keeps it")

        def extend(asked: ServiceRequest, row: OrderRow) -> _Outcome:
            lease = self._api.ask(service, asked, "extendLease", body=body)
            return _Outcome(
                row.order, f"expires {lease['expires']}", href=f"/orders/{row.order}/lease"
            )

        return _shown(call, rows, "extend", outcomes=_each(call, rows, extend), is_done=True)

    def _change(
        self, service: Service, call: ServiceRequest, rows: Sequence[OrderRow], step: str
    ) -> ServiceResponse:
        kit = _one_kit(service, rows)
        fields = _fields_of(kit)
        chosen = fields.get(last(call.body, "field"))
        offered = [{"name": name, "title": field.title} for name, field in fields.items()]
        if chosen is None:
            return _shown(call, rows, "change", offered=offered)
        values: Values = {}
        more: dict[str, Any] = {"offered": offered, "field": last(call.body, "field")}
        try:
            if step:
                values = chosen.form.read(call.body)
            body = chosen.body(values)
            shown = [f for f in chosen.form.fields(values) if f["name"] == PREFIX + chosen.name]
            if step == "go":
                reason = last(call.body, "reason")
                body |= {"reason": reason} if reason else {}
                outcomes = _each(
                    call, rows, lambda asked, row: self._changed(service, asked, row, body)
                )
                return _shown(
                    call, rows, "change", fields=shown, outcomes=outcomes, is_done=True, **more
                )
            outcomes = (
                _each(call, rows, lambda asked, row: self._planned(service, asked, row, body))
                if step
                else []
            )
        except OrderkitError as error:
            shown = [f for f in chosen.form.fields(values) if f["name"] == PREFIX + chosen.name]
            return _shown(call, rows, "change", fields=shown, error=error, **more)
        return _shown(call, rows, "change", fields=shown, outcomes=outcomes, **more)

    def _planned(
        self, service: Service, asked: ServiceRequest, row: OrderRow, body: Mapping[str, Any]
    ) -> _Outcome:
        plan = self._api.ask(service, asked, "planChange", body=body)
        return _Outcome(row.order, _sum(plan["summary"]), plan=plan["plan"])

    def _changed(
        self, service: Service, asked: ServiceRequest, row: OrderRow, body: Mapping[str, Any]
    ) -> _Outcome:
        answer = self._api.ask(service, asked, "changeOrder", body=body)
        number = (answer["pull"] or {}).get("number")
        href = f"/orders/{row.order}" + (f"/pulls/{number}" if number else "")
        return _Outcome(
            row.order, answer["state"] + (f" as #{number}" if number else ""), href=href
        )

    def _end(
        self, service: Service, call: ServiceRequest, rows: Sequence[OrderRow], step: str
    ) -> ServiceResponse:
        if step != "go":
            return _shown(call, rows, "end")
        phrase = _phrase(rows)
        if last(call.body, "confirm").strip() != phrase:
            typed = last(call.body, "confirm")
            raise InvalidInputError("confirm", typed, f"is not '{phrase}'", hint=f"type {phrase}")
        reason = last(call.body, "reason")

        def end(asked: ServiceRequest, row: OrderRow) -> _Outcome:
            body = {"confirm": row.order, **({"reason": reason} if reason else {})}
            answer = self._api.ask(quick(service), asked, "endOrder", body=body)
            return _Outcome(row.order, answer["state"], href=f"/orders/{row.order}/end")

        return _shown(call, rows, "end", outcomes=_each(call, rows, end), is_done=True)


def _selected(service: Service, call: ServiceRequest) -> list[OrderRow]:
    """
    Return the rows of the orders that the form names.

    Raises:
        InvalidInputError: None is selected, or too many. NotFoundError: one is not the caller's.
    """
    names = list(dict.fromkeys(call.body.get("order") or ()))
    if not names:
        hint = "go back and tick the orders in the list"
        raise InvalidInputError("order", "", "no order is selected", hint=hint)
    if len(names) > SELECTED_MAX:
        hint = f"select at most {SELECTED_MAX}, or use 'orderkit campaign'"
        raise InvalidInputError("order", len(names), "are too many orders for a page", hint=hint)
    rows = {live.row.order: live.row for live in readable_rows(service, call)}
    for name in names:
        if name not in rows:
            raise NotFoundError(f"you have no order '{name[:63]}'", hint="open the list again: /")
    return [rows[name] for name in names]


def _one_kit(service: Service, rows: Sequence[OrderRow]) -> Kit:
    kits = sorted({row.kit for row in rows})
    if len(kits) > 1:
        raise InvalidInputError(
            "order", ", ".join(kits), "are several kits, which have different fields",
            hint="select orders of one kit: the list has a filter for it",
        )  # fmt: skip
    return published_kit(service.platform, kits[0])


def _fields_of(kit: Kit) -> dict[str, _Field]:
    """Return the fields that the kit's changes have, by their parameters."""
    fields: dict[str, _Field] = {}
    for change in changes_of(kit):
        form = FormPage(filled_in(kit, change), {ORDER: "", BASE: "", REASON: ""})
        for shown in form.fields({}):
            name = shown["name"].removeprefix(PREFIX)
            fields.setdefault(name, _Field(change, form, name, str(shown["title"])))
    return fields


def _each(
    call: ServiceRequest,
    rows: Sequence[OrderRow],
    act: Callable[[ServiceRequest, OrderRow], _Outcome],
) -> list[_Outcome]:
    """Do something to each order; note in the audit log what became of each."""

    def tried(row: OrderRow) -> _Outcome:
        asked = replace(call, path={"order": row.order}, audit_fields={})
        try:
            return act(asked, row)
        except OrderkitError as error:
            return _Outcome(
                row.order, str(error), error=sentence(error), href=f"/orders/{row.order}"
            )

    with InheritingThreads(_AT_ONCE) as threads:
        outcomes = list(threads.map(tried, rows))
    told = (f"{o.order} {'refused' if o.error else o.text}" for o in outcomes)
    call.audit_fields["orders"] = "; ".join(told)
    return outcomes


def _phrase(rows: Sequence[OrderRow]) -> str:
    return rows[0].order if len(rows) == 1 else f"end {len(rows)} orders"


def _sum(summary: Mapping[str, int]) -> str:
    words = ("added", "modified", "removed")
    return ", ".join(f"{summary[word]} {word}" for word in words if summary[word]) or "no change"


def _shown(
    call: ServiceRequest,
    rows: Sequence[OrderRow],
    do: str,
    *,
    outcomes: Sequence[_Outcome] = (),
    is_done: bool = False,
    error: OrderkitError | None = None,
    fields: Sequence[Values] = (),
    **more: Any,
) -> ServiceResponse:
    count = f"{len(rows)} order{'s' * (len(rows) != 1)}"
    names = ("order", "text", "plan", "href", "error")
    return page(
        call,
        "selected.html",
        f"{_TITLES[do]} {count}",
        status=error.http_status if error else 200,
        rows=[row.to_json() for row in rows],
        action=do,
        phrase=_phrase(rows),
        outcomes=[{name: getattr(outcome, name) for name in names} for outcome in outcomes],
        is_done=is_done,
        entered={name: last(call.body, name) for name in ("by", "reason", "confirm")},
        error=sentence(error) if error else None,
        **{"offered": [], "field": "", **more},
        fields=with_problems(fields, sentence(error) if error else None),
    )
