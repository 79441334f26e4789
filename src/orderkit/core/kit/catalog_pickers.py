"""
Fields that are picked from the catalog and hold the entity's name alone.

A picker gives a reference (``resource:default/houses``). Where kit.yaml says ``value: name``, the
XR holds ``houses``: forms take both, whatever is entered is stripped on its way to the XR, and a
form that is opened on a living order shows the reference again. Only entities of the namespace
``default`` can be named so; a reference to another one is refused by the form's pattern.

Called by the projections of this package and by the flows that read what was entered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderkit.core.kit.model import FieldPath, Hints, Kit


def prefix_of(hints: Hints | None) -> str:
    """Return what stands before the name in a reference; empty if the field holds what it gets."""
    picker = hints.picker if hints else None
    if picker is None or picker.value != "name":
        return ""
    kinds = {str(entity_filter.get("kind", "")).lower() for entity_filter in picker.filter}
    return f"{kinds.pop()}:default/" if len(kinds) == 1 else ""


def pattern_with(prefix: str, pattern: str) -> str | None:
    """Return a pattern that takes references too; None if this one cannot be widened exactly."""
    plain = pattern.startswith("^") and pattern.endswith("$") and "|" not in pattern
    return f"^({prefix})?{pattern[1:]}" if plain else None


def name_alone(kit: Kit, path: FieldPath, value: Any) -> Any:
    """Return the value that the XR holds for what was entered."""
    prefix = prefix_of(kit.fields.get(path))
    return value.removeprefix(prefix) if prefix and isinstance(value, str) else value


def names_alone(kit: Kit, spec: Mapping[str, Any], at: FieldPath = "") -> dict[str, Any]:
    """Return entered values, by the XRD's names, as the XR holds them."""
    stripped = {}
    for name, value in spec.items():
        path = f"{at}.{name}" if at else name
        inner = isinstance(value, Mapping)
        stripped[name] = names_alone(kit, value, path) if inner else name_alone(kit, path, value)
    return stripped


def as_reference(hints: Hints, value: Any) -> Any:
    """Return a value of the XR as a picker shows it."""
    prefix = prefix_of(hints)
    plain = prefix and isinstance(value, str) and value and ":" not in value
    return f"{prefix}{value}" if plain else value
