"""
End an order: what goes and what stays, the confirmation, the steps, and the proof.

An ended order keeps this page: its proof is in the ledger. ``console`` lists them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ground.errors import NotFoundError, OrderkitError
from orderkit.core.kit.change_forms import TAKE
from orderkit.web.console.api_calls import ApiCalls, page, redirect, sentence
from orderkit.web.console.order_pages import OrderPages
from orderkit.web.console.page_exchange import last
from orderkit.web.console.parts_tree import PartsTree
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse

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
