"""
Input and output of a run of a Composition pipeline.

Pure data: ``pipeline`` computes it, and others apply, plan or show the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from compositions.station import Ready, Selector, Station
from ground.objects.conditions import AVAILABLE, CREATING, Condition, first_and_more
from ground.objects.kube_objects import Kind, Manifest, dig

__all__ = ["COMPOSE_REASON", "Composed", "Lookup", "PipelineStep", "World", "XrEvent", "steps_of"]

COMPOSE_REASON = "ComposeResources"
"""Reason of events for which the function gives none."""

Lookup = Callable[[Selector], Sequence[Manifest]]
"""Looks up required resources; empty if nothing matches. May raise OrderkitError."""
ScopeOf = Callable[[Kind], bool | None]
"""Says whether a kind is namespaced; None if it is not served."""
Requirements = Mapping[str, Selector]


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """One entry of ``spec.pipeline``."""

    name: str
    function: str
    input: Mapping[str, Any] = field(default_factory=dict)
    required: Requirements = field(default_factory=dict)
    """Looked up before the first call, whatever the function requires."""
    credentials: Mapping[str, Selector] = field(default_factory=dict)
    """Secrets that a function's own program gets, by the credential's name."""
    unserved: tuple[str, ...] = ()
    """Inputs that the step passes in a cluster and that are not available here."""


@dataclass(frozen=True, slots=True)
class XrEvent:
    """One event on the XR."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class World:
    """What exists and what can be looked up while an XR is composed."""

    functions: Mapping[str, Station]
    observed: Mapping[str, Manifest] = field(default_factory=dict)
    """Composed resources by logical name."""
    connection_details: Mapping[str, dict[str, bytes]] = field(default_factory=dict)
    lookup: Lookup = lambda _: ()
    scope_of: ScopeOf = lambda _: True
    foreign: Mapping[str, str] = field(default_factory=dict)
    """Why a function that is installed does not run, by its name: its step fails, also a plan's."""
    remote: Collection[str] = ()
    """Functions that run as processes: they need all inputs of their step."""
    passing: bool = False
    """Skip and report steps that cannot run here (`Composed.opaque`), instead of failing."""
    attributed: Mapping[str, str] = field(default_factory=dict)
    """The step that composed an observed resource before, by logical name, if known."""


@dataclass(frozen=True, slots=True)
class Desired:
    """A composed resource as it will be applied."""

    manifest: Manifest
    ready: bool
    renamed: bool = False
    """The function gives another name now; the existing object keeps its name."""


@dataclass(frozen=True, slots=True)
class Composed:
    """
    The result of one run of the pipeline.

    With an `error`, nothing may be applied or deleted and the status stays; events and conditions
    that were set before a fatal result are kept.
    """

    error: str = ""
    resources: Mapping[str, Desired] = field(default_factory=dict)
    deletions: Mapping[str, Manifest] = field(default_factory=dict)
    """Observed resources that are no longer desired and controlled by this XR."""
    references: tuple[dict[str, str], ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    """The functions' own conditions, in the order they were set."""
    events: tuple[XrEvent, ...] = ()
    ready: Ready = Ready.UNSPECIFIED
    """Readiness of the XR if a function decided it."""
    ttl_s: float = 0.0
    """The smallest time to live of all steps; 0: none."""
    context: Mapping[str, Any] = field(default_factory=dict)
    requirements: tuple[Selector, ...] = ()
    opaque: Mapping[str, str] = field(default_factory=dict)
    """Why a step was skipped, by its name. Its effects are in no other field."""
    kept: Mapping[str, Manifest] = field(default_factory=dict)
    """Observed resources that an opaque step may compose: neither desired nor deleted."""
    made_by: Mapping[str, str] = field(default_factory=dict)
    """The first step that composed a resource, by logical name."""

    @property
    def ready_condition(self) -> Condition:
        """The XR's Ready: as a function decided, else whether all resources are ready."""
        if self.ready is not Ready.UNSPECIFIED:
            return AVAILABLE if self.ready is Ready.TRUE else CREATING
        unready = self.unready
        if not unready:
            return AVAILABLE
        return replace(CREATING, message=f"Unready resources: {first_and_more(unready)}")

    @property
    def unready(self) -> tuple[str, ...]:
        return tuple(sorted(n for n, desired in self.resources.items() if not desired.ready))


def steps_of(spec: Mapping[str, Any]) -> tuple[PipelineStep, ...]:
    """Read the pipeline of a Composition's or CompositionRevision's spec."""
    return tuple(
        PipelineStep(
            name=str(entry.get("step", "")),
            function=str(dig(entry, "functionRef", "name", default="")),
            input=entry.get("input") or {},
            required={
                str(requirement.get("requirementName", "")): _selector(requirement)
                for requirement in dig(entry, "requirements", "requiredResources", default=None)
                or ()
            },
            credentials=dict(_credentials(entry)),
            unserved=tuple(_unserved(entry)),
        )
        for entry in spec.get("pipeline") or ()
    )


def _credentials(entry: Mapping[str, Any]) -> Iterator[tuple[str, Selector]]:
    for credential in dig(entry, "credentials", default=None) or ():
        if dig(credential, "source") == "Secret":
            name, namespace = (
                str(dig(credential, "secretRef", key, default="")) for key in ("name", "namespace")
            )
            secret = Selector("v1", "Secret", name=name, namespace=namespace)
            yield str(dig(credential, "name", default="")), secret


def _unserved(entry: Mapping[str, Any]) -> Iterator[str]:
    if dig(entry, "requirements", "requiredSchemas", default=None):
        yield "schemas"


def _selector(requirement: Mapping[str, Any]) -> Selector:
    return Selector(
        api_version=str(requirement.get("apiVersion", "")),
        kind=str(requirement.get("kind", "")),
        name=requirement.get("name") or "",
        labels=requirement.get("matchLabels") or {},
        namespace=requirement.get("namespace"),
    )
