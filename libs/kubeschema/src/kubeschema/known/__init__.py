"""
Schemas of kinds from any source, as one set that judges objects.

The sources are CRDs and XRDs (``known_kinds``), an API server's OpenAPI documents and Kubernetes'
own kinds (``builtin_kinds``). `read_layer` reads a folder with all three. CRDs of managed resources
may be compact; what they do not say is in ``behaviour.yaml`` (``managed_behaviour``).
"""

from __future__ import annotations

import json
from pathlib import PurePath

from ground.errors import InvalidInputError
from ground.names import Files
from ground.objects.kube_objects import CRD, Manifest
from kubeschema.known.builtin_kinds import (
    METADATA,
    BuiltInKind,
    RefusedUpdate,
    built_in,
    built_in_kinds,
    is_openapi,
    openapi_kind,
    openapi_layer,
    refused_updates,
)
from kubeschema.known.crd_files import SOURCES
from kubeschema.known.known_kinds import (
    GroupKind,
    KnownKind,
    Layer,
    SchemaSet,
    known_kind,
    layer_of,
)
from kubeschema.known.managed_behaviour import (
    BEHAVIOUR,
    Behaviour,
    Behaviours,
    Reference,
    completed_crd,
    read_behaviours,
)
from yamlfiles.manifests import ManifestError, ManifestLimits, parse_manifests

__all__ = [
    "BEHAVIOUR",
    "METADATA",
    "Behaviour",
    "Behaviours",
    "BuiltInKind",
    "GroupKind",
    "KnownKind",
    "Layer",
    "Reference",
    "RefusedUpdate",
    "SchemaSet",
    "built_in",
    "built_in_kinds",
    "completed_crd",
    "files_of",
    "known_kind",
    "layer_of",
    "openapi_kind",
    "openapi_layer",
    "read_behaviours",
    "read_crds",
    "read_layer",
    "refused_updates",
]

_LIMITS = ManifestLimits(size_bytes=20_000_000, events=4_000_000)
_SUFFIXES = {".yaml", ".yml", ".json"}


def files_of(pack: Files) -> Files:
    """Return the files of a pack's ``schemas/``."""
    return {path: data for path, data in pack.items() if path.parts[0] == "schemas"}


def read_layer(files: Files) -> Layer:
    """
    Read CRDs, XRDs and OpenAPI v3 documents from files. Other objects are skipped.

    Raises:
        InvalidInputError: A file is neither manifests nor an OpenAPI document.
    """
    manifests: list[Manifest] = []
    layer: dict[GroupKind, KnownKind] = {}
    for path, data in sorted(files.items()):
        document = _document(path, data)
        if is_openapi(document):
            layer |= openapi_layer(document)
        else:
            manifests += _manifests(path, data)
    return {**layer, **layer_of(manifests)}


def read_crds(files: Files) -> list[Manifest]:
    """
    Return the CRDs among the files, compact ones completed.

    Raises:
        InvalidInputError: A file cannot be read, or a CRD lacks its group, names or versions.
    """
    crds = []
    for path, data in sorted(files.items()):
        for manifest in () if is_openapi(_document(path, data)) else _manifests(path, data):
            if manifest["kind"] == CRD.kind:
                try:
                    crds.append(completed_crd(manifest))
                except (KeyError, TypeError, AttributeError) as error:
                    raise InvalidInputError(
                        str(path), None, f"is not a CustomResourceDefinition: {error!r}"
                    ) from error
    return crds


def _manifests(path: PurePath, data: bytes) -> list[Manifest]:
    if path.suffix not in _SUFFIXES or path.name in {BEHAVIOUR, SOURCES.name}:
        return []
    try:
        return list(parse_manifests(str(path), data, limits=_LIMITS))
    except ManifestError as error:
        raise InvalidInputError(
            str(path), None, f"cannot be read: {error.reason}",
            hint="schemas are CRDs, XRDs or OpenAPI v3 documents of an API server",
        ) from error  # fmt: skip


def _document(path: PurePath, data: bytes) -> dict[str, object]:
    if path.suffix != ".json":
        return {}
    try:
        document = json.loads(data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
