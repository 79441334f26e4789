"""
Values as a function written in Go holds them: Go's number types and Go's printed text.

Numbers that arrive over the wire are float64. Whole numbers that Kubernetes read from JSON are
int64. Transforms distinguish the two, so here a Go float64 is a Python float and an int64 is a
Python int. `json_text` writes what Go's ``encoding/json`` writes, `type_name` what ``%T`` prints.

Used by the twins only.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_PLAIN_MIN, _PLAIN_MAX = 1e-6, 1e21
"""Between these Go's JSON encoder writes a float without an exponent."""
_GENERAL_LOW, _GENERAL_HIGH = -4, 6
"""Decimal exponents between which ``%v`` writes a float without an exponent."""


class JSONError(ValueError):
    """A value that Go's JSON encoder cannot write; the message is Go's."""


def from_wire(value: Any) -> Any:
    """Return data as it arrives in a protobuf Struct: every number is a float."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, dict):
        return {key: from_wire(entry) for key, entry in value.items()}
    return [from_wire(entry) for entry in value]


def from_json(value: Any) -> Any:
    """
    Return data after a round trip through Kubernetes' JSON: whole numbers are integers.

    Raises:
        JSONError: A number that JSON cannot write.
    """
    if isinstance(value, float):
        _check_finite(value)
        is_whole = value.is_integer() and abs(value) < _PLAIN_MAX
        return int(value) if is_whole and INT64_MIN <= int(value) <= INT64_MAX else value
    if isinstance(value, dict):
        return {key: from_json(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [from_json(entry) for entry in value]
    return value


def type_name(value: Any) -> str:
    """Return what ``%T`` prints."""
    if value is None:
        return "<nil>"
    names = {
        bool: "bool", int: "int64", float: "float64", str: "string",
        dict: "map[string]interface {}", list: "[]interface {}",
    }  # fmt: skip
    return names[type(value)]


def same(value: Any, other_value: Any) -> bool:
    """Compare as ``reflect.DeepEqual`` does: 1 and 1.0 are different types."""
    if type(value) is not type(other_value):
        return False
    if isinstance(value, dict):
        return value.keys() == other_value.keys() and all(
            same(value[key], other_value[key]) for key in value
        )
    if isinstance(value, list):
        return len(value) == len(other_value) and all(map(same, value, other_value))
    return bool(value == other_value)


def json_text(value: Any) -> str:
    """
    Return compact JSON as ``encoding/json`` writes it: keys sorted, ``< > &`` escaped.

    Raises:
        JSONError: A number that JSON cannot write.
    """
    if isinstance(value, str):
        return _json_string(value)
    if isinstance(value, float):
        return _json_float(value)
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: str(key).encode())
        return "{" + ",".join(f"{_json_string(k)}:{json_text(value[k])}" for k in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    return json.dumps(value)


_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028",
            "\u2029": "\\u2029"}  # fmt: skip


def _json_string(text: str) -> str:
    json_text_ = json.dumps(text, ensure_ascii=False)
    return "".join(_ESCAPES.get(char, char) for char in json_text_)


def _check_finite(value: float) -> None:
    if not math.isfinite(value):
        text = "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
        raise JSONError(f"json: unsupported value: {text}")


def _json_float(value: float) -> str:
    _check_finite(value)
    if value == 0 or _PLAIN_MIN <= abs(value) < _PLAIN_MAX:
        return fixed(value)
    return scientific(value).replace("e-0", "e-")


def fixed(value: float, digits: int = -1) -> str:
    """Return ``strconv.FormatFloat(value, 'f', digits)``; -1 means the shortest exact text."""
    if digits >= 0:
        return f"{value:.{digits}f}"
    sign = "-" if math.copysign(1, value) < 0 else ""
    text = format(Decimal(repr(abs(value))), "f")
    return sign + (text.rstrip("0").rstrip(".") if "." in text else text)


def scientific(value: float, digits: int = -1) -> str:
    """Return the 'e' format: one digit, the shortest exact fraction, two digits of exponent."""
    if digits >= 0:
        return f"{value:.{digits}e}"
    sign, digit_tuple, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - finite
    first, fraction = str(digit_tuple[0]), "".join(map(str, digit_tuple[1:]))
    power = exponent + len(fraction)
    mantissa = first + (f".{fraction}" if fraction else "")
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def general(value: float) -> str:
    """Return what ``%v`` prints of a float."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    if value == 0:
        return fixed(value)
    power = Decimal(repr(value)).adjusted()
    if power < _GENERAL_LOW or power >= _GENERAL_HIGH:
        return scientific(value)
    return fixed(value)
