"""Plain JSON documents: encode, decode, and the timestamp and uid that the server sets."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any

from ground.objects.kube_objects import Manifest


def encode(document: object) -> str:
    """Return compact JSON in ASCII (also for lone surrogates)."""
    return json.dumps(document, separators=(",", ":"), check_circular=False)


def decode(text: str | bytes) -> Any:
    """
    Read JSON strictly.

    Raises:
        ValueError: Not JSON, or one of the non-JSON numbers NaN and Infinity.
    """
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def meta(manifest: Manifest) -> dict[str, Any]:
    """Return the object's metadata for writing; it is made if missing."""
    fields = manifest.setdefault("metadata", {})
    if not isinstance(fields, dict):
        fields = manifest["metadata"] = {}
    return fields


def now() -> str:
    """Return the time as Kubernetes writes it: UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def new_uid() -> str:
    """Return a new unique id."""
    return str(uuid.uuid4())
