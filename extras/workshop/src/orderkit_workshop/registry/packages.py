"""
Find the layer of a provider package, and read it.

A package is an image: its manifest, or a list of manifests for several platforms, which all have
the same package layer. Its annotation ``io.crossplane.xpkg: base`` marks that layer; packages that
were copied without annotations have it as a label of the image's configuration. Without a mark, the
last layer with a ``package.yaml`` counts, as in Crossplane. Implements
``orderkit_workshop.ports.packages``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ground.errors import InvalidInputError, RemoteError
from ground.objects.kube_objects import dig
from kubeschema.known.provider_packages import DIGEST, PackageReference, package_stream
from orderkit_workshop.ports.packages import ProviderPackage
from orderkit_workshop.registry.registry_client import (
    MANIFEST_MAX_BYTES,
    RegistryClient,
    docker_config_file,
)

LAYER_MAX_BYTES = 64_000_000
"""Compressed. A layer with a provider's program is larger and is not read."""
_LAYERS_MAX = 200
_MARK, _BASE = "io.crossplane.xpkg", "base"


@dataclass(frozen=True, slots=True)
class RegistryPackages:
    """Packages of any registry, with the credentials of Docker's configuration."""

    ca_file: Path | None = None

    def fetch(self, reference: PackageReference) -> ProviderPackage:
        if not reference.registry or not reference.wanted:
            raise InvalidInputError(
                "provider", str(reference), "names no registry, or no version",
                hint="write HOST/PATH@VERSION, or give --registry HOST",
            )  # fmt: skip
        client = RegistryClient(
            reference.registry,
            reference.path,
            config_file=docker_config_file(),
            ca_file=self.ca_file,
        )
        digest, manifest = client.manifest(reference.wanted)
        if isinstance(manifest.get("manifests"), list):
            _, manifest = client.manifest(_platform_manifest(manifest["manifests"], reference))
        for layer in _candidates(client, manifest):
            stream = package_stream(client.blob(layer, LAYER_MAX_BYTES))
            if stream is not None:
                return ProviderPackage(digest, stream)
        raise RemoteError(
            f"{reference} has no package.yaml",
            hint="is it a package of Crossplane, or its runtime image?",
        )


def _platform_manifest(entries: Sequence[Any], reference: PackageReference) -> str:
    """Return the digest of the manifest for amd64, else of the first for any processor."""
    digests = {
        str(dig(entry, "platform", "architecture", default="unknown")): str(entry.get("digest"))
        for entry in reversed(entries)
        if isinstance(entry, Mapping) and DIGEST.match(str(entry.get("digest")))
    }
    attested = {name: digest for name, digest in digests.items() if name != "unknown"} or digests
    digest = attested.get("amd64") or next(reversed(attested.values()), "")
    if not digest:
        raise RemoteError(f"{reference}: its index names no manifest")
    return digest


def _candidates(client: RegistryClient, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the digests of layers that may hold the package: the marked one, else the last ones."""
    layers = manifest.get("layers")
    layers = [layer for layer in layers if _is_layer(layer)] if isinstance(layers, list) else []
    if not layers or len(layers) > _LAYERS_MAX:
        raise RemoteError(f"the manifest has {len(layers)} layers; 1 to {_LAYERS_MAX} are expected")
    for layer in layers:
        if dig(layer, "annotations", _MARK) == _BASE:
            yield layer["digest"]
            return
    labels = _labels(client, manifest)
    for layer in layers:
        if labels.get(f"{_MARK}:{layer['digest']}") == _BASE:
            yield layer["digest"]
            return
    for layer in reversed(layers):
        if layer["size"] <= LAYER_MAX_BYTES:
            yield layer["digest"]


def _is_layer(layer: object) -> bool:
    return (
        isinstance(layer, Mapping)
        and bool(DIGEST.match(str(layer.get("digest"))))
        and isinstance(layer.get("size"), int)
    )


def _labels(client: RegistryClient, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    digest = str(dig(manifest, "config", "digest", default=""))
    if not DIGEST.match(digest):
        return {}
    try:
        config = json.loads(client.blob(digest, MANIFEST_MAX_BYTES))
    except (ValueError, RecursionError) as error:
        raise RemoteError("the configuration of the package is not JSON") from error
    labels = dig(config, "config", "Labels", default=None)
    return labels if isinstance(labels, Mapping) else {}
