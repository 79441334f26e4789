"""
Translate bounds and sizes of the XRD into the form's JSON Schema.

The API server's dialect marks an exclusive bound by a boolean, the form's by a number. An optional
list or map is omitted when it is empty, so its minimum size applies only if it has entries. Called
by ``core.kit.form_fields``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderkit.core.kit.xrd_fields import KitField

Schema = dict[str, Any]

SAFE_MAX = 2**53 - 1
"""The largest integer that JavaScript represents exactly."""
_INT32_MAX = 2**31 - 1
_MACHINE_MAXIMA = (_INT32_MAX, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, SAFE_MAX)
_MACHINE_FORMATS = frozenset({"int32", "int64", "float", "double"})
TOO_LARGE, TOO_SMALL = "is too large", "is too small"


def is_machine_bound(keyword: str, value: object) -> bool:
    """Return whether a keyword says how computers keep a number, which tells a person nothing."""
    if keyword == "format":
        return value in _MACHINE_FORMATS
    is_number = isinstance(value, int | float) and keyword in ("minimum", "maximum")
    return is_number and any(value in (limit, -limit, -limit - 1) for limit in _MACHINE_MAXIMA)


def machine_errors(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return messages for bounds of a form's property that are no author's."""
    words = {"minimum": TOO_SMALL, "maximum": TOO_LARGE}
    return {key: text for key, text in words.items() if is_machine_bound(key, schema.get(key))}


def numbers(schema: Mapping[str, Any]) -> Schema:
    """Return the bounds of a number; integers stay in the range that JavaScript keeps exactly."""
    bounds: Schema = {}
    is_integer = schema.get("type") == "integer"
    largest = _INT32_MAX if schema.get("format") == "int32" else SAFE_MAX
    for side, limit in (("minimum", -largest - (largest == _INT32_MAX)), ("maximum", largest)):
        bound, exclusive = schema.get(side), f"exclusive{side.capitalize()}"
        if bound is None:
            if is_integer:
                bounds[side] = limit
        elif is_integer and abs(bound) > largest:
            bounds[side] = limit
        elif schema.get(exclusive) is True:
            bounds[exclusive] = bound
        else:
            bounds[side] = bound
    if "multipleOf" in schema:
        bounds["multipleOf"] = schema["multipleOf"]
    return bounds


def sizes(field: KitField, suffix: str, limits: Mapping[str, int]) -> Schema:
    """Return minimum and maximum size; `suffix` is ``Items`` or ``Properties``."""
    smallest, largest = (
        _least(field, limits),
        limits.get(f"max{suffix}", field.schema.get(f"max{suffix}")),
    )
    bounds: Schema = {} if largest is None else {f"max{suffix}": largest}
    if smallest > 1 and field.may_be_empty:
        wrong = {f"min{suffix}": 1, f"max{suffix}": smallest - 1}
        message = f"must have at least {smallest} entries, or none"
        return {**bounds, "not": wrong, "errorMessage": {"not": message}}
    if smallest > 0 and not field.may_be_empty:
        bounds[f"min{suffix}"] = smallest
    return bounds


def _least(field: KitField, limits: Mapping[str, int]) -> int:
    own_limits = {limit.keyword: limit.value for limit in field.limits}
    minimums = [
        value
        for key in ("minItems", "minProperties")
        for value in (limits.get(key), own_limits.get(key), field.schema.get(key))
        if value is not None
    ]
    return max(minimums, default=0)
