"""
Campaigns that Jobs of a real cluster carry out, over one order of each team.

Called by the journeys that differ only in who runs the Pods: our runner or a real node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml
from bays import EVE
from commands import Command

from ground.names import OrderId, TeamName
from orderkit.core.campaign.definition import CAMPAIGN_TRAILER
from orderkit.core.campaign.record import CampaignRecord
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.campaign.campaign_reads import read_campaign
from orderkit.flows.order import placing
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until

_THREADS = 4
"""Orders that are placed at the same time."""


def place_orders(
    platform: Platform, teams: Sequence[str], *, wait_s: float
) -> tuple[OrderEntry, ...]:
    """Place an order of each team, and wait until each is ready."""

    def place(team: str) -> OrderEntry:
        wanted = placing.TaskRequest("garage", {"team_name": team, "stage": "stage1"}, EVE)
        done = placing.order(platform, wanted, wait_s=wait_s)
        return OrderEntry(TeamName(done.team), OrderId(done.order))

    with ThreadPoolExecutor(_THREADS) as threads:
        return tuple(threads.map(place, teams))


@dataclass(frozen=True)
class JobCampaigns:
    """The campaigns over these orders of a platform."""

    platform: Platform
    orderkit: Command
    folder: Path
    """Where their files are written."""
    entries: tuple[OrderEntry, ...]
    wait_s: float
    pods: Callable[[], str]
    """What is known of the Pods, for the message of a campaign that takes too long."""

    def start(self, name: str, stage: str) -> CampaignRecord:
        """Start a campaign over all orders in the cluster: a canary of one, then two shards."""
        campaign = {
            "apiVersion": "orderkit.dev/v1alpha1",
            "kind": "Campaign",
            "metadata": {"name": name},
            "spec": {
                "reason": "to see it in a real cluster",
                "what": {"fields": {"set": {"stage": stage}}},
                "which": {"kit": "garage"},
                "how": "direct",
                "waves": [{"name": "canary", "orders": [str(self.entries[0].order)]}],
                "gates": {"ready": "3m"},
            },
        }
        file = self.folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump(campaign))
        begun = self.orderkit("campaign", "start", str(file), "--in-cluster", "--shards=2")
        assert begun.code == 0, begun.err
        return self.record(name)

    def record(self, name: str) -> CampaignRecord:
        found = read_campaign(self.platform, name).record
        assert found is not None
        return found

    def wait_done(self, name: str) -> CampaignRecord:
        """Wait until a campaign is done: all orders are ready, with one commit of it in each."""
        record = until(
            self.platform.clock, lambda: self.record(name), lambda found: found.state == "done",
            timeout_s=self.wait_s, goal="the campaign is done",
            why_not=lambda found: f"{found.state}; {self.pods()}",
        )  # fmt: skip
        results = [out.result for wave in record.waves for out in wave.outcomes.values()]
        assert results == ["ready"] * len(self.entries)
        for entry in self.entries:
            commits = self.platform.forge.commits(entry.repository, limit=50)
            assert [c.trailers.get(CAMPAIGN_TRAILER) for c in commits].count(record.id) == 1
        return record
