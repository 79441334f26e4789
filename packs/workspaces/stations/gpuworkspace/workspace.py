"""
The workspace that an XR describes: names that its parts agree on, and shared functions.

What no update can change about a part is part of its logical name: a changed part is another part,
so Crossplane deletes the old one and a plan says so. A provider would leave it unsynced for ever.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orderkit.stations import Parts, StationRequest, StationResponse, managed

_API = "ec2.aws.m.upbound.io/v1beta1"
_REBUILDS = ("region", "image", "opencvVersion", "publicKey")
"""Fields of the order that only another machine can have."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """One order: its parts, and what the pack's owner set for its region."""

    parts: Parts
    spec: Mapping[str, Any]
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, request: StationRequest) -> Workspace:
        """Read the request."""
        parts = Parts(request, StationResponse.to(request))
        return cls(parts, request.xr["spec"], request.input.get("settings") or {})

    @property
    def region(self) -> str:
        return str(self.spec["region"])

    @property
    def images(self) -> Mapping[str, Any]:
        """The AMIs that the pack offers in the region, by the names in the form."""
        images: Mapping[str, Any] = self.offered("images").get("images") or {}
        return images

    @property
    def instance_part(self) -> str:
        return f"instance-{self._build}"

    @property
    def key_part(self) -> str:
        return f"key-pair-{self._build}"

    @property
    def state_part(self) -> str:
        return f"state-{self._build}"

    @property
    def address_part(self) -> str:
        return f"address-{self.region}"

    @property
    def group_part(self) -> str:
        return f"security-group-{self.region}"

    @property
    def _build(self) -> str:
        """Eight digits that change with whatever needs another machine."""
        fields = json.dumps([self.spec[field] for field in _REBUILDS])
        return hashlib.sha256(fields.encode()).hexdigest()[:8]

    @property
    def tags(self) -> dict[str, str]:
        """The tags of whatever AWS can tag."""
        name = str(self.parts.request.xr["metadata"]["name"])
        return {"Name": name, "WorkspaceOwner": str(self.spec["owner"])}

    def offered(self, setting: str) -> dict[str, Any]:
        """Return a setting of the region under its name; empty if the pack does not set it."""
        region = (self.settings.get("regions") or {}).get(self.region) or {}
        return {setting: region[setting]} if setting in region else {}

    def at_provider(self, part: str, field: str) -> Any:
        """Return a value that the provider saw; None if it is not known."""
        return self.parts.observed(part, "status", "atProvider", field)

    def want(
        self,
        part: str,
        kind: str,
        for_provider: dict[str, Any],
        *,
        needs: Sequence[str] = (),
        fixed: Sequence[str] = (),
        awaited: str = "",
    ) -> None:
        """
        Want a managed resource. One that exists is always wanted.

        Args:
            needs: Parts that must be ready before it is created. An end may delete them first: AWS
                refuses that as long as they are in use, and the provider tries again.
            fixed: Fields that no update can change: an existing resource keeps its own, so that new
                settings of the pack reach new machines only.
            awaited: A field that AWS takes time to change: until it has, the part is not ready,
                whose condition Ready is still that of the former value.
        """
        existing = self.parts.observed(part, "spec", "forProvider", default={})
        kept = {field: existing[field] for field in fixed if field in existing}
        manifest = managed(
            _API,
            kind,
            {"region": self.region, **for_provider, **kept},
            provider_config=str(self.settings.get("providerConfig", "aws")),
        )
        value = self.at_provider(part, awaited) if awaited else None
        is_late = value not in (None, for_provider.get(awaited))
        self.parts.want(part, manifest, needs=needs, ready=False if is_late else None)
