"""
Read entities from a location: a ``catalog-info.yaml`` in a repository of the platform's forge.

Checks what Backstage's catalog checks first: the envelope, known kinds, names and namespaces, and
that the fields are there which a kind must have. Files outside the platform's organisation may hold
the kinds `FROM_ORDERS` only. The files that a ``Location`` there names relative to itself are read
too, one level deep and without patterns; one that is missing or broken spoils the whole location.
Anybody may have pushed the file, so it is read with the limits of ``yamlfiles.manifests``.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote, unquote

from ground.errors import InvalidInputError
from ground.names import RepoId
from ground.objects.kube_objects import Manifest, annotations_of, dig, metadata
from orderkit.core.platform.forge_kinds import FILE_PAGE
from orderkit.core.portal.catalog_origins import FROM_ORDERS
from orderkit.ports.forge import Forge
from yamlfiles.manifests import ManifestError, parse_manifests

REQUIRED = {
    "API": ("type", "lifecycle", "owner", "definition"),
    "Component": ("type", "lifecycle", "owner"),
    "Domain": ("owner",),
    "Group": ("type", "children"),
    "Location": (),
    "Resource": ("type", "owner"),
    "System": ("owner",),
    "Template": ("type", "steps"),
    "User": (),
}
"""The kinds, and what each must have in its ``spec``."""
_TARGET = re.compile(
    r"/(?P<owner>[^/?#]+)/(?P<repo>[^/?#]+)/" + FILE_PAGE + r"/(?P<ref>[^/?#]+)/(?P<path>[^?#]+)\Z"
)
_NAME = re.compile(r"[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?\Z")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")


@dataclass(frozen=True, slots=True)
class CatalogSource:
    """A file in a repository at a branch, tag or commit."""

    repo: RepoId
    ref: str
    path: PurePosixPath


def source_of(target: str, *, base_url: str) -> CatalogSource:
    """
    Read a location's target.

    Raises:
        InvalidInputError: It is not a file page of the forge at `base_url`.
    """
    path = target.removeprefix(base_url)
    match = _TARGET.match(path) if path != target else None
    if match is None:
        raise InvalidInputError(
            "target",
            target,
            "is not a file on this platform's forge",
            hint=f"the form is {base_url}/<owner>/<repo>/src/branch/<branch>/catalog-info.yaml",
        )
    repo = RepoId(unquote(match["owner"]), unquote(match["repo"]))
    return CatalogSource(repo, unquote(match["ref"]), PurePosixPath(unquote(match["path"])))


def read_entities(forge: Forge, target: str, *, platform_org: str) -> list[Manifest]:
    """
    Return the current entities of a location.

    Args:
        platform_org: Whose repositories only the platform writes: they may hold every kind.

    Raises:
        InvalidInputError: The file is missing or has no valid entity, or one of a kind that only
            the platform's files may hold.
        UnreachableError: The forge does not answer. RemoteError, AccessError: it refuses.
    """
    entities = _read(forge, target, origin=target)
    is_ours = source_of(target, base_url=forge.base_url).repo.owner == platform_org
    for kind in sorted({entity["kind"] for entity in entities} - {*FROM_ORDERS}):
        if not is_ours:
            raise InvalidInputError(
                "kind", kind, f"is none of {', '.join(FROM_ORDERS)}, which an order may bring"
            )
    for location in [entity for entity in entities if entity["kind"] == "Location"]:
        for child in _children(location, target):
            entities += _read(forge, child, origin=target)
    return entities


def _read(forge: Forge, target: str, *, origin: str) -> list[Manifest]:
    source = source_of(target, base_url=forge.base_url)
    revision = forge.read(source.repo, source.path, source.ref)
    if revision is None:
        raise InvalidInputError("target", target, "is not there, or hidden from the catalog")
    try:
        manifests = parse_manifests(source.path.name, revision.data)
    except ManifestError as error:
        raise InvalidInputError("target", target, f"is not an entity: {error}") from error
    if not manifests:
        raise InvalidInputError("target", target, "holds no entity")
    return [_entity(manifest, target, origin) for manifest in manifests]


def _children(location: Manifest, target: str) -> Iterator[str]:
    """Yield the targets of a Location as URLs below its own folder, never outside it."""
    folder = target.rpartition("/")[0]
    targets = [dig(location, "spec", "target"), *(dig(location, "spec", "targets") or ())]
    for name in targets:
        if isinstance(name, str) and name.startswith("./"):
            path = posixpath.normpath(name)
            if not path.startswith("../"):
                yield f"{folder}/{quote(path, safe='/%')}"


def _entity(manifest: Manifest, target: str, origin: str) -> Manifest:
    kind, meta, spec = manifest["kind"], metadata(manifest), manifest.get("spec")
    name, namespace = meta.get("name"), meta.get("namespace", "default")
    if kind not in REQUIRED:
        raise InvalidInputError("kind", kind, f"is none of {', '.join(REQUIRED)}")
    if not isinstance(spec, dict):
        raise InvalidInputError("spec", spec, "is not a map")
    for field in REQUIRED[kind]:
        if field not in spec:
            raise InvalidInputError(f"spec.{field}", None, f"is missing; a {kind} must have it")
    if not isinstance(name, str) or not _NAME.match(name):
        raise InvalidInputError("metadata.name", name, "is not an entity name")
    if not isinstance(namespace, str) or not _LABEL.match(namespace):
        raise InvalidInputError("metadata.namespace", namespace, "is not an RFC 1123 label")
    if not isinstance(annotations_of(manifest), dict):
        raise InvalidInputError("metadata.annotations", "", "is not a map")
    written = _metadata(manifest, namespace, target, origin)
    return {**manifest, "metadata": written, "relations": []}


def _metadata(manifest: Manifest, namespace: str, target: str, origin: str) -> Manifest:
    """Add the metadata that the catalog itself sets, except the uid, which the store sets."""
    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    return {
        **metadata(manifest),
        "namespace": namespace,
        "etag": digest[:40],
        "annotations": {
            **annotations_of(manifest),
            "backstage.io/managed-by-location": f"url:{target}",
            "backstage.io/managed-by-origin-location": f"url:{origin}",
            "backstage.io/view-url": target,
            "backstage.io/source-location": f"url:{target.rpartition('/')[0]}/",
        },
    }
