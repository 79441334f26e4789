"""
Check a schema's list and map types: ``x-kubernetes-list-type`` and related keywords.

Checks one level at a time; ``structural_rules`` walks the schema. All paths and messages are the
server's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubeschema.extensions import LIST_MAP_KEYS, LIST_TYPE, PRESERVE
from kubeschema.pruning import Schema
from kubeschema.structural.api_messages import compact

MAP_TYPE = "x-kubernetes-map-type"
Fault = tuple[str, str]
"""Path below the level, and message."""

_LIST_TYPES, _MAP_TYPES = ("atomic", "set", "map"), ("atomic", "granular")


def topology_faults(schema: Schema) -> Iterator[Fault]:
    """Yield what the server would refuse at this level."""
    if schema.get(PRESERVE) is False:
        yield f".{PRESERVE}", "Invalid value: false: must be true or undefined"
    yield from _stated_kind(schema, MAP_TYPE, "object", _MAP_TYPES)
    yield from _stated_kind(schema, LIST_TYPE, "array", _LIST_TYPES)
    if isinstance(schema.get("items"), list):
        yield ".items", "Forbidden: items must be a schema object and not an array"
        return
    items = schema.get("items") or {}
    if schema.get(LIST_TYPE) == "set":
        yield from _set(items)
    if schema.get(LIST_TYPE) in {"set", "map"} and items.get("nullable"):
        message = f"Forbidden: cannot be nullable when {LIST_TYPE} is {schema[LIST_TYPE]}"
        yield ".items.nullable", message
    yield from _keys(schema, items)


def _stated_kind(
    schema: Schema, keyword: str, kind: str, allowed_values: tuple[str, ...]
) -> Iterator[Fault]:
    if keyword not in schema:
        return
    message = f"must be {kind} if {keyword} is specified"
    if not schema.get("type"):
        yield ".type", f"Required value: {message}"
    elif schema["type"] != kind:
        yield ".type", f"Invalid value: {compact(schema['type'])}: {message}"
    if schema[keyword] not in allowed_values:
        allowed_text = ", ".join(f'"{name}"' for name in allowed_values)
        value = compact(schema[keyword])
        yield f".{keyword}", f"Unsupported value: {value}: supported values: {allowed_text}"


def _set(items: Schema) -> Iterator[Fault]:
    """Check the items of a set: they are compared as a whole, so they must be atomic."""
    message = f"must be atomic as item of a list with {LIST_TYPE}=set"
    if items.get("type") == "array" and items.get(LIST_TYPE, "atomic") != "atomic":
        yield f".items.{LIST_TYPE}", f"Invalid value: {compact(items[LIST_TYPE])}: {message}"
    if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        yield f".items.{MAP_TYPE}", f"Invalid value: {compact(items.get(LIST_TYPE))}: {message}"


def _keys(schema: Schema, items: Schema) -> Iterator[Fault]:
    keys: list[Any] = schema.get(LIST_MAP_KEYS) or []
    kind = schema.get(LIST_TYPE)
    if keys and kind != "map":
        message = f"must be map if {LIST_MAP_KEYS} is non-empty"
        lead = "Required value" if kind is None else f"Invalid value: {compact(kind)}"
        yield f".{LIST_TYPE}", f"{lead}: {message}"
    if kind != "map":
        return
    if not keys:
        yield f".{LIST_MAP_KEYS}", f"Required value: must not be empty if {LIST_TYPE} is map"
    if "items" not in schema:
        yield ".items", f"Required value: must have a schema if {LIST_TYPE} is map"
    elif items.get("type") != "object":
        message = f"must be object if parent array's {LIST_TYPE} is map"
        yield ".items.type", f"Invalid value: {compact(items.get('type') or '')}: {message}"
    else:
        yield from _named_keys(keys, items)


def _named_keys(keys: list[Any], items: Schema) -> Iterator[Fault]:
    declared = items.get("properties") or {}
    for index, key in enumerate(keys):
        keys_text = f"Invalid value: {compact(keys)}"
        if key not in declared:
            yield f".{LIST_MAP_KEYS}", f"{keys_text}: entries must all be names of item properties"
        elif declared[key].get("type") in {"array", "object"}:
            message = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            yield f".items.properties[{key}].type", f'Invalid value: "object": {message}'
        elif declared[key].get("nullable"):
            message = f"this property is in {LIST_MAP_KEYS}, so it cannot be nullable"
            yield f".items.properties[{key}].nullable", f"Forbidden: {message}"
        if key in keys[:index]:
            yield f".{LIST_MAP_KEYS}", f"{keys_text}: must not contain duplicate entries"
