"""Managed resources: what an Object of provider-kubernetes wraps, and what they may create."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ground.objects.kube_objects import Kind, Manifest, dig, metadata

__all__ = [
    "EXTERNAL_NAME",
    "WRAPPED",
    "makes_nothing",
    "only_observes",
    "secret_references",
    "wrapped_object",
]

WRAPPED = ("spec", "forProvider", "manifest")
EXTERNAL_NAME = "crossplane.io/external-name"
"""The annotation with a managed resource's name in the cloud."""
_SECRET_FIELD = re.compile(r"(?!.*onfigMap).*Secret(Key)?Refs?|secret(Key)?Ref")


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


def secret_references(for_provider: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name and value of each reference to a Secret's key that has to exist."""
    if isinstance(for_provider, list):
        for entry in for_provider:
            yield from secret_references(entry)
    elif isinstance(for_provider, dict):
        for name, value in for_provider.items():
            is_secret = _SECRET_FIELD.fullmatch(name)
            if is_secret and isinstance(value, dict) and value.get("name") and value.get("key"):
                if not value.get("optional"):
                    yield name, value
            else:
                yield from secret_references(value)
