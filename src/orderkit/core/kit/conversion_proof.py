"""
Prove that a kit's conversions lose nothing: there and back, with samples of both versions.

Samples are generated from the schemas of both versions: few fields, all fields, each field that a
step names with many values. One that the XRD refuses is no sample. What is not the same after the
way there and back, and is not listed under ``loses``, is a loss. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ground.errors import InvalidInputError
from ground.objects.values import ABSENT, shown, with_value
from kubeschema import samples
from kubeschema.field_paths import schema_at, steps_of
from kubeschema.pruning import default, prune
from kubeschema.validate import Validator
from kubeschema.xrd import versions_of
from orderkit.core.kit.converting import Converter, Spec, at, is_below, without
from orderkit.core.kit.field_problems import KitProblem, Steps, nearest
from orderkit.core.kit.kit_file_parts import Conversion
from orderkit.core.kit.model import Kit

_SAMPLES_MAX = 150
_LOSSES_MAX = 5


def conversion_problems(kit: Kit) -> Iterator[KitProblem]:
    """Yield what is wrong with a kit's conversions, and what they would lose."""
    if not kit.conversions:
        return
    served = [str(v["name"]) for v in versions_of(kit.xrd) if v.get("served")]
    validator = Validator(kit.xrd)
    for number, conversion in enumerate(kit.conversions):
        steps: Steps = ("spec", "conversions", number)
        faults = list(_faults(kit, conversion, served, steps))
        yield from faults
        if faults:
            continue
        there = Converter(kit, conversion, is_back=False, validator=validator)
        faults = list(_field_faults(there, steps))
        yield from faults
        if not faults:
            yield from _losses(there, steps)
            yield from _pruned(there, steps)


def _faults(
    kit: Kit, conversion: Conversion, served: list[str], steps: Steps
) -> Iterator[KitProblem]:
    """Yield versions that are not served, and fields that are named twice."""
    for key, version in (("from", conversion.from_), ("to", conversion.to)):
        if version not in served:
            hint = f"served: {', '.join(served)}"
            yield KitProblem("kit", (*steps, key), version, "is not a served version", hint)
    if conversion.from_ == conversion.to:
        hint = "name two versions"
        yield KitProblem("kit", steps, conversion.to, "is converted to itself", hint)
    others = [{c.from_, c.to} for c in kit.conversions]
    if others.count({conversion.from_, conversion.to}) > 1:
        hint = "one conversion has both directions: leave the other one out"
        yield KitProblem("kit", steps, conversion.from_, "is converted in two ways", hint)
    for fields in (conversion.old_fields, conversion.new_fields):
        for path, count in Counter(fields).items():
            if count > 1:
                hint = "name each field of a version in one step"
                yield KitProblem("kit", steps, path, "is named by two steps", hint)


def _field_faults(there: Converter, steps: Steps) -> Iterator[KitProblem]:
    """Yield fields that a version does not have, and expressions that are none."""
    for way in (there, there.reverse):
        schema = way.schema(way.source)
        for path in dict.fromkeys(way.consumed):
            if not schema_at(schema, path):
                known = list(schema.get("properties") or {})
                hint = nearest(path, known) or f"fields: {', '.join(known)}"
                rule = f"is not a field of {way.source}"
                yield KitProblem("kit", steps, path, rule, hint)
        computed = there.conversion.compute_back if way.is_back else there.conversion.compute
        for path, source in computed.items():
            if fault := way.subject.fault(source, is_condition=False):
                key = "computeBack" if way.is_back else "compute"
                hint = f"write CEL over spec as {way.source} has it: spec.size * 1024"
                yield KitProblem("kit", (*steps, key, path), source, f"is refused: {fault}", hint)


def _losses(there: Converter, steps: Steps) -> Iterator[KitProblem]:
    said: set[tuple[str, str]] = set()
    for way in (there, there.reverse):
        unset = dict.fromkeys(way.consumed)
        for path in _left_over(way):
            unset.pop(path, None)
        for spec in samples_of(way):
            for path in [path for path in unset if at(spec, path) is not ABSENT]:
                del unset[path]
            try:
                found = list(round_trip(way, spec))
            except InvalidInputError as error:
                key = (error.field.rpartition("spec.")[2], error.rule)
                found = [] if key in said else [(key[0], str(error))]
                said.add(key)
            for path, what in found:
                if (path, way.source) in said or len(said) > _LOSSES_MAX:
                    continue
                said.add((path, way.source))
                hint = f"add a step for it; if it may be lost: loses: [{path.partition('[')[0]}]"
                rule = f"is not proved ({way.source} to {way.target} and back): {what}"
                yield KitProblem("kit", steps, path, rule, hint)
        for path in unset:
            rule = f"is not proved: no valid {way.source} with it can be generated from the XRD"
            hint = f"give it an example, an enum or a simpler pattern in {way.source} of the XRD"
            yield KitProblem("kit", steps, path, rule, hint)


def round_trip(way: Converter, spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """
    Yield the fields that change on the way there and back, and how.

    Raises:
        InvalidInputError: A value cannot be converted, or the other version refuses the result.
    """
    there = way.convert(spec)
    check_valid(way, way.target, there)
    back = way.reverse.convert(default(way.schema(way.target), there))
    schema = way.schema(way.source)
    before, after = default(schema, dict(spec)), default(schema, back)
    for path in _differing(before, after, ""):
        if not is_below(path, way.conversion.loses):
            was, becomes = at(before, path), at(after, path)
            yield path, f"{shown(was)} becomes {shown(becomes)}"


def check_valid(way: Converter, version: str, spec: Mapping[str, Any]) -> None:
    """
    Check that a version of the XRD accepts values.

    Raises:
        InvalidInputError: It does not.
    """
    group = way.kit.kind.group
    name = {"name": "sample"}
    xr = {
        "apiVersion": f"{group}/{version}", "kind": way.kit.kind.kind, "metadata": name,
        "spec": spec,
    }  # fmt: skip
    report = way.validator.check(xr)
    for finding in report.findings:
        raise InvalidInputError(
            f"{version}: {finding.path}", finding.value or None,
            f"is refused: {finding.message}",
            hint=f"let the conversion in kit {way.kit.name} make values that {version} takes",
        )  # fmt: skip


def samples_of(way: Converter) -> Iterator[Spec]:
    """Yield orders that are valid in a converter's source version, the simplest first."""
    schema = {**way.schema(way.source), "type": "object"}
    separators = tuple(
        text
        for step in way.conversion.split.values()
        for text in (step.by.join(("a", "b")), step.by.join(("a", "b", "7")), step.by.join("71"))
    )
    count = 0
    for spec in _candidates(way, schema, separators):
        for path in _left_over(way):
            spec = without(spec, path)  # noqa: PLW2901 - a sample without them
        try:
            check_valid(way, way.source, spec)
        except InvalidInputError:
            continue
        yield spec
        count += 1
        if count >= _SAMPLES_MAX:
            return


def _left_over(way: Converter) -> tuple[str, ...]:
    """
    Return old fields that the newer version still declares, so that the cluster keeps them.

    No step writes them on the way there, so no order of the newer version has them.
    """
    if not way.is_back:
        return ()
    own = set(way.conversion.new_fields)
    return tuple(path for path in way.conversion.old_fields if path not in own)


def _candidates(
    way: Converter, schema: Mapping[str, Any], separators: tuple[str, ...]
) -> Iterator[Spec]:
    try:
        tried = list(samples.valid_samples({**schema, "properties": _own(schema)}, complete=True))
    except samples.NoSampleError:
        return
    yield from tried[:3]
    for path in dict.fromkeys(way.consumed):
        for value in samples.several(schema_at(schema, path), separators):
            yield from (with_value(spec, tuple(steps_of(path)), value) for spec in tried[:2])
    yield from tried[3:]


def _own(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the author's fields: Crossplane's own are the same in every version."""
    return {k: v for k, v in (schema.get("properties") or {}).items() if k != "crossplane"}


def _differing(before: Any, after: Any, path: str) -> Iterator[str]:
    """Yield the fields that differ; an empty group is as good as none."""
    if isinstance(before, dict) or isinstance(after, dict):
        was = before if isinstance(before, dict) else {}
        becomes = after if isinstance(after, dict) else {}
        for key in dict.fromkeys((*was, *becomes)):
            inner = f"{path}.{key}" if path else key
            yield from _differing(was.get(key, ABSENT), becomes.get(key, ABSENT), inner)
        if not (was or becomes) or {type(before), type(after)} <= {dict, type(ABSENT)}:
            return
    if before != after or isinstance(before, bool) != isinstance(after, bool):
        yield path


def _pruned(there: Converter, steps: Steps) -> Iterator[KitProblem]:
    """Yield old fields that the cluster drops before the campaign reaches their orders."""
    # without a webhook the API server converts by renaming the version, and drops what is not
    # declared by the version in which objects are stored and composed
    for path in dropped_fields(there.kit, there):
        rule = (
            f"would be dropped by the cluster: {there.kit.kind.version} does not declare it, and"
            " spec.conversion of the XRD names no webhook"
        )
        hint = f"declare spec.{path} in {there.kit.kind.version} too until no order has it, and"
        yield KitProblem(
            "kit", steps, path, rule, f"{hint} let the stations read both; or: loses: [{path}]"
        )


def dropped_fields(kit: Kit, there: Converter, strategy: str | None = None) -> list[str]:
    """
    Return the fields of the version that is not stored which the stored one does not declare.

    Args:
        strategy: The cluster's conversion strategy; None: the one that the XRD asks for.
    """
    conversion = kit.xrd["spec"].get("conversion") or {}
    if (strategy or conversion.get("strategy") or "None") == "Webhook":
        return []
    ends = (there.conversion.from_, there.conversion.to)
    stored = kit.kind.version
    if stored not in ends:
        return []
    other = ends[0] if stored == ends[1] else ends[1]
    wrapped = {"properties": {"spec": there.schema(stored)}}
    found: list[str] = []
    full = _everything(there.schema(other))
    for path in prune(wrapped, {"spec": full})[1]:
        field = path.removeprefix("spec.")
        if not is_below(field, there.conversion.loses):
            found.append(field)
    return found


def _everything(schema: Mapping[str, Any]) -> Any:
    """Return a value in which every declared field of every group is set, valid or not."""
    properties = schema.get("properties") or {}
    if not properties:
        return "x"
    return {name: _everything(inner) for name, inner in properties.items()}
