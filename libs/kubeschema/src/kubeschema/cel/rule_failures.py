"""
The API server's messages for rules that are false or fail, and the fields that they are about.

``spec.size: Invalid value: 3: failed rule: self < 3``. The value is shown if it is a scalar and the
rule has no ``fieldPath`` to another field.

A refusal names the fields that a rule of a parent is about, and not the parent. These are the
fields that the rule reads and the change touches. Without a change, or if it touches none of them,
they are all fields that the rule reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubeschema.cel.cel_rules import CelRule, field_steps
from kubeschema.cel.syntax_tree import ExpressionNode
from kubeschema.cel.type_shapes import CelType
from kubeschema.structural.api_messages import SchemaProblem, go_value

Steps = tuple[str, ...]
_OBJECTS = ("self", "oldSelf")
_MEMBERS = ("_?._", "_[_]", "_[?_]")
_ASKS_FOR_OLD = "hasValue"
_INSIDE_OPTIONAL = "value"


@dataclass(frozen=True, slots=True)
class RuleField:
    """A field that a broken rule is about; None where it is not set."""

    path: str
    """Below the value that has the rule: ``.zone``, ``.tags[cost]``."""
    new: Any
    old: Any


def rule_fields(
    tree: ExpressionNode, shape: CelType, new: Any, old: Any = None
) -> tuple[RuleField, ...]:
    """
    Return the fields that a rule on a value is about, those that are set first.

    Empty if the rule reads the value as a whole and nothing is known to have changed.
    """
    read = tuple(dict.fromkeys(_plain(shape, steps) for steps in _read(tree)))
    changed = tuple(_changed(new, old)) if old is not None else ()
    touched = [max(r, c, key=len) for r in read for c in changed if _is_along(r, c)]
    steps_of_all = tuple(dict.fromkeys(touched)) or read
    fields = [
        RuleField(_text(shape, steps), _at(new, steps), _at(old, steps))
        for steps in steps_of_all
        if steps and not any(_is_along(steps, o) and len(o) > len(steps) for o in steps_of_all)
    ]
    return () if () in steps_of_all else tuple(sorted(fields, key=lambda f: f.new is None))


def _read(node: ExpressionNode) -> Iterator[Steps]:
    """Yield what is read of the objects; of a list, all of it. Names are escaped."""
    steps = _steps(node)
    if steps is not None:
        yield steps
    elif node.name != _ASKS_FOR_OLD:
        is_old = node.kind == "fold" and node.name in _OBJECTS  # bound around the rule
        for child in node.children[-1:] if is_old else node.children:
            yield from _read(child)


def _steps(node: ExpressionNode) -> Steps | None:
    """Return the way from an object to what an expression names; None if it names nothing of it."""
    if node.kind == "ident":
        return () if node.name in _OBJECTS else None
    if not node.children or node.kind not in ("select", "call"):
        return None
    above = _steps(node.children[0])
    if above is None or node.kind == "select":
        return None if above is None else (*above, node.name)
    if node.name in _MEMBERS and node.children[1].kind == "constant" and node.children[1].name:
        return (*above, node.children[1].name)
    return above if node.name == _INSIDE_OPTIONAL and len(node.children) == 1 else None


def _plain(shape: CelType, escaped: Steps) -> Steps:
    """Return the names in the object of what a rule reads."""
    steps: list[str] = []
    for name in escaped:
        inner = shape.items if shape.kind == "map" else None
        for plain, (escaped_name, child) in shape.fields.items():
            if escaped_name == name:
                name, inner = plain, child  # noqa: PLW2901 - the same step, as the object has it
        if inner is None:
            break
        steps.append(name)
        shape = inner
    return tuple(steps)


def _text(shape: CelType, steps: Iterable[str]) -> str:
    text = ""
    for step in steps:
        text += f"[{step}]" if shape.kind == "map" else f".{step}"
        shape = shape.fields.get(step, ("", shape.items or CelType("dyn")))[1]
    return text


def _changed(new: Any, old: Any, at: Steps = ()) -> Iterator[Steps]:
    if isinstance(new, dict) and isinstance(old, dict):
        for name in {**old, **new}:
            yield from _changed(new.get(name), old.get(name), (*at, name))
    elif new != old:
        yield at


def _is_along(steps: Steps, others: Steps) -> bool:
    """Say whether one of two ways leads along the other."""
    shorter = min(len(steps), len(others))
    return steps[:shorter] == others[:shorter]


def _at(value: Any, steps: Steps) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


_REQUIRED, _FORBIDDEN = "FieldValueRequired", "FieldValueForbidden"
_DUPLICATE, _INVALID = "FieldValueDuplicate", "FieldValueInvalid"
_WORDS = (
    (re.compile(r"Key not found in map : \"(.*)\""), r"no such key: \1"),
    (re.compile(r"Index error: index=(-?\d+).*"), r"index out of bounds: \1"),
    (re.compile(r"divide by zero"), "division by zero"),
    (re.compile(r"modulus by zero"), "modulus by zero"),
    (re.compile(r"double out of int64 range"), "integer overflow"),
    (
        re.compile(r"cannot convert string to (int|uint|double)|Could not parse .*(int|double).*"),
        r"type conversion error from 'string' to '\1'",
    ),
    (
        re.compile(r"String to (Timestamp|Duration) conversion failed"),
        r"type conversion error from 'string' to 'google.protobuf.\1'",
    ),
    (
        re.compile(r".*<start> or <end> is greater than <string>.size\(\)"),
        "index out of range",
    ),
    (re.compile(r"invalid regular expression: (.*)"), r"error parsing regexp: \1"),
)
_NO_OVERLOAD = "No matching overloads found"
_STATUS = re.compile(r"\A[A-Z_]+: ")


def failure(
    rule: CelRule, schema: Mapping[str, Any], value: Any, path: str, message: str
) -> SchemaProblem:
    """Return the server's message for a rule that is false."""
    field_path = path
    steps = field_steps(rule.field_path, schema) or []
    if steps:
        field_path = ".".join([*([path] if path else []), *steps])
    plain = steps or isinstance(value, dict | list)
    if rule.reason == _DUPLICATE:
        value_text = "" if plain else go_value(value)
        return SchemaProblem(field_path, rule.reason, f"Duplicate value: {value_text or message}")
    lead = {_REQUIRED: "Required value", _FORBIDDEN: "Forbidden"}.get(rule.reason)
    if lead is None:
        lead = "Invalid value" if plain else f"Invalid value: {go_value(value)}"
    return SchemaProblem(field_path, rule.reason, f"{lead}: {message}")


def error_text(rule: CelRule, schema: Mapping[str, Any], path: str, error: str) -> SchemaProblem:
    """Return the server's message for a rule whose evaluation failed."""
    kind = schema.get("type") or ""
    if _NO_OVERLOAD in error:
        message = (
            f"Invalid value: \"{kind}\": 'no such overload': call arguments did not match a "
            f"supported operator, function or macro signature for rule: {rule.label}"
        )
        return SchemaProblem(path, _INVALID, message)
    text = _STATUS.sub("", error)
    for pattern, words in _WORDS:
        if pattern.fullmatch(text):
            text = pattern.sub(words, text)
            break
    message = f'Invalid value: "{kind}": {text} evaluating rule: {rule.label}'
    return SchemaProblem(path, _INVALID, message)


def cost_text(rule: CelRule, schema: Mapping[str, Any], path: str, why: str) -> SchemaProblem:
    """Return the message for a rule that a limit kept from being evaluated."""
    kind = schema.get("type") or ""
    message = f'Invalid value: "{kind}": call cost exceeds limit for rule: {rule.label} ({why})'
    return SchemaProblem(path, _INVALID, message)
