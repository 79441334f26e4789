"""
Test runs of a kit's pipeline, and the orders they are made with.

Orders are the kit's examples, and variations of one field each. Without examples, an order is
generated from the XRD's schema if possible. Every returned XR is valid for the XRD and has its
defaults. Each order runs twice until it settles, and every call is recorded.

``check.pipeline_run_checks`` judges the runs.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import and_
from typing import Any

from compositions.composed import Composed, World
from compositions.composition_choice import connection_namespace
from compositions.pipeline import compose
from compositions.python_functions import functions_here
from compositions.resource_builders import STAND_IN_SEED
from compositions.simulation import SimulatedWorld, Simulation, lookup_in, simulate
from compositions.station import Station, StationRequest, StationResponse
from ground.errors import OrderkitError
from ground.objects.kube_objects import Manifest, dig, is_namespaced, metadata
from ground.objects.values import with_value
from ground.suggestions import did_you_mean
from kubeschema import samples
from kubeschema.validate import Validator
from kubeschema.validate.findings import Located
from orderkit.core.kit.compositions import chosen_composition, name_shown
from orderkit.core.kit.field_problems import field_at
from orderkit.core.kit.form_values import merged, names_alone, read_settings, yaml_roots
from orderkit.core.kit.literals import YAML_PARAMETER
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import fields_of
from orderkit_workshop.check.kit_under_check import Doc, KitUnderCheck, steps_in
from orderkit_workshop.check.pipeline_text_checks import runnable
from orderkit_workshop.check.rule_codes import KitRule

NAME_MAX = 63
"""An XR's name becomes the value of a label."""
VARIATIONS_MAX = 24
_MADE_UP = "a generated order"


@dataclass(frozen=True, slots=True)
class Order:
    """An XR to test with, and its name in messages."""

    label: str
    xr: Manifest
    varied: bool = False


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders to test with, and findings about the kit's examples."""

    orders: tuple[Order, ...]
    findings: tuple[Located, ...]


def orders_of(subject: KitUnderCheck, kit: Kit) -> Orders:
    """Return the orders to test with. Deterministic."""
    validator = Validator(kit.xrd)
    orders, findings = _examples(subject, kit, validator)
    if not kit.examples:
        made_up = _made_up(kit, validator)
        if made_up is None:
            message = "no valid order could be generated from the XRD"
            findings.append(subject.in_kit(KitRule.NO_EXAMPLE, "spec", message))
        else:
            orders.append(made_up)
    if orders:
        orders += _variations(kit, orders[0], validator)
    return Orders(tuple(orders), tuple(findings))


def xr_of(kit: Kit, values: Mapping[str, Any]) -> Manifest:
    """
    Return the XR that a form with these values orders, without defaults.

    Raises:
        InvalidInputError: The values do not name the order.
    """
    fields = kit.spec_schema.get("properties") or {}
    own_values = dict(values)
    text = own_values.pop(YAML_PARAMETER, "")
    spec = {name: value for name, value in kit.by_field(own_values).items() if name in fields}
    if text:
        spec = merged(spec, read_settings(kit, text, yaml_roots(kit)))
    for path in kit.hidden:
        if path in fields and path not in spec:
            # the platform's value is unknown
            spec[path] = samples.sample(fields[path])
    spec = _with_groups(kit.spec_schema, spec)
    name = str(kit.order_id(values))
    if kit.xr_name != "order":
        name = str(dig(spec, *kit.xr_name.split("."), default=name))
    return _xr(kit, name, names_alone(kit, spec))


def _with_groups(schema: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """Add the required groups of fields, as an order's skeleton writes them: empty, if need be."""
    added = dict(value)
    for name, inner in (schema.get("properties") or {}).items():
        is_group = inner.get("type") == "object" and inner.get("properties")
        group = added.get(name, {} if name in (schema.get("required") or ()) else None)
        if is_group and "default" not in inner and isinstance(group, Mapping):
            added[name] = _with_groups(inner, group)
    return added


def _xr(kit: Kit, name: str, spec: Mapping[str, Any]) -> Manifest:
    home = kit.namespace_of(spec) or "team-a"
    meta = {"name": name} | ({"namespace": home} if kit.namespaced else {})
    api = {"apiVersion": kit.kind.api_version, "kind": kit.kind.kind}
    return {**api, "metadata": meta, "spec": dict(spec)}


def _examples(
    subject: KitUnderCheck, kit: Kit, validator: Validator
) -> tuple[list[Order], list[Located]]:
    orders: list[Order] = []
    findings: list[Located] = []
    for index, example in enumerate(kit.examples):
        at = f"spec.examples[{index}]"
        findings += _unknown(subject, kit, example.values, f"{at}.values")
        try:
            report = validator.check(xr_of(kit, example.values))
        except (OrderkitError, samples.NoSampleError) as error:
            message = f"example '{example.name}': {error}"
            findings.append(subject.in_kit(KitRule.EXAMPLE, at, message))
            continue
        for finding in report.findings:
            message = f"example '{example.name}': {finding}"
            field = finding.path.removeprefix("spec.")
            value_path = f"{at}.values.{kit.parameter(field)}"
            findings.append(subject.in_kit(KitRule.EXAMPLE, value_path, message, hint=finding.hint))
        if report.valid:
            orders.append(Order(f"example '{example.name}'", report.result))
    return orders, findings


def _unknown(
    subject: KitUnderCheck, kit: Kit, values: Mapping[str, Any], at: str
) -> Iterator[Located]:
    """Find parameters of an example that the form does not have."""
    parameters = {kit.parameter(field.path) for field in fields_of(kit).form}
    parameters |= {YAML_PARAMETER} if kit.yaml_fields else set()
    parameters |= set(kit.name_parameters) if not kit.name_from else set()
    parameters |= {kit.team_parameter} if not kit.team_from else set()
    for name in sorted(set(values) - parameters):
        hint = did_you_mean(name, parameters, f"parameters: {', '.join(sorted(parameters))}")
        message = f"the form has no parameter '{name}'"
        yield subject.in_kit(KitRule.EXAMPLE, f"{at}.{name}", message, hint=hint)


def _made_up(kit: Kit, validator: Validator) -> Order | None:
    with contextlib.suppress(samples.NoSampleError):
        for spec in samples.valid_samples({**kit.spec_schema, "type": "object"}):
            report = validator.check(_xr(kit, f"{kit.name}-example", spec))
            if report.valid:
                return Order(_MADE_UP, report.result)
    return None


def _variations(kit: Kit, base: Order, validator: Validator) -> list[Order]:
    """Return valid orders that differ from the first one in one field."""
    variations: list[Order] = []
    candidates = [
        *_long(kit, base.xr["spec"]),
        *imported_specs(kit, base.xr["spec"]),
        *samples.alternatives(kit.spec_schema, base.xr["spec"]),
    ]
    for label, spec in candidates:
        if len(variations) == VARIATIONS_MAX:
            break
        report = validator.check({**base.xr, "spec": spec})
        if report.valid:
            variations.append(Order(f"{base.label}, {label}", report.result, varied=True))
    return variations


def imported_specs(kit: Kit, spec: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the order as it takes over what exists: observed, and then managed."""
    if kit.imports is None:
        return
    observing = dict(spec)
    with contextlib.suppress(samples.NoSampleError):
        for path in kit.imports.names.values():
            steps = tuple(path.split("."))
            schema = field_at(kit.spec_schema, path) or {}
            observing = with_value(observing, steps, samples.sample(schema))
        yield "taking over what exists", observing
        managing = with_value(observing, tuple(kit.imports.manage.split(".")), True)  # noqa: FBT003 - the value
        yield "managing what it took over", managing


def _long(kit: Kit, spec: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the order with names of maximum length: composed names depend on them."""
    longer = dict(spec)
    fields = kit.spec_schema.get("properties") or {}
    for path in {*kit.name_from, *([kit.team_from] if kit.team_from else ())}:
        schema = fields.get(path, {})
        if schema.get("type") == "string" and not schema.get("enum"):
            text = samples.long_text(schema, samples.longest(schema, NAME_MAX))
            longer |= {path: text} if text else {}
    if longer != spec:
        yield "names as long as allowed", longer


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
