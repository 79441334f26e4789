"""Our own documents: pack.yaml, kit.yaml, platform.yaml and records in repositories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

__all__ = [
    "API_VERSION",
    "Files",
    "record",
]

Files = Mapping[PurePosixPath, bytes]
"""A pack's files, by their path in the pack."""
API_VERSION = "orderkit.dev/v1alpha1"


def record(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record of Orderkit's."""
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
