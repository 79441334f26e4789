"""
Redirect a browser from an order's page to a form of the portal, filled in with the values in Git.

A link that a person clicks carries no token. So the forms of an order are open to everybody who may
read its repository: if that is private, only to authenticated callers, or to all if platform.yaml
says ``openForms``. An order that has ended is told to the same people. The form's values are a
claim; the request that the form sends is checked. ``service`` makes pages for people of what
is refused.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from ground.errors import NotFoundError, RefusedError
from ground.names import OrderId, TeamName
from orderkit.core.kit.change_forms import (
    COMPONENT,
    END,
    LEASE,
    LEAST,
    ORDER_PICKED,
    change_named,
    form_data,
    template_name,
)
from orderkit.core.order import ledger
from orderkit.core.order.end_record import parse
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.change.least_values import least_value
from orderkit.flows.order.live_order import LiveOrder, find_living, read_xr
from orderkit.flows.platform import ledger_snapshot, read_text
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse


class EndedOrderError(NotFoundError):
    """The order was there and has ended."""

    http_status = 410


def get_change_form(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Redirect to the form of a change."""
    live = _living(service, call)
    if call.path["change"] == LEASE and live.kit.lease.is_declared:
        return _redirect(service, live, LEASE, {ORDER_PICKED: f"{COMPONENT}{live.entry.order}"})
    change = change_named(live.kit, call.path["change"])
    head = service.platform.forge.head(live.repository)
    if head is None:
        raise RefusedError(f"{live.repository} has no commit: nothing to change")
    xr_file = read_xr(service.platform, live, head)
    data = form_data(live.kit, change, order=live.entry.order, base=head, spec=xr_file.spec)
    if change.at_least is not None:
        least = least_value(service.platform, live, xr_file.xr, change.at_least)
        data[LEAST] = "not known" if least is None else f"{least}"
    return _redirect(service, live, change.name, data)


def get_end_form(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Redirect to the form of the end."""
    live = _living(service, call)
    return _redirect(service, live, END, {ORDER_PICKED: f"{COMPONENT}{live.entry.order}"})


def _redirect(
    service: Service, live: LiveOrder, change: str, data: dict[str, Any]
) -> ServiceResponse:
    name = template_name(live.kit.name, change)
    form = quote(json.dumps(data, ensure_ascii=False, separators=(",", ":")), safe="")
    url = f"{service.options.portal_url}/create/templates/default/{name}?formData={form}"
    return ServiceResponse(302, None, {"Location": url, "Cache-Control": "no-store"})


def _living(service: Service, call: ServiceRequest) -> LiveOrder:
    """
    Find the order of a link, if whoever follows it may know of it.

    Raises:
        NotFoundError: It does not exist, or they may not know whether it does.
        EndedOrderError: It has ended. RefusedError: It is ending, or cannot be changed.
    """
    order = call.path["order"]
    ledger_files = ledger_snapshot(service.platform)
    paths = ledger_files.blobs
    entry = ledger.living_order(paths, order) or ledger.ending_order(paths, order)
    tombstone = None if entry else next(reversed(ledger.tombstones(paths, order)), None)
    if tombstone is not None:
        entry = OrderEntry(TeamName(tombstone.parts[1]), OrderId(order))
    if entry is None or not _may_know(service, call, entry):
        raise NotFoundError(
            f"there is no order '{order}' whose forms are open",
            hint="if its repository is private: send a token, or set service.access.openForms",
        )
    call.audit_fields["team"] = entry.team
    if tombstone is not None:
        raise _ended(service, order, tombstone)
    if entry.end_path in paths:
        raise RefusedError(
            f"{order} is ending and cannot be changed any more",
            hint="open this link again in a while: it will say when the order has ended",
        )
    return find_living(service.platform, order, ledger_files)


def _may_know(service: Service, call: ServiceRequest, entry: OrderEntry) -> bool:
    if call.caller is not None:
        teams = call.caller.teams("read")
        if teams is None or entry.team in teams:
            return True
    repository = service.platform.forge.repo(entry.repository)
    return repository is not None and (service.options.open_forms or not repository.private)


def _ended(service: Service, order: str, path: PurePosixPath) -> EndedOrderError:
    text = read_text(service.platform, service.platform.ledger, path, "main")
    record = parse(text or "", name=str(path))
    kept = {
        "archive": "its repository is archived and keeps its history",
        "delete": f"its repository is {record.repository_is}",
    }[record.repository]
    return EndedOrderError(
        f"{order} ended on {record.ended_at[:10]}; {record.requester} asked for it",
        hint=f"what was made for it is gone; {kept}. To have one again, order it again",
    )
