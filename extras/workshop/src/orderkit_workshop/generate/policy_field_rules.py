"""Policy rules on values: values set by the platform, limits on changes, immutable fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orderkit.core.kit.form_shapes import FieldPath
from orderkit.core.kit.kit_file import Direction
from orderkit.core.kit.model import Kit
from orderkit_workshop.generate.cel_text import either, literal
from orderkit_workshop.generate.cel_transitions import (
    RestrictedField,
    allowed_expression,
    positions_map,
)
from orderkit_workshop.generate.policy_parts import AGAIN, PolicyRule, Variables, changes, shown


def hidden_values(kit: Kit, variables: Variables) -> Iterator[PolicyRule]:
    """Yield a rule for each field whose value the platform sets."""
    for path, hidden in kit.hidden.items():
        now, was = variables.field(path)
        yield PolicyRule(
            either(
                f"{now} != null && string({now}) == {literal(hidden.sentinel)}",
                f"oldObject != null && {now} == {was}",
            ),
            (
                f"spec.{path}: is ",
                shown(kit, path, now),
                f", but the platform gives this value: {hidden.sentinel}; put it back",
            ),
            f"spec.{path} is not the value that the platform gives",
        )


def limited(limit: RestrictedField, variables: Variables) -> PolicyRule:
    """Return the rule for a field whose changes are limited."""
    kit, path = variables.kit, limit.path
    now, was = variables.field(path)
    if limit.directions == (Direction.NEVER,):
        rule, back = "it never changes", "put it back"
        expression = either("oldObject == null", f"{now} == {was}")
    else:
        rule, back = _direction(limit)
        body = _with_places(limit, variables, allowed_expression(limit, was, now))
        expression = either(f"{now} == {was}", f"{was} == null", f"({now} != null && ({body}))")
    return PolicyRule(
        expression,
        (*changes(kit, path, variables), f", but {rule}; {back}, {AGAIN}"),
        f"spec.{path}: {rule}",
    )


def _with_places(limit: RestrictedField, variables: Variables, body: str) -> str:
    """Define a variable for the positions of an enum's values."""
    if not (positions := positions_map(limit)):
        return body
    name = variables.field(limit.path)[0].replace("variables.spec_", "places_")
    variables.expressions[name] = positions
    return body.replace(positions, f"variables.{name}")


def _direction(limit: RestrictedField) -> tuple[str, str]:
    """Return a limit in words, and the way out."""
    values = ", ".join(str(value) for value in limit.schema.get("enum") or () if value is not None)
    order = f" ({values})" if values else ""
    if limit.directions == (Direction.GROW,):
        return f"it may only grow{order}", "put back what it was, or more"
    if limit.directions == (Direction.STEP,):
        rule = f"it goes one step at a time{order}"
        return rule, "take the steps one by one, each in a commit of its own"
    return f"it may only grow, or go one step at a time{order}", "put back what it was, or more"


def immutable(kit: Kit, variables: Variables) -> Iterator[PolicyRule]:
    """
    Yield rules for immutable fields.

    The server does not evaluate a field's own rules when the field is removed.
    """
    for path in _calls_immutable(kit.spec_schema, ""):
        now, was = variables.field(path)
        yield PolicyRule(
            either(f"{was} == null", f"{now} != null"),
            (
                f"spec.{path}: is taken away, it was ",
                shown(kit, path, was),
                f", but the kit's definition calls it immutable; put it back, {AGAIN}",
            ),
            f"spec.{path} is immutable and cannot be taken away",
        )


def _calls_immutable(schema: Any, path: FieldPath) -> Iterator[FieldPath]:
    for name, child in (schema.get("properties") or {}).items():
        child_path = f"{path}.{name}" if path else name
        rules = (rule.get("rule", "") for rule in child.get("x-kubernetes-validations") or ())
        if any("".join(rule.split()) in {"self==oldSelf", "oldSelf==self"} for rule in rules):
            yield child_path
        yield from _calls_immutable(child, child_path)
