"""
Run a scenario through a kit like an order: form, files, XR, pipeline. Nothing is written.

A `Trial` is prepared once per kit and takes any number of scenarios. The form and the files are
those of the template's own steps, run dry; the XR is judged by ``kubeschema.validate``; the
pipeline runs by ``compositions.simulation`` with the stations of the pack; what it composes in the
end is judged by the schemas of the pack. Each refusal names its stage.

Not tried: what the steps ask of a platform (publishing, registering), and pipelines with steps that
are no Python function of this process: those are told as not run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from compositions.composed import PipelineStep, World, preview_uid, root_labelled, steps_of
from compositions.composition_choice import connection_namespace
from compositions.layered_settings import ENVIRONMENT
from compositions.managed_state import ManagedKinds
from compositions.python_functions import functions_here, not_run, packages_of
from compositions.resource_builders import STAND_IN_SEED
from compositions.simulation import SimulatedWorld, Simulation, simulate
from compositions.station import Station
from ground.errors import InvalidInputError, OrderkitError
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, controller_reference, metadata
from kubeschema.known import SchemaSet
from kubeschema.validate import Validator
from orderkit.core.kit.checked_kits import checked_kit
from orderkit.core.kit.compositions import (
    choice_findings,
    chosen_composition,
    composition_of,
    compositions_of,
    name_shown,
)
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import Pack
from orderkit.core.order.order_check import check_order_files
from orderkit.core.platform.baking import bake
from orderkit.flows.install.pack_rendering import PlatformValues
from orderkit.flows.template import scaffolder
from orderkit_workshop.check.kind_checks import unfit_fields
from orderkit_workshop.check.kit_under_check import PackFacts
from orderkit_workshop.check.scenario import (
    RefusalStage,
    Scenario,
    ScenarioOutcome,
    ScenarioRefusal,
)
from softwaretemplates.template import Template, parse_template

VALUES = PlatformValues(
    "http://forge.example.org",
    "0" * 40,
    "registry.example.org",
    service_url="http://orderkit.example.org",
)
"""The platform that scenarios are sent to."""
_USER = scaffolder.User("user:default/tester")


class _RefusedError(Exception):
    """A stage refused; carries the refusal out of the stages."""

    def __init__(self, refusal: ScenarioRefusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class ScenarioTrial:
    """A kit, ready to take scenarios."""

    kit: Kit
    folder: Mapping[PurePosixPath, bytes]
    """``templates/<kit>``, with the values of the platform baked in."""
    template: Template | None
    validator: Validator
    steps: tuple[PipelineStep, ...] | None
    world: World
    schemas: SchemaSet
    """What composed objects are judged by."""
    composition: str = ""
    """Its name, as the XR shows it."""
    connection: str = ""
    """The namespace of the connection Secrets of legacy XRs."""
    layers: tuple[Manifest, ...] = ()
    """The EnvironmentConfigs that the pack delivers."""
    managed: ManagedKinds | None = None
    """The managed kinds of the pack's ``schemas/``."""
    others: Mapping[str, ScenarioTrial] = field(default_factory=dict)
    """The trials of XRs that name a Composition, by its name."""

    def run(self, scenario: Scenario, *, case: str) -> ScenarioOutcome:
        """
        Send a scenario through the kit; `case` names an XR that has no name.

        Raises:
            InvalidInputError: The scenario gives values, and the kit has no template.
        """
        try:
            files, xr = self._ordered(scenario, case)
            result = self._judged(_delivered(self.kit, xr))
            chosen = self.others.get(chosen_composition(self.kit, xr), self)
            return chosen._assembled(scenario, files, result)  # noqa: SLF001 - of this class
        except _RefusedError as refused:
            return ScenarioOutcome(refused.refusal)

    def _ordered(self, scenario: Scenario, case: str) -> tuple[Mapping[PurePosixPath, bytes], Any]:
        if scenario.values is None:
            return {}, _completed(self.kit.kind, scenario.xr or {}, case)
        if self.template is None:
            raise InvalidInputError(
                f"templates/{self.kit.name}/template.yaml",
                None,
                "is missing, so there is no form for values",
                hint="run 'orderkit kit generate', or give an xr",
            )
        with _stage(RefusalStage.FORM):
            values = self.template.validate(scenario.values)
            order = self.kit.order_id(values)
            self.kit.team(values)
        with _stage(RefusalStage.FILES):
            files = self._rendered(values)
        with _stage(RefusalStage.XR):
            return files, check_order_files(self.kit, order, files, self.validator)

    def _rendered(self, values: Mapping[str, Any]) -> dict[PurePosixPath, bytes]:
        assert self.template is not None  # noqa: S101 - the caller has looked
        result = scaffolder.run(
            self.template,
            values,
            files=self.folder,
            services=None,
            user=_USER,
            task_id="scenario",
            on_step=lambda _: None,
            options=scaffolder.TaskOptions(dry_run=True),
        )
        return {path: file.data for path, file in result.workspace.items()}

    def _judged(self, xr: Manifest) -> Manifest:
        report = self.validator.check(xr)
        for finding in (*report.findings, *choice_findings(self.kit, xr)):
            raise _RefusedError(ScenarioRefusal(RefusalStage.XR, str(finding), finding.hint))
        return report.result

    def _assembled(
        self, scenario: Scenario, files: Mapping[PurePosixPath, bytes], xr: Manifest
    ) -> ScenarioOutcome:
        why_not = self._why_not_run()
        if why_not or self.steps is None:
            return ScenarioOutcome(None, files, None, why_not)
        status = {"status": dict(scenario.status)} if scenario.status else {}
        around = SimulatedWorld(
            existing=self._existing(scenario),
            observed=_adopted({**xr, **status}, scenario.observed),
            statuses=scenario.statuses,
            managed=self.managed,
            failures=scenario.fail,
            composition=self.composition,
            connection=self.connection,
        )
        once = {"rounds_max": 1} if scenario.run == "once" else {}
        simulation = simulate({**xr, **status}, self.steps, self.world, around, **once)
        _refuse_failed(simulation, once=bool(once))
        self._check_status(xr, simulation)
        self._check_composed(simulation)
        return ScenarioOutcome(None, files, simulation)

    def _existing(self, scenario: Scenario) -> list[Manifest]:
        """
        Return what stations may look up: what the scenario has, and layers of the pack.

        An object of the scenario takes the place of the pack's of that name.
        """
        keys = {ObjectKey.of(required) for required in scenario.required}
        defaults = (STAND_IN_SEED, *self.layers)
        return [*scenario.required, *(o for o in defaults if ObjectKey.of(o) not in keys)]

    def _check_status(self, xr: Manifest, simulation: Simulation) -> None:
        """Refuse a status that the XRD does not declare, as the API server does on every round."""
        final_xr = {**xr, "status": dict(simulation.final.status)}
        for finding in self.validator.check(final_xr).findings:
            if finding.path.partition(".")[0] == "status":
                raise _RefusedError(
                    ScenarioRefusal(
                        RefusalStage.PIPELINE,
                        f"the status cannot be written: {finding}",
                        finding.hint,
                    )
                )

    def _check_composed(self, simulation: Simulation) -> None:
        """Refuse a composed object that does not fit its schema: Crossplane cannot apply it."""
        for name, desired in simulation.final.resources.items():
            for unfit in unfit_fields(self.schemas, name, desired.manifest):
                message = f"{unfit.at} cannot be applied: {unfit.fault}"
                refusal = ScenarioRefusal(RefusalStage.PIPELINE, message, unfit.hint)
                raise _RefusedError(refusal)

    def _why_not_run(self) -> str:
        if self.steps is None:
            return "the kit has no Composition"
        for step in self.steps:
            if step.function in self.world.foreign:
                return f'step "{step.name}": {step.function} runs in a cluster only'
        return ""


def prepare(
    pack: Pack,
    name: str,
    stations: Mapping[str, Station],
    values: Mapping[str, str],
    processes: Mapping[str, Callable[[], Station]] = MappingProxyType({}),
) -> ScenarioTrial:
    """
    Read a kit for trials.

    Args:
        values: What hidden fields get, by the value's name; beside the built-in ones.
        processes: What connects to functions that run somewhere, by name; they take the place of
            those of this process.

    Raises:
        NotFoundError: The pack has no such kit.
        InvalidInputError: A file of the kit is broken, or a value is missing.
    """
    pack.kit(name)  # says which kits there are
    kit = checked_kit(name, pack.files)
    trials = _Trials(pack, kit, stations, values, processes)
    offered = compositions_of(pack.files, kit) if kit.compositions else []
    others = {str(metadata(composition)["name"]): trials.of(composition) for composition in offered}
    return replace(trials.of(composition_of(pack.files, kit)), others=others)


@dataclass(frozen=True, slots=True)
class _Trials:
    """Makes the trials of one kit: one for each Composition."""

    pack: Pack
    kit: Kit
    stations: Mapping[str, Station]
    values: Mapping[str, str]
    processes: Mapping[str, Callable[[], Station]]

    def of(self, composition: Manifest | None) -> ScenarioTrial:
        pack, kit, values = self.pack, self.kit, self.values
        folder = _baked(pack, kit.name, values)
        template = PurePosixPath("template.yaml")
        steps = None if composition is None else steps_of(composition["spec"])
        called_functions = {step.function for step in steps or ()}
        local = functions_here(self.stations, packages_of(pack.files), called_functions).functions
        remote = {n: connect() for n, connect in self.processes.items() if n in called_functions}
        functions = {**local, **remote}
        foreign = dict.fromkeys(called_functions - functions.keys(), not_run())
        return ScenarioTrial(
            kit,
            folder,
            parse_template(folder[template], name=f"templates/{kit.name}/template.yaml")
            if template in folder
            else None,
            Validator(kit.xrd),
            steps,
            World(functions, foreign=foreign, remote=remote.keys()),
            PackFacts(pack.files).schemas,
            name_shown(kit.xrd, composition) if composition else "",
            connection_namespace(kit.xrd, composition) if composition else "",
            _layers(pack, values) if any("layers" in step.input for step in steps or ()) else (),
            ManagedKinds.of_pack(pack.files),
        )


def _layers(pack: Pack, values: Mapping[str, str]) -> tuple[Manifest, ...]:
    docs = PackFacts(pack.files).of_kind(ENVIRONMENT)
    files = {doc.path: pack.files[doc.path] for doc in docs}
    baked = bake(files, {**VALUES.baked(pack.versions), **values})
    return tuple(doc.manifest for doc in PackFacts(baked).of_kind(ENVIRONMENT))


def _baked(pack: Pack, name: str, values: Mapping[str, str]) -> dict[PurePosixPath, bytes]:
    root = PurePosixPath("templates", name)
    files = {path: data for path, data in pack.files.items() if path.is_relative_to(root)}
    baked = bake(files, {**VALUES.baked(pack.versions), **values})
    return {path.relative_to(root): data for path, data in baked.items()}


class _stage:  # noqa: N801 - reads as a statement
    """Turn errors raised inside into a refusal by this stage."""

    def __init__(self, stage: RefusalStage) -> None:
        self._stage = stage

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OrderkitError):
            raise _RefusedError(ScenarioRefusal(self._stage, str(error), error.hint)) from error


def _completed(kind: Kind, xr: Manifest, case: str) -> Manifest:
    header = {"apiVersion": kind.api_version, "kind": kind.kind}
    return {**header, **xr, "metadata": {"name": case, **(xr.get("metadata") or {})}}


def _delivered(kit: Kit, xr: Manifest) -> Manifest:
    """Return the XR as Argo CD delivers it: what names no namespace gets its team's."""
    if not kit.namespaced or metadata(xr).get("namespace"):
        return xr
    return {**xr, "metadata": {**metadata(xr), "namespace": "team-a"}}


def _adopted(xr: Manifest, observed: Mapping[str, Manifest]) -> dict[str, Manifest]:
    """Return observed resources as this XR's own, where nothing else is said."""
    xr = root_labelled(xr)
    uid = metadata(xr).get("uid") or preview_uid(xr)
    owner = controller_reference(xr, uid=uid)
    return {
        name: {**manifest, "metadata": {"ownerReferences": [owner], **metadata(manifest)}}
        for name, manifest in observed.items()
    }


def _refuse_failed(simulation: Simulation, *, once: bool) -> None:
    if simulation.error:
        raise _RefusedError(ScenarioRefusal(RefusalStage.PIPELINE, simulation.error))
    if not (once or simulation.settled):
        rounds = len(simulation.rounds)
        raise _RefusedError(
            ScenarioRefusal(
                RefusalStage.PIPELINE,
                f"the pipeline never settles: the last of {rounds} rounds still changed something",
                "a station is not deterministic if its answer changes for the same request",
            )
        )
