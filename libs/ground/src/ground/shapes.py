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

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import PurePath
from typing import Annotated, Any, Self, TypeVar, get_args, get_type_hints

import msgspec
from msgspec.structs import replace as changed

from ground.objects.kube_objects import Kind, ObjectKey

__all__ = [
    "COMPONENTS",
    "LEFT_OUT",
    "Absent",
    "Answer",
    "Known",
    "LocatedAnswer",
    "ObjectReference",
    "Shape",
    "StrictShape",
    "answer_schemas",
    "changed",
    "exact",
    "json_schema",
    "like",
    "located",
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
        return cls(**located(key))

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
    _prepare(shape)
    return msgspec.convert(data, shape, dec_hook=lambda _, value: path_of(value))


_prepared: set[type] = set()
_preparing = threading.Lock()


def _prepare(shape: type) -> None:
    """Let msgspec look at the types of a shape, and of the shapes in it, in one thread."""
    # it shows a class that it has begun with (StructInfo_Convert in msgspec 0.22): another thread
    # that reads one ends the process with a segmentation fault
    if shape not in _prepared:
        with _preparing:
            msgspec.json.Decoder(shape)
            _prepared.add(shape)


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
        beside = {k: part for k, part in _stated(schema).items() if k != "$ref"}
        return {**{k: part for k, part in inlined.items() if k != "description"}, **beside}
    if {"default": None}.items() <= schema.items() and "anyOf" in schema:
        (present,) = [entry for entry in schema["anyOf"] if entry != {"type": "null"}]
        beside = {k: part for k, part in schema.items() if k not in ("anyOf", "default")}
        return {**_inlined(present, shapes), **beside}
    if schema.get("format") == "decimal":  # a number with a point is a binary fraction
        return {"type": ["string", "integer"]} | {
            k: part for k, part in schema.items() if k not in ("format", "type")
        }
    found = {
        key: {name: _inlined(part, shapes) for name, part in value.items()}
        if key == "properties"
        else _inlined(value, shapes)
        for key, value in _stated(schema).items()
    }
    types = [entry.get("type") for entry in found.get("anyOf", ()) if entry.keys() == {"type"}]
    if types and len(types) == len(found["anyOf"]):
        del found["anyOf"]
        found["type"] = [kind for kind in types if kind != "integer" or "number" not in types]
    return found


def _stated(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without what says nothing, and without a default that is a shape."""
    silent = {"title"}
    default = schema.get("default")
    if default in (None, "", (), {}) or ("$ref" in schema and not isinstance(default, str)):
        silent.add("default")
    if not schema.get("required"):
        silent.add("required")
    return {key: value for key, value in schema.items() if key not in silent}


Known = Annotated[str, "null if empty"]
"""A text of an answer; empty if nobody knows it, which is null in JSON."""


LEFT_OUT = "left out if empty"
"""Marks a field of an answer that is left out if it is None, or of `Absent` an empty text."""
Absent = Annotated[str, LEFT_OUT]
"""A text of an answer that is left out if it is empty."""


class Answer(Shape, frozen=True, omit_defaults=False):
    """A map that is answered and never read: every key is there, except an empty `Absent` one."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it. Amounts are texts, because JSON's numbers are not decimals."""
        found = {}
        for name, key, hint, is_known, may_lack in _keys(type(self)):
            value = getattr(self, name)
            if not (may_lack and (value is None or (value == "" and hint is Absent))):
                found[key] = _answered(value, known=is_known)
        return found


def located(key: ObjectKey) -> dict[str, Any]:
    """Return the first fields of a `LocatedAnswer`."""
    return {
        "api_version": key.kind.api_version,
        "kind": key.kind.kind,
        "name": key.name,
        "namespace": key.namespace,
    }


class LocatedAnswer(Answer, frozen=True):
    """What is said of an object, beginning with where it is."""

    api_version: str
    kind: str
    name: str
    namespace: Absent = ""

    @property
    def key(self) -> ObjectKey:
        """The object it is about."""
        return ObjectKey(Kind.parse(self.api_version, self.kind), self.name, self.namespace)


def _is_left_out(hint: Any) -> bool:
    return LEFT_OUT in getattr(hint, "__metadata__", ())


@functools.cache
def _keys(answer: type[Answer]) -> tuple[tuple[str, str, Any, bool, bool], ...]:
    """Return of each field name, key, type as written, and if it is `Known` and `LEFT_OUT`."""
    hints = get_type_hints(answer, include_extras=True)
    return tuple(
        (field.name, field.encode_name, hint, hint is Known, _is_left_out(hint))
        for field in msgspec.structs.fields(answer)
        for hint in [hints[field.name]]
    )


def _answered(value: Any, *, known: bool = False) -> Any:
    if isinstance(value, str):
        return value or (None if known else "")
    if isinstance(value, msgspec.Struct):
        return value.to_json() if isinstance(value, Answer) else plain(value)
    if isinstance(value, tuple | list):
        return [_answered(part) for part in value]
    if isinstance(value, Mapping):
        return {key: _answered(part) for key, part in value.items()}
    return exact(value) if isinstance(value, Decimal) else value


def exact(number: Decimal) -> str:
    """Write a number exactly, without trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


COMPONENTS = "#/components/schemas/"
"""Where OpenAPI keeps the schemas of answers."""


def like(name: str) -> msgspec.Meta:
    """Say that a map has the shape of a schema with this name, which is declared elsewhere."""
    return msgspec.Meta(extra_json_schema={"$ref": f"{COMPONENTS}{name}"})


def answer_schemas(answers: Sequence[type[Shape]]) -> dict[str, dict[str, Any]]:
    """
    Return the JSON Schemas of answers and of what they consist of, by name.

    A class whose name is taken has its name in OpenAPI in the class variable `component`.
    """
    _, schemas = msgspec.json.schema_components(answers, ref_template=f"{COMPONENTS}{{name}}")
    kinds = {kind.__name__: kind for kind in _within(answers)}
    components = {name: getattr(kind, "component", name) for name, kind in kinds.items()}
    found = {
        components.get(name, name): _closed(schema, kinds[name])
        if name in kinds
        else {"enum": schema["enum"]}
        for name, schema in schemas.items()
    }
    renamed: dict[str, dict[str, Any]] = _with_references(found, components)
    return renamed


def _with_references(schema: Any, components: Mapping[str, str]) -> Any:
    if isinstance(schema, dict):
        reference = str(schema.get("$ref", "")).removeprefix(COMPONENTS)
        if reference in components:
            return {**schema, "$ref": f"{COMPONENTS}{components[reference]}"}
        return {key: _with_references(part, components) for key, part in schema.items()}
    return [_with_references(p, components) for p in schema] if isinstance(schema, list) else schema


def _within(shapes: Iterable[type[Shape]]) -> Iterator[type[Shape]]:
    for shape in shapes:
        yield shape
        yield from _within(
            part
            for hint in get_type_hints(shape).values()
            for part in _shapes_in(hint)
            if part is not shape
        )


def _shapes_in(hint: Any) -> Iterator[type[Shape]]:
    if isinstance(hint, type) and issubclass(hint, Shape):
        yield hint
    for part in get_args(hint):
        yield from _shapes_in(part)


def _closed(schema: dict[str, Any], answer: type[Shape]) -> dict[str, Any]:
    """Return a schema of exactly these keys: of an answer all, of a shape those it needs."""
    properties = {
        name: {key: part for key, part in field.items() if key not in ("default", "title")}
        for name, field in schema["properties"].items()
    }
    required = schema.get("required", [])
    if issubclass(answer, Answer):
        hints = {key: hint for _, key, hint, *_ in _keys(answer)}
        required = [key for key, hint in hints.items() if not _is_left_out(hint)]
        nullable = {"type": ["string", "null"]}
        properties |= {key: nullable for key, hint in hints.items() if hint is Known}
        properties |= {
            key: next(part for part in properties[key]["anyOf"] if part != {"type": "null"})
            for key, hint in hints.items()
            if _is_left_out(hint) and "anyOf" in properties[key]
        }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
    }
