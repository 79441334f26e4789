"""
Test runs of a kit's pipeline: each order runs twice until it settles, and every call is recorded.

``check.pipeline_run_checks`` judges the runs.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import and_

from compositions.composed import Composed, World
from compositions.composition_choice import connection_namespace
from compositions.generated_passwords import STAND_IN_SEED
from compositions.pipeline import compose
from compositions.python_functions import functions_here
from compositions.simulation import SimulatedWorld, Simulation, lookup_in, simulate
from compositions.station import Station, StationRequest, StationResponse
from ground.objects.kube_objects import Manifest, is_namespaced, metadata
from orderkit.core.kit.compositions import chosen_composition, name_shown
from orderkit_workshop.check.composition_checks import runnable
from orderkit_workshop.check.kit_under_check import Doc, KitUnderCheck, steps_in
from orderkit_workshop.check.trial_orders import Order


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """One call of a step's function."""

    who: str
    """The station's name, or the function's."""
    earlier_resources: frozenset[str]
    """Names of the resources that earlier steps composed."""
    response: StationResponse
    unanswered: frozenset[str]
    """Requirements whose lookup found nothing."""


@dataclass(slots=True)
class Tracer:
    """Records every call of the functions it wraps."""

    calls: list[FunctionCall] = field(default_factory=list)

    def wrap(self, functions: Mapping[str, Station]) -> dict[str, Station]:
        """Return the functions with their calls recorded."""
        return {name: self._watched(name, function) for name, function in functions.items()}

    def _watched(self, name: str, function: Station) -> Station:
        def run(request: StationRequest) -> StationResponse:
            earlier_resources = frozenset(request.desired.resources)
            who = str(request.input.get("name") or name)
            unanswered = frozenset(key for key, objects in request.required.items() if not objects)
            response = function(request)
            self.calls.append(FunctionCall(who, earlier_resources, response, unanswered))
            return response

        return run


@dataclass(frozen=True, slots=True)
class Run:
    """One order through one Composition."""

    order: Order
    doc: Doc
    simulation: Simulation
    again: Simulation
    calls: tuple[FunctionCall, ...]
    pack: tuple[Manifest, ...]
    """Everything the pack delivers."""
    functions: Mapping[str, Station]

    @property
    def key(self) -> str:
        """A key that is the same in every process."""
        return f"{self.doc.name}: {self.order.label}"

    def once(self, observed: Mapping[str, Manifest], *, facts: bool = True) -> Composed:
        """Run the pipeline once more on the final state, with other resources or without facts."""
        existing = [*self.pack, *observed.values(), self.simulation.xr] if facts else []
        world = World(self.functions, observed, lookup=lookup_in(existing), scope_of=is_namespaced)
        return compose(self.simulation.xr, steps_in(self.doc) or (), world)


def runs_of(subject: KitUnderCheck, orders: Sequence[Order], *, twice: bool = True) -> list[Run]:
    """Run every order through every Composition that can run in this process."""
    docs = [doc for doc in subject.compositions if runnable(subject, doc)]
    return [
        _run(subject, doc, order, twice=twice)
        for doc in docs
        for order in orders
        if _may_compose(subject, doc, order)
    ]


def _may_compose(subject: KitUnderCheck, doc: Doc, order: Order) -> bool:
    """Say whether a Composition is the one that an order names, if it names one of the kit's."""
    named = chosen_composition(subject.kit, order.xr) if subject.kit else ""
    names = {each.name for each in subject.compositions}
    return named not in names or named == doc.name


def _run(subject: KitUnderCheck, doc: Doc, order: Order, *, twice: bool) -> Run:
    steps, tracer = steps_in(doc) or (), Tracer()
    function_names = [step.function for step in steps]
    facts = subject.pack
    functions = functions_here(
        facts.stations, facts.packages, function_names, facts.programs
    ).functions
    delivered = (
        STAND_IN_SEED,
        *(doc.manifest for doc in subject.pack.docs if metadata(doc.manifest)),
        *(subject.kit.fixtures if subject.kit else ()),
    )
    xrd = subject.definition.manifest if subject.definition else None
    around = SimulatedWorld(
        existing=delivered,
        scopes=subject.pack.xr_scopes,
        managed=subject.pack.managed_kinds,
        composition=name_shown(xrd, doc.manifest) if xrd else "",
        connection=connection_namespace(xrd, doc.manifest) if xrd else "",
    )
    first = simulate(order.xr, steps, World(tracer.wrap(functions)), around)
    again = simulate(order.xr, steps, World(functions), around) if twice else first
    return Run(order, doc, first, again, tuple(tracer.calls), delivered, functions)


def fingerprints(runs: Iterable[Run]) -> dict[str, dict[str, str]]:
    """Return digests of each run's final state, to compare with another process."""
    digests_by_run: dict[str, dict[str, str]] = {}
    for run in runs:
        final = run.simulation.final
        parts = {name: desired.manifest for name, desired in final.resources.items()}
        digests = {f"resource '{name}'": _digest(manifest) for name, manifest in parts.items()}
        digests["status"] = _digest(dict(final.status))
        digests["conditions"] = _digest([repr(condition) for condition in final.conditions])
        digests["error"] = _digest(final.error)
        digests_by_run[run.key] = digests
    return digests_by_run


def differing_parts(
    processes: Sequence[Mapping[str, Mapping[str, Mapping[str, str]]]],
) -> dict[str, dict[str, list[str]]]:
    """Return what differs between the `fingerprints` of processes: kit -> run -> parts."""
    differing: dict[str, dict[str, list[str]]] = {}
    for kit, runs in (processes[0] if processes else {}).items():
        for run in runs:
            parts = [set(process.get(kit, {}).get(run, {}).items()) for process in processes]
            everywhere = functools.reduce(and_, parts)
            changed = {name for names in parts for name, _ in names - everywhere}
            if changed:
                differing.setdefault(kit, {})[run] = sorted(changed)
    return differing


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
