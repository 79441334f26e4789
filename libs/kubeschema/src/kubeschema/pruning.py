"""
Fit a value to its schema: fill in defaults, drop undeclared fields.

Both functions return new values and do not change their argument. The order matters to the server
and to callers: prune what a client sent, then apply defaults, then judge the result.

Here are also the names of the extensions by which Kubernetes schemas say what OpenAPI cannot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ground.objects.values import clone

__all__ = ["INT_OR_STRING", "PRESERVE", "default", "prune"]


PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE = "x-kubernetes-list-type"
LIST_MAP_KEYS = "x-kubernetes-list-map-keys"


Schema = Mapping[str, Any]

META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
"""Fields of every Kubernetes object. Schemas need not declare them."""


def default(schema: Schema, value: Any) -> Any:
    """
    Fill in defaults as the API server does, and return the new value. Idempotent.

    Only objects that are present are filled in: a default inside a missing object is not used
    unless that object has a default itself. A null in a field that is not nullable counts as
    missing: it becomes the default, or is removed if there is none.
    """
    if isinstance(value, dict):
        return _default_object(schema, value)
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [default(items, _replace_null(items, entry)) for entry in value]
    return value


def _default_object(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    filled = {}
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    for name, entry in value.items():
        child = _child(schema, name)
        if child is None:
            filled[name] = clone(entry)
        elif not (_is_void(child, entry) and "default" not in child):
            filled[name] = default(child, _replace_null(child, entry))
    for name, child in properties.items():
        if name not in value and child.get("default") is not None:
            filled[name] = default(child, child["default"])
    return filled


def _is_void(schema: Schema, value: object) -> bool:
    return value is None and not schema.get("nullable")


def _replace_null(schema: Schema, value: Any) -> Any:
    return schema.get("default") if _is_void(schema, value) else value


def _child(schema: Schema, name: str) -> Schema | None:
    """Return the schema of a field, or None if the schema does not describe it."""
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    if name in properties:
        return properties[name]
    extra = schema.get("additionalProperties")
    return extra if isinstance(extra, Mapping) else None


def prune(schema: Schema, value: Any) -> tuple[Any, list[str]]:
    """
    Drop the fields that the schema does not declare. Idempotent.

    `value` is a whole object: its apiVersion, kind and metadata stay, whatever the schema
    says, and so do those of embedded resources.

    Returns:
        The new value and the sorted paths of what was dropped, such as ``spec.colour``.
    """
    dropped: list[str] = []
    kept = _prune({**schema, EMBEDDED: True}, value, "", dropped)
    return kept, sorted(dropped)


def _prune(schema: Schema | None, value: Any, path: str, dropped: list[str]) -> Any:
    if isinstance(value, dict):
        return _prune_object(schema, value, path, dropped)
    if isinstance(value, list):
        items = None if schema is None else schema.get("items")
        if items is None and schema is not None and schema.get(PRESERVE):
            return clone(value)
        if items is not None and schema is not None and schema.get(PRESERVE):
            items = {**items, PRESERVE: True}
        return [_prune(items, v, f"{path}[{i}]", dropped) for i, v in enumerate(value)]
    return value


def _prune_object(
    schema: Schema | None, value: dict[str, Any], path: str, dropped: list[str]
) -> dict[str, Any]:
    kept = {}
    for name, entry in value.items():
        field_path = f"{path}.{name}" if path else name
        if schema is not None and schema.get(EMBEDDED) and name in META_FIELDS:
            kept[name] = clone(entry)
        elif schema is not None and _declares(schema, name):
            kept[name] = _prune(_child(schema, name), entry, field_path, dropped)
        elif schema is not None and schema.get(PRESERVE):
            kept[name] = clone(entry)
        else:
            dropped.append(field_path)
    return kept


def _declares(schema: Schema, name: str) -> bool:
    """
    Return whether the schema declares a field.

    ``additionalProperties: false`` counts: such a field is refused later, not dropped.
    """
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    return name in properties or schema.get("additionalProperties") is not None
