"""
How Kubernetes types a schema for CEL: the fields a rule sees, their names and their types.

Field names are escaped (``x-y`` becomes ``x__dash__y``) and undeclared fields are invisible. A
``date-time`` is a timestamp; a ``number`` is a double even if written ``1``. Of the whole object
and of embedded resources, a rule sees apiVersion, kind, and the metadata's name and generateName.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubeschema.extensions import EMBEDDED, INT_OR_STRING, LIST_MAP_KEYS, LIST_TYPE
from kubeschema.pruning import Schema

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
