"""
Fields that are picked from the catalog but hold only the entity's name.

A picker returns a reference (``resource:default/houses``). With ``value: name`` in kit.yaml the XR
holds ``houses``: forms accept both, the prefix is removed on the way to the XR, and the form of a
live order shows the reference again. This works only for entities of the namespace ``default``; the
form's pattern refuses references to other namespaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderkit.core.kit.form_shapes import FieldPath, Hints
from orderkit.core.kit.model import Kit


def prefix_of(hints: Hints | None) -> str:
    """Return the prefix of the field's references; empty if the field holds whole references."""
    return hints.picker.prefix if hints and hints.picker else ""


def pattern_with(prefix: str, pattern: str) -> str | None:
    """Return a pattern that also accepts references; None if that cannot be exact."""
    plain = pattern.startswith("^") and pattern.endswith("$") and "|" not in pattern
    return f"^({prefix})?{pattern[1:]}" if plain else None


def name_alone(kit: Kit, path: FieldPath, value: Any) -> Any:
    """Return the value of the XR for an answer of the form."""
    prefix = prefix_of(kit.fields.get(path))
    return value.removeprefix(prefix) if prefix and isinstance(value, str) else value


def names_alone(kit: Kit, spec: Mapping[str, Any], at: FieldPath = "") -> dict[str, Any]:
    """Return answers, by the XRD's field names, as the XR holds them."""
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
