"""How plans name objects, and requirements of objects, for a person."""

from __future__ import annotations

from compositions.station import Selector
from ground.objects.kube_objects import Kind, Manifest, metadata


def key_text(manifest: Manifest) -> str:
    """Name an object for a person: kind, namespace, name."""
    meta = metadata(manifest)
    home = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return f"{Kind.of(manifest).kind} {home}{meta.get('name', '')}"


def selector_text(selector: Selector) -> str:
    """Write a requirement for a person."""
    kind = Kind.parse(selector.api_version, selector.kind)
    home = f"{selector.namespace}/" if selector.namespace else ""
    if selector.name:
        return f"{kind} {home}{selector.name}"
    labels = ", ".join(f"{key}={value}" for key, value in sorted(selector.labels.items()))
    return f"any {kind} {home}{f'with {labels}' if labels else ''}".rstrip()
