"""
The pages of campaigns, read-only: a campaign acts for whoever runs the command.

``console`` lists them.
"""

from __future__ import annotations

from ground.errors import NotFoundError
from ground.suggestions import did_you_mean
from orderkit.web.console.api_calls import ApiCalls, page
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse


class CampaignPages:
    """What the ledger's records say, as the API answers it to the caller."""

    def __init__(self, api: ApiCalls) -> None:
        self._api = api

    def campaigns(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show all campaigns."""
        found = self._api.ask(service, call, "listCampaigns")["campaigns"]
        return page(call, "campaigns.html", "Campaigns", campaigns=found)

    def campaign(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show one campaign: its waves, and why orders failed or were left."""
        found = self._api.ask(service, call, "listCampaigns")["campaigns"]
        by_name = {campaign["name"]: campaign for campaign in found}
        name = call.path["campaign"]
        if name not in by_name:
            hint = did_you_mean(name, by_name, "/campaigns lists them")
            raise NotFoundError(f"there is no campaign '{name}'", hint=hint)
        return page(call, "campaign.html", name, campaign=by_name[name])
