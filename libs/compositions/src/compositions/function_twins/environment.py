"""
The Composition environment: the map under one key of the context that functions share.

The functions treat it as an object, so it has a kind: one of Crossplane's own unless the data
contains another.
"""

from __future__ import annotations

from typing import Any

KEY = "apiextensions.crossplane.io/environment"
API_VERSION, KIND = "internal.crossplane.io/v1alpha1", "Environment"
_PARTS_MAX = 2


def as_object(data: dict[str, Any]) -> dict[str, Any]:
    """Return the environment with its default kind, unless the data has a kind."""
    version, kind = data.get("apiVersion"), data.get("kind")
    own_version = version if isinstance(version, str) else ""
    own_kind = kind if isinstance(kind, str) else ""
    readable = own_version.count("/") < _PARTS_MAX
    if readable and (own_version.strip("/") or own_kind):
        return data
    return {**data, "apiVersion": API_VERSION, "kind": KIND}
