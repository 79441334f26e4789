"""Fields of an XRD by their dotted path below ``spec``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


def schema_at(spec: Schema, path: str) -> Schema | None:
    """Return the schema of a field; None if there is none."""
    for step in path.split("."):
        inner = (spec.get("properties") or {}).get(step)
        if not isinstance(inner, Mapping):
            return None
        spec = inner
    return spec
