"""
The shape of our own documents: pack.yaml, kit.yaml, platform.yaml and records in repositories.

Each has ``apiVersion``, ``kind``, a name and a ``spec`` that allows no unknown fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from ground.names import NAME_MAX

__all__ = [
    "API_VERSION",
    "NAME",
    "Files",
    "document",
    "record",
]

Files = Mapping[PurePosixPath, bytes]
"""A pack's files, by their path in the pack."""
API_VERSION = "orderkit.dev/v1alpha1"

NAME: dict[str, Any] = {
    "type": "string",
    "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    "maxLength": NAME_MAX,
}
"""Allowed names of packs and kits."""


def document(
    kind: str, spec: dict[str, Any], *, required: list[str] | None = None
) -> dict[str, Any]:
    """Return the JSON Schema of a kind. The spec is optional if it has no required fields."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["apiVersion", "kind", "metadata", *(["spec"] if required else [])],
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": kind},
            "metadata": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name"],
                "properties": {"name": NAME},
            },
            "spec": {
                "type": "object" if required else ["object", "null"],
                "additionalProperties": False,
                **({"required": required} if required else {}),
                "properties": spec,
            },
        },
    }


def record(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of Orderkit's."""
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
