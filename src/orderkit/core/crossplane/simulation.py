"""
Run a Composition's pipeline until nothing changes any more: what an order becomes, and how.

`simulate` plays the cluster between two runs of `core.crossplane.pipeline.compose`: what was wanted
exists in the next round and is ready (`core.crossplane.simulated_objects`), what is no longer
wanted is gone, the XR shows its status. Gated resources therefore appear round after round, as they
do on Crossplane. It stops when a round changes nothing, when the pipeline fails, or after a bounded
number of rounds.

Not simulated: whether the API server would take an object (`core.schema.validate`), RBAC, the first
rounds that Crossplane loses when things are wanted before their Namespace exists (they simply
appear; ``core.check`` judges that), what nested XRs compose in their turn (a caller may
tell what they come to show: `SimulatedWorld.shows`), time.

Used by ``kit check``, ``kit test`` and plans. Pure as long as the functions are.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from orderkit.core.crossplane.composed import Composed, Fetch, PipelineStep, ScopeOf, World
from orderkit.core.crossplane.composed_metadata import preview_uid, root_labelled
from orderkit.core.crossplane.pipeline import compose
from orderkit.core.crossplane.simulated_objects import WHEN, made_ready
from orderkit.core.crossplane.station import Selector
from orderkit.core.objects.conditions import RECONCILE_SUCCESS, RESPONSIVE, merged
from orderkit.core.objects.kube_objects import Kind, Manifest, labels_of, metadata
from orderkit.core.objects.plain_data import overlaid
from orderkit.core.objects.scopes import is_namespaced

ROUNDS_MAX = 20
"""More rounds than any sensible chain of gates needs."""


@dataclass(frozen=True, slots=True)
class SimulatedWorld:
    """What exists besides the XR, and how it behaves."""

    existing: Sequence[Manifest] = ()
    """Objects that requirements may find; composed ones are found as well."""
    observed: Mapping[str, Manifest] = field(default_factory=dict)
    """Composed resources that exist before the first round, by logical name."""
    statuses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Status of composed resources once they exist, by logical name, laid over `made_ready`'s."""
    scopes: Mapping[Kind, bool] = field(default_factory=dict)
    """Whether a kind is namespaced; where not given, `is_namespaced` decides."""
    salt: str = ""
    """Another one makes other uids of everything that has none yet."""
    attributed: Mapping[str, str] = field(default_factory=dict)
    """Which step asked for what is observed, by logical name, where that is known."""
    composition: str = ""
    """What functions see as the XR's Composition, if the XR names none; empty: nothing."""
    look: Fetch | None = None
    """Where requirements are looked up besides; what the simulation holds itself goes before."""
    shows: Callable[[str, Manifest], Mapping[str, Any] | None] = lambda _name, _wanted: None
    """The whole status that a composed resource comes to show; None: `made_ready`'s."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """All rounds of one run, the last one last."""

    rounds: tuple[Composed, ...]
    settled: bool
    """The last round changed nothing. False after an error and when the rounds ran out."""
    xr: Manifest
    """The XR as the cluster shows it at the end."""
    observed: Mapping[str, Manifest]
    """Composed resources as they exist at the end, by logical name."""

    @property
    def final(self) -> Composed:
        return self.rounds[-1]

    @property
    def error(self) -> str:
        """Why the pipeline failed, in Crossplane's words; empty if it did not."""
        return self.final.error

    @property
    def ready(self) -> bool:
        """Say whether it is known that the XR is Ready in the end."""
        if self.final.opaque:
            return False
        return self.settled and self.final.ready_condition.status == "True"

    @property
    def appearance(self) -> tuple[tuple[str, ...], ...]:
        """Logical names in the order they come: one entry per round that brings new ones."""
        seen: set[str] = set()
        waves = []
        for composed in self.rounds:
            new = tuple(sorted(composed.resources.keys() - seen))
            seen.update(new)
            waves.append(new)
        return tuple(wave for wave in waves if wave)

    @property
    def kinds(self) -> frozenset[Kind]:
        """Every kind that was wanted in any round."""
        return frozenset(
            Kind.of(desired.manifest)
            for composed in self.rounds
            for desired in composed.resources.values()
        )

    @property
    def requirements(self) -> frozenset[Kind]:
        """Every kind that was asked for in any round."""
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

    The XR may lack uid and root label; they are given as Crossplane's render gives them. XRD
    defaults are the caller's part. Of `world` the functions and the foreign ones count; what is
    observed and fetched comes from `around`. Never raises for what a function does.
    """
    around = around or SimulatedWorld()
    xr = _prepared(xr, around.salt)
    observed: dict[str, Manifest] = dict(around.observed)
    attributed = dict(around.attributed)
    done: list[Composed] = []
    for _ in range(rounds_max):
        known = replace(world, attributed=attributed)
        composed = compose(_seen(xr, around), steps, _world(known, around, observed, xr))
        done.append(composed)
        attributed.update(composed.made_by)
        if composed.error:
            break
        shown, exists = _shown(xr, composed), _existing(composed, around, observed)
        if (shown, exists) == (xr, observed):
            return Simulation(tuple(done), settled=True, xr=xr, observed=observed)
        xr, observed = shown, exists
    return Simulation(tuple(done), settled=False, xr=xr, observed=observed)


def finder(objects: Sequence[Manifest]) -> Fetch:
    """Return a look-up of required resources in a fixed set of objects, as Crossplane looks."""

    def find(selector: Selector) -> list[Manifest]:
        found = [manifest for manifest in objects if _matches(manifest, selector)]
        return sorted(found, key=_place)

    return find


def seeker(objects: Sequence[Manifest], look: Fetch | None) -> Fetch:
    """Return a look-up in `objects` first, and then elsewhere."""
    find = finder(objects)

    def seek(selector: Selector, look: Fetch) -> list[Manifest]:
        found = {_place(manifest): manifest for manifest in (*look(selector), *find(selector))}
        return [found[place] for place in sorted(found)]

    return find if look is None else partial(seek, look=look)


def _matches(manifest: Manifest, selector: Selector) -> bool:
    if Kind.of(manifest) != Kind.parse(selector.api_version, selector.kind):
        return False
    home = metadata(manifest).get("namespace") or ""
    if selector.name:
        return (home, metadata(manifest).get("name")) == (selector.namespace or "", selector.name)
    labels = labels_of(manifest)
    inside = selector.namespace is None or home == selector.namespace
    return inside and all(labels.get(key) == value for key, value in selector.labels.items())


def _place(manifest: Manifest) -> str:
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


def _seen(xr: Manifest, around: SimulatedWorld) -> Manifest:
    """Return the XR as functions see it: Crossplane has chosen its Composition before."""
    spec = xr.get("spec") or {}
    if not around.composition or "crossplane" in spec:
        return xr
    machinery = {"compositionRef": {"name": around.composition}}
    return {**xr, "spec": {**spec, "crossplane": machinery}}


def _world(
    world: World, around: SimulatedWorld, observed: Mapping[str, Manifest], xr: Manifest
) -> World:
    objects = [*around.existing, *observed.values(), xr]
    fetch = seeker(objects, around.look)
    return replace(world, observed=observed, fetch=fetch, scope_of=_scope_of(around))


def _scope_of(around: SimulatedWorld) -> ScopeOf:
    return lambda kind: around.scopes.get(kind, is_namespaced(kind))


def _existing(
    composed: Composed, around: SimulatedWorld, before: Mapping[str, Manifest]
) -> dict[str, Manifest]:
    """What the cluster holds after this round."""
    return dict(composed.kept) | {
        name: _exists(desired.manifest, before.get(name) or {}, around, name)
        for name, desired in composed.resources.items()
    }


def _exists(wanted: Manifest, before: Manifest, around: SimulatedWorld, name: str) -> Manifest:
    """What becomes of a wanted object; a status that the function wrote into it has no effect."""
    meta = {**metadata(wanted), "uid": metadata(before).get("uid") or _uid(wanted, around.salt)}
    made = {**wanted, "metadata": meta, "status": before.get("status") or {}}
    shown = around.shows(name, made)
    if shown is None:
        shown = overlaid(made_ready(made)["status"], dict(around.statuses.get(name) or {}))
    made["status"] = shown
    return made if shown else _without_status(made)


def _without_status(manifest: Manifest) -> Manifest:
    return {key: value for key, value in manifest.items() if key != "status"}


def _uid(manifest: Manifest, salt: str) -> str:
    return str(uuid.uuid5(uuid.UUID(int=0), f"{salt}{Kind.of(manifest)} {_place(manifest)}"))


def _shown(xr: Manifest, composed: Composed) -> Manifest:
    """Return the XR with the status that this round writes; opaque steps keep theirs."""
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
