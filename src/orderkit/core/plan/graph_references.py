"""
Find which composed resources refer to which others: the dashed lines of a plan's graph.

References are recognized by the naming conventions of Kubernetes and Crossplane: a map with
``kind`` and ``name``, a key ``…Ref`` or ``…Name`` that begins with a kind (``serviceAccountName``,
``configMapKeyRef``, ``bucketRef``), or a key that is a kind and contains a name. A bare name that
happens to be equal is not a reference. The content of a provider-kubernetes Object counts as the
object it creates.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ground.objects.kube_objects import Kind, Manifest, dig, metadata

_SUFFIX = re.compile(r"(Key|Id|Arn)?(Ref|Refs|Reference)$|(?<=[a-z])Name$")
_SHORT = {
    "claim": "persistentvolumeclaim",
    "volume": "persistentvolume",
}
"""Beginnings of keys that abbreviate a kind."""
_NAMESPACE = "namespace"


def references(resources: Mapping[str, Manifest]) -> set[tuple[str, str]]:
    """Return pairs of paths: the first refers to the second. Nothing refers to itself."""
    index = _index(resources)
    return {
        (path, target)
        for path, manifest in resources.items()
        for kind, name, home in _references(manifest)
        for namespace, target in index.get((kind, name), ())
        if target != path and namespace in {home, ""}
    }


def namespace_edges(resources: Mapping[str, Manifest]) -> set[tuple[str, str]]:
    """Return pairs of paths: the second is the Namespace of the first."""
    index = _index(resources)
    return {
        (path, target)
        for path, manifest in resources.items()
        for identity in identities(manifest)
        for _, target in index.get((_NAMESPACE, metadata(identity).get("namespace")), ())
        if target != path
    }


def _index(resources: Mapping[str, Manifest]) -> dict[tuple[str, Any], list[tuple[str, str]]]:
    """Return namespace and path of every object, by its lower-case kind and its name."""
    index: dict[tuple[str, Any], list[tuple[str, str]]] = {}
    for path, manifest in resources.items():
        for identity in identities(manifest):
            meta = metadata(identity)
            key = (Kind.of(identity).kind.lower(), meta.get("name"))
            index.setdefault(key, []).append((meta.get("namespace") or "", path))
    return index


def identities(manifest: Manifest) -> Iterator[Manifest]:
    """Yield the object, and the object it creates if it is a provider's wrapper."""
    yield manifest
    inner = dig(manifest, "spec", "forProvider", "manifest")
    if isinstance(inner, dict) and isinstance(inner.get("apiVersion"), str) and inner.get("kind"):
        yield inner


def _references(manifest: Manifest) -> Iterator[tuple[str, str, str]]:
    """Yield kind, name and namespace of everything that a manifest refers to."""
    home = ""
    for identity in identities(manifest):
        home = metadata(identity).get("namespace") or home
    for key, value in manifest.items():
        if key not in {"metadata", "status", "apiVersion", "kind"}:
            yield from _references_below(key, value, home)


def _references_below(key: str, value: Any, home: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, list):
        for entry in value:
            yield from _references_below(key, entry, home)
    elif isinstance(value, dict):
        yield from _reference_in(key, value, home)
        for name, entry in value.items():
            if name not in {"metadata", "status"}:
                yield from _references_below(str(name), entry, home)
    elif isinstance(value, str) and key.endswith("Name"):
        yield _kind(key), value, home


def _reference_in(
    key: str, reference: Mapping[str, Any], home: str
) -> Iterator[tuple[str, str, str]]:
    name, kind = reference.get("name"), reference.get("kind")
    if isinstance(name, str):
        namespace = reference.get("namespace")
        at = namespace if isinstance(namespace, str) else home
        yield (kind.lower() if isinstance(kind, str) else _kind(key)), name, at


def _kind(key: str) -> str:
    prefix = _SUFFIX.sub("", key).lower()
    return _SHORT.get(prefix, prefix)
