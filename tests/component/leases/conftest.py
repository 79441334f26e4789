"""An embedded platform whose garages have a lease, shared by this folder, and a clock to turn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

import pytest
import yaml
from commands import Command, in_process
from packcopies import copied_pack

from orderkit.adapters.embedded.platform import Ports
from orderkit.cli.serving.embedded_platform import EmbeddedRunRequest, Running, running
from orderkit.core.argocd.application import ORDER_LABEL as ORDER_LABEL  # noqa: PLC0414 - tests
from orderkit.core.objects.kube_objects import Manifest, annotations_of
from orderkit.core.order.lease import EXPIRES_AT
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.lease.sweeping import SweepRequest, Swept, sweep
from orderkit.flows.platform import Platform
from orderkit.flows.team.teams import add_team
from orderkit.flows.waiting import until
from orderkit.ports.clock import SystemClock

KIT = PurePosixPath("templates/garage/kit.yaml")
LEASE = {
    "default": "3d",
    "maximum": "10d",
    "extend": {"by": "4d", "times": 2},
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


@pytest.fixture
def order(orderkit: Command, platform: Platform) -> str:
    """A new order of a team of its own."""
    team = f"leased-{next(_numbers):03d}"
    add_team(platform, team, requester="user:default/test")
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0
    return f"garage-{team}"


@pytest.fixture
def delivered(platform: Platform) -> Callable[[str], Manifest]:
    """Wait until the cluster has the expiry that the ledger has; return the Application."""

    def wait(order: str, expires: str) -> Manifest:
        found: list[Manifest] = []

        def expiry() -> str:
            application = platform.cluster.get(application_key(order)) or {}
            found[:] = [application]
            return str(annotations_of(application).get(EXPIRES_AT, ""))

        until(SystemClock(), expiry, lambda now: now == expires, timeout_s=60, goal="the expiry")
        return found[0]

    return wait


@pytest.fixture
def sweeping(platform: Platform) -> Callable[..., Swept]:
    """Sweep the platform at the turned clock's time."""
    return lambda **fields: sweep(platform, SweepRequest(**fields))
