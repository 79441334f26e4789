"""
The public API for stations: what a pack's stations and their tests may import.

A station is a pure function ``station(request: StationRequest) -> StationResponse``. The same
request gives the same response, always: no I/O, no clock, no random value. ``stations/README.md``
in every pack has the rules.

What the tool guarantees:

- The request is the station's own copy; changing it changes nothing else.
- Manifests are plain JSON-like data (`Manifest`), exactly as the cluster has them.
- A station that raises an exception ends as a fatal result that names the station: Crossplane
  shows the message on the XR, and nothing that exists is changed or deleted.

Stations raise no error of Orderkit; `StationResponse.fatal` refuses. A test builds a
`StationRequest` from `State` and `Resource`, calls the station, and reads the response.

Everything else of ``orderkit`` is private, except `orderkit.controllers`. docs/public-api.md has
examples.
"""

from __future__ import annotations

from compositions.layered_settings import SettingError, Settings, layered_settings
from compositions.parts import Parts, Phase
from compositions.resource_builders import (
    KEEP,
    MANAGE,
    OBSERVE,
    Chart,
    ManagementAction,
    ProviderConfigRef,
    SecretKey,
    generated_password,
    managed,
    manifest,
    provider_config,
    release,
    secret,
)
from compositions.station import (
    Ready,
    Resource,
    Result,
    Selector,
    Severity,
    State,
    Station,
    StationRequest,
    StationResponse,
)
from ground.objects.kube_objects import Condition, ConditionStatus, Manifest

__all__ = [
    "KEEP",
    "MANAGE",
    "OBSERVE",
    "Chart",
    "Condition",
    "ConditionStatus",
    "ManagementAction",
    "Manifest",
    "Parts",
    "Phase",
    "ProviderConfigRef",
    "Ready",
    "Resource",
    "Result",
    "SecretKey",
    "Selector",
    "SettingError",
    "Settings",
    "Severity",
    "State",
    "Station",
    "StationRequest",
    "StationResponse",
    "generated_password",
    "layered_settings",
    "managed",
    "manifest",
    "provider_config",
    "release",
    "secret",
]
