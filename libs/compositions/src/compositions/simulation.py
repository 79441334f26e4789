"""
Run a Composition's pipeline until nothing changes any more.

`simulate` plays the cluster between two runs of `compositions.pipeline.compose`: desired resources
exist in the next round and are ready (``simulated_objects``), resources that are no longer desired
are gone, and the XR has its new status. So gated resources appear round after round, as they do on
Crossplane. It stops when a round changes nothing, when the pipeline fails, or after a limited
number of rounds.

Not simulated: validation by the API server (``kubeschema.validate``), RBAC, time, the rounds that
Crossplane loses when resources are composed before their Namespace exists (here they simply
appear), and what nested XRs compose (a caller may provide their status:
`Surroundings.nested_status`).

Pure as long as the functions are.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from compositions.composed import (
    Composed,
    Lookup,
    PipelineStep,
    ScopeOf,
    World,
    preview_uid,
    root_labelled,
)
from compositions.composition_choice import CONNECTION
from compositions.managed_state import ManagedKinds, failed_status
from compositions.pipeline import compose
from compositions.simulated_objects import WHEN, made_ready, with_address
from compositions.station import Selector
from ground.objects.kube_objects import (
    RECONCILE_SUCCESS,
    RESPONSIVE,
    Kind,
    Manifest,
    is_namespaced,
    labels_of,
    merged,
    metadata,
)
from ground.objects.values import overlaid

__all__ = ["ROUNDS_MAX", "SimulatedWorld", "Simulation", "layered_lookup", "lookup_in", "simulate"]

ROUNDS_MAX = 20
"""More rounds than any realistic chain of gates needs."""


@dataclass(frozen=True, slots=True)
class SimulatedWorld:
    """The objects besides the XR, and how they behave."""

    existing: Sequence[Manifest] = ()
    """Objects that satisfy requirements, in addition to composed ones."""
    observed: Mapping[str, Manifest] = field(default_factory=dict)
    """Composed resources that exist before the first round, by logical name."""
    statuses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Status of composed resources by logical name, merged over that of `made_ready`."""
    managed: ManagedKinds | None = None
    """Known managed kinds: they get the names and ``atProvider`` that their twins would give."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """How composed resources fail, by logical name (``managed_state.FAILURES``)."""
    scopes: Mapping[Kind, bool] = field(default_factory=dict)
    """Whether a kind is namespaced; for other kinds `is_namespaced` decides."""
    salt: str = ""
    """Changes the uids given to objects that have none yet."""
    attributed: Mapping[str, str] = field(default_factory=dict)
    """The step that composed an observed resource, by logical name, if known."""
    composition: str = ""
    """The Composition's name that functions see in an XR that names none; empty: none."""
    connection: str = ""
    """The namespace of a legacy XR's connection Secret (`connection_namespace`); empty: none."""
    lookup: Lookup | None = None
    """An additional lookup for requirements; the simulation's own objects take precedence."""
    nested_status: Callable[[str, Manifest], Mapping[str, Any] | None] = lambda _name, _manifest: (
        None
    )
    """The whole status of a composed resource; None: use that of `made_ready`."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """All rounds of one run, in order."""

    rounds: tuple[Composed, ...]
    settled: bool
    """The last round changed nothing. False after an error or too many rounds."""
    xr: Manifest
    """The XR in the final state."""
    observed: Mapping[str, Manifest]
    """Composed resources in the final state, by logical name."""

    @property
    def final(self) -> Composed:
        return self.rounds[-1]

    @property
    def error(self) -> str:
        """Why the pipeline failed, in Crossplane's words; empty if it did not."""
        return self.final.error

    @property
    def ready(self) -> bool:
        """Return whether it is known that the XR is Ready in the end."""
        if self.final.opaque:
            return False
        return self.settled and self.final.ready_condition.status == "True"

    @property
    def appearance(self) -> tuple[tuple[str, ...], ...]:
        """Logical names in order of appearance: one entry per round with new ones."""
        earlier: set[str] = set()
        waves = []
        for composed in self.rounds:
            new = tuple(sorted(composed.resources.keys() - earlier))
            earlier.update(new)
            waves.append(new)
        return tuple(wave for wave in waves if wave)

    @property
    def kinds(self) -> frozenset[Kind]:
        """Every kind that any round composed."""
        return frozenset(
            Kind.of(desired.manifest)
            for composed in self.rounds
            for desired in composed.resources.values()
        )

    @property
    def requirements(self) -> frozenset[Kind]:
        """Every kind that any round required."""
        return frozenset(
            Kind.parse(selector.api_version, selector.kind)
            for composed in self.rounds
            for selector in composed.requirements
        )


def simulate(
    xr: Manifest,
    steps: Sequence[PipelineStep],
    world: World,
    around: SimulatedWorld | None = None,
    *,
    rounds_max: int = ROUNDS_MAX,
) -> Simulation:
    """
    Run the pipeline for an XR to its fixed point.

    A missing uid and root label are set as in Crossplane's render. XRD defaults are the caller's
    task. Of `world` only the functions are used; observed resources and lookups come from
    `around`. Errors of functions do not raise.
    """
    around = around or SimulatedWorld()
    xr = _prepared(xr, around.salt)
    observed: dict[str, Manifest] = dict(around.observed)
    attributed = dict(around.attributed)
    rounds: list[Composed] = []
    for _ in range(rounds_max):
        attributed_world = replace(world, attributed=attributed)
        composed = compose(
            _as_functions_see_it(xr, around), steps, _world(attributed_world, around, observed, xr)
        )
        rounds.append(composed)
        attributed.update(composed.made_by)
        if composed.error:
            break
        shown_xr, exists = (
            _with_status(xr, composed),
            _cluster_after(xr, composed, around, observed),
        )
        if (shown_xr, exists) == (xr, observed):
            return Simulation(tuple(rounds), settled=True, xr=xr, observed=observed)
        xr, observed = shown_xr, exists
    return Simulation(tuple(rounds), settled=False, xr=xr, observed=observed)


def lookup_in(objects: Sequence[Manifest]) -> Lookup:
    """Return a lookup of required resources in fixed objects, with Crossplane's rules."""

    def lookup(selector: Selector) -> list[Manifest]:
        matching = [manifest for manifest in objects if _matches(manifest, selector)]
        return sorted(matching, key=_sort_key)

    return lookup


def layered_lookup(objects: Sequence[Manifest], elsewhere: Lookup | None) -> Lookup:
    """Return a lookup in `objects` and `elsewhere`; of two equal keys, `objects` wins."""
    first_lookup = lookup_in(objects)
    return (
        first_lookup
        if elsewhere is None
        else partial(_merged_lookup, first_lookup=first_lookup, elsewhere=elsewhere)
    )


def _merged_lookup(selector: Selector, first_lookup: Lookup, elsewhere: Lookup) -> list[Manifest]:
    by_key = {_sort_key(manifest): manifest for manifest in elsewhere(selector)}
    by_key |= {_sort_key(manifest): manifest for manifest in first_lookup(selector)}
    return [by_key[key] for key in sorted(by_key)]


def _matches(manifest: Manifest, selector: Selector) -> bool:
    if Kind.of(manifest) != Kind.parse(selector.api_version, selector.kind):
        return False
    home = metadata(manifest).get("namespace") or ""
    if selector.name:
        return (home, metadata(manifest).get("name")) == (selector.namespace or "", selector.name)
    labels = labels_of(manifest)
    inside = selector.namespace is None or home == selector.namespace
    return inside and all(labels.get(key) == value for key, value in selector.labels.items())


def _sort_key(manifest: Manifest) -> str:
    meta = metadata(manifest)
    return f"{meta.get('namespace') or ''}/{meta.get('name') or ''}"


def _prepared(xr: Manifest, salt: str) -> Manifest:
    xr = root_labelled(xr)
    meta = metadata(xr)
    if meta.get("uid"):
        return xr
    uid = preview_uid(xr)
    salted = str(uuid.uuid5(uuid.UUID(uid), salt)) if salt else uid
    return {**xr, "metadata": {**meta, "uid": salted}}


def _as_functions_see_it(xr: Manifest, around: SimulatedWorld) -> Manifest:
    """Return the XR as functions see it, with what Crossplane has written into its spec."""
    spec = xr.get("spec") or {}
    if around.connection and CONNECTION not in spec:
        reference = {"name": metadata(xr)["uid"], "namespace": around.connection}
        return {**xr, "spec": {**spec, CONNECTION: reference}}
    if not around.composition:
        return xr
    machinery = {**(spec.get("crossplane") or {}), "compositionRef": {"name": around.composition}}
    return {**xr, "spec": {**spec, "crossplane": machinery}}


def _world(
    world: World, around: SimulatedWorld, observed: Mapping[str, Manifest], xr: Manifest
) -> World:
    objects = [*around.existing, *observed.values(), xr]
    lookup = layered_lookup(objects, around.lookup)
    return replace(world, observed=observed, lookup=lookup, scope_of=_scope_of(around))


def _scope_of(around: SimulatedWorld) -> ScopeOf:
    return lambda kind: around.scopes.get(kind, is_namespaced(kind))


def _cluster_after(
    xr: Manifest, composed: Composed, around: SimulatedWorld, before: Mapping[str, Manifest]
) -> dict[str, Manifest]:
    """Return the composed resources that exist after this round."""
    return dict(composed.kept) | {
        name: _created(xr, desired.manifest, before.get(name) or {}, around, name)
        for name, desired in composed.resources.items()
    }


def _created(
    xr: Manifest, desired: Manifest, before: Manifest, around: SimulatedWorld, name: str
) -> Manifest:
    """Return a desired object as it exists; a status set by the function has no effect."""
    meta = {**metadata(desired), "uid": metadata(before).get("uid") or _uid(desired, around.salt)}
    # What a namespaced XR may not compose keeps its namespace: who judges the plan names it.
    if not metadata(xr).get("namespace") and not _scope_of(around)(Kind.of(desired)):
        meta.pop("namespace", None)  # as the API server does (EnsureObjectNamespaceMatches…)
    created = {**desired, "metadata": meta, "status": before.get("status") or {}}
    created = with_address(created, before)
    failure = around.failures.get(name)
    if around.managed and not failure:
        created = around.managed.made(created)
    status = around.nested_status(name, created)
    if status is None:
        base_status = failed_status(failure, created) if failure else made_ready(created)["status"]
        status = overlaid(base_status, dict(around.statuses.get(name) or {}))
    created["status"] = status
    return created if status else _without_status(created)


def _without_status(manifest: Manifest) -> Manifest:
    return {key: value for key, value in manifest.items() if key != "status"}


def _uid(manifest: Manifest, salt: str) -> str:
    return str(uuid.uuid5(uuid.UUID(int=0), f"{salt}{Kind.of(manifest)} {_sort_key(manifest)}"))


def _with_status(xr: Manifest, composed: Composed) -> Manifest:
    """Return the XR with the status of this round; with opaque steps, old fields stay."""
    present = (xr.get("status") or {}).get("conditions") or []
    ready = () if composed.opaque else (composed.ready_condition,)
    conditions = merged(
        present,
        RESPONSIVE,
        *composed.conditions,
        RECONCILE_SUCCESS,
        *ready,
        generation=int(metadata(xr).get("generation") or 1),
        now=WHEN,
    )
    status = composed.status
    if composed.opaque:
        status = overlaid(xr.get("status") or {}, dict(status))
    return {**xr, "status": {**status, "conditions": conditions}}
