"""
The Deployments whose replicas a budget sets, and how their Objects show them.

provider-kubernetes shows the observed Deployment in ``status.atProvider.manifest``. Used by
``decide`` (can it be reached?) and ``render`` (does it have the desired replicas?).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orderkit.stations import StationRequest


@dataclass(frozen=True, slots=True)
class Target:
    """One Deployment, and its replicas while the agent may run."""

    deployment: str
    replicas: int

    @property
    def part(self) -> str:
        """The logical name of its Object."""
        return f"{self.deployment}-replicas"

    def unreachable(self, request: StationRequest) -> bool:
        """Return whether the provider looked for the Deployment and did not find it."""
        observed = request.observed_resource(self.part) or {}
        looked = bool((observed.get("status") or {}).get("conditions"))
        return looked and not _deployment(observed)

    def has_replicas(self, request: StationRequest, replicas: int) -> bool:
        """Return whether the Deployment was observed with so many replicas."""
        deployment = _deployment(request.observed_resource(self.part) or {})
        return bool(deployment) and (deployment.get("spec") or {}).get("replicas") == replicas


def targets_of(xr: Mapping[str, Any]) -> list[Target]:
    """Return the targets that an XR names, in its order."""
    return [Target(t["name"], int(t.get("replicas", 1))) for t in xr["spec"]["targets"]]


def _deployment(observed: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the Deployment as an Object shows it; empty if it shows none."""
    at_provider: Mapping[str, Any] = (observed.get("status") or {}).get("atProvider") or {}
    return at_provider.get("manifest") or {}
