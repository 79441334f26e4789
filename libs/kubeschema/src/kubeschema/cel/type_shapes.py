"""
How Kubernetes types a schema for CEL: the fields a rule sees, their names and their types.

Field names are escaped (``x-y`` becomes ``x__dash__y``) and undeclared fields are invisible. A
``date-time`` is a timestamp; a ``number`` is a double even if written ``1``. Of the whole object
and of embedded resources, a rule sees apiVersion, kind, and the metadata's name and generateName.

`bind` converts plain values to those that a CEL rule sees, according to their CEL type. Nulls count
as absent; undeclared fields are left out. Values that the CEL library's Python side cannot
represent (integers beyond 64 bits, a leap second) raise `Unbound`. The rule is then not evaluated
at all, rather than evaluated on a changed value.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from kubeschema.pruning import EMBEDDED, INT_OR_STRING, LIST_MAP_KEYS, LIST_TYPE, Schema

_STRINGS = {
    "byte": "bytes",
    "date": "timestamp",
    "date-time": "timestamp",
    "duration": "duration",
}
_SCALARS = {"boolean": "bool", "integer": "int", "number": "double"}
_RESERVED = frozenset(
    {
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for"),
        *("function", "if", "import", "let", "loop", "package", "namespace", "return"),
    }
)
_NAME = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*\Z")
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_STRING: Mapping[str, Any] = {"type": "string"}
_META: Mapping[str, Any] = {
    "type": "object",
    "properties": {"name": _STRING, "generateName": _STRING},
}


@dataclass(frozen=True, slots=True, eq=False)
class CelType:
    """The CEL type of one schema: a scalar's name, ``dyn``, ``list``, ``map`` or ``object``."""

    kind: str
    items: CelType | None = None
    """The type of a list's elements or a map's values."""
    fields: Mapping[str, tuple[str, CelType]] = field(default_factory=dict)
    """For an object: property -> escaped name and type."""
    list_type: str = "atomic"
    keys: tuple[str, ...] = ()

    def unordered(self) -> bool:
        """Return whether it contains a list that Kubernetes compares regardless of order."""
        if self.kind == "list" and self.list_type != "atomic":
            return True
        inner = [shape for _, shape in self.fields.values()]
        return any(shape.unordered() for shape in (*inner, *([self.items] if self.items else ())))


def escape(name: str) -> str | None:
    """Return a property's name in rules; None if rules cannot refer to it."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _NAME.match(name):
        return None
    for plain, escaped in _ESCAPES:
        name = name.replace(plain, escaped)
    return name


def shape_of(schema: Schema, *, resource: bool = False) -> CelType | None:
    """
    Return the type that rules see for a schema; None if they see nothing of it.

    Args:
        resource: The schema describes a whole Kubernetes object.
    """
    if schema.get(INT_OR_STRING):
        return CelType("dyn")
    kind = schema.get("type")
    if kind == "array":
        items = shape_of(schema.get("items") or {})
        list_type = str(schema.get(LIST_TYPE) or "atomic")
        keys = tuple(schema.get(LIST_MAP_KEYS) or ())
        return CelType("list", items, list_type=list_type, keys=keys) if items else None
    if kind == "object":
        return _object(schema, resource=resource or bool(schema.get(EMBEDDED)))
    if kind == "string":
        return CelType(_STRINGS.get(str(schema.get("format", "")), "string"))
    return CelType(_SCALARS[kind]) if kind in _SCALARS else None


def _object(schema: Schema, *, resource: bool) -> CelType | None:
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        items = shape_of(values)
        return CelType("map", items) if items else None
    properties: dict[str, Schema] = dict(schema.get("properties") or {})
    if resource:
        properties |= {"apiVersion": _STRING, "kind": _STRING, "metadata": _META}
    fields = {}
    for name, child in properties.items():
        escaped, shape = escape(name), shape_of(child)
        if escaped is not None and shape is not None:
            fields[name] = (escaped, shape)
    return CelType("object", fields=fields)


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
