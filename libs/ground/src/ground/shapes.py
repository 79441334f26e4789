"""
Shapes of files and answers, each declared once: reading, writing and JSON Schema come from a class.

    class Limits(StrictShape):
        orders_of: Mapping[str, Annotated[int, Meta(ge=0)]] = {}

    read_shape(Limits, {"ordersOf": {"garage": 5}})   # Limits(orders_of={"garage": 5})
    plain(Limits({"garage": 5}))                      # {"ordersOf": {"garage": 5}}
    json_schema(Limits)                               # for editors, and for errors with a line

A key is the field's name in camelCase. A field with a default may be left out, and is left out when
written with it. A subclass has the fields of its base first. The classes are msgspec's, so
they are quick to define, frozen and compared by value; `changed` makes another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, Self, TypeVar

import msgspec
from msgspec.structs import replace as changed

from ground.objects.kube_objects import Kind, ObjectKey

__all__ = [
    "ObjectReference",
    "Shape",
    "StrictShape",
    "changed",
    "json_schema",
    "plain",
    "read_shape",
]

T = TypeVar("T")


class Shape(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A map with known keys; others pass unread, for a later version may have added them."""


class StrictShape(Shape, frozen=True, forbid_unknown_fields=True):
    """A map that people write: a key that is not known is refused."""


class ObjectReference(StrictShape, frozen=True):
    """An object as Kubernetes writes a reference to it."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""

    @classmethod
    def to(cls, key: ObjectKey) -> Self:
        """Return the reference to an object."""
        return cls(key.kind.api_version, key.kind.kind, key.name, key.namespace)

    @property
    def key(self) -> ObjectKey:
        """The object it refers to."""
        return ObjectKey(Kind.parse(self.api_version, self.kind), self.name, self.namespace)

    def __str__(self) -> str:
        return str(self.key)


def read_shape(shape: type[T], data: Any, *, path_of: Callable[[str], PurePath] = PurePath) -> T:
    """
    Read what its `json_schema` accepts; check that first, for its errors name places and ways out.

    Args:
        path_of: What a path in `data` means.

    Raises:
        msgspec.ValidationError: `data` does not have the shape.
    """
    return msgspec.convert(data, shape, dec_hook=lambda _, value: path_of(value))


def plain(value: Any) -> Any:
    """Return a shape, or what holds shapes, as JSON has it; maps and sets are sorted."""
    text = msgspec.json.encode(value, enc_hook=str, order="deterministic")
    return msgspec.json.decode(text)


def json_schema(shape: Any) -> dict[str, Any]:
    """
    Return the JSON Schema of a file's shape, without references.

    A default of None means that the key is left out, not that it may be null. A ``description``
    stands where the shape has one in its `Meta`: messages use it as a hint.
    """
    (root,), shapes = msgspec.json.schema_components(
        (shape,), schema_hook=lambda _: {"type": "string", "minLength": 1}
    )
    schema: dict[str, Any] = _inlined(root, shapes)
    return schema


def _inlined(schema: Any, shapes: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(entry, shapes) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        inlined = _inlined(shapes[schema["$ref"].rpartition("/")[2]], shapes)
        beside = {key: value for key, value in schema.items() if key not in ("$ref", "default")}
        return {**{key: value for key, value in inlined.items() if key != "description"}, **beside}
    if {"default": None}.items() <= schema.items() and "anyOf" in schema:
        (present,) = [entry for entry in schema["anyOf"] if entry != {"type": "null"}]
        return _inlined(present, shapes)
    return {
        key: _inlined(value, shapes)
        for key, value in schema.items()
        if key != "title"
        and not (key == "default" and value in (None, "", (), {}))
        and not (key == "required" and not value)
    }
