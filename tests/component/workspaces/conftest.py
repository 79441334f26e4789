"""An embedded platform of the workspaces' pack, shared by this folder, and a clock to turn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from commands import Command, in_process
from quickpack import quick_pack
from tests.component.leases.conftest import TurnedClock

from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

PACK = Path(__file__).parents[3] / "packs" / "workspaces"
WORKSPACE = Kind("platform.acme.io", "v1alpha1", "GpuDevWorkspace")
TEAM, NAMESPACE = "vision", "team-vision"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDemoKeyOfNobodyDemoKeyOfNobodyDemoKeyOf eve@laptop"
_EC2 = ("EIP", "Instance", "InstanceState", "KeyPair", "SecurityGroup")
_RULES = ("SecurityGroupEgressRule", "SecurityGroupIngressRule")
_numbers = itertools.count(1)


@pytest.fixture(scope="package")
def running_platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("platform")
    pack = quick_pack(PACK, folder / "pack")
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), (TEAM,))
    with running(request, on_step=lambda *_: None) as site:
        yield site


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
class Workspace:
    """One ordered workspace, as the cluster has it."""

    platform: Platform
    name: str

    @property
    def order(self) -> str:
        return f"gpuworkspace-{self.name}"

    @property
    def xr(self) -> Manifest:
        key = ObjectKey(WORKSPACE, self.order, NAMESPACE)
        return self.platform.cluster.get(key) or {}

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.xr.get("status") or {}
        return found

    @property
    def managed(self) -> dict[tuple[str, str], Manifest]:
        """The managed resources of this workspace, by kind and name."""
        kinds = (Kind("ec2.aws.m.upbound.io", "v1beta1", kind) for kind in (*_EC2, *_RULES))
        objects = (
            manifest
            for kind in kinds
            for manifest in self.platform.cluster.list(kind, namespace=NAMESPACE).items
        )
        return {
            (manifest["kind"], manifest["metadata"]["name"]): manifest
            for manifest in objects
            if manifest["metadata"]["name"].startswith(f"{self.order}-")
        }

    def one(self, kind: str) -> Manifest:
        """Return the only managed resource of a kind."""
        (manifest,) = (found for (of, _), found in self.managed.items() if of == kind)
        return manifest

    @property
    def networks(self) -> list[str]:
        """The networks that may connect."""
        rules = (found for (of, _), found in self.managed.items() if of == _RULES[1])
        return sorted(str(dig(rule, "spec", "forProvider", "cidrIpv4")) for rule in rules)

    def provider_value(self, kind: str, field: str) -> Any:
        return dig(self.one(kind), "spec", "forProvider", field)

    def until(self, holds: Callable[[dict[str, Any]], object], goal: str) -> dict[str, Any]:
        """Wait for a status; return it."""
        until(SystemClock(), lambda: self.status, lambda now: bool(holds(now)), timeout_s=60,
              goal=goal)  # fmt: skip
        return self.status

    def until_phase(self, phase: str) -> dict[str, Any]:
        return self.until(lambda status: status.get("phase") == phase, f"phase {phase}")


def ordered_workspace(orderkit: Command, platform: Platform) -> Workspace:
    """Order a workspace and wait until it is Ready."""
    ordered = Workspace(platform, f"ws{next(_numbers)}")
    done = orderkit(
        "order", "gpuworkspace", f"name={ordered.name}", f"team={TEAM}", "owner=user:default/eve",
        f"publicKey={KEY}", 'sshFrom=["203.0.113.0/24"]',
    )  # fmt: skip
    assert done.code == 0, done.err
    return ordered


@pytest.fixture
def workspace(orderkit: Command, platform: Platform) -> Workspace:
    return ordered_workspace(orderkit, platform)
