"""
How three readers resolve a plain scalar: YAML 1.1, YAML 1.2 and Kubernetes.

YAML 1.1 is PyYAML's resolver, YAML 1.2 the core schema, Kubernetes ``go_scalars`` (``kubectl``,
Argo CD and the API server have their own dialect). A string is written without quotes only if all
three read it as a string, and a number only if all three read that number.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import yaml

from yamlfiles import go_scalars
from yamlfiles.edit.edit_operations import Value

_TAG = "tag:yaml.org,2002:"
_FIRST_11 = yaml.SafeLoader.yaml_implicit_resolvers
_BUILD_11 = yaml.constructor.SafeConstructor
_UNREADABLE = object()

_NULL_12 = frozenset(("", "~", "null", "Null", "NULL"))
_BOOL_12 = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT_12 = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT_12 = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE_12 = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DIGITS_MAX = 400


def is_json(value: object) -> bool:
    """Return whether JSON can represent a reading."""
    return value is not _UNREADABLE and not (isinstance(value, float) and not math.isfinite(value))


def same(value: object, other_value: object) -> bool:
    """Compare two scalars with their types: 1, 1.0 and true are different."""
    return type(value) is type(other_value) and value == other_value


@functools.lru_cache(maxsize=4096)
def readings(text: str) -> tuple[Any, Any, Any]:
    """Return what YAML 1.1, YAML 1.2 and Kubernetes read; a sentinel object for non-JSON values."""
    return read_11(text), read_12(text), _read_kubernetes(text)


def is_read_alike(text: str) -> bool:
    """Return whether all readers read the plain scalar `text` alike, whatever its value."""
    first, *other_readings = readings(text)
    return first is not _UNREADABLE and all(same(first, other) for other in other_readings)


def agree(text: str, value: Value) -> bool:
    """Return whether all readers read exactly `value` from the plain scalar `text`."""
    return all(same(reading, value) for reading in readings(text))


def read_11(text: str) -> Any:
    """Return the value that PyYAML's safe loader reads."""
    candidates = (*_FIRST_11.get(text[:1], ()), *_FIRST_11.get(None, ()))
    tag = next((tag for tag, pattern in candidates if pattern.match(text)), None)
    if tag is None:
        return text
    if tag.removeprefix(_TAG) not in ("null", "bool", "int", "float"):
        return _UNREADABLE
    try:
        return _BUILD_11().construct_object(yaml.ScalarNode(tag, text))
    except (ValueError, OverflowError):
        return _UNREADABLE


def read_12(text: str) -> Any:
    """Return the value that the core schema of YAML 1.2 reads."""
    if text in _NULL_12:
        return None
    if text in _BOOL_12:
        return _BOOL_12[text]
    if len(text) > _DIGITS_MAX:
        return text
    if _INT_12.fullmatch(text):
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    if _FLOAT_12.fullmatch(text):
        return float(text)
    return _UNREADABLE if _NOT_FINITE_12.fullmatch(text) else text


def _read_kubernetes(text: str) -> Any:
    try:
        return go_scalars.resolve(text)
    except ValueError:
        return _UNREADABLE
