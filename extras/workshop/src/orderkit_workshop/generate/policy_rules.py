"""
Policy rules on identity and on how fields may change.

An order's Application delivers its own XR only, and the fields that name order and team match.

Limits on changes are the directions in ``changes`` of kit.yaml, as CEL. ``grow``: numbers,
quantities and enums (in their order) never decrease, booleans never become false, lists and maps
never lose entries, objects grow field by field. ``step``: an enum or a number moves one step
(``multipleOf``, otherwise 1) at a time. Values without an order may not change under either. An
absent value may be set. ``orderkit change`` enforces the same rules before it writes
(``core.order.change``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orderkit.core.kit.kit_file import Direction
from orderkit.core.kit.kit_file_parts import FieldPath
from orderkit.core.kit.model import Kit
from orderkit_workshop.generate.policy_parts import (
    AGAIN,
    INSTANCE_LABEL,
    Expression,
    PolicyRule,
    Variables,
    changes,
    concatenated,
    either,
    literal,
    quoted,
    shown,
)


def same_tracker() -> str:
    """Return the condition that the same Application delivers the object as before."""
    return "variables.tracked_by == variables.tracked_by_before"


def identity(kit: Kit, variables: Variables) -> Iterator[PolicyRule]:
    """Yield the rules; the one to report first comes first."""
    yield _is_delivered(kit)
    yield _trackers_agree()
    for path, role in _naming(kit):
        yield _never_changes(kit, variables, path, f"names the order{role}")
    has_order_id = _define_order(kit, variables)
    if kit.xr_name != "order":
        yield _named_by_field(kit, variables)
    elif has_order_id:
        yield _named_by_id(kit, variables)
    if kit.namespace_parts:
        yield _in_its_namespace(kit, variables)
    yield _delivers_its_own(kit, has_order_id=has_order_id)


def _is_delivered(kit: Kit) -> PolicyRule:
    order = f"an order of kit {kit.name} is delivered from its own repository"
    return PolicyRule(
        either("variables.tracked_by != ''", f"oldObject != null && {same_tracker()}"),
        (
            f"metadata: no Application delivers {kit.kind.kind} ",
            *quoted("object.metadata.name"),
            f", but {order}; place it with the portal's form or `orderkit order {kit.name}`",
        ),
        f"metadata: {order}",
    )


def _trackers_agree() -> PolicyRule:
    """Require that Argo CD's annotation and label agree."""
    return PolicyRule(
        # Argo CD writes only one of the two; the other may be forged
        either(
            "variables.labelled == ''",
            "variables.labelled == variables.tracked_by",
            f"oldObject != null && {same_tracker()} &&\n"
            "variables.labelled == variables.labelled_before",
        ),
        (
            f"metadata.labels: {INSTANCE_LABEL} is ",
            *quoted("variables.labelled"),
            ", but the tracking annotation says ",
            *quoted("variables.tracked_by"),
            "; take the label away",
        ),
        f"metadata.labels: {INSTANCE_LABEL} and the tracking annotation differ",
    )


def _naming(kit: Kit) -> Iterator[tuple[FieldPath, str]]:
    """Yield the fields that identify the order and its team."""
    roles = dict.fromkeys(kit.name_from, "")
    if kit.xr_name != "order":
        roles.setdefault(kit.xr_name, "'s XR")
    if kit.team_from:
        roles[kit.team_from] = "'s team"
    yield from roles.items()


def _never_changes(kit: Kit, variables: Variables, path: FieldPath, why: str) -> PolicyRule:
    now, was = variables.field(path)
    return PolicyRule(
        either(f"{was} == null", f"{now} == {was}"),
        (
            *changes(kit, path, variables),
            f", but it {why} and never changes; put it back, {AGAIN}",
        ),
        f"spec.{path} {why} and never changes",
    )


def _define_order(kit: Kit, variables: Variables) -> bool:
    """Define the order's id from its fields; return False if the fields do not contain it."""
    if not kit.name_from:
        return False
    for suffix, index in (("", 0), ("_before", 1)):
        parts = [literal(f"{kit.name}-")]
        for path in kit.name_from:
            value = variables.field(path)[index]
            parts += [f"({value} == null ? '' : string({value}))", literal("-")]
        variables.expressions[f"order{suffix}"] = concatenated(parts[:-1])
    return True


def _named_by_id(kit: Kit, variables: Variables) -> PolicyRule:
    fields: list[str | Expression] = []
    for path in kit.name_from:
        fields += [
            " and " if fields else "",
            f"spec.{path} ",
            shown(kit, path, variables.field(path)[0]),
        ]
    return PolicyRule(
        either(
            "object.metadata.name == variables.order",
            "oldObject != null && variables.order == variables.order_before",
        ),
        (
            "metadata.name: is ",
            *quoted("object.metadata.name"),
            ", but ",
            *fields,
            " makes it ",
            *quoted("variables.order"),
            "; put back what the order was placed with, or place another",
        ),
        "metadata.name is not the order's id as its fields make it",
    )


def _named_by_field(kit: Kit, variables: Variables) -> PolicyRule:
    now, was = variables.field(kit.xr_name)
    return PolicyRule(
        either(
            f"{now} != null && object.metadata.name == string({now})",
            f"oldObject != null && {now} == {was}",
        ),
        (
            "metadata.name: is ",
            *quoted("object.metadata.name"),
            f", but the name is the value of spec.{kit.xr_name}, and that is ",
            shown(kit, kit.xr_name, now),
            "; make them equal",
        ),
        f"metadata.name is not the value of spec.{kit.xr_name}",
    )


def _in_its_namespace(kit: Kit, variables: Variables) -> PolicyRule:
    parts = []
    for text, path in kit.namespace_parts:
        parts += [literal(text)] if text else []
        parts += [f"string({variables.field(path)[0]})"] if path else []
    home = concatenated(parts)
    fields = [variables.field(path)[0] for _, path in kit.namespace_parts if path]
    fields_are_set = " && ".join([*(f"{field} != null" for field in fields), "true"])
    return PolicyRule(
        either(f"{fields_are_set} && object.metadata.namespace == {home}", "oldObject != null"),
        (
            "metadata.namespace: is ",
            *quoted("object.metadata.namespace"),
            ", but the order's fields make it ",
            *quoted(f"({fields_are_set} ? {home} : 'nothing')"),
            "; put it there",
        ),
        "metadata.namespace is not the one that the order's fields make",
    )


def _delivers_its_own(kit: Kit, *, has_order_id: bool) -> PolicyRule:
    """
    Require that the Application that delivers the XR is the order's own.

    Args:
        has_order_id: The order's id can be derived from its fields.
    """
    prefix = literal(f"{kit.name}-")
    # An object that broke the rule before the policy existed is accepted until these fields change.
    settled = f"oldObject != null && {same_tracker()}"
    if has_order_id:
        right = "variables.tracked_by == variables.order"
        settled += " &&\nvariables.order == variables.order_before"
    elif kit.xr_name == "order":
        right = (
            "variables.tracked_by == object.metadata.name &&\n"
            f"object.metadata.name.startsWith({prefix})"
        )
    else:
        right = (
            f"variables.tracked_by.startsWith({prefix}) &&\n"
            f"!variables.tracked_by_before.startsWith({prefix})"
        )
    return PolicyRule(
        either("variables.tracked_by == ''", right, settled),
        (
            "metadata.name: Application ",
            *quoted("variables.tracked_by"),
            f" delivers {kit.kind.kind} ",
            *quoted("object.metadata.name"),
            ", but an order delivers its own XR only; take this one out of its repository",
        ),
        "metadata.name: an order delivers its own XR only",
    )


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
