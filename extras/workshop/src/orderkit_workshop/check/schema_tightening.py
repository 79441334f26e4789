"""
Compare two schemas of one field: which formerly allowed values are refused now.

Patterns and rules cannot be compared: any change of them is reported. Called by
``check.since_checks``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orderkit_workshop.check.since_rule_codes import SinceRule

Schema = Mapping[str, Any]
Tightening = tuple[SinceRule, str, str]
"""Rule, path in the schema, sentence."""

_LEAST = ("minimum", "minLength", "minItems", "minProperties")
_MOST = ("maximum", "maxLength", "maxItems", "maxProperties")
_LOGIC = ("oneOf", "anyOf", "allOf", "not")
_LISTS = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")
_RULES = "x-kubernetes-validations"
_OPEN = "x-kubernetes-preserve-unknown-fields"


def tightened(old: Schema, new: Schema, path: str, name: str = "") -> Iterator[Tightening]:
    """
    Yield how `new` allows less than `old`.

    Args:
        path: Path of `new` in its document.
        name: What messages call the field.
    """
    title = name or "spec"
    if _types(old) != _types(new):
        message = f"{title} was {_types_text(_types(old))} and is {_types_text(_types(new))}"
        yield SinceRule.TYPE, f"{path}.type", message
        return
    yield from _values(old, new, path, title)
    yield from _bounds(old, new, path, title)
    yield from _openness(old, new, path, title)
    yield from _rules(old, new, path, title)
    if old.get("default") != new.get("default"):
        message = f"the default of {title} was {old.get('default')!r} and is {new.get('default')!r}"
        yield SinceRule.DEFAULT, f"{path}.default", message
    yield from _properties(old, new, path, name)
    for key in ("items", "additionalProperties"):
        if isinstance(old.get(key), Mapping) and isinstance(new.get(key), Mapping):
            yield from tightened(old[key], new[key], f"{path}.{key}", f"{title}[]")


def _types(schema: Schema) -> tuple[str, bool]:
    return str(schema.get("type") or ""), bool(schema.get("x-kubernetes-int-or-string"))


def _types_text(types: tuple[str, bool]) -> str:
    return "an integer or a string" if types[1] else types[0] or "anything"


def _values(old: Schema, new: Schema, path: str, title: str) -> Iterator[Tightening]:
    if new.get("enum"):
        before = old.get("enum") or []
        lost_values = [value for value in before if value not in new["enum"]]
        if lost_values or not before:
            message = f"{title} may no longer be {', '.join(map(str, lost_values))}"
            message = (
                message if lost_values else f"{title} took any value and is limited to an enum now"
            )
            yield SinceRule.ENUM, f"{path}.enum", message
    for key in ("pattern", "format"):
        if new.get(key) and new.get(key) != old.get(key):
            message = f"{key} of {title} was {old.get(key)!r} and is {new[key]!r}"
            yield SinceRule.PATTERN, f"{path}.{key}", message


def _bounds(old: Schema, new: Schema, path: str, title: str) -> Iterator[Tightening]:
    for key in (*_LEAST, *_MOST):
        if key in new and (key not in old or _is_narrower(key, old[key], new[key])):
            was = f"was {old[key]}" if key in old else "was not set"
            message = f"{key} of {title} {was} and is {new[key]}"
            yield SinceRule.BOUNDS, f"{path}.{key}", message
    for key in ("exclusiveMinimum", "exclusiveMaximum", "uniqueItems"):
        if new.get(key) and not old.get(key):
            yield SinceRule.BOUNDS, f"{path}.{key}", f"{key} of {title} is new"
    step, before = new.get("multipleOf"), old.get("multipleOf")
    if step and (not before or before % step):
        yield SinceRule.BOUNDS, f"{path}.multipleOf", f"{title} must be a multiple of {step} now"


def _is_narrower(key: str, before: float, after: float) -> bool:
    return after > before if key in _LEAST else after < before


def _openness(old: Schema, new: Schema, path: str, title: str) -> Iterator[Tightening]:
    for key in (_OPEN, "nullable"):
        if old.get(key) and not new.get(key):
            yield SinceRule.CLOSED, path, f"{title} no longer has {key}"
    if old.get("additionalProperties") and not new.get("additionalProperties"):
        yield SinceRule.CLOSED, path, f"{title} no longer takes additional keys"
    for key in _LOGIC:
        if new.get(key) and new.get(key) != old.get(key):
            yield SinceRule.LOGIC, f"{path}.{key}", f"{key} of {title} is new or changed"
    for key in _LISTS:
        if new.get(key) != old.get(key):
            yield SinceRule.LOGIC, f"{path}.{key}", f"{key} of {title} changed"


def _rules(old: Schema, new: Schema, path: str, title: str) -> Iterator[Tightening]:
    old_rules = {_text(rule) for rule in old.get(_RULES) or ()}
    for index, rule in enumerate(new.get(_RULES) or ()):
        text = _text(rule)
        if text not in old_rules and "oldSelf" not in text:
            yield SinceRule.CEL, f"{path}.{_RULES}[{index}]", f"{title}: rule '{text}'"


def _text(rule: object) -> str:
    return str(rule.get("rule") or "") if isinstance(rule, Mapping) else ""


def _properties(old: Schema, new: Schema, path: str, name: str) -> Iterator[Tightening]:
    before, after = old.get("properties") or {}, new.get("properties") or {}
    is_open = bool(new.get(_OPEN) or new.get("additionalProperties"))
    for field, schema in before.items():
        inner = f"{name}.{field}" if name else field
        if field in after:
            yield from tightened(schema, after[field], f"{path}.properties.{field}", inner)
        elif not is_open:
            yield SinceRule.FIELD_GONE, f"{path}.properties", f"{inner} was removed"
    for field in new.get("required") or ():
        inner = f"{name}.{field}" if name else field
        missing = "default" not in (after.get(field) or {})
        if field not in (old.get("required") or ()) and missing:
            yield SinceRule.REQUIRED, f"{path}.required", f"{inner} is required now"
