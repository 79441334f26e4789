"""
Assemble an XR: everything composed for it, nested XRs expanded, in one `Assembly`.

`assemble` runs the pipeline of ``compositions.simulation`` for the XR, then for every composed
resource that is itself an XR of a known kind. The parent sees the status that a nested XR reaches
in one round in the next. Resources are named by path: ``budget/pause-planner`` is what the XR's
resource ``budget`` composes as ``pause-planner``.

Unknowns are reported, never left out: steps that cannot run here (they are skipped, and existing
resources that no other step composes are kept), missing required resources, XRs that fail or never
settle.

`PackRules` is what a pack declares about outcomes, apart from how it assembles them: schemas,
rights, data.

Pure as long as the stations are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, TypeVar

from compositions.composed import Composed, Lookup, PipelineStep, World, steps_of
from compositions.composition_choice import with_stored_choice
from compositions.layered_settings import decided_values
from compositions.simulation import SimulatedWorld, Simulation, layered_lookup, simulate
from compositions.station import Station
from ground.objects.kube_objects import Kind, Manifest, dig
from kubeschema.known import Behaviour, Behaviours, GroupKind, Layer
from kubeschema.known.managed_behaviour import behaviour_of
from kubeschema.validate import Finding, Validator
from orderkit.core.kit.kit_file import AcceptedDanger, Import
from orderkit.core.plan.assembly import Assembly, Fault, Note, key_text, selector_text
from orderkit.core.plan.composing_revision import ComposingRevision, composing_revision

ANY_GROUP = "*"


@dataclass(frozen=True, slots=True)
class PackRules:
    """The rules for judging plans of a pack's orders; facts of a cluster are added to them."""

    delivered: Layer = field(default_factory=dict)
    """Kinds of the pack's CRDs and XRDs, and of its ``schemas/``."""
    described: frozenset[GroupKind] = frozenset()
    """Kinds of these that only ``schemas/`` has: the pack brings them to no cluster."""
    supplied: Layer = field(default_factory=dict)
    """Kinds passed for this plan. They take precedence over the cluster's."""
    roles: Sequence[Manifest] = ()
    """ClusterRoles that are aggregated to Crossplane's."""
    data_kinds: Mapping[GroupKind, bool] = field(default_factory=dict)
    """Kinds that the pack declares to hold data, or not; the group may be `ANY_GROUP`."""
    behaviours: Behaviours = field(default_factory=dict)
    """What managed kinds are like, by the pack's ``schemas/behaviour.yaml``."""
    team_fields: Mapping[GroupKind, str] = field(default_factory=dict)
    """The field of ``spec`` that names an order's team, dotted, by the kind of its XR."""

    imports: Mapping[GroupKind, Import] = field(default_factory=dict)
    """How orders take over what exists in the cloud, by the kind of their XR."""
    public_keys: Mapping[GroupKind, frozenset[str]] = field(default_factory=dict)
    """Keys of Secrets that kits declare public, by the kind of their XR."""
    accepts: Mapping[GroupKind, Sequence[AcceptedDanger]] = field(default_factory=dict)
    """Dangers that kits accept, by the kind of their XR."""
    settings: Sequence[Manifest] = ()
    """The pack's EnvironmentConfigs. A plan reads the cluster's instead."""

    def joined(self, other: PackRules) -> PackRules:
        """Return the rules of two packs combined. `other` takes precedence."""
        brought = {*self._brought, *other._brought}
        return PackRules(
            delivered={**self.delivered, **other.delivered},
            described=(self.described | other.described) - brought,
            supplied={**self.supplied, **other.supplied},
            roles=(*self.roles, *other.roles),
            data_kinds={**self.data_kinds, **other.data_kinds},
            behaviours={**self.behaviours, **other.behaviours},
            team_fields={**self.team_fields, **other.team_fields},
            imports={**self.imports, **other.imports},
            public_keys={**self.public_keys, **other.public_keys},
            accepts={**self.accepts, **other.accepts},
            settings=(*self.settings, *other.settings),
        )

    @property
    def _brought(self) -> frozenset[GroupKind]:
        return frozenset(self.delivered.keys() - self.described)

    def behaviour(self, kind: Kind) -> Behaviour:
        """Return how managed resources of a kind behave."""
        return behaviour_of(self.behaviours, kind.group, kind.kind)

    def public_keys_of(self, xr: Manifest) -> frozenset[str]:
        """Return the keys of Secrets that the kit of an XR declares public."""
        kind = Kind.of(xr)
        return self.public_keys.get((kind.group, kind.kind), frozenset())

    @property
    def scopes(self) -> dict[Kind, bool]:
        """Whether kinds are namespaced, in every version."""
        return {
            Kind(group, version, kind): known_kind.namespaced
            for layer in (self.delivered, self.supplied)
            for (group, kind), known_kind in layer.items()
            for version in known_kind.validator.versions
        }


_DEPTH_MAX = 5


@dataclass(frozen=True, slots=True)
class Blueprint:
    """How one kind of XR is assembled."""

    validator: Validator
    """The validator of its XRD, which also fills in defaults."""
    steps: Sequence[PipelineStep]
    """Of the usual Composition."""
    composition: str = ""
    """Its name as shown in ``spec.crossplane``; empty for XRs of the first API."""
    defaults: Mapping[tuple[str | int, ...], Any] = field(default_factory=dict)
    """Defaults of its XRD, by their path below ``spec``."""
    xrd: Manifest = field(default_factory=dict)
    """Without it, every XR is composed by `steps`, whatever it says."""
    compositions: Mapping[str, Manifest] = field(default_factory=dict)
    """Every Composition of the pack for this kind, by name."""

    @property
    def called(self) -> set[str]:
        """Return the functions that steps call."""
        pipelines = [steps_of(manifest["spec"]) for manifest in self.compositions.values()]
        return {step.function for steps in (self.steps, *pipelines) for step in steps}


@dataclass(frozen=True, slots=True)
class AssemblyContext:
    """Everything that assembling needs besides the XR."""

    blueprints: Mapping[tuple[str, str], Blueprint]
    """By group and kind."""
    functions: Mapping[str, Station]
    """Functions that run in this process, by name."""
    existing: Sequence[Manifest] = ()
    """Objects that satisfy requirements."""
    scopes: Mapping[Kind, bool] = field(default_factory=dict)
    """Whether a kind is namespaced, where that is known."""
    salt: str = ""
    """Changes the uids given to objects that have none yet (``secret_traces``)."""
    laws: PackRules = field(default_factory=PackRules)
    """The rules that outcomes are judged by."""
    remote: Collection[str] = ()
    """Functions that run as processes of their own."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Uncertainties about a function, by its name."""
    foreign: Mapping[str, str] = field(default_factory=dict)
    """Why the cluster does not run a function, by its name."""
    lookup: Lookup | None = None
    """An additional lookup for requirements."""
    asks_cluster: bool = False
    """What cannot be looked up does not exist."""

    def blueprint(self, manifest: Manifest) -> Blueprint | None:
        """Return how an object is assembled, if it is an XR of a known kind."""
        kind = Kind.of(manifest)
        return self.blueprints.get((kind.group, kind.kind))


def assemble(
    xr: Manifest,
    workshop: AssemblyContext,
    *,
    observed: Mapping[str, Manifest] | None = None,
    attributed: Mapping[str, str] | None = None,
) -> Assembly:
    """
    Assemble an XR until it settles. Errors of stations become faults and are not raised.

    Args:
        observed: Composed resources that exist already, by path; they keep their names.
        attributed: The step that composed each of them, by path: `Assembly.made_by` of before.
            A resource of an unknown step is kept as long as any step is opaque.

    Raises:
        KeyError: The XR's own kind has no blueprint.
    """
    return _assemble(xr, workshop, _LiveState(observed or {}, attributed or {}), depth=0)


@dataclass(frozen=True, slots=True)
class _LiveState:
    """The live resources of an XR and the steps that composed them, by path."""

    observed: Mapping[str, Manifest]
    attributed: Mapping[str, str]

    def below(self, name: str) -> _LiveState:
        """Return the part that belongs to a nested XR."""
        return _LiveState(dict(_below(name, self.observed)), dict(_below(name, self.attributed)))


def _assemble(xr: Manifest, workshop: AssemblyContext, live: _LiveState, *, depth: int) -> Assembly:
    kind = Kind.of(xr)
    blueprint = workshop.blueprints[kind.group, kind.kind]
    report = blueprint.validator.check(xr)
    faults = tuple(_refused(finding) for finding in report.findings)
    chosen = _chosen(report.result, blueprint, workshop)
    assembly = _XrAssembly(workshop, chosen, report.result, live, depth).settled(faults)
    judged = assembly.faults or assembly.xr.get("status") == xr.get("status")
    wrong = () if judged else tuple(_unshowable(assembly.xr, blueprint.validator))
    return replace(assembly, input_xr=xr, faults=(*assembly.faults, *wrong))


def _chosen(xr: Manifest, blueprint: Blueprint, workshop: AssemblyContext) -> ComposingRevision:
    if not blueprint.xrd:
        return ComposingRevision(blueprint.steps, blueprint.composition)
    return composing_revision(
        xr,
        blueprint.xrd,
        blueprint.compositions,
        layered_lookup(workshop.existing, workshop.lookup),
        asks_cluster=workshop.asks_cluster,
    )


def _unshowable(xr: Manifest, validator: Validator) -> Iterator[Fault]:
    """Yield status fields that stations write and the XRD does not allow."""
    for finding in validator.check(xr).findings:
        if finding.path.startswith("status.") and not finding.path.startswith("status.conditions"):
            yield _refused(finding)


def _refused(finding: Finding) -> Fault:
    return Fault(
        "",
        finding.message,
        finding.path,
        finding.hint,
        value=finding.value,
        rule=finding.rule or str(finding.reason),
    )


@dataclass(frozen=True, slots=True)
class _XrAssembly:
    """Assembles one XR and what is composed for it."""

    workshop: AssemblyContext
    chosen: ComposingRevision
    xr: Manifest
    live: _LiveState
    depth: int
    nested: dict[str, Assembly] = field(default_factory=dict)
    """The latest assembly of each nested XR, by name."""

    def settled(self, faults: tuple[Fault, ...]) -> Assembly:
        """Simulate; in each round, nested XRs show the status of what is composed for them."""
        simulation = self._simulated()
        names = (name for name in simulation.observed if name not in simulation.final.kept)
        nested = {name: self._nested(name, simulation.observed[name]) for name in names}
        assemblies = {name: assembly for name, assembly in nested.items() if assembly is not None}
        return self._whole(simulation, assemblies, faults)

    def _simulated(self) -> Simulation:
        observed = {
            name: manifest for name, manifest in self.live.observed.items() if "/" not in name
        }
        shop = self.workshop
        if self.chosen.error:
            failed = Composed(self.chosen.error)
            return Simulation((failed,), settled=False, xr=self.xr, observed=observed)
        around = SimulatedWorld(
            shop.existing,
            observed,
            scopes=shop.scopes,
            salt=shop.salt,
            attributed=self.live.attributed,
            composition=self.chosen.composition,
            connection=self.chosen.connection,
            lookup=shop.lookup,
            nested_status=self._nested_status,
        )
        world = World(shop.functions, foreign=shop.foreign, remote=shop.remote, passing=True)
        return simulate(self.xr, self.chosen.steps, world, around)

    def _nested_status(self, name: str, manifest: Manifest) -> Mapping[str, Any] | None:
        """Return the status of a nested XR; None if the resource is not an XR."""
        assembly = self._nested(name, manifest)
        return None if assembly is None else assembly.xr.get("status") or {}

    def _nested(self, name: str, manifest: Manifest) -> Assembly | None:
        """Return the assembly of a nested XR, reused if its input is that of the last round."""
        if self.depth == _DEPTH_MAX or self.workshop.blueprint(manifest) is None:
            return None
        xr, assembly = self._as_it_was(name, manifest), self.nested.get(name)
        if assembly is None or assembly.input_xr != xr:
            live = self.live.below(name)
            assembly = _assemble(xr, self.workshop, live, depth=self.depth + 1)
            self.nested[name] = assembly
        return assembly

    def _as_it_was(self, name: str, manifest: Manifest) -> Manifest:
        """Return a desired nested XR with its live status and choice, as before the simulation."""
        bare = {key: value for key, value in manifest.items() if key != "status"}
        live = self.live.observed.get(name, {})
        blueprint = self.workshop.blueprint(manifest)
        if blueprint is not None and blueprint.xrd:
            bare = with_stored_choice(bare, live, blueprint.xrd)
        return {**bare, "status": live["status"]} if live.get("status") else bare

    def _kept_resources(
        self, simulation: Simulation, nested: Mapping[str, Assembly]
    ) -> dict[str, Manifest]:
        """Return the existing resources that no known step composes, with those below them."""
        kept = dict(simulation.final.kept)
        for name in simulation.final.kept:
            below = _below(name, self.live.observed)
            kept |= {f"{name}/{path}": manifest for path, manifest in below}
        for name, assembly in nested.items():
            kept |= {f"{name}/{path}": manifest for path, manifest in assembly.kept.items()}
        return kept

    def _whole(
        self,
        simulation: Simulation,
        nested: Mapping[str, Assembly],
        faults: tuple[Fault, ...],
    ) -> Assembly:
        resources = {
            name: composed.manifest for name, composed in simulation.final.resources.items()
        }
        first_round = simulation.rounds[0].resources
        at_once = {name: composed.manifest for name, composed in first_round.items()}
        made_by = dict(simulation.final.made_by)
        kept = self._kept_resources(simulation, nested)
        observed = {**simulation.observed, **kept}
        notes, unknowns = _warnings(simulation), tuple[str, ...]()
        for name, below in nested.items():
            made_by |= {f"{name}/{path}": step for path, step in below.made_by.items()}
            resources |= {f"{name}/{path}": manifest for path, manifest in below.resources.items()}
            at_once |= {f"{name}/{path}": manifest for path, manifest in below.at_once.items()}
            observed |= {f"{name}/{path}": manifest for path, manifest in below.observed.items()}
            faults += tuple(_below_fault(name, fault) for fault in below.faults)
            unknowns += tuple(f"{name}: {text}" for text in below.unknowns)
            notes += tuple(replace(n, path=_joined(name, n.path)) for n in below.notes)
        failed = (Fault("", simulation.error, code="pipeline"),) if simulation.error else ()
        requirements = [
            selector for round_ in simulation.rounds for selector in round_.requirements
        ]
        requirements += [selector for below in nested.values() for selector in below.requirements]
        requirements += self.chosen.requirements
        return Assembly(
            xr=simulation.xr,
            resources=resources,
            observed=observed,
            waves=_waves(simulation, nested),
            ready=simulation.ready and all(below.ready for below in nested.values()),
            faults=faults + failed,
            unknowns=unknowns + tuple(self._unknowns(simulation)),
            requirements=tuple(
                {selector_text(selector): selector for selector in requirements}.values()
            ),
            missing=tuple(
                dict.fromkeys(
                    (*self._missing(simulation), *(t for b in nested.values() for t in b.missing))
                )
            ),
            notes=notes,
            waits=_waits(simulation, nested),
            is_opaque=bool(simulation.final.opaque)
            or any(assembly.is_opaque for assembly in nested.values()),
            kept=kept,
            at_once=at_once,
            made_by=made_by,
            renamed=any(composed.renamed for composed in simulation.final.resources.values())
            or any(assembly.renamed for assembly in nested.values()),
            stuck=_stuck(simulation, nested),
            pinned=self._pinned(nested),
            assumed=(*self.chosen.assumed, *(m for b in nested.values() for m in b.assumed)),
            settings=decided_values(simulation.final.context),
        )

    def _pinned(self, nested: Mapping[str, Assembly]) -> dict[str, str]:
        pinned = {"": self.chosen.pinned} if self.chosen.pinned else {}
        for name, below in nested.items():
            pinned |= {_joined(name, path): text for path, text in below.pinned.items()}
        return pinned

    def _unknowns(self, simulation: Simulation) -> Iterator[str]:
        yield from self.chosen.unknowns
        for step, why in simulation.final.opaque.items():
            yield f'step "{step}": {why}; what it adds, changes or drops is not in this plan'
        for name, manifest in simulation.final.kept.items():
            yield f"{key_text(manifest)} ({name}) is kept: no step that can run here composes it"
        notes = self.workshop.notes
        functions = dict.fromkeys(step.function for step in self.chosen.steps)
        yield from (notes[name] for name in functions if name in notes)
        yield from (f"{text} is required and does not exist" for text in self._missing(simulation))
        for name in _waits(simulation, {}):
            about = key_text(simulation.observed[name])
            yield f"{about} ({name}): when it is ready, its provider decides by its status"
        if not (simulation.settled or simulation.error):
            yield f"the pipeline did not settle within {len(simulation.rounds)} rounds"

    def _missing(self, simulation: Simulation) -> list[str]:
        shop = self.workshop
        find = layered_lookup(
            [*shop.existing, *simulation.observed.values(), simulation.xr], shop.lookup
        )
        return sorted(
            {
                selector_text(selector)
                for selector in simulation.final.requirements
                if not find(selector)
            }
        )


def _waits(simulation: Simulation, nested: Mapping[str, Assembly]) -> tuple[str, ...]:
    """
    Return the unready parts if all of them only wait for their providers.

    What a provider writes into ``status.atProvider`` is not simulated; stations may wait for it.
    """
    waiting: list[str] = []
    for name in simulation.final.unready:
        manifest = simulation.observed.get(name, {})
        if name in nested and nested[name].waits:
            waiting += [f"{name}/{path}" for path in nested[name].waits]
        elif dig(manifest, "spec", "forProvider") and not dig(manifest, "status", "atProvider"):
            waiting.append(name)
        else:
            return ()
    is_all = all(below.ready or below.waits for below in nested.values())
    return tuple(waiting) if simulation.settled and not simulation.error and is_all else ()


def _warnings(simulation: Simulation) -> tuple[Note, ...]:
    """Return the warnings of the last round."""
    warned = (event.message for event in simulation.final.events if event.type == "Warning")
    return tuple(Note("", "warning", message) for message in dict.fromkeys(warned))


def _stuck(simulation: Simulation, nested: Mapping[str, Assembly]) -> frozenset[str]:
    below = (
        f"{name}/{path}".rstrip("/") for name, assembly in nested.items() for path in assembly.stuck
    )
    return frozenset((*below, *([""] if simulation.error else ())))


_Value = TypeVar("_Value")


def _below(name: str, by_path: Mapping[str, _Value]) -> Iterator[tuple[str, _Value]]:
    for path, entry in by_path.items():
        head, slash, subpath = path.partition("/")
        if slash and head == name:
            yield subpath, entry


def _below_fault(name: str, fault: Fault) -> Fault:
    return replace(fault, path=_joined(name, fault.path))


def _joined(name: str, path: str) -> str:
    return f"{name}/{path}" if path else name


def _waves(simulation: Simulation, nested: Mapping[str, Assembly]) -> tuple[tuple[str, ...], ...]:
    waves: list[tuple[str, ...]] = []
    for wave in simulation.appearance:
        below = [_prefixed(name, nested[name].waves) for name in wave if name in nested]
        waves += [wave, *(sum(level, ()) for level in zip_longest(*below, fillvalue=()))]
    return tuple(waves)


def _prefixed(name: str, waves: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    return [tuple(f"{name}/{path}" for path in wave) for wave in waves]
