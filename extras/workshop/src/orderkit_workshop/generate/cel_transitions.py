"""
Limits on how fields may change, as CEL: the directions in ``changes`` of kit.yaml.

``grow``: numbers, quantities and enums (in their order) never decrease, booleans never become
false, lists and maps never lose entries, objects grow field by field. ``step``: an enum or a number
moves one step (``multipleOf``, otherwise 1) at a time. Values without an order may not change under
either. An absent value may be set.

`orderkit change` enforces the same rules before it writes (``core.order.change``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orderkit.core.kit.form_shapes import FieldPath
from orderkit.core.kit.kit_file import Direction
from orderkit.core.kit.model import Kit
from orderkit_workshop.generate.cel_text import literal

Schema = Mapping[str, Any]
_NOTHING = "false"
"""Values without an order may not change."""
_LIMITED = (Direction.GROW, Direction.STEP)


@dataclass(frozen=True, slots=True)
class RestrictedField:
    """A field whose changes are limited."""

    path: FieldPath
    schema: Schema
    directions: tuple[Direction, ...]
    """A change is allowed if any of them allows it. `NEVER` stands alone."""


def limits(kit: Kit) -> Iterator[RestrictedField]:
    """Yield the fields whose changes the kit limits, in the XRD's order."""
    for name, schema in (kit.spec_schema.get("properties") or {}).items():
        yield from _limits(kit, name, schema)


def _limits(kit: Kit, path: FieldPath, schema: Schema) -> Iterator[RestrictedField]:
    directed_fields = [
        (change.direction, field) for change in kit.changes for field in change.fields
    ]
    covering = {
        direction for direction, field in directed_fields if f"{path}.".startswith(f"{field}.")
    }
    if Direction.NEVER in covering:
        yield RestrictedField(path, schema, (Direction.NEVER,))
    elif any(field.startswith(f"{path}.") for _, field in directed_fields):
        for name, below in (schema.get("properties") or {}).items():
            yield from _limits(kit, f"{path}.{name}", below)
    elif covering and Direction.ANY not in covering:
        yield RestrictedField(
            path, schema, tuple(limiting for limiting in _LIMITED if limiting in covering)
        )


def allowed_expression(limit: RestrictedField, was: str, now: str) -> str:
    """Return the expression that allows a change between two values, neither of them null."""
    forms = {Direction.GROW: _grown, Direction.STEP: _stepped}
    bodies = [forms[direction](limit.schema, was, now) for direction in limit.directions]
    return " || ".join(f"({body})" for body in bodies) if len(bodies) > 1 else bodies[0]


def positions_map(limit: RestrictedField) -> str:
    """Return the CEL map from an enum's values to their positions; empty if there is none."""
    return _ranks(limit.schema)


_Form = Callable[[Schema, str, str], str]


def _grown(schema: Schema, was: str, now: str) -> str:
    if ranks := _ranks(schema):
        return f"{_rank(ranks, now)} >= {_rank(ranks, was)}"
    if schema.get("type") == "object":
        return _inside(_grown, schema, was, now)
    if schema.get("type") == "array":
        return _elements_stay(schema, was, now)
    quantities = f"isQuantity(string({was})) && isQuantity(string({now}))"
    not_smaller = f"quantity(string({now})).compareTo(quantity(string({was}))) >= 0"
    return {
        "integer": f"{now} >= {was}",
        "number": f"{now} >= {was}",
        "boolean": f"{now} || !{was}",
        "string": f"{quantities} &&\n{not_smaller}",
    }.get(_type(schema), _NOTHING)


def _stepped(schema: Schema, was: str, now: str) -> str:
    if ranks := _ranks(schema):
        old_rank, new_rank = _rank(ranks, was), _rank(ranks, now)
        return f"{old_rank} == -1 ||\n{new_rank} - {old_rank} <= 1 &&\n{old_rank} - {new_rank} <= 1"
    if schema.get("type") == "object":
        return _inside(_stepped, schema, was, now)
    step = schema.get("multipleOf") or 1
    return {
        "integer": _near(now, was, literal(int(step))),
        "number": _near(f"double({now})", f"double({was})", literal(float(step))),
        "boolean": "true",
    }.get(_type(schema), _NOTHING)


def _type(schema: Schema) -> str:
    """Return the type; an int-or-string is a string, because strings may be quantities."""
    type_ = schema.get("type") or ""
    return "string" if schema.get("x-kubernetes-int-or-string") else str(type_)


def _near(new_value: str, old_value: str, step: str) -> str:
    return f"{new_value} - {old_value} <= {step} && {old_value} - {new_value} <= {step}"


def _ranks(schema: Schema) -> str:
    """Return an enum as a map to positions; empty if there is none or a map cannot hold it."""
    values = [value for value in schema.get("enum") or () if value is not None]
    if not values or not all(isinstance(value, str | int) for value in values):
        return ""
    return "{" + ", ".join(f"{literal(v)}: {n}" for n, v in enumerate(values)) + "}"


def _rank(ranks: str, value: str) -> str:
    """Return the position of a value. A value that the enum no longer has comes first."""
    return f"{ranks}[?{value}].orValue(-1)"


def _elements_stay(schema: Schema, was: str, now: str) -> str:
    keys = schema.get("x-kubernetes-list-map-keys")
    if schema.get("x-kubernetes-list-type") != "map" or not keys:
        return f"{was}.all(e, e in {now})"
    mine, theirs = _names(was, "e", "f")
    same_keys = [f"{theirs}[{literal(key)}] == {mine}[{literal(key)}]" for key in keys]
    grown = _inside(_grown, schema.get("items") or {}, mine, theirs)
    return f"{was}.all({mine}, {now}.exists({theirs}, {' && '.join([*same_keys, grown])}))"


def _inside(form: _Form, schema: Schema, was: str, now: str) -> str:
    """Require that each existing entry stays and changes only within its own limits."""
    values = schema.get("additionalProperties")
    properties = schema.get("properties") or {}
    if properties:
        return " &&\n".join(
            f"(!({key} in {was}) || ({key} in {now} && "
            f"({_leaf(form, child, f'{was}[{key}]', f'{now}[{key}]')})))"
            for key, child in ((literal(name), child) for name, child in properties.items())
        )
    (key_name,) = _names(was, "k")
    before, after = f"{was}[{key_name}]", f"{now}[{key_name}]"
    body = _leaf(form, values if isinstance(values, Mapping) else {}, before, after)
    return f"{was}.all({key_name}, {key_name} in {now} && ({body}))"


def _leaf(form: _Form, schema: Schema, was: str, now: str) -> str:
    """
    Compare leaves: equal, or changed within the limits.

    Strings other than quantities must not change.
    """
    return f"{now} == {was} || ({form(schema, was, now)})"


def _names(outer: str, *letters: str) -> tuple[str, ...]:
    """Return names for the loop's variables that no outer loop uses."""
    depth = outer.count("[")
    return tuple(f"{letter}{depth}" for letter in letters)
