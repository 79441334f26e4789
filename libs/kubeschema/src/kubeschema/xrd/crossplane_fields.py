"""
The fields that Crossplane adds to every composite resource, as schemas.

A modern XR has them under ``spec.crossplane``, a legacy XR directly in ``spec``. They override the
author's fields of the same names. A claim has its own set, directly in ``spec``.
"""

from __future__ import annotations

from typing import Any

from ground.objects.plain_data import copied

__all__ = ["spec_fields"]

LEGACY = "LegacyCluster"
"""The scope of XRs from before Crossplane 2."""


def _text(**keywords: Any) -> dict[str, Any]:
    return {"type": "string", **keywords}


def _map(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties}


def _selection() -> dict[str, Any]:
    """Fields of both XRs and claims: which Composition, which revision, when to use a newer one."""
    selector = _map(
        ["matchLabels"], matchLabels={"type": "object", "additionalProperties": _text()}
    )
    return {
        "compositionRef": _map(["name"], name=_text()),
        "compositionSelector": selector,
        "compositionRevisionRef": _map(["name"], name=_text()),
        "compositionRevisionSelector": copied(selector),
        "compositionUpdatePolicy": _text(enum=["Automatic", "Manual"]),
    }


def spec_fields(scope: str, default_policy: str) -> dict[str, Any]:
    """Return the fields added to ``spec`` of an XR, by property name."""
    reference = _map(["apiVersion", "kind"], apiVersion=_text(), kind=_text(), name=_text())
    if scope != "Namespaced":
        reference["properties"]["namespace"] = _text()
    fields = _selection()
    fields["compositionUpdatePolicy"]["default"] = default_policy
    fields["resourceRefs"] = {
        "type": "array",
        "items": reference,
        "x-kubernetes-list-type": "atomic",
    }
    if scope != LEGACY:
        text = "Configures how Crossplane will reconcile this composite resource"
        return {"crossplane": {"type": "object", "description": text, "properties": fields}}
    claim = ["apiVersion", "kind", "namespace", "name"]
    fields["claimRef"] = _map(claim, **{key: _text() for key in claim})
    secret = ["name", "namespace"]
    fields["writeConnectionSecretToRef"] = _map(secret, **{key: _text() for key in secret})
    return fields


def claim_fields(delete_policy: str) -> dict[str, Any]:
    """Return the fields added to ``spec`` of a claim, by property name."""
    target = ["apiVersion", "kind", "name"]
    return {
        **_selection(),
        "compositeDeletePolicy": _text(enum=["Background", "Foreground"], default=delete_policy),
        "resourceRef": _map(target, **{key: _text() for key in target}),
        "writeConnectionSecretToRef": _map(["name"], name=_text()),
    }


def status_fields(*, legacy: bool) -> dict[str, Any]:
    """Return the fields added to ``status``, by property name."""
    condition = _map(
        ["lastTransitionTime", "reason", "status", "type"],
        lastTransitionTime=_text(format="date-time"),
        message=_text(),
        observedGeneration={"type": "integer", "format": "int64"},
        reason=_text(),
        status=_text(),
        type=_text(),
    )
    fields: dict[str, Any] = {
        "conditions": {
            "description": "Conditions of the resource.",
            "type": "array",
            "items": condition,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        }
    }
    if legacy:
        published = {"lastPublishedTime": _text(format="date-time")}
        fields["connectionDetails"] = {"type": "object", "properties": published}
        fields["claimConditionTypes"] = {
            "type": "array",
            "items": _text(),
            "x-kubernetes-list-type": "set",
        }
    return fields


def _column(name: str, path: str, type_: str = "string", **keywords: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "jsonPath": path, **keywords}


def _state_columns() -> list[dict[str, Any]]:
    return [
        _column("SYNCED", ".status.conditions[?(@.type=='Synced')].status"),
        _column("READY", ".status.conditions[?(@.type=='Ready')].status"),
    ]


def printer_columns(*, legacy: bool) -> list[dict[str, Any]]:
    """Return the columns of XRs that follow the author's."""
    home = ".spec" if legacy else ".spec.crossplane"
    return [
        *_state_columns(),
        _column("COMPOSITION", f"{home}.compositionRef.name"),
        _column("COMPOSITIONREVISION", f"{home}.compositionRevisionRef.name", priority=1),
        _column("AGE", ".metadata.creationTimestamp", "date"),
    ]


def claim_columns() -> list[dict[str, Any]]:
    """Return the columns of claims that follow the author's."""
    return [
        *_state_columns(),
        _column("CONNECTION-SECRET", ".spec.writeConnectionSecretToRef.name"),
        _column("AGE", ".metadata.creationTimestamp", "date"),
    ]
