"""
What goes into a run of a composition pipeline and what comes out of it.

Pure data for ``core.crossplane.pipeline``, which computes it, and for everybody who applies, plans
or shows the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from orderkit.core.crossplane.station import Ready, Selector, Station
from orderkit.core.objects.conditions import AVAILABLE, CREATING, Condition, first_and_more
from orderkit.core.objects.kube_objects import Kind, Manifest, dig

COMPOSE_REASON = "ComposeResources"
"""Reason of events whose function names none."""

Lookup = Callable[[Selector], Sequence[Manifest]]
"""Look up required resources; empty when nothing matches. May raise OrderkitError."""
ScopeOf = Callable[[Kind], bool | None]
"""Say whether a kind is namespaced; None when it is not served."""
Requirements = Mapping[str, Selector]


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """One entry of ``spec.pipeline``."""

    name: str
    function: str
    input: Mapping[str, Any] = field(default_factory=dict)
    required: Requirements = field(default_factory=dict)
    """Fetched before the first call, whatever the function asks for."""
    unserved: tuple[str, ...] = ()
    """What the step gives its function in a cluster, and nobody can give it here."""


@dataclass(frozen=True, slots=True)
class XrEvent:
    """One event on the XR."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class World:
    """What exists and what can be asked while an XR is composed."""

    functions: Mapping[str, Station]
    observed: Mapping[str, Manifest] = field(default_factory=dict)
    """Composed resources by logical name."""
    connection_details: Mapping[str, dict[str, bytes]] = field(default_factory=dict)
    lookup: Lookup = lambda _: ()
    scope_of: ScopeOf = lambda _: True
    foreign: Collection[str] = ()
    """Functions that are installed but cannot run in this process."""
    remote: Collection[str] = ()
    """Functions that are processes of their own: they need all that their step gives them."""
    passing: bool = False
    """Pass by what cannot run here, and tell it (`Composed.opaque`); else it is an error."""
    attributed: Mapping[str, str] = field(default_factory=dict)
    """Which step asked for an observed resource so far, by logical name, where that is known."""


@dataclass(frozen=True, slots=True)
class Desired:
    """A composed resource as it will be applied."""

    manifest: Manifest
    ready: bool
    renamed: bool = False
    """The function would name it otherwise; what exists keeps its name."""


@dataclass(frozen=True, slots=True)
class Composed:
    """
    What one run of the pipeline asks for.

    With an `error`, nothing may be applied or deleted and the status stays; events and
    conditions said before a fatal result are kept.
    """

    error: str = ""
    resources: Mapping[str, Desired] = field(default_factory=dict)
    deletions: Mapping[str, Manifest] = field(default_factory=dict)
    """Observed resources that are no longer wanted and controlled by this XR."""
    references: tuple[dict[str, str], ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    """The functions' own conditions, in the order they were set."""
    events: tuple[XrEvent, ...] = ()
    ready: Ready = Ready.UNSPECIFIED
    """Readiness of the XR if a function decided it."""
    ttl_s: float = 0.0
    """Smallest time to live of all steps; 0 means none."""
    context: Mapping[str, Any] = field(default_factory=dict)
    requirements: tuple[Selector, ...] = ()
    opaque: Mapping[str, str] = field(default_factory=dict)
    """Why a step was passed by, by its name. What it would have done is in none of the rest."""
    kept: Mapping[str, Manifest] = field(default_factory=dict)
    """Observed resources that an opaque step may want: neither asked for nor deleted."""
    made_by: Mapping[str, str] = field(default_factory=dict)
    """The step that asked for a resource first, by logical name."""

    @property
    def ready_condition(self) -> Condition:
        """The XR's Ready: what a function decided, else whether all resources are ready."""
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
            unserved=tuple(_unserved(entry)),
        )
        for entry in spec.get("pipeline") or ()
    )


def _unserved(entry: Mapping[str, Any]) -> Iterator[str]:
    for credential in dig(entry, "credentials", default=None) or ():
        if dig(credential, "source") != "None":
            yield f'credentials "{dig(credential, "name", default="")}"'
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
