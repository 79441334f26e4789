"""Paths of fields as findings write them, ``pools[0].size``: their steps, schema and value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["schema_at", "steps_of", "value_at"]

_STEP = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")


def steps_of(path: str) -> list[str]:
    """Return the steps of a path. Indices and map keys are steps too."""
    return [name or key for name, key in _STEP.findall(path)]


def schema_at(schema: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """Return the schema of a field; empty if the schema has no such path."""
    for step in steps_of(path):
        properties = schema.get("properties") or {}
        extra = schema.get("additionalProperties")
        if step in properties:
            schema = properties[step]
        elif step.isdigit() and isinstance(schema.get("items"), Mapping):
            schema = schema["items"]
        elif isinstance(extra, Mapping):
            schema = extra
        else:
            return {}
    return schema


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path, None if there is none."""
    for step in steps_of(path):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value
