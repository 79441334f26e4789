"""An embedded platform whose garages have a lease, shared by this folder, and a clock to turn."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

import pytest
import yaml
from commands import Command, in_process
from packcopies import copied_pack

from ground.names import OrderId, TeamName
from ground.objects.kube_objects import annotations_of
from orderkit.core.order.lease import EXPIRES_AT, time_text
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.lease.extending import read_leased
from orderkit.flows.lease.sweeping import SweepRequest, SweptOrder, sweep
from orderkit.flows.order.placing import TaskRequest, order
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.flows.team.teams import add_team
from orderkit.ports.clock import SystemClock
from orderkit.ports.requesters import Requester
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

KIT = PurePosixPath("templates/garage/kit.yaml")
LEASE = {
    "default": "3d",
    "maximum": "10d",
    "extend": {"by": "4d", "times": 20},
    "warn": ["24h", "1h"],
    "except": ["forever"],
}


class TurnedClock(SystemClock):
    """The machine's clock, moved by as much as a test says."""

    def __init__(self) -> None:
        self.moved = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.moved


@pytest.fixture(scope="package")
def running_platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run the reference pack with leases of three days."""
    pack = copied_pack(tmp_path_factory.mktemp("leased"))
    kit = yaml.safe_load((pack / KIT).read_text())
    kit["spec"]["lease"] = LEASE
    kit["spec"]["changes"][0]["how"] = "direct"
    (pack / KIT).write_text(yaml.safe_dump(kit, sort_keys=False))
    state = tmp_path_factory.mktemp("platform") / "state"
    request = EmbeddedRunRequest(state, pack, Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as found:
        yield found


@pytest.fixture
def orderkit(running_platform: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run ``orderkit ARGUMENTS`` against the shared platform."""
    return in_process(running_platform.embedded.state.folder / "platform.yaml", capsys)


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock()


@pytest.fixture
def platform(running_platform: Running, clock: TurnedClock) -> Platform:
    """The platform by the turned clock, which no other clock contradicts."""
    return replace(running_platform.platform, clock=clock, other_clock=lambda: None)


_numbers = itertools.count(1)


@pytest.fixture(name="order")
def new_order(orderkit: Command, platform: Platform) -> str:
    """A new order of a team of its own."""
    team = f"leased-{next(_numbers):03d}"
    add_team(platform, team, requester="user:default/test")
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0
    return f"garage-{team}"


@pytest.fixture(scope="package")
def shared_order(running_platform: Running) -> str:
    """An order that many tests extend by an hour."""
    add_team(running_platform.platform, "shared", requester="user:default/test")
    order_request = TaskRequest(
        "garage", {"team_name": "shared", "stage": "stage2"}, Requester("user:default/test")
    )
    order(running_platform.platform, order_request)
    return "garage-shared"


@dataclass(frozen=True)
class Leases:
    """The leases of the shared platform, at the turned clock's time."""

    platform: Platform
    clock: TurnedClock

    def expires(self, order: str) -> datetime:
        """Return the expiry that the ledger has."""
        record = read_leased(self.platform, entry_of(order)).record
        assert record is not None
        return record.expires

    def delivered(self, order: str) -> None:
        """Wait until the cluster has the expiry that the ledger has."""
        expected = time_text(self.expires(order))

        def expiry() -> str:
            application = self.platform.cluster.get(application_key(OrderId(order))) or {}
            return str(annotations_of(application).get(EXPIRES_AT, ""))

        until(SystemClock(), expiry, lambda now: now == expected, timeout_s=60, goal="the expiry")

    def sweep(self, order: str, *, dry_run: bool = False) -> list[SweptOrder]:
        """Sweep all orders; return what was done about this one."""
        swept = sweep(self.platform, SweepRequest(dry_run=dry_run))
        return [one for one in swept.orders if one.order == order]

    def actions(self, order: str, *, dry_run: bool = False) -> list[str]:
        """Sweep all orders; return in words what was done about this one."""
        done = self.sweep(order, dry_run=dry_run)
        return [f"{one.action} {one.stage}".strip() for one in done]


def entry_of(order: str) -> OrderEntry:
    return OrderEntry(TeamName(order.removeprefix("garage-")), OrderId(order))


@pytest.fixture
def leases(platform: Platform, clock: TurnedClock) -> Leases:
    return Leases(platform, clock)
