"""
The request and response of a pack's stations, with results, conditions and requirements.

A station is a pure function ``station(request: StationRequest) -> StationResponse``: the same
request gives the same response, always. No I/O, no clock, no random value. ``stations/README.md``
has the rules.

The types mirror Crossplane's function protocol (apiextensions.fn.proto.v1) one to one, so the gRPC
server can hand the same station to a real Crossplane. Not offered: required schemas, the output of
operations, and ``extra_resources``, the deprecated name of requirements. Only functions that run as
programs of their own get credentials.

Stations import these names from ``orderkit.stations``. Also used by ``pipeline`` and by adapters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from traceback import walk_tb
from typing import Any, ClassVar, Self

from ground.objects.kube_objects import Condition, ConditionStatus, Kind, Manifest
from ground.objects.values import overlaid

__all__ = [
    "INPUT",
    "Condition",
    "OpaqueError",
    "Ready",
    "Resource",
    "Result",
    "Selector",
    "Severity",
    "State",
    "Station",
    "StationRequest",
    "StationResponse",
    "place_of",
    "run_station",
    "station_runner",
]

DEFAULT_TTL_S = 60.0
"""How long a response is valid before the pipeline runs again; the SDKs' default."""

INPUT = Kind("stations.orderkit.dev", "v1alpha1", "Station")
"""The input that names a station in a Composition's step."""


class Ready(IntEnum):
    """Readiness of a desired resource; numbers as on the wire."""

    UNSPECIFIED = 0
    TRUE = 1
    FALSE = 2


class Severity(IntEnum):
    """Weight of a result; numbers as on the wire."""

    UNSPECIFIED = 0
    FATAL = 1
    WARNING = 2
    NORMAL = 3


@dataclass(frozen=True, slots=True)
class Result:
    """A message of a station. FATAL stops the pipeline: nothing is applied or deleted."""

    severity: Severity
    message: str
    reason: str = ""


class OpaqueError(Exception):
    """
    A function cannot be run exactly here. The text names what it would need.

    Only twins of functions that are not the pack's raise it. A plan skips the step and reports
    that; all other callers fail, with Crossplane's message.
    """


@dataclass(frozen=True, slots=True)
class Selector:
    """
    Objects that a station needs to read: one by `name`, or all that have `labels`.

    `namespace` None means cluster-scoped with `name`, every namespace with `labels`.
    """

    api_version: str
    kind: str
    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    namespace: str | None = None


@dataclass(slots=True)
class Resource:
    """An object, its readiness and its connection details."""

    resource: Manifest = field(default_factory=dict)
    ready: Ready = Ready.UNSPECIFIED
    connection_details: dict[str, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class State:
    """The XR, and its composed resources by logical name."""

    composite: Resource = field(default_factory=Resource)
    resources: dict[str, Resource] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StationRequest:
    """The input of a station. It is the station's own copy."""

    observed: State
    """The real XR and the composed resources that exist. The same for every step."""
    desired: State = field(default_factory=State)
    """The desired state that the previous steps returned."""
    context: dict[str, Any] = field(default_factory=dict)
    input: dict[str, Any] = field(default_factory=dict)
    """The step's input in the Composition."""
    required: Mapping[str, tuple[Manifest, ...]] = field(default_factory=dict)
    """The objects found for each requirement, by its name. A missing key: not looked up yet."""
    credentials: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    """Data of the Secrets that the step names. Stations and twins get none."""

    @property
    def xr(self) -> Manifest:
        """The observed XR."""
        return self.observed.composite.resource

    def observed_resource(self, name: str) -> Manifest | None:
        """Return the composed resource with this logical name, or None if it does not exist."""
        resource = self.observed.resources.get(name)
        return resource.resource if resource else None

    def is_answered(self, name: str) -> bool:
        """Return whether a requirement was looked up. Before that, it finds nothing."""
        return name in self.required

    def required_resource(self, name: str) -> Manifest | None:
        """Return the first object found for a requirement, or None (see `is_answered`)."""
        objects = self.required.get(name, ())
        return objects[0] if objects else None


@dataclass(slots=True)
class StationResponse:
    """
    The output of a station. Start with `to`, which keeps the previous steps' desired state.

    A response without the previous desired resources *deletes* them; `fatal` deletes nothing.
    """

    desired: State = field(default_factory=State)
    context: dict[str, Any] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    requirements: dict[str, Selector] = field(default_factory=dict)
    ttl_s: float = DEFAULT_TTL_S

    @classmethod
    def to(cls, request: StationRequest, *, ttl_s: float = DEFAULT_TTL_S) -> Self:
        """Return a response that keeps the request's desired state and context."""
        return cls(desired=request.desired, context=request.context, ttl_s=ttl_s)

    def want(self, name: str, manifest: Manifest, *, ready: Ready = Ready.UNSPECIFIED) -> None:
        """Ask for a composed resource under a logical name; a second call replaces the first."""
        self.desired.resources[name] = Resource(manifest, ready)

    def set_ready(self, name: str, *, ready: bool) -> None:
        """
        Set the readiness of a desired resource, for kinds that auto-ready cannot judge.

        Raises:
            KeyError: There is no such desired resource.
        """
        self.desired.resources[name].ready = Ready.TRUE if ready else Ready.FALSE

    def merge_status(self, status: Mapping[str, Any]) -> None:
        """Merge `status` into the desired status of the XR; maps merge recursively."""
        xr = self.desired.composite.resource
        xr["status"] = overlaid(xr.get("status") or {}, dict(status))

    def add_condition(
        self, type_: str, status: ConditionStatus, reason: str, message: str = ""
    ) -> None:
        """Set an own condition on the XR. Set it in every call; else its last value stays."""
        self.conditions.append(Condition(type_, status, reason, message))

    def require(
        self,
        name: str,
        api_version: str,
        kind: str,
        *,
        match_name: str = "",
        match_labels: Mapping[str, str] | None = None,
        namespace: str | None = None,
    ) -> None:
        """
        Request objects; the station is called again with them in ``request.required``.

        Declare requirements before any branch: one that is not repeated never settles.

        Raises:
            TypeError: A name or namespace is not text.
        """
        for value in (match_name, "" if namespace is None else namespace):
            if not isinstance(value, str):
                raise TypeError(f'requirement "{name}": {value!r} is not text')
        self.requirements[name] = Selector(
            api_version, kind, match_name, dict(match_labels or {}), namespace
        )

    def fatal(self, message: str, *, reason: str = "") -> None:
        """Refuse: the XR shows `message`, and everything that exists stays as it is."""
        self.results.append(Result(Severity.FATAL, message, reason))

    def warning(self, message: str, *, reason: str = "") -> None:
        """Emit a warning event on the XR and continue."""
        self.results.append(Result(Severity.WARNING, message, reason))

    def normal(self, message: str, *, reason: str = "") -> None:
        """Emit an event on the XR and continue."""
        self.results.append(Result(Severity.NORMAL, message, reason))


Station = Callable[[StationRequest], StationResponse]
"""A station, and any other function that can run in this process."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A function that changes no object of its request: a pipeline makes no copies for it."""

    function: Station
    reads_only: ClassVar[bool] = True

    def __call__(self, request: StationRequest) -> StationResponse:
        return self.function(request)


def station_runner(stations: Mapping[str, Station]) -> Station:
    """
    Return one function that runs the station its step's input names.

    It never raises: an unknown station, a malformed input or an exception in a station becomes
    a fatal result that names the station, so nothing that exists is deleted.
    """

    def run(request: StationRequest) -> StationResponse:
        name = request.input.get("name")
        if (request.input.get("apiVersion"), request.input.get("kind")) != (
            INPUT.api_version,
            INPUT.kind,
        ) or not isinstance(name, str):
            return _refused(
                request,
                f"the step's input is not a {INPUT.kind} of {INPUT.api_version} with a name",
            )
        if name not in stations:
            station_names = ", ".join(sorted(stations)) or "none"
            return _refused(request, f'no station "{name}" in this pack; it has: {station_names}')
        return run_station(name, stations[name], request)

    is_reader = all(getattr(station, "reads_only", False) for station in stations.values())
    return Reader(run) if is_reader else run


def run_station(name: str, station: Station, request: StationRequest) -> StationResponse:
    """Return a station's response; whatever it raises or returns instead is a fatal result."""
    try:
        response: object = station(request)
    except Exception as error:  # noqa: BLE001 - whatever a station raises ends as its result
        what = f"{type(error).__name__}: {error}{place_of(error)}"
        return _refused(request, f'station "{name}" failed: {what}')
    if not isinstance(response, StationResponse):
        type_name = type(response).__name__
        return _refused(request, f'station "{name}" returned a {type_name}, not a StationResponse')
    return response


def place_of(error: BaseException) -> str:
    """Return where in a pack's stations an error arose, as `` (stations/NAME/FILE.py:LINE)``."""
    places = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        places.append((error.filename or "", error.lineno or 1))
    for file, line in reversed(places):
        _, folder, name = file.rpartition("/stations/")
        if folder:
            return f" (stations/{name}:{line})"
    return ""


def _refused(request: StationRequest, message: str) -> StationResponse:
    response = StationResponse.to(request)
    response.fatal(message)
    return response
