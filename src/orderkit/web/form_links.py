"""
Redirect a browser from an order's page to a form of the portal, filled in with the values in Git.

A link that a person clicks carries no token. So the forms of an order are open to everybody who may
read its repository: if that is private, only to authenticated callers, or to all if platform.yaml
says ``openForms``. The form's values are a claim; the request that the form sends is checked.
Called by ``request_pipeline``, listed in ``operation_table``.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from orderkit.core.errors import NotFoundError, RefusedError
from orderkit.core.kit.change_forms import END, LEASE, ORDER, change_named, form_data, template_name
from orderkit.core.order import ledger
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.order.live_order import LiveOrder, find_living, read_xr
from orderkit.flows.platform import ledger_snapshot
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse
from orderkit.web.order_handlers import entry_for


def get_change_form(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Redirect to the form of a change."""
    live = _living(service, call)
    if call.path["change"] == LEASE and live.kit.lease.is_declared:
        return _redirect(service, live, LEASE, {ORDER: live.entry.order})
    change = change_named(live.kit, call.path["change"])
    head = service.platform.forge.head(live.repository)
    if head is None:
        raise RefusedError(f"{live.repository} has no commit: nothing to change")
    spec = read_xr(service.platform, live, head).spec
    data = form_data(live.kit, change, order=live.entry.order, base=head, spec=spec)
    return _redirect(service, live, change.name, data)


def get_end_form(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Redirect to the form of the end."""
    live = _living(service, call)
    return _redirect(service, live, END, {ORDER: live.entry.order})


def _redirect(
    service: Service, live: LiveOrder, change: str, data: dict[str, Any]
) -> ServiceResponse:
    name = template_name(live.kit.name, change)
    form = quote(json.dumps(data, ensure_ascii=False, separators=(",", ":")), safe="")
    url = f"{service.options.portal_url}/create/templates/default/{name}?formData={form}"
    return ServiceResponse(302, None, {"Location": url, "Cache-Control": "no-store"})


def _living(service: Service, call: ServiceRequest) -> LiveOrder:
    entry = _open_entry(service, call) if call.caller is None else entry_for(service, call, "read")
    return find_living(service.platform, entry.order)


def _open_entry(service: Service, call: ServiceRequest) -> OrderEntry:
    """Return an order whose values everybody may see; for others, raise as if it did not exist."""
    order = call.path["order"]
    entry = ledger.living_order(ledger_snapshot(service.platform).blobs, order)
    if entry is not None:
        repository = service.platform.forge.repo(entry.repository)
        if repository is not None and (service.options.open_forms or not repository.private):
            return entry
    raise NotFoundError(
        f"there is no order '{order}' whose forms are open",
        hint="if its repository is private: send a token, or set service.access.openForms",
    )
