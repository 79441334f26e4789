"""
The Deployments that a budget switches: their names, and how each is seen through its Object.

provider-kubernetes shows the Deployment as it found it in ``status.atProvider.manifest``. Used by
``decide`` (can it be reached?) and ``render`` (does it run as wanted?).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orderkit.core.crossplane.station import StationRequest


@dataclass(frozen=True, slots=True)
class Target:
    """One Deployment, and how many replicas it has while the agent may run."""

    deployment: str
    replicas: int

    @property
    def part(self) -> str:
        """The logical name of its Object."""
        return f"{self.deployment}-replicas"

    def unreachable(self, request: StationRequest) -> bool:
        """Say whether the provider looked for the Deployment and did not find it."""
        observed = request.observed_resource(self.part) or {}
        looked = bool((observed.get("status") or {}).get("conditions"))
        return looked and not _seen(observed)

    def has_replicas(self, request: StationRequest, wanted: int) -> bool:
        """Say whether the Deployment was seen with so many replicas."""
        seen = _seen(request.observed_resource(self.part) or {})
        return bool(seen) and (seen.get("spec") or {}).get("replicas") == wanted


def targets_of(xr: Mapping[str, Any]) -> list[Target]:
    """Return the targets that an XR names, in its order."""
    return [Target(t["name"], int(t.get("replicas", 1))) for t in xr["spec"]["targets"]]


def _seen(observed: Mapping[str, Any]) -> Mapping[str, Any]:
    at_provider: Mapping[str, Any] = (observed.get("status") or {}).get("atProvider") or {}
    return at_provider.get("manifest") or {}
