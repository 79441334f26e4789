"""
The workspace that an XR describes: names that its parts agree on, and shared functions.

What no update can change about a part is part of its logical name: a changed part is another part,
so Crossplane deletes the old one and a plan says so. A provider would leave it unsynced for ever.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orderkit.stations import StationRequest, StationResponse

Manifest = dict[str, Any]

_API = "ec2.aws.m.upbound.io/v1beta1"
_EXTERNAL_NAME = "crossplane.io/external-name"
_REBUILDS = ("region", "image", "opencvVersion", "publicKey")
"""Fields of the order that only another machine can have."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """One order: its request, and the response so far."""

    request: StationRequest
    response: StationResponse
    spec: Mapping[str, Any]
    region_settings: Mapping[str, Any]
    """``images`` by name, ``subnetId`` and ``vpcId`` of the region, set by the pack's owner."""

    @classmethod
    def of(cls, request: StationRequest) -> Workspace:
        """Read the request."""
        spec = request.xr["spec"]
        regions = (request.input.get("settings") or {}).get("regions") or {}
        return cls(request, StationResponse.to(request), spec, regions.get(spec["region"]) or {})

    @property
    def name(self) -> str:
        return str(self.request.xr["metadata"]["name"])

    @property
    def region(self) -> str:
        return str(self.spec["region"])

    @property
    def build(self) -> str:
        """Eight digits that change with whatever needs another machine."""
        fields = json.dumps([self.spec[field] for field in _REBUILDS])
        return hashlib.sha256(fields.encode()).hexdigest()[:8]

    @property
    def instance_part(self) -> str:
        return f"instance-{self.build}"

    @property
    def state_part(self) -> str:
        return f"state-{self.build}"

    @property
    def address_part(self) -> str:
        return f"address-{self.region}"

    @property
    def group_part(self) -> str:
        return f"security-group-{self.region}"

    def object_name(self, part: str) -> str:
        return f"{self.name}-{part}"

    def want(
        self, part: str, kind: str, for_provider: Manifest, *, fixed: tuple[str, ...] = ()
    ) -> None:
        """
        Want a managed resource.

        Args:
            fixed: Fields that no update can change: an existing resource keeps its own, so that new
                settings of the pack reach new workspaces only.
        """
        existing = (self._observed(part).get("spec") or {}).get("forProvider") or {}
        kept = {field: existing[field] for field in fixed if field in existing}
        settings = self.request.input.get("settings") or {}
        config = settings.get("providerConfig", "aws")
        self.response.want(
            part,
            {
                "apiVersion": _API,
                "kind": kind,
                "metadata": {"name": self.object_name(part)},
                "spec": {
                    "forProvider": {"region": self.region, **for_provider, **kept},
                    "providerConfigRef": {"kind": "ClusterProviderConfig", "name": config},
                },
            },
        )

    def tags(self) -> dict[str, str]:
        """Return the tags of whatever AWS can tag."""
        return {"Name": self.name, "WorkspaceOwner": str(self.spec["owner"])}

    def may_want(self, part: str, *needs: str) -> bool:
        """Return whether a part exists already, or all that it refers to does."""
        return bool(self._observed(part)) or all(self._exists_in_cloud(need) for need in needs)

    def _exists_in_cloud(self, part: str) -> bool:
        annotations = (self._observed(part).get("metadata") or {}).get("annotations") or {}
        return bool(annotations.get(_EXTERNAL_NAME)) or self.is_ready(part)

    def is_ready(self, part: str) -> bool:
        return self.condition(part, "Ready").get("status") == "True"

    def condition(self, part: str, type_: str) -> Mapping[str, Any]:
        """Return a condition of a part; empty if it has none of this type."""
        status = self._observed(part).get("status") or {}
        conditions = status.get("conditions") or ()
        return next((entry for entry in conditions if entry.get("type") == type_), {})

    def at_provider(self, part: str) -> Mapping[str, Any]:
        """Return what the provider saw of a part."""
        return (self._observed(part).get("status") or {}).get("atProvider") or {}

    def _observed(self, part: str) -> Mapping[str, Any]:
        return self.request.observed_resource(part) or {}
