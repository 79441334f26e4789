"""
Read images of functions: from a registry, every byte proved by its digest, or from a file.

A file is what ``crossplane xpkg build``, ``docker save`` or an OCI layout makes: a tar archive. The
image is the one for this machine's processor. Layers are read one after the other.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from ground.errors import InvalidInputError, NotFoundError, RefusedError, RemoteError
from ground.objects.kube_objects import dig
from kubeschema.known.provider_packages import DIGEST, PackageReference
from orderkit.adapters.functions.program_store import digest_of
from orderkit_workshop.ports.packages import FunctionImage
from orderkit_workshop.registry.registry_client import (
    MANIFEST_MAX_BYTES,
    RegistryClient,
    docker_config_file,
)

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
