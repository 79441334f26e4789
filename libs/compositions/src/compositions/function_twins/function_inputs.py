"""
The shapes of twins' inputs: known fields and their types, and nothing else.

The real functions decode their input strictly: an unknown field, or a value of the wrong type, ends
the step fatally. A `Shape` makes the same check on plain data. It applies no defaults.

Used by the twins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from compositions.function_twins.field_paths import quoted

__all__ = ["without_unknown"]

Leaf = Literal["text", "whole", "count", "any", "object"]


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list whose entries all have one shape."""

    of: Shape


@dataclass(frozen=True, slots=True)
class OptionalFields:
    """An object with these fields, all of them optional."""

    shapes: Mapping[str, Shape]
    go_type: str = ""
    """The function's type for it, if its words for a decoding error are known."""


Shape = Leaf | ListOf | OptionalFields


HEADER: Mapping[str, Shape] = {"apiVersion": "text", "kind": "text", "metadata": "any"}


_DECODED = "json: cannot unmarshal"


def misshapen(data: Any, shape: Shape) -> str:
    """Return the first fault, or the empty string."""
    return next(_faults(data, shape, ""), "")


def without_unknown(data: Any, shape: Shape, path: str = "") -> tuple[Any, list[str]]:
    """Return the data without fields that the shape lacks, and the paths of these."""
    if isinstance(shape, ListOf) and isinstance(data, list):
        pairs = [without_unknown(entry, shape.of, f"{path}[{n}]") for n, entry in enumerate(data)]
        return [entry for entry, _ in pairs], [lost for _, paths in pairs for lost in paths]
    if not isinstance(shape, OptionalFields) or not isinstance(data, dict):
        return data, []
    kept: dict[str, Any] = {}
    unknown: list[str] = []
    for key, entry in data.items():
        below = f"{path}.{key}" if path else key
        if key in shape.shapes:
            kept[key], paths = without_unknown(entry, shape.shapes[key], below)
            unknown += paths
        else:
            unknown.append(below)
    return kept, unknown


def _faults(data: Any, shape: Shape, path: str) -> Iterator[str]:
    if data is None:
        return
    if isinstance(shape, ListOf):
        if not isinstance(data, list):
            yield f"{path}: is not a list"
            return
        for number, entry in enumerate(data):
            yield from _faults(entry, shape.of, f"{path}[{number}]")
    elif isinstance(shape, OptionalFields):
        yield from _field_faults(data, shape, path)
    elif shape == "whole" and isinstance(data, float):
        cause = f'cannot parse "{data:g}" as signed integer: invalid syntax'
        yield f"{_DECODED} JSON number into Go value of type int64: {cause}"
    elif not _FITS[shape](data):
        yield f"{path}: is not {_NAMES[shape]}"


def _field_faults(data: Any, shape: OptionalFields, path: str) -> Iterator[str]:
    if not isinstance(data, dict):
        yield f"{path or 'the input'}: is not an object"
        return
    for key, entry in sorted(data.items()):  # the request's protobuf Struct is read in this order
        below = f"{path}.{key}" if path else key
        if key not in shape.shapes and shape.go_type:
            go_type = f"{_DECODED} Go value of type v1beta1.{shape.go_type}"
            yield f"{go_type}: unknown name {quoted(key)}"
        elif key not in shape.shapes:
            yield f"unknown field {quoted(below)}"
        else:
            yield from _faults(entry, shape.shapes[key], below)


def _is_whole(data: Any) -> bool:
    return isinstance(data, int) and not isinstance(data, bool)


_FITS: Mapping[Leaf, Callable[[Any], bool]] = {
    "text": lambda data: isinstance(data, str),
    "whole": _is_whole,
    "count": lambda data: _is_whole(data) and data >= 0,
    "object": lambda data: isinstance(data, dict),
    "any": lambda _: True,
}
_NAMES = {
    "text": "text",
    "whole": "a whole number",
    "count": "a count",
    "object": "an object",
    "any": "",
}
