"""
Read an XRD's scope, its versions, the kinds it defines, and the fields that Crossplane adds.

Reads both API versions. Crossplane stores v1. Defaults of the XRD's own fields are those of the
version it is written in, then those of v1.

`spec_fields`, `status_fields` and `claim_fields` are the schemas of the fields that Crossplane adds
to every composite resource. A modern XR has them under ``spec.crossplane``, a legacy XR directly in
``spec``. They override the author's fields of the same names. A claim has its own set, directly in
``spec``.

`BrokenXrdError` is the error of all of ``xrd``.
"""

from __future__ import annotations

from typing import Any

from ground.errors import OrderkitError
from ground.objects.kube_objects import Kind, Manifest, dig, metadata
from ground.objects.values import copied

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


class BrokenXrdError(OrderkitError):
    """No CRD can be made from this XRD, or the API server would refuse it."""

    def __init__(self, message: str, *, hint: str = "", steps: tuple[str, ...] = ()) -> None:
        """
        Make an error with its position in the XRD.

        Args:
            steps: Path in the XRD; empty for the whole XRD.
        """
        super().__init__(message, hint=hint)
        self.steps = steps


GROUP = "apiextensions.crossplane.io"
XRD_KIND = Kind(GROUP, "v1", "CompositeResourceDefinition")
"""The storage version: it can read XRDs written as v1 and as v2."""


def api_version_of(xrd: Manifest) -> str:
    """Return ``v1`` or ``v2``: the version part of ``apiVersion``."""
    return str(xrd.get("apiVersion", "")).rpartition("/")[2]


def scope_of(xrd: Manifest) -> str:
    """
    Return ``Namespaced``, ``Cluster`` or ``LegacyCluster``.

    The default depends on the API version.
    """
    default = LEGACY if api_version_of(xrd) == "v1" else "Namespaced"
    return str(dig(xrd, "spec", "scope", default=None) or default)


def is_legacy(xrd: Manifest) -> bool:
    """Return whether its XRs are of the kind from before Crossplane 2."""
    return scope_of(xrd) == LEGACY


def default_composition(xrd: Manifest) -> str:
    """Return the Composition that its XRs must have, else the one by default; empty if neither."""
    spec = xrd.get("spec") or {}
    refs = (spec.get(f"{choice}CompositionRef") for choice in ("enforced", "default"))
    return next((str(ref["name"]) for ref in refs if ref and ref.get("name")), "")


def update_policy_of(xrd: Manifest) -> str:
    """Return the ``compositionUpdatePolicy`` that its XRs have by default."""
    return dig(xrd, "spec", "defaultCompositionUpdatePolicy", default=None) or "Automatic"


def machinery_path(xrd: Manifest) -> tuple[str, ...]:
    """Return the path of Crossplane's fields in an XR: ``spec.crossplane``; ``spec`` if legacy."""
    return ("spec",) if is_legacy(xrd) else ("spec", "crossplane")


def versions_of(xrd: Manifest) -> list[dict[str, Any]]:
    """Return ``spec.versions``; empty if there are none."""
    return list(dig(xrd, "spec", "versions", default=None) or ())


def referenceable_version(xrd: Manifest) -> dict[str, Any]:
    """
    Return the version that Compositions refer to and that is stored.

    Raises:
        BrokenXrdError: No version is referenceable, or several are.
    """
    referenceable = [version for version in versions_of(xrd) if version.get("referenceable")]
    if len(referenceable) != 1:
        names = ", ".join(str(version.get("name")) for version in referenceable) or "none"
        raise BrokenXrdError(
            f"{metadata(xrd).get('name')}: must have exactly one version marked as storage "
            f"version; referenceable: {names}",
            hint="set referenceable: true on exactly one entry of spec.versions",
            steps=("spec", "versions"),
        )
    return referenceable[0]


def xr_kind(xrd: Manifest) -> Kind:
    """
    Return the kind that Compositions refer to: the one in the referenceable version.

    Raises:
        BrokenXrdError: No version is referenceable, or several are.
    """
    spec = xrd["spec"]
    return Kind(spec["group"], referenceable_version(xrd)["name"], spec["names"]["kind"])


def claim_kind(xrd: Manifest) -> Kind | None:
    """
    Return the kind of the claims that a legacy XRD offers; None if it offers none.

    Raises:
        BrokenXrdError: No version is referenceable, or several are.
    """
    kind = dig(xrd, "spec", "claimNames", "kind", default=None)
    if kind is None:
        return None
    return Kind(xrd["spec"]["group"], referenceable_version(xrd)["name"], str(kind))


def connection_secret_keys(xrd: Manifest) -> tuple[str, ...]:
    """Return the keys that a legacy XR publishes; empty means all keys of its resources."""
    return tuple(dig(xrd, "spec", "connectionSecretKeys", default=None) or ())
