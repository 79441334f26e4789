"""An XRD of two versions and the conversion between them; tests spoil one or the other."""

from __future__ import annotations

import copy
from typing import Any

from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import kit_of

TEXT, NUMBER = {"type": "string"}, {"type": "integer", "minimum": 0, "maximum": 100_000}
OLD: dict[str, Any] = {
    "size": {**NUMBER, "default": 10},
    "tier": {"type": "string", "enum": ["small", "large"]},
    "endpoint": {"type": "string", "pattern": "^[a-z0-9.]+:[0-9]{1,5}$"},
    "megabytes": {"type": "integer", "minimum": 0, "maximum": 1024, "multipleOf": 2},
    "note": TEXT,
}
NEW: dict[str, Any] = {
    "storage": {
        "type": "object",
        "default": {},
        "properties": {"sizeGb": {**NUMBER, "default": 10}},
    },
    "plan": {"type": "string", "enum": ["S", "L"]},
    "host": {"type": "string", "pattern": "^[a-z0-9.]+$"},
    "port": {"type": "integer", "minimum": 1, "maximum": 65535},
    "halves": {"type": "integer", "minimum": 0, "maximum": 512},
    "region": {"type": "string", "enum": ["eu", "us"], "default": "eu"},
    "note": TEXT,
}
CONVERSION: dict[str, Any] = {
    "from": "v1alpha1",
    "to": "v1beta1",
    "move": {"size": "storage.sizeGb"},
    "map": {"tier": {"to": "plan", "values": [["small", "S"], ["large", "L"]]}},
    "split": {"endpoint": {"into": ["host", "port"], "by": ":"}},
    "default": {"region": "eu"},
    "compute": {"halves": "spec.megabytes / 2"},
    "computeBack": {"megabytes": "spec.halves * 2"},
    "loses": ["endpoint", "host", "port", "region"],
}


def bay_kit(
    *,
    old: dict[str, Any] | None = None,
    new: dict[str, Any] | None = None,
    strategy: str = "Webhook",
    **conversion: Any,
) -> Kit:
    """Return the kit with other fields, or with another conversion; None takes a key out."""
    steps = {**copy.deepcopy(CONVERSION), **conversion}
    steps = {key: value for key, value in steps.items() if value is not None}

    def version(name: str, fields: dict[str, Any], *, stored: bool) -> dict[str, Any]:
        spec = {"type": "object", "properties": fields}
        schema = {"type": "object", "properties": {"spec": spec}}
        return {
            "name": name, "served": True, "referenceable": stored,
            "schema": {"openAPIV3Schema": schema},
        }  # fmt: skip

    xrd = {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "bays.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Cluster",
            "names": {"kind": "Bay", "plural": "bays"},
            "conversion": {"strategy": strategy},
            "versions": [
                version("v1alpha1", {**OLD, **(old or {})}, stored=False),
                version("v1beta1", {**NEW, **(new or {})}, stored=True),
            ],
        },
    }
    return kit_of("bay", {"conversions": [steps]}, xrd)
