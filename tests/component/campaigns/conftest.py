"""A platform whose garages have fields to change directly, and one campaign after another."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import changingpack
import pytest
import yaml
from bays import EVE, Bay, new_bay
from commands import Command, in_process

from orderkit.core.campaign.definition import CAMPAIGN_TRAILER, parse
from orderkit.core.campaign.record import CampaignRecord
from orderkit.flows.campaign import starting
from orderkit.flows.campaign.campaign_reads import read_campaign
from orderkit.flows.campaign.running import run
from orderkit.flows.order import order_report
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import Commit
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run the changing pack; only paint is reviewed."""
    folder = tmp_path_factory.mktemp("campaigns")
    pack = changingpack.changing_pack(folder / "pack")
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), ())
    with running(request, on_step=lambda *_: None) as found:
        yield found


@pytest.fixture
def platform(site: Running) -> Platform:
    return site.platform


@pytest.fixture
def orderkit(site: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``orderkit ARGUMENTS`` against the platform."""
    return in_process(site.embedded.state.folder / "platform.yaml", capsys)


def ready(platform: Platform, *orders: str) -> None:
    """Wait until orders are Ready."""

    def waiting() -> list[str]:
        reports = {report.entry.order: report for report in order_report.list_orders(platform)}
        return [order for order in orders if not reports[order].state.ready]  # type: ignore[index]

    until(SystemClock(), waiting, lambda left: not left, timeout_s=60, goal="all orders Ready")


@dataclass(frozen=True)
class Desk:
    """Writes, starts and runs a campaign over its own orders."""

    platform: Platform
    folder: Path
    bays: tuple[Bay, ...]
    name: str

    @property
    def orders(self) -> list[str]:
        return [bay.order for bay in self.bays]

    def file(self, fields: dict[str, Any] | None = None, **spec: Any) -> Path:
        """Write the file of a campaign over the orders."""
        document = {
            "apiVersion": "orderkit.dev/v1alpha1",
            "kind": "Campaign",
            "metadata": {"name": self.name},
            "spec": {
                "reason": "because",
                "what": {"fields": fields or {"set": {"stage": "stage2"}}},
                "which": {"kit": "garage", "orders": self.orders},
                **spec,
            },
        }
        path = self.folder / f"{self.name}.yaml"
        path.write_text(yaml.safe_dump(document))
        return path

    def start(self, fields: dict[str, Any] | None = None, **spec: Any) -> CampaignRecord:
        """Put a campaign into the ledger and start it; nothing is done yet."""
        data = self.file(fields, **spec).read_bytes()
        text = starting.CampaignText(parse(data, name=self.name), data)
        starting.put(self.platform, text, EVE)
        return starting.start(self.platform, self.name, EVE)

    def run(self, **more: Any) -> CampaignRecord:
        platform = more.pop("platform", self.platform)
        return run(platform, self.name, EVE, timeout_s=90, **more)

    def record(self) -> CampaignRecord:
        found = read_campaign(self.platform, self.name).record
        assert found is not None
        return found

    def results(self) -> dict[str, str]:
        """Return what became of each order, by the record."""
        waves = self.record().waves
        return {order: out.result for wave in waves for order, out in wave.outcomes.items()}

    def commits(self, bay: Bay) -> list[Commit]:
        """Return the campaign's commits in an order, newest first."""
        id_ = self.record().id
        return [c for c in bay.commits() if c.trailers.get(CAMPAIGN_TRAILER) == id_]

    def ledger_commits(self) -> list[str]:
        """Return what the ledger's history says of the campaign, oldest first."""
        history = self.platform.forge.commits(self.platform.ledger, limit=200)
        found = [c.summary for c in history if c.summary.startswith(f"campaign {self.name}:")]
        return found[::-1]


NewDesk = Callable[..., Desk]


@pytest.fixture
def desk(platform: Platform, tmp_path: Path) -> NewDesk:
    """Return what makes orders and a campaign for them."""

    def made(count: int, team: str = "") -> Desk:
        quiet = replace(platform, webhook=None)
        bays = tuple(new_bay(quiet, team) for _ in range(count))
        ready(platform, *(bay.order for bay in bays))
        return Desk(platform, tmp_path, bays, f"mend-{next(_numbers):03d}")

    return made
