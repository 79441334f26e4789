"""An embedded platform of the clusters' pack with twins of all providers, shared by this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from commands import Command, in_process
from quickpack import quick_pack
from reviewedchanges import Members, new_members
from tests.component.leases.conftest import TurnedClock

from ground.names import TeamName
from ground.objects.kube_objects import Kind, Manifest, ObjectKey
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

PACK = Path(__file__).parents[3] / "packs" / "clusters"
CLUSTER = Kind("myplatform.io", "v1alpha1", "XCluster")
EXTERNAL = Kind("cloud.embedded.orderkit.dev", "v1alpha1", "ExternalResource")
TEAM, NAMESPACE = TeamName("ae86"), "team-ae86"


@pytest.fixture(scope="package")
def running_platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("platform")
    values = {"PROJECT_ID": "clusters-lab"}
    pack = quick_pack(PACK, folder / "pack")
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), (TEAM,), values=values)
    with running(request, on_step=lambda *_: None) as site:
        yield site


@pytest.fixture(scope="package")
def members(running_platform: Running) -> Members:
    return new_members(running_platform, TEAM)


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


@dataclass(frozen=True)
class OrderedCluster:
    """One ordered cluster, as the platform's API server has it."""

    platform: Platform
    name: str

    @property
    def order(self) -> str:
        return f"cluster-{self.name}"

    @property
    def xr(self) -> Manifest:
        return self.platform.cluster.get(ObjectKey(CLUSTER, self.order, NAMESPACE)) or {}

    @property
    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.xr.get("status") or {}
        return status

    @property
    def parts(self) -> dict[str, Manifest]:
        """The composed objects by their logical name."""
        references = self.xr["spec"]["crossplane"]["resourceRefs"]
        found = {}
        for reference in references:
            group, _, version = reference["apiVersion"].rpartition("/")
            kind = Kind(group, version, reference["kind"])
            manifest = self.platform.cluster.get(ObjectKey(kind, reference["name"], NAMESPACE))
            if manifest is not None:
                name = manifest["metadata"]["annotations"][
                    "crossplane.io/composition-resource-name"
                ]
                found[name] = manifest
        return found

    def in_the_cloud(self) -> set[str]:
        """Return the names of what manages something that exists in the cloud."""
        return {
            str(record["spec"]["managedBy"]["name"])
            for record in self.platform.cluster.list(EXTERNAL).items
            if self.name in str(record)
        }

    def until(self, holds: Callable[[dict[str, Any]], object], goal: str) -> dict[str, Any]:
        """Wait for a status; return it."""
        until(
            SystemClock(), lambda: self.status, lambda now: bool(holds(now)), timeout_s=300,
            goal=goal,
        )  # fmt: skip
        return self.status
