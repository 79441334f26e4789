"""
The page of what waits for the approval of whoever is signed in, and their decision.

``console`` lists them.
"""

from __future__ import annotations

from typing import Any

from orderkit.web.console.api_calls import ApiCalls, page, redirect
from orderkit.web.console.page_exchange import last
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse

_DONE = {"waiting": "approved", "delivered": "delivered", "withdrawn": "declined"}


class ApprovalPages:
    """What waits for whom."""

    def __init__(self, api: ApiCalls) -> None:
        self._api = api

    def approvals(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show the orders that wait for the caller."""
        answer = self._api.ask(service, call, "listApprovals")
        return page(call, "approvals.html", "Approvals", approvals=answer["approvals"])

    def decide(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Agree to an order or a change, or decline it."""
        form = call.body
        body: dict[str, Any] = {"decision": last(form, "decision")}
        for name in ("head", "reason"):
            if text := last(form, name).strip():
                body[name] = text
        if number := last(form, "number"):
            body["number"] = int(number) if number.isascii() and number.isdigit() else 0
        decided = self._api.ask(service, call, "decideApproval", body=body)
        return redirect(f"/approvals?done={_DONE.get(decided['state'], 'approved')}")
