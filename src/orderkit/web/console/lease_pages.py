"""The page of an order's lease: how long it lives, and a form to extend it."""

from __future__ import annotations

from ground.errors import OrderkitError
from orderkit.web.console.api_calls import ApiCalls, page, redirect, sentence
from orderkit.web.console.order_pages import OrderPages
from orderkit.web.console.page_exchange import last
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse


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
