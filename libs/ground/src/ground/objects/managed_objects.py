"""Managed resources: what an Object of provider-kubernetes wraps, and what they may create."""

from __future__ import annotations

from ground.objects.kube_objects import Kind, Manifest, dig, metadata

__all__ = ["EXTERNAL_NAME", "WRAPPED", "makes_nothing", "only_observes", "wrapped_object"]

WRAPPED = ("spec", "forProvider", "manifest")
EXTERNAL_NAME = "crossplane.io/external-name"
"""The annotation with a managed resource's name in the cloud."""


def wrapped_object(manifest: Manifest) -> Manifest | None:
    """Return what a provider-kubernetes Object wraps; without a name it gets the Object's."""
    kind = Kind.of(manifest)
    if kind.kind != "Object" or not kind.group.startswith("kubernetes."):
        return None
    inner = dig(manifest, *WRAPPED)
    if not isinstance(inner, dict) or not inner.get("kind") or not inner.get("apiVersion"):
        return None
    inner_metadata = {"name": metadata(manifest).get("name"), **metadata(inner)}
    return {**inner, "metadata": inner_metadata}


def makes_nothing(manifest: Manifest) -> bool:
    """Return whether a managed resource never creates: then a partial object is enough."""
    policies = dig(manifest, "spec", "managementPolicies", default=None)
    return policies is not None and not {"*", "Create"} & set(policies)


def only_observes(manifest: Manifest) -> bool:
    """Return whether a managed resource only observes: no change or end of it reaches the cloud."""
    policies = dig(manifest, "spec", "managementPolicies", default=None)
    return policies is not None and not {"*", "Create", "Update", "Delete"} & set(policies)
