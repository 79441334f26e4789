"""
How functions select objects of a cluster: labels to match, how many, in which order.

Shared by the twins of function-environment-configs (v0.7.1) and function-extra-resources (v0.3.0).
Refused by name: more than twelve objects that compare equal, because Go's sort leaves their order
undefined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compositions.function_twins import field_paths
from compositions.function_twins.field_paths import NoSuchFieldError, PathError, quoted
from compositions.function_twins.function_inputs import ListOf, OptionalFields
from compositions.function_twins.go_values import from_wire, type_name
from compositions.station import OpaqueError
from ground.objects.kube_objects import Manifest

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
