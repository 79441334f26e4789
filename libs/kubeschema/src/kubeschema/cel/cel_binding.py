"""
Convert plain values to the values that a CEL rule sees, according to their CEL type.

Nulls count as absent; undeclared fields are left out. Values that the CEL library's Python side
cannot represent (integers beyond 64 bits, a leap second) raise `Unbound`. The rule is then not
evaluated at all, rather than evaluated on a changed value.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from kubeschema.cel.type_shapes import CelType

INT64 = range(-(2**63), 2**63)
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d))?\Z", re.ASCII
)
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+) ?(ms|us|µs|μs|ns|s|m|h|d|w)", re.ASCII)
_NANOSECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9}
_NANOSECONDS |= {"m": 60 * 10**9, "h": 3600 * 10**9, "d": 86_400 * 10**9, "w": 604_800 * 10**9}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS = (-62_135_596_800, 253_402_300_799)
"""The years 1 to 9999."""


_PYTHON: dict[str, Any] = {
    "object": dict,
    "map": dict,
    "list": list,
    "bool": bool,
    "int": (int, float),
    "double": (int, float),
    "dyn": (int, str, float),
    **dict.fromkeys(("string", "bytes", "timestamp", "duration"), str),
}
"""Types are checked here too: an old object may violate the current schema."""


class Unbound(ValueError):  # noqa: N818 - not an error: the rule is not evaluated
    """The value cannot be passed to the library without changing it."""


def bind(shape: CelType, value: Any, *, canonical: bool = False) -> Any:
    """
    Return the value as a rule sees it.

    Args:
        canonical: Sort lists that have no order (sets and keyed lists), so that comparing them as
            lists gives the same result as in Kubernetes.

    Raises:
        Unbound: The library cannot represent the value.
    """
    if value is None:
        return None
    if not isinstance(value, _PYTHON[shape.kind]):
        raise Unbound(f"{type(value).__name__} where {shape.kind} belongs")
    if shape.kind == "object":
        return {
            escaped: bind(child, value[name], canonical=canonical)
            for name, (escaped, child) in shape.fields.items()
            if value.get(name) is not None
        }
    if shape.items is not None:
        return _collection(shape, shape.items, value, canonical=canonical)
    return _scalar(shape.kind, value)


def _collection(shape: CelType, items: CelType, value: Any, *, canonical: bool) -> Any:
    if shape.kind == "map":
        return {key: bind(items, entry, canonical=canonical) for key, entry in value.items()}
    if canonical and shape.list_type != "atomic":
        value = sorted(value, key=lambda entry: json.dumps(_identity(shape, entry)))
    return [bind(items, entry, canonical=canonical) for entry in value]


def _identity(shape: CelType, entry: Any) -> Any:
    if shape.list_type == "map" and isinstance(entry, dict):
        return [entry.get(key) for key in shape.keys]
    return entry


def _scalar(kind: str, value: Any) -> Any:
    if kind == "double":
        return _float(value)
    if kind in _TEXTS:
        return _TEXTS[kind](value)
    if type(value) is int and value not in INT64:
        raise Unbound(f"{value} is beyond 64 bits")
    return int(value) if kind == "int" else value


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise Unbound(f"{value} is beyond a double") from error


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unbound(f"{text!r} is not base64") from error


def timestamp(text: str) -> Any:
    """
    Read a ``date`` or ``date-time`` as a protobuf Timestamp.

    Raises:
        Unbound: It is finer than nanoseconds, has a leap second or is in an unusual notation.
    """
    from google.protobuf.timestamp_pb2 import Timestamp

    match = _TIME.match(text)
    if not match:
        raise Unbound(f"{text!r} is not a usual time")
    day, clock, fraction, zone = match.groups()
    iso = f"{day}T{clock or '00:00:00'}{(zone or 'Z').upper().replace('Z', '+00:00')}"
    try:
        read = datetime.fromisoformat(iso)
    except ValueError as error:
        raise Unbound(f"{text!r}: {error}") from error
    seconds = (read - _EPOCH) // timedelta(seconds=1)
    if not _SECONDS[0] <= seconds <= _SECONDS[1]:
        raise Unbound(f"{text!r} is beyond the years 1 to 9999")
    return Timestamp(seconds=seconds, nanos=int((fraction or "").ljust(9, "0")))


def duration(text: str) -> Any:
    """
    Read a ``duration`` as a protobuf Duration.

    Raises:
        Unbound: It is finer than nanoseconds or is in an unusual notation.
    """
    from google.protobuf.duration_pb2 import Duration

    sign = -1 if text.startswith("-") else 1
    unsigned = text.lstrip("+-")
    parts = _PART.findall(unsigned)
    if unsigned != "0" and (
        not parts or "".join(m.group() for m in _PART.finditer(unsigned)) != unsigned
    ):
        raise Unbound(f"{text!r} is not a usual duration")
    total = sum(Decimal(amount) * _NANOSECONDS[unit] for amount, unit in parts)
    if total != int(total) or total > INT64[-1]:
        raise Unbound(f"{text!r} cannot be held exactly")
    seconds, nanos = divmod(int(total), _NANOSECONDS["s"])
    return Duration(seconds=sign * seconds, nanos=sign * nanos)


_TEXTS = {"timestamp": timestamp, "duration": duration, "bytes": _bytes}
