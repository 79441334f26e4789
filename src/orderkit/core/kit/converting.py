"""
Convert the ``spec`` of an order from one version of its XRD to another, by the kit's conversions.

Every value arrives, or the conversion is refused and says which one does not: a field that the
other version does not have, a value without a counterpart, an expression that cannot be computed.
Only fields that the kit lists under ``loses`` may be lost. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as attribute
from functools import cached_property
from typing import Any

from ground.errors import InvalidInputError, NotFoundError
from ground.objects.kube_objects import Manifest, dig
from ground.objects.values import ABSENT, same, value_at, with_value
from kubeschema.cel.expressions import NOT_SET, Subject, expression, plain_result
from kubeschema.field_paths import schema_at, steps_of
from kubeschema.pruning import default, prune
from kubeschema.validate import Validator
from orderkit.core.kit.kit_file_parts import Conversion
from orderkit.core.kit.model import Kit

Spec = dict[str, Any]


@dataclass(frozen=True)
class Converter:
    """Converts between two versions of a kit's XRD, in one direction."""

    kit: Kit
    conversion: Conversion
    is_back: bool
    """Whether it goes from the conversion's newer version to its older one."""
    validator: Validator = attribute(compare=False)

    @property
    def source(self) -> str:
        """The version that it converts from."""
        return self.conversion.to if self.is_back else self.conversion.from_

    @property
    def target(self) -> str:
        """The version that it converts to."""
        return self.conversion.from_ if self.is_back else self.conversion.to

    @cached_property
    def reverse(self) -> Converter:
        """The way back."""
        return Converter(self.kit, self.conversion, not self.is_back, self.validator)

    def schema(self, version: str) -> Mapping[str, Any]:
        """Return the schema of ``spec`` in a version, with Crossplane's own fields."""
        found = dig(self.validator.schema(version), "properties", "spec", default=None)
        return found or {"type": "object"}

    @property
    def moves(self) -> Mapping[str, str]:
        """The source's fields that keep their value or are renamed value by value."""
        pairs = {**self.conversion.move, **{k: v.to for k, v in self.conversion.map.items()}}
        return {new: old for old, new in pairs.items()} if self.is_back else pairs

    @property
    def consumed(self) -> tuple[str, ...]:
        """The source's fields that steps read; the others stay what they are."""
        steps = self.conversion
        return steps.new_fields if self.is_back else steps.old_fields

    def convert(self, spec: Mapping[str, Any]) -> Spec:
        """
        Return the values of an order in the other version, so that what holds stays the same.

        Values that either XRD fills in are left out where the other XRD fills in the same.

        Raises:
            InvalidInputError: A value would be lost, or cannot be converted.
        """
        schema = self.schema(self.target)
        effective = self._steps(default(self.schema(self.source), dict(spec)))
        try:
            written = self._steps(spec)
        except InvalidInputError:  # it needs a value that the XRD fills in
            return effective
        is_same = same(default(schema, written), default(schema, effective))
        return written if is_same else effective

    def _steps(self, spec: Mapping[str, Any]) -> Spec:
        rest: Spec = dict(spec)
        for path in self.consumed:
            rest = without(rest, path)
        wrapped = {"properties": {"spec": self.schema(self.target)}}
        kept, dropped = prune(wrapped, {"spec": rest})
        for path in dropped:
            field = path.removeprefix("spec.")
            self._lose(field, at(spec, field), f"has no place in {self.target}")
        result: Spec = kept["spec"]
        for path, value in self._written(spec):
            result = with_value(result, tuple(steps_of(path)), value)
        return result

    def _written(self, spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield what the steps write."""
        conversion = self.conversion
        for old, new in conversion.move.items():
            source, target = (new, old) if self.is_back else (old, new)
            value = at(spec, source)
            if value is not ABSENT:
                yield target, value
        yield from self._mapped(spec)
        yield from self._joined(spec) if self.is_back else self._split(spec)
        for path, value in conversion.default.items():
            if not self.is_back:
                yield path, value
            elif (found := at(spec, path)) is not ABSENT and not same(found, value):
                self._lose(path, found, f"has no place in {self.target}")
        yield from self._computed(spec)

    def _mapped(self, spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for old, step in self.conversion.map.items():
            source, target = (step.to, old) if self.is_back else (old, step.to)
            value = at(spec, source)
            pairs = [pair[::-1] if self.is_back else pair for pair in step.values]
            found = [counterpart for here, counterpart in pairs if same(here, value)]
            if found:
                yield target, found[0]
            elif value is not ABSENT:
                self._lose(source, value, f"has no counterpart in {self.target}")

    def _split(self, spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for old, step in self.conversion.split.items():
            value = at(spec, old)
            if value is ABSENT:
                continue
            parts = str(value).split(step.by, len(step.into) - 1)
            numbers = [path for path in step.into if self._is_integer(path)]
            if len(parts) != len(step.into):
                rule = f"does not have {len(step.into)} parts with '{step.by}' between them"
                self._lose(old, value, rule)
                continue
            named = dict(zip(step.into, parts, strict=True))
            odd = [path for path in numbers if not _is_number(named[path])]
            if odd:
                rule = f"has '{named[odd[0]]}' for {odd[0]}, which is a whole number"
                self._lose(old, value, rule)
                continue
            yield from ((p, int(part) if p in numbers else part) for p, part in named.items())

    def _is_integer(self, path: str) -> bool:
        return schema_at(self.schema(self.target), path).get("type") == "integer"

    def _joined(self, spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for old, step in self.conversion.split.items():
            found = {path: at(spec, path) for path in step.into}
            given = {path: part for path, part in found.items() if part is not ABSENT}
            if 0 < len(given) < len(found):
                path, part = next(iter(given.items()))
                self._lose(path, part, f"stands alone, and {old} has {len(found)} parts")
                continue
            ambiguous = [p for p in step.into[:-1] if step.by in str(given.get(p, ""))]
            if ambiguous:
                path = ambiguous[0]
                self._lose(path, given[path], f"has '{step.by}', which separates {old}")
            elif given:
                yield old, step.by.join(map(str, given.values()))

    def _computed(self, spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        conversion = self.conversion
        for path, source in (
            conversion.compute_back if self.is_back else conversion.compute
        ).items():
            bound = self.subject.values({"spec": spec})
            if isinstance(bound, str):
                raise self._refusal(path, None, f"cannot be computed: {bound}")
            outcome = expression(source).evaluate(bound)
            if outcome.error.startswith(NOT_SET):
                continue  # a field that it reads is not set, and so it is not
            why, value = outcome.gap or outcome.error, None
            try:
                value = None if why else plain_result(outcome.value)
            except TypeError as error:
                why = str(error)
            if why:
                raise self._refusal(path, source, f"cannot be computed: {why}")
            yield path, value

    @cached_property
    def subject(self) -> Subject:
        """What expressions of this direction read."""
        return Subject({"spec": self.schema(self.source)})

    def _lose(self, path: str, value: Any, rule: str) -> None:
        """Refuse the loss of a value that the kit does not list; an empty group is none."""
        if value != {} and not is_below(path, self.conversion.loses):
            raise self._refusal(path, value, rule)

    def _refusal(self, path: str, value: Any, rule: str) -> InvalidInputError:
        return InvalidInputError(
            f"{self.source}: spec.{path}",
            None if value is ABSENT else value,
            rule,
            hint=f"say in spec.conversions of kit {self.kit.name} what becomes of it;"
            f" if it may be lost: loses: [{path}]",
        )


def converter(kit: Kit, source: str, target: str, validator: Validator | None = None) -> Converter:
    """
    Return what converts orders of a kit from one version to another.

    Raises:
        NotFoundError: The kit has no conversion between them.
    """
    for conversion in kit.conversions:
        ends = (conversion.from_, conversion.to)
        if ends in ((source, target), (target, source)):
            found = validator or Validator(kit.xrd)
            return Converter(kit, conversion, ends != (source, target), found)
    raise NotFoundError(
        f"kit {kit.name} has no conversion from {source} to {target}",
        hint="add it to spec.conversions of its kit.yaml, and publish the pack",
    )


def converted(xr: Manifest, way: Converter) -> Manifest:
    """
    Return an XR in the other version.

    Raises:
        InvalidInputError: A value would be lost, or cannot be converted.
    """
    group = str(xr["apiVersion"]).partition("/")[0]
    spec = way.convert(xr.get("spec") or {})
    return {**xr, "apiVersion": f"{group}/{way.target}", "spec": spec}


def at(spec: Mapping[str, Any], path: str) -> Any:
    """Return the value of a field, or `ABSENT`."""
    return value_at(spec, tuple(steps_of(path)))


def without(spec: Spec, path: str) -> Spec:
    """Return the values without a field, and without the groups that are empty then."""
    steps = tuple(steps_of(path))
    if value_at(spec, steps) is ABSENT:
        return spec
    spec = with_value(spec, steps, ABSENT)
    while len(steps) > 1 and value_at(spec, steps[:-1]) == {}:
        steps = steps[:-1]
        spec = with_value(spec, steps, ABSENT)
    return spec


def is_below(path: str, fields: tuple[str, ...]) -> bool:
    """Say whether a path is one of the fields, or below one."""
    return any(path == field or path.startswith((f"{field}.", f"{field}[")) for field in fields)


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and str(int(text)) == text
