"""
Read packages of providers and images of functions, every byte proved by its digest.

A package is an image: its manifest, or a list of manifests for several platforms, which all have
the same package layer. Its annotation ``io.crossplane.xpkg: base`` marks that layer. Implements
``orderkit_workshop.ports.packages``.

The image of a function is the one for this machine's processor, from a registry or from a file:
what ``crossplane xpkg build``, ``docker save`` or an OCI layout makes, a tar archive. Layers are
read one after the other.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ground.errors import InvalidInputError, NotFoundError, RefusedError, RemoteError
from ground.objects.kube_objects import dig
from kubeschema.known.crd_files import DIGEST, PackageReference, package_stream
from orderkit.adapters.functions.program_store import digest_of
from orderkit_workshop.ports.packages import FunctionImage, ProviderPackage
from orderkit_workshop.registry.registry_client import (
    MANIFEST_MAX_BYTES,
    RegistryClient,
    docker_config_file,
)

PACKAGE_LAYER_MAX_BYTES = 64_000_000
"""Compressed. A layer with a provider's program is larger and is not read."""
_PACKAGE_LAYERS_MAX = 200
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
            stream = package_stream(client.blob(layer, PACKAGE_LAYER_MAX_BYTES))
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
    if not layers or len(layers) > _PACKAGE_LAYERS_MAX:
        raise RemoteError(
            f"the manifest has {len(layers)} layers; 1 to {_PACKAGE_LAYERS_MAX} are expected"
        )
    for layer in layers:
        if dig(layer, "annotations", _MARK) == _BASE:
            yield layer["digest"]
            return
    # packages that were copied without annotations have it as a label of the configuration
    labels = _labels(client, manifest)
    for layer in layers:
        if labels.get(f"{_MARK}:{layer['digest']}") == _BASE:
            yield layer["digest"]
            return
    # without a mark, the last layer with a package.yaml counts, as in Crossplane
    for layer in reversed(layers):
        if layer["size"] <= PACKAGE_LAYER_MAX_BYTES:
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


LAYER_MAX_BYTES = 1 << 30
_LAYERS_MAX = 200
_PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64"}
_INDEX = "index.json"


def image_of_registry(reference: PackageReference, ca_file: Path | None) -> FunctionImage:
    """
    Return an image of a registry, with the credentials of Docker's configuration.

    Raises:
        NotFoundError: The registry has no such image, or none for this processor.
        AccessError: It needs other credentials. RefusedError: Its content has another digest.
        UnreachableError: It does not answer. RemoteError: What it answers is no image.
    """
    client = RegistryClient(
        reference.registry, reference.path, config_file=docker_config_file(), ca_file=ca_file
    )
    digest, manifest = client.manifest(reference.wanted)
    if isinstance(manifest.get("manifests"), list):
        manifest = client.manifest(_digest_here(manifest))[1]
    return _image(digest, manifest, lambda at, most: io.BytesIO(client.blob(at, most)))


@contextmanager
def image_of_file(file: Path) -> Iterator[FunctionImage]:
    """
    Give the image of a file; its digest is the file's.

    Raises:
        InvalidInputError: It cannot be read, or is no such archive.
        NotFoundError: It has no image for this processor.
    """
    with ExitStack() as undo:
        try:
            tar = undo.enter_context(tarfile.open(file))
            image = _read(digest_of(file), tar)
        except (OSError, tarfile.TarError, ValueError, KeyError, IndexError) as error:
            raise InvalidInputError(
                "file", str(file), f"cannot be read as an image: {error}",
                hint="give what 'crossplane xpkg build' or 'docker save' wrote, or an OCI layout",
            ) from error  # fmt: skip
        yield image


def _read(digest: str, tar: tarfile.TarFile) -> FunctionImage:
    return _of_layout(digest, tar) if _INDEX in tar.getnames() else _of_archive(digest, tar)


def _of_layout(digest: str, tar: tarfile.TarFile) -> FunctionImage:
    def blob(at: str, _most: int) -> IO[bytes]:
        return _member(tar, f"blobs/{at.replace(':', '/')}")

    manifest = json.load(_member(tar, _INDEX))
    while isinstance(manifest.get("manifests"), list):
        manifest = json.load(blob(_digest_here(manifest), 0))
    return _image(digest, manifest, blob)


def _of_archive(digest: str, tar: tarfile.TarFile) -> FunctionImage:
    entry = json.load(_member(tar, "manifest.json"))[0]
    config = json.load(_member(tar, entry["Config"]))
    return _checked(digest, config, (_member(tar, name) for name in entry["Layers"]))


def _member(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    stream = tar.extractfile(name)
    if stream is None:
        raise ValueError(f"{name} is no file")
    return stream


def _image(
    digest: str, manifest: Mapping[str, Any], blob: Callable[[str, int], IO[bytes]]
) -> FunctionImage:
    layers, config_digest = manifest.get("layers"), str(dig(manifest, "config", "digest"))
    digests = [str(dig(layer, "digest")) for layer in layers] if isinstance(layers, list) else []
    if not 1 <= len(digests) <= _LAYERS_MAX or not all(
        map(DIGEST.match, [*digests, config_digest])
    ):
        raise RemoteError(f"the manifest has {len(digests)} layers, or no configuration")
    config = json.load(blob(config_digest, MANIFEST_MAX_BYTES))
    return _checked(digest, config, (blob(at, LAYER_MAX_BYTES) for at in digests))


def _checked(digest: str, config: Any, layers: Iterator[IO[bytes]]) -> FunctionImage:
    made_for = str(dig(config, "architecture", default=""))
    if made_for != _processor():
        raise NotFoundError(f"the image is for {made_for or 'no processor'}, not {_processor()}")
    if not isinstance(dig(config, "config", default=None), dict):
        raise RefusedError("the image names no program to start")
    return FunctionImage(digest, config["config"], layers)


def _digest_here(index: Mapping[str, Any]) -> str:
    """Return the manifest for this processor; of a layout with one image, that one."""
    entries = [entry for entry in index["manifests"] if isinstance(entry, Mapping)]
    found = {str(dig(entry, "platform", "architecture", default="")): entry for entry in entries}
    entry = found.get(_processor()) or found.get("") or {}
    digest = str(entry.get("digest"))
    if not DIGEST.match(digest):
        names = ", ".join(sorted(filter(None, found))) or "none"
        raise NotFoundError(f"there is no image for {_processor()}; there are: {names}")
    return digest


def _processor() -> str:
    return _PROCESSORS.get(os.uname().machine, os.uname().machine)
