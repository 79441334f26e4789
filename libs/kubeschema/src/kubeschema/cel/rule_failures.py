"""
The API server's messages for rules that are false or fail to evaluate.

``spec.size: Invalid value: 3: failed rule: self < 3``. The value is shown if it is a scalar and the
rule has no ``fieldPath`` to another field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kubeschema.cel.cel_rules import CelRule, field_steps
from kubeschema.structural.api_messages import SchemaProblem, go_value

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
