"""
Handlers for campaigns; called by ``request_pipeline``, in ``operation_table``.

The service shows campaigns and carries none out: a campaign acts for whoever runs the command.
"""

from __future__ import annotations

from collections.abc import Collection

from ground.shapes import changed
from orderkit.core.campaign.view import CampaignView, WaveView
from orderkit.core.order import ledger
from orderkit.flows.campaign.showing import campaigns
from orderkit.flows.platform import ledger_snapshot
from orderkit.web.openapi_schemas import named
from orderkit.web.operations import Service, ServiceOperation, ServiceRequest, ServiceResponse


def get_campaigns(service: Service, call: ServiceRequest) -> ServiceResponse:
    """List campaigns; of their orders, callers see those of their teams by name."""
    teams = call.who.teams("read")
    views = campaigns(service.platform)
    if teams is not None:
        blobs = ledger_snapshot(service.platform).blobs
        own = {entry.order for entry in ledger.entries(blobs) if entry.team in teams}
        views = [shown_to(view, own) for view in views]
    return ServiceResponse(200, {"campaigns": [view.to_json() for view in views]})


def shown_to(view: CampaignView, own: Collection[str]) -> CampaignView:
    """Return a campaign as the members of some teams see it: others' orders are counted only."""
    waves = tuple(_wave_for(wave, own) for wave in view.waves)
    return changed(view, waves=waves, why="")  # it may name an order of others


def _wave_for(wave: WaveView, own: Collection[str]) -> WaveView:
    reasons = (
        changed(reason, orders=tuple(order for order in reason.orders if order in own))
        for reason in wave.reasons
    )
    return changed(wave, reasons=tuple(reason for reason in reasons if reason.orders))


def operations() -> tuple[ServiceOperation, ...]:
    """Return the operations on campaigns."""
    return (
        ServiceOperation(
            "listCampaigns",
            "GET",
            "/v1/campaigns",
            "List campaigns with their waves, as the ledger's records say.",
            get_campaigns,
            {200: ("The campaigns, by name.", named("Campaigns"))},
            "read",
            slow=True,
        ),
    )
