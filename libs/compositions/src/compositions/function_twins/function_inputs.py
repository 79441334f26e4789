"""
The inputs of twins: their shapes, and the objects of a cluster that they select.

A shape has known fields and their types, and nothing else. The real functions decode their input
strictly: an unknown field, or a value of the wrong type, ends the step fatally. A `Shape` makes the
same check on plain data. It applies no defaults.

`selected` selects objects of a cluster: labels to match, how many, in which order. It is for the
twins of function-environment-configs (v0.7.1) and function-extra-resources (v0.3.0). Refused by
name: more than twelve objects that compare equal, because Go's sort leaves their order undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from compositions.function_twins import field_paths
from compositions.function_twins.field_paths import NoSuchFieldError, PathError, quoted
from compositions.function_twins.go_values import from_wire, type_name
from compositions.station import OpaqueError
from ground.objects.kube_objects import Manifest

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


_STABLE_MAX = 12
"""Go's sort keeps the order of equal entries up to this length (insertion sort)."""

SELECTOR = OptionalFields(
    {
        "mode": "text",
        "maxMatch": "count",
        "minMatch": "count",
        "sortByFieldPath": "text",
        "matchLabels": ListOf(
            OptionalFields(
                {
                    "type": "text",
                    "key": "text",
                    "valueFromFieldPath": "text",
                    "fromFieldPathPolicy": "text",
                    "value": "text",
                }
            )
        ),
    }
)


class ResourceSelectionError(Exception):
    """A selection that fails its step; the message is the function's."""


def labels_of_matchers(matchers: Iterable[Mapping[str, Any]], xr: Manifest) -> dict[str, str]:
    """
    Return the labels to match. Matchers of missing optional fields are skipped.

    Raises:
        ResourceSelectionError: A field of the XR is missing or not a string, or a matcher has no
            value.
    """
    labels: dict[str, str] = {}
    for matcher in matchers:
        kind = matcher.get("type") or "FromCompositeFieldPath"
        if kind not in {"Value", "FromCompositeFieldPath"}:
            continue
        field = "value" if kind == "Value" else "valueFromFieldPath"
        source = matcher.get(field)
        if source is None:
            name = field[0].upper() + field[1:]
            raise ResourceSelectionError(f"{name} cannot be nil for type '{kind}'")
        if kind == "Value":
            labels[matcher.get("key") or ""] = source
            continue
        try:
            labels[matcher.get("key") or ""] = field_paths.get_string(from_wire(xr), source)
        except PathError as error:
            if matcher.get("fromFieldPathPolicy") != "Optional":
                message = f"cannot get value from field path {quoted(source)}: {error}"
                raise ResourceSelectionError(message) from error
    return labels


def selected(
    objects: Sequence[Manifest], selector: Mapping[str, Any], title: str
) -> Sequence[Manifest]:
    """
    Return the objects in the selector's order, within its minimum and maximum number.

    Args:
        title: What is counted, for messages.

    Raises:
        ResourceSelectionError: There are too few, or they cannot be ordered.
        OpaqueError: Their order is undefined.
    """
    smallest, largest = selector.get("minMatch"), selector.get("maxMatch")
    if smallest is not None and len(objects) < smallest:
        raise ResourceSelectionError(f"expected at least {smallest} {title}, got {len(objects)}")
    ordered = _ordered(objects, selector.get("sortByFieldPath") or "metadata.name")
    return ordered if largest is None else ordered[:largest]


def _ordered(objects: Sequence[Manifest], path: str) -> Sequence[Manifest]:
    values = [_sort_value(manifest, path) for manifest in objects]
    types = list(dict.fromkeys(type(value) for value in values if value is not None))
    if not types:
        return objects
    if len(types) > 1:
        names = " and ".join(quoted(_type(kind)) for kind in types[:2])
        raise ResourceSelectionError(f"cannot sort values of different types {names}")
    if types[0] not in {str, float}:
        if len(objects) < _PAIR:
            return objects
        kinds = {bool: "bool", dict: "map", list: "slice"}
        raise ResourceSelectionError(f"unsupported type {quoted(kinds[types[0]])} for sorting")
    zero = types[0]()
    keys = [zero if value is None else value for value in values]
    if len(objects) > _STABLE_MAX and len(set(keys)) < len(keys):
        raise OpaqueError(f"objects that are equal in {path}: their order is not fixed")
    numbers = sorted(range(len(objects)), key=lambda number: _key(keys[number]))
    return [objects[number] for number in numbers]


_PAIR = 2


def _key(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _type(kind: type) -> str:
    return type_name(kind())


def _sort_value(manifest: Manifest, path: str) -> Any:
    try:
        return field_paths.get(from_wire(manifest), path)
    except NoSuchFieldError:
        return None
    except PathError as error:
        raise ResourceSelectionError(str(error)) from error
