"""The environment that an XR describes: what several stations must agree on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orderkit.stations import Parts, Settings, StationRequest, StationResponse, layered_settings

NAMESPACE, CREDENTIALS = "namespace", "db-connection-details"
"""Parts that other stations refer to; the Secret has the name that the document gives it."""
PORT, USER, DATABASE = 5432, "app", "app"


@dataclass(frozen=True, slots=True)
class Environment:
    """One order: its request, the response so far, its settings, and its parts."""

    request: StationRequest
    response: StationResponse
    settings: Settings
    spec: Mapping[str, Any]
    parts: Parts
    """Those inside the environment's Namespace: they wait for it."""

    @property
    def namespace(self) -> str:
        return self.parts.namespace

    @property
    def labels(self) -> Mapping[str, str]:
        return self.parts.labels

    @property
    def uses_rds(self) -> bool:
        return bool(self.spec["database"]["service"] == "rds")

    @property
    def database_size(self) -> Mapping[str, Any]:
        """``cpu``, ``memory``, ``storageGb`` and ``instanceClass``."""
        return self.settings.get(f"postgres.sizes.{self.spec['database']['size']}", dict)


def start(request: StationRequest) -> Environment | StationResponse:
    """Start a station; a response: the settings are missing, or were not looked up yet."""
    response = StationResponse.to(request)
    settings = layered_settings(request, response)
    if settings is None:
        return response
    spec = request.xr["spec"]
    labels = {
        "platform.acme.com/environment": str(spec["environment"]),
        "platform.acme.com/squad": str(spec["squad"]),
    }
    parts = Parts(
        request,
        response,
        labels=labels,
        namespace=f"{spec['environment']}-environment",
        after=(NAMESPACE,),
    )
    return Environment(request, response, settings, spec, parts)
