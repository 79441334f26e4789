"""
Bounds and sizes of the XRD in the words of the form.

The API server's dialect marks an exclusive bound by a boolean, the form's by a number. A list or
map that may be left out is left out when it is empty, so its least size holds only for what has
entries. Called by ``core.generate.form_fields``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderkit.core.kit.xrd_fields import KitField

Schema = dict[str, Any]

SAFE_MAX = 2**53 - 1
"""The largest whole number of which JavaScript is sure."""
_INT32_MAX = 2**31 - 1


def numbers(schema: Mapping[str, Any]) -> Schema:
    """Return the bounds of a number; a whole number is kept to what JavaScript keeps exactly."""
    found: Schema = {}
    whole = schema.get("type") == "integer"
    most = _INT32_MAX if schema.get("format") == "int32" else SAFE_MAX
    for side, limit in (("minimum", -most - (most == _INT32_MAX)), ("maximum", most)):
        bound, exclusive = schema.get(side), f"exclusive{side.capitalize()}"
        if bound is None:
            if whole:
                found[side] = limit
        elif schema.get(exclusive) is True:
            found[exclusive] = bound
        else:
            found[side] = bound
    if "multipleOf" in schema:
        found["multipleOf"] = schema["multipleOf"]
    return found


def sizes(field: KitField, what: str, limits: Mapping[str, int]) -> Schema:
    """Return least and largest size; `what` is ``Items`` or ``Properties``."""
    least, most = _least(field, limits), limits.get(f"max{what}", field.schema.get(f"max{what}"))
    found: Schema = {} if most is None else {f"max{what}": most}
    if least > 1 and field.may_be_empty:
        wrong = {f"min{what}": 1, f"max{what}": least - 1}
        told = f"must have at least {least} entries, or none"
        return {**found, "not": wrong, "errorMessage": {"not": told}}
    if least > 0 and not field.may_be_empty:
        found[f"min{what}"] = least
    return found


def _least(field: KitField, limits: Mapping[str, int]) -> int:
    own = {limit.keyword: limit.value for limit in field.limits}
    known = [
        value
        for key in ("minItems", "minProperties")
        for value in (limits.get(key), own.get(key), field.schema.get(key))
        if value is not None
    ]
    return max(known, default=0)
