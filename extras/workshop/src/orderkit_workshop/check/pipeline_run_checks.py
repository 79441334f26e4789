"""
Rules about what a kit's pipeline does, checked on its runs.

The worst faults of a Composition show in no file: resources that are composed too early, dropped
during a short outage, never ready, or different each time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from compositions.composed import Composed
from compositions.layered_settings import LAYERS_BROKEN, SettingError
from compositions.simulated_objects import keeps_ready_condition
from ground.objects.kube_objects import (
    CRD,
    EXTERNAL_NAME,
    NAMESPACE,
    SYSTEM_TYPES,
    XRD,
    Kind,
    Manifest,
    annotations_of,
    dig,
    first_and_more,
    is_namespaced,
    metadata,
    only_observes,
    wrapped_object,
)
from kubeschema.validate import Validator
from kubeschema.validate.findings import Located
from orderkit.core.kit.model import Kit
from orderkit.core.plan.judging.object_references import config_of
from orderkit_workshop.check.behaviour_rule_codes import PipelineRule
from orderkit_workshop.check.kind_checks import unfit_fields
from orderkit_workshop.check.kit_under_check import KitUnderCheck, finding_at, steps_in
from orderkit_workshop.check.trial_runs import NAME_MAX, Run

_PIPELINE = "spec.pipeline"
_CLUSTER_SCOPED = "cannot apply cluster scoped"
_LABEL_NAMES = {("", "Namespace"), ("", "Service")}


def check_behaviour(subject: KitUnderCheck, kit: Kit, runs: Sequence[Run]) -> Iterator[Located]:
    """Check all runs; a fault of several runs is reported once."""
    reported: set[tuple[PipelineRule, str]] = set()
    validator = Validator(kit.xrd)
    full: dict[str, list[Any]] = {}
    for run in runs:
        if run.simulation.final.resources:
            full.setdefault(run.doc.name, []).append(run.order.xr["spec"])
    for run in runs:
        for rule, message, key in _judged(subject, run, validator, full):
            if (rule, key) not in reported:
                reported.add((rule, key))
                text = f"{run.order.label}: {message}"
                placed = subject.in_station(rule, text)
                yield placed or finding_at(rule, run.doc, _PIPELINE, text)
    yield from _by_kind(subject, runs)


Verdict = tuple[PipelineRule, str, str]
"""Rule, message, and the key by which the same fault of another run is recognised."""


def _judged(
    subject: KitUnderCheck, run: Run, validator: Validator, full: Mapping[str, Sequence[Any]]
) -> Iterator[Verdict]:
    yield from _calls(run)
    if run.simulation.error:
        reasons = {result.reason for call in run.calls for result in call.response.results}
        if LAYERS_BROKEN not in reasons:  # layer_checks reports those
            yield _failure(run)
        return
    for judge in _JUDGES:
        for rule, message in judge(run):
            yield rule, message, message
    yield from _scopes(subject, run)
    yield from _schemas(subject, run)
    yield from _configs(subject, run)
    yield from _imports(subject, run)
    yield from _composes_something(run, full)
    if run.simulation.settled:
        for judge in _SETTLED_JUDGES:
            for rule, message in judge(run):
                yield rule, message, message
        yield from _status(run, validator)


def _failure(run: Run) -> Verdict:
    error = run.simulation.error
    if _CLUSTER_SCOPED in error:
        return PipelineRule.CLUSTER_SCOPED, error, error
    if SettingError.__name__ in error:
        return PipelineRule.SETTING_MISSING, error, error
    missing = sorted({name for call in run.calls for name in call.unanswered})
    if missing:
        message = f"nothing in gitops/ satisfies requirement {', '.join(missing)}: {error}"
        return PipelineRule.NEEDS_FACTS, message, error
    return PipelineRule.PIPELINE_FAILS, error, error


def _calls(run: Run) -> Iterator[Verdict]:
    """Check the responses of single stations: they show more than the pipeline's result."""
    for call in run.calls:
        fatal = any(result.severity == 1 for result in call.response.results)
        dropped = call.earlier_resources - set(call.response.desired.resources)
        if dropped and not fatal:
            message = f"station '{call.who}' omits {_names(dropped)}"
            yield PipelineRule.DROPS_EARLIER_STEPS, message, message
        for condition in call.response.conditions:
            if condition.type in SYSTEM_TYPES:
                message = f"station '{call.who}' sets condition {condition.type}"
                yield PipelineRule.SYSTEM_CONDITION, message, message
        for name, desired in call.response.desired.resources.items():
            if desired.resource.get("status"):
                message = f"station '{call.who}' sets a status on '{name}'"
                yield PipelineRule.COMPOSED_STATUS, message, message


def _conditions(run: Run) -> Iterator[tuple[PipelineRule, str]]:
    kept = {condition.type for condition in run.simulation.final.conditions}
    before = {c.type for composed in run.simulation.rounds for c in composed.conditions}
    for type_ in sorted(before - kept):
        yield (
            PipelineRule.CONDITION_VANISHES,
            f"condition {type_} is not returned in the last round",
        )


def _settles(run: Run) -> Iterator[tuple[PipelineRule, str]]:
    if not run.simulation.settled:
        earlier, later = run.simulation.rounds[-2:]
        changing = (
            "the status changes" if earlier.status != later.status else "the resources change"
        )
        rounds = len(run.simulation.rounds)
        yield PipelineRule.NEVER_SETTLES, f"{changing} still after {rounds} rounds"


def _deterministic(run: Run) -> Iterator[tuple[PipelineRule, str]]:
    first, second = run.simulation, run.again
    if first.settled and second.settled and first != second:
        differing = [
            name
            for name in sorted(first.observed.keys() | second.observed.keys())
            if first.observed.get(name) != second.observed.get(name)
        ]
        difference = _names(differing) if differing else "the status"
        yield PipelineRule.NOT_DETERMINISTIC, f"{difference} differs in a second run"


def _gated(run: Run) -> Iterator[tuple[PipelineRule, str]]:
    """Find resources composed no later than the round that composes their Namespace or CRD."""
    observed: set[str] = set()
    for composed in run.simulation.rounds:
        manifests = {name: desired.manifest for name, desired in composed.resources.items()}
        new = {name: m for name, m in manifests.items() if name not in observed}
        homes = {m["metadata"]["name"]: n for n, m in new.items() if Kind.of(m) == NAMESPACE}
        kinds = {kind: n for n, m in new.items() if (kind := _defines(m)) is not None}
        for name, manifest in manifests.items():
            home = metadata(manifest).get("namespace")
            if home in homes:
                message = (
                    f"'{name}' is composed in Namespace {home} before '{homes[home]}' is observed"
                )
                yield PipelineRule.GATE_NAMESPACE, message
            own_kind = Kind.of(manifest)
            definition = kinds.get((own_kind.group, own_kind.kind))
            if definition is not None:
                message = f"'{name}' is composed before '{definition}', its CRD, is observed"
                yield PipelineRule.GATE_DEFINITION, message
        observed = set(manifests)


def _defines(manifest: Manifest) -> tuple[str, str] | None:
    """Return group and kind that a composed CRD or XRD defines."""
    kind = Kind.of(manifest)
    if (kind.group, kind.kind) not in {(CRD.group, CRD.kind), (XRD.group, XRD.kind)}:
        return None
    spec = manifest.get("spec")
    return str(dig(spec, "group")), str(dig(spec, "names", "kind"))


def _names_fit(run: Run) -> Iterator[tuple[PipelineRule, str]]:
    for name, manifest in run.simulation.observed.items():
        kind = Kind.of(manifest)
        if (kind.group, kind.kind) in _LABEL_NAMES and len(manifest["metadata"]["name"]) > NAME_MAX:
            object_name = manifest["metadata"]["name"]
            yield PipelineRule.COMPOSED_NAME, f"'{name}' is a {kind.kind} named {object_name}"


def _scopes(subject: KitUnderCheck, run: Run) -> Iterator[Verdict]:
    if metadata(run.simulation.xr).get("namespace"):
        return
    for name, manifest in run.simulation.observed.items():
        kind = Kind.of(manifest)
        built_in = not keeps_ready_condition(kind) and is_namespaced(kind)
        if (built_in or subject.pack.xr_scopes.get(kind)) and not metadata(manifest).get(
            "namespace"
        ):
            message = f"'{name}' is a {kind.kind} without a namespace"
            yield PipelineRule.NO_NAMESPACE, message, message


def _schemas(subject: KitUnderCheck, run: Run) -> Iterator[Verdict]:
    """Check composed objects, and what Objects wrap, against every known schema of their kind."""
    for name, desired in run.simulation.final.resources.items():
        for unfit in unfit_fields(subject.pack.schemas, name, desired.manifest):
            yield PipelineRule.COMPOSED_SCHEMA, str(unfit), unfit.fault


def _configs(subject: KitUnderCheck, run: Run) -> Iterator[Verdict]:
    """Name the ProviderConfigs that nothing delivers; ``default`` is every platform's own."""
    delivered = [doc.manifest for doc in subject.pack.docs if metadata(doc.manifest)]
    made = {
        (Kind.of(manifest).group, Kind.of(manifest).kind, metadata(manifest).get("name"))
        for manifest in (*delivered, *run.simulation.observed.values())
    }
    for name, desired in run.simulation.final.resources.items():
        config = config_of(desired.manifest)
        if config is None or config.name == "default":
            continue
        if (config.kind.group, config.kind.kind, config.name) not in made:
            wanted = f'{config.kind.kind}.{config.kind.group} "{config.name}"'
            home = " in the order's namespace" if config.namespace else ""
            message = f"'{name}' needs {wanted}{home}, which nothing delivers"
            yield PipelineRule.PROVIDER_CONFIG, message, wanted


def _imports(subject: KitUnderCheck, run: Run) -> Iterator[Verdict]:
    """Check that what an order takes over is first observed, and then managed."""
    imports = subject.kit.imports if subject.kit else None
    spec = run.simulation.xr.get("spec")
    resources = run.simulation.final.resources
    for part_name, path in imports.names.items() if imports else ():
        name = dig(spec, *path.split("."))
        if part_name not in resources:
            if name:
                message = f"{path} is set, and no part '{part_name}' is composed"
                yield PipelineRule.IMPORT_POLICY, message, message
            continue
        manifest = resources[part_name].manifest
        observes = only_observes(manifest)
        if name and annotations_of(manifest).get(EXTERNAL_NAME) != name:
            message = f"'{part_name}' does not have the external name that {path} says"
            yield PipelineRule.IMPORT_POLICY, message, message
        is_managed = imports is not None and dig(spec, *imports.manage.split(".")) is True
        if observes is not (bool(name) and not is_managed):
            message = (
                f"'{part_name}' is {'only observed' if observes else 'managed'} although {path} is "
                f"{'set' if name else 'not set'} and {imports.manage if imports else ''} is "
                f"{'true' if is_managed else 'not true'}"
            )
            yield PipelineRule.IMPORT_POLICY, message, message


def _by_kind(subject: KitUnderCheck, runs: Sequence[Run]) -> Iterator[Located]:
    """Name the kinds that a Composition composes and nothing checks, or that are not embedded."""
    for doc in {run.doc.name: run.doc for run in runs}.values():
        composed = (
            manifest
            for run in runs
            if run.doc is doc
            for desired in run.simulation.final.resources.values()
            for manifest in (desired.manifest, wrapped_object(desired.manifest))
            if manifest is not None
        )
        kinds = sorted(set(map(Kind.of, composed)))
        unchecked = [
            str(kind)
            for kind in kinds
            if all(known.is_open(kind.version) for known in subject.pack.schemas.every(kind))
        ]
        if unchecked:
            message = f"not checked, no schema: {', '.join(unchecked)}"
            yield finding_at(PipelineRule.NO_SCHEMA, doc, _PIPELINE, message)
        unserved = [str(kind) for kind in kinds if subject.pack.is_not_embedded(kind)]
        if unserved:
            message = f"the embedded cluster does not serve {', '.join(unserved)}"
            yield finding_at(PipelineRule.NOT_EMBEDDED, doc, _PIPELINE, message)


def _composes_something(run: Run, full: Mapping[str, Sequence[Any]]) -> Iterator[Verdict]:
    if run.simulation.final.resources or not run.simulation.settled:
        return
    others = full.get(run.doc.name, ())
    has_no_parts = any(_has_emptied(run.order.xr["spec"], spec) for spec in others)
    if run.order.varied and others and not has_no_parts:
        message = "the pipeline composes nothing, and does not refuse the order"
        yield PipelineRule.EARLY_RETURN, message, message
    else:
        yield PipelineRule.COMPOSES_NOTHING, "nothing is composed", run.doc.name


def _has_emptied(spec: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """
    Return whether an order has an empty map where another order has maps: it orders no part.

    A map of plain values is settings: a pipeline that composes nothing without them returns early.
    """
    if not spec:
        return bool(other) and all(isinstance(part, Mapping) for part in other.values())
    return any(
        _has_emptied(value, other[name])
        for name, value in spec.items()
        if isinstance(value, Mapping) and isinstance(other.get(name), Mapping)
    )


def _ready(run: Run) -> Iterator[tuple[PipelineRule, str]]:
    if run.simulation.ready:
        return
    unready = run.simulation.final.unready
    kinds = [Kind.of(run.simulation.observed[name]) for name in unready]
    unready_names = [f"{name} ({kind})" for name, kind in zip(unready, kinds, strict=True)]
    cause = first_and_more(unready_names) if unready_names else "a function says so"
    inputs = [dict(step.input) for step in steps_in(run.doc) or ()]
    paths = dict.fromkeys(_status_paths(inputs))
    if paths and all(map(keeps_ready_condition, kinds)):
        message = f"not ready without values of {first_and_more([*paths])}: {cause}"
        yield PipelineRule.NEEDS_STATUS, message
        return
    yield PipelineRule.NEVER_READY, f"not ready at the end: {cause}"


def _status_paths(value: dict[str, Any] | list[Any]) -> Iterator[str]:
    """Yield the paths in a status from which the input of a function says that it reads."""
    for entry in value.values() if isinstance(value, dict) else value:
        if isinstance(entry, dict | list):
            yield from _status_paths(entry)
        elif isinstance(entry, str) and "\n" in entry and "atProvider" in entry:
            yield "status.atProvider"  # a program's text: KCL, a template, Python
    if isinstance(value, dict):
        paths = (value.get(key) for key in ("fromFieldPath", "fieldPath"))
        yield from (path for path in paths if isinstance(path, str) and path.startswith("status."))


def _without_facts(run: Run) -> Iterator[tuple[PipelineRule, str]]:
    """Remove all required resources: the pipeline must not drop existing resources then."""
    if not run.simulation.requirements:
        return
    after = run.once(run.simulation.observed, facts=False)
    dropped = _deleted_names(run, after)
    if dropped:
        message = f"{_names(dropped)} would be deleted when the required resources are not found"
        yield PipelineRule.EARLY_RETURN, message


def _when_unready(run: Run) -> Iterator[tuple[PipelineRule, str]]:
    """Make everything unready: existing resources must still be composed."""
    observed = {name: _unready(m) for name, m in run.simulation.observed.items()}
    after = run.once(observed)
    dropped = _deleted_names(run, after)
    if dropped:
        message = f"{_names(dropped)} would be deleted while another resource is not ready"
        yield PipelineRule.DROPS_WHEN_UNREADY, message


def _deleted_names(run: Run, after: Composed) -> set[str]:
    return set() if after.error else run.simulation.observed.keys() - after.resources.keys()


def _unready(manifest: Manifest) -> Manifest:
    conditions = dig(manifest, "status", "conditions", default=None)
    if not conditions:
        return manifest
    flipped: list[Mapping[str, Any]] = [{**entry, "status": "False"} for entry in conditions]
    return {**manifest, "status": {**manifest["status"], "conditions": flipped}}


def _status(run: Run, validator: Validator) -> Iterator[Verdict]:
    for finding in validator.check(run.simulation.xr).findings:
        if finding.path.startswith("status"):
            yield PipelineRule.STATUS_FIELD, f"{finding}", str(finding)


def _names(names: Collection[str]) -> str:
    return first_and_more([f"'{name}'" for name in names])


_Judge = Callable[[Run], Iterator[tuple[PipelineRule, str]]]
_JUDGES: tuple[_Judge, ...] = (_conditions, _settles, _gated, _names_fit)
_SETTLED_JUDGES: tuple[_Judge, ...] = (_deterministic, _ready, _without_facts, _when_unready)
