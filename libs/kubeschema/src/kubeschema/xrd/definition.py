"""
Read an XRD's scope, versions and the kinds it defines.

Reads both API versions. Crossplane stores v1. Defaults of the XRD's own fields are those of the
version it is written in, then those of v1.
"""

from __future__ import annotations

from typing import Any

from ground.objects.kube_objects import Kind, Manifest, dig, metadata
from kubeschema.xrd.crossplane_fields import LEGACY
from kubeschema.xrd.xrd_error import BrokenXrdError

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
