"""
What comes of assembling an XR: its resources, what is refused, and what is not known.

``composed_tree`` makes an `Assembly`; plans, checks and graphs read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from compositions.layered_settings import LayeredValue
from compositions.station import Selector
from ground.objects.kube_objects import Manifest
from ground.objects.values import Steps


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that the API server or the pipeline refuses, and the resource it concerns."""

    path: str
    """Of the resource; empty for the XR itself."""
    message: str
    field: str = ""
    hint: str = ""
    code: str = "schema"
    """The broken rule: ``schema``, ``pipeline``, or one of ``judging.Rule``."""
    value: str = ""
    """The offending value as JSON, shortened; empty if there is none."""
    rule: str = ""
    """The keyword and its argument, or the CEL rule."""

    @property
    def where(self) -> str:
        """Resource and field; empty for the pipeline of the XR itself."""
        return ".".join(segment for segment in (self.path, self.field) if segment)


@dataclass(frozen=True, slots=True, order=True)
class Guess:
    """A field of a resource that depends on a value only the cluster assigns, such as a uid."""

    path: str
    field: str


@dataclass(frozen=True, slots=True, order=True)
class Note:
    """Something to check that shows in no resource."""

    path: str
    code: str
    """A `dangers.Code`."""
    message: str


SecretField = tuple[str, Steps]
"""Path of a resource and of a field in it; no steps: the whole resource. Path '': the XR."""


@dataclass(frozen=True, slots=True)
class SecretTraces:
    """What of an outcome follows from the values of Secrets (``secret_traces``)."""

    values: frozenset[str] = frozenset()
    """Of every Secret that stations could see."""
    fields: frozenset[SecretField] = frozenset()
    keys: frozenset[SecretField] = frozenset()
    """Those of the fields that exist for some values only."""
    texts: frozenset[str] = frozenset()
    """Messages, and paths of resources."""
    complete: bool = True
    """False: stations refuse other values, so any field may follow from a Secret."""
    outcomes: tuple[Mapping[str, Manifest], ...] = ()
    """What exists in the end with other values, by path."""
    easy: frozenset[str] = frozenset()
    """Values of these Secrets that are easy to guess, under keys that name nothing public."""
    public_keys: frozenset[str] = frozenset()
    """Keys of Secrets that the kit declares public: nothing of the above follows from them."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """The final state of one XR."""

    xr: Manifest
    """With defaults and its final status."""
    resources: Mapping[str, Manifest]
    """The desired resources by path, as they are applied."""
    observed: Mapping[str, Manifest]
    """What exists in the end, by path."""
    waves: tuple[tuple[str, ...], ...] = ()
    """Paths in the order they first appear; a nested XR comes before what it composes."""
    ready: bool = False
    faults: tuple[Fault, ...] = ()
    unknowns: tuple[str, ...] = ()
    requirements: tuple[Selector, ...] = ()
    """Every requirement of any round, each once."""
    guesses: tuple[Guess, ...] = ()
    """Fields whose values only the cluster knows."""
    input_xr: Manifest = field(default_factory=dict)
    """The XR as passed in, without defaults."""
    missing: tuple[str, ...] = ()
    """Requirements of the last round that were not met."""
    notes: tuple[Note, ...] = ()
    """Warnings of the pipeline, and objects of the cluster that are in the way."""
    is_opaque: bool = False
    """A step was skipped: it may compose more, change anything, and decide readiness."""
    waits: tuple[str, ...] = ()
    """If it is not ready only until providers write what nobody knows here: its unready parts."""
    kept: Mapping[str, Manifest] = field(default_factory=dict)
    """Existing resources that no known step composes, by path; their future is unknown."""
    at_once: Mapping[str, Manifest] = field(default_factory=dict)
    """What the pipeline composes in its first round, before anything becomes ready, by path."""
    made_by: Mapping[str, str] = field(default_factory=dict)
    """The step that composed a resource, by path."""
    renamed: bool = False
    """A new order would get other names for some resources."""
    stuck: frozenset[str] = frozenset()
    """XRs whose pipeline fails, by path ("": the order's own): their resources stay as they are."""
    secret_traces: SecretTraces = field(default_factory=SecretTraces)
    pinned: Mapping[str, str] = field(default_factory=dict)
    """Why a changed Composition does not reach an XR, by path ("": the order's own)."""
    assumed: tuple[Manifest, ...] = ()
    """CompositionRevisions that nobody could be asked for, as they were assumed."""
    settings: Mapping[str, LayeredValue] = field(default_factory=dict)

    def keeps(self, path: str) -> bool:
        """Return whether a resource may stay although no known step composes it."""
        above = path.rpartition("/")[0]
        while above and above not in self.stuck:
            above = above.rpartition("/")[0]
        return path in self.kept or above in self.stuck

    @property
    def readiness(self) -> Literal["Ready", "not Ready", "not known"]:
        """Return, for a person, whether the order ends up Ready."""
        if self.ready:
            return "Ready"
        return "not known" if self.is_opaque or self.waits else "not Ready"
