"""
CRDs of providers: packages in an OCI registry, files of ``schemas/``, and where they come from.

A reference is ``[HOST/]PATH@VERSION`` or ``[HOST/]PATH:TAG``, where VERSION is a tag, a digest, or
both (``v2.6.0@sha256:...``). The layer of a package is a tar archive whose ``package.yaml`` holds
its metadata and CRDs (Crossplane's xpkg specification). Nothing is unpacked to disk, and all sizes
are limited: a registry is not trusted.

`crd_documents` splits the YAML stream of a package without parsing it, because a package has
hundreds of CRDs and a pack needs a few. ``schemas/sources.yaml`` records package, version, digest
and the digest of every file as it was written (`SchemaSource`).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any

from msgspec import Meta

from ground.errors import InvalidInputError, RemoteError, shorten
from ground.names import Files
from ground.objects.kube_objects import CRD, Kind, Manifest, dig
from ground.shapes import StrictShape, json_schema, plain, read_shape
from kubeschema.known.known_kinds import GroupKind, known_kind
from yamlfiles import yaml11
from yamlfiles.format_versions import API_VERSION
from yamlfiles.manifests import ManifestError, ManifestLimits, parse_manifests

__all__ = [
    "DIGEST",
    "FOLDER",
    "SOURCES",
    "CrdDocument",
    "PackageReference",
    "SchemaSource",
    "crd_documents",
    "crd_file",
    "file_digest",
    "package_stream",
    "parse_reference",
    "read_sources",
    "sources_file",
]

DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
PACKAGE_MAX_BYTES = 256_000_000
"""Longest archive, uncompressed. The largest provider packages have about 50 MB of CRDs."""
_MEMBERS_MAX = 10_000
"""A package has a dozen; each costs time and memory, however small it is."""
_FILE = "package.yaml"
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}\Z")
_PATH = re.compile(r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*\Z")
_HOST = re.compile(r"(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?\Z")
_LONGEST = 255
"""Many clients of registries refuse a longer name (OCI's distribution specification)."""
_EXAMPLE = "write crossplane-contrib/provider-aws-ec2@v2.6.0"


@dataclass(frozen=True, slots=True)
class PackageReference:
    """A package in a registry."""

    registry: str
    """Host, perhaps with port and scheme; empty: not said."""
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    @property
    def wanted(self) -> str:
        """What to ask the registry for: the digest if there is one."""
        return self.digest or self.tag

    def __str__(self) -> str:
        host = f"{self.registry}/" if self.registry else ""
        return f"{host}{self.path}@{'@'.join(filter(None, (self.tag, self.digest)))}".rstrip("@")


def parse_reference(text: str) -> PackageReference:
    """
    Read a reference; one without a version has neither tag nor digest.

    Raises:
        InvalidInputError: It is none.
    """
    address, _, version = text.partition("@")
    registry, path = _split_host(address)
    path, _, tag_in_path = path.partition(":")
    version = "@".join(filter(None, (tag_in_path, version)))
    tag, digest = _tag_and_digest(version)
    fits = len(path) <= _LONGEST and _PATH.match(path) and (not registry or _HOST.match(registry))
    if not fits or (tag and not _TAG.match(tag)) or (digest and not DIGEST.match(digest)):
        raise InvalidInputError("provider", text, "is not [HOST/]PATH@VERSION", hint=_EXAMPLE)
    return PackageReference(registry, path, tag, digest)


def _split_host(address: str) -> tuple[str, str]:
    head, slash, path = address.partition("/")
    is_host = slash and ("." in head or ":" in head or head == "localhost")
    return (head, path) if is_host else ("", address)


def _tag_and_digest(version: str) -> tuple[str, str]:
    if version.startswith("sha256:"):
        return "", version
    tag, _, digest = version.partition("@")
    return tag, digest


def package_stream(archive: bytes) -> bytes | None:
    """
    Return ``package.yaml`` of a layer, a tar archive that may be gzipped; None if it has none.

    Raises:
        RemoteError: It is no such archive, or has too many bytes or members.
    """
    source: io.BufferedIOBase = io.BytesIO(archive)
    if archive.startswith(b"\x1f\x8b"):
        source = gzip.GzipFile(fileobj=source)
    try:
        with tarfile.open(fileobj=_Bounded(source), mode="r|", bufsize=65_536) as tar:  # type: ignore[call-overload]  # any object with read() will do
            for number, member in enumerate(tar):
                if number == _MEMBERS_MAX:
                    raise RemoteError(f"a layer of the package has more than {number} members")
                if member.isreg() and member.name.removeprefix("./") == _FILE:
                    content = tar.extractfile(member)
                    return None if content is None else content.read()
    # RecursionError: tarfile calls itself for each of several extended headers in a row
    except (tarfile.TarError, EOFError, OSError, ValueError, RecursionError, zlib.error) as error:
        raise RemoteError(
            f"a layer of the package cannot be read: {shorten(str(error))}"
        ) from error
    return None


class _Bounded:
    """Reads from a stream and fails beyond `PACKAGE_MAX_BYTES`."""

    def __init__(self, source: io.BufferedIOBase) -> None:
        self._source, self._left = source, PACKAGE_MAX_BYTES

    def read(self, size: int) -> bytes:
        data = self._source.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise RemoteError(
                f"a layer of the package is larger than {PACKAGE_MAX_BYTES} bytes unpacked"
            )
        return data


FOLDER = PurePosixPath("schemas")
SOURCES = FOLDER / "sources.yaml"
FILE_MAX_BYTES = 1_000_000
"""What a file of a pack may have."""
_LIMITS = ManifestLimits(size_bytes=8_000_000, events=1_000_000)
_BREAK = re.compile(rb"^---(?=\s|\Z)", re.MULTILINE)
"""What follows it on its line is of the document already."""
_GROUP = re.compile(rb"^  group: [\"']?([A-Za-z0-9.-]+)[\"']?\r?$", re.MULTILINE)
_KIND = re.compile(rb"^    kind: [\"']?([A-Za-z0-9]+)[\"']?\r?$", re.MULTILINE)
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\Z")
_HEAD = "# Written by 'orderkit kit schemas add' from {}; edits are reported by 'kit check'.\n"
_SOURCES_HEAD = "# Where files of this folder come from. Written by 'orderkit kit schemas add'.\n"
_HEADER = {"apiVersion": API_VERSION, "kind": "SchemaSources"}
_SPEC_KEYS = ("group", "names", "scope", "versions")


@dataclass(frozen=True, slots=True)
class CrdDocument:
    """One CRD of a YAML stream, not parsed yet."""

    source: str
    """Names the stream in messages."""
    group: str
    kind: str
    data: bytes

    @property
    def group_kind(self) -> GroupKind:
        return self.group, self.kind

    def parsed(self) -> Manifest:
        """
        Return the CRD.

        Raises:
            InvalidInputError: It cannot be read, or is not a CRD that can be a file of a pack.
        """
        name = f"{self.source}: {self.kind}.{self.group}"
        try:
            manifests = parse_manifests(name, self.data, limits=_LIMITS)
        except ManifestError as error:
            raise InvalidInputError(name, None, f"cannot be read: {error.reason}") from error
        crd = next((manifest for manifest in manifests if _is_crd(manifest)), None)
        if crd is None or _group_kind(crd) != self.group_kind or known_kind(crd) is None:
            raise InvalidInputError(name, None, "is not a CustomResourceDefinition")
        plural = dig(crd, "spec", "names", "plural")
        parts = (self.group, plural)
        if not all(isinstance(text, str) and _NAME.match(text) for text in parts):
            raise InvalidInputError(name, plural, "is not a plural with a group that names a file")
        if dig(crd, "metadata", "name") != f"{plural}.{self.group}":
            raise InvalidInputError(
                name,
                dig(crd, "metadata", "name"),
                f"is not the name {plural}.{self.group}",
                hint=f"rename it: metadata.name: {plural}.{self.group}",
            )
        return crd


def crd_documents(source: str, stream: bytes) -> Iterator[CrdDocument]:
    """
    Yield the CRDs of a YAML stream.

    Args:
        source: Names the stream in messages.

    Raises:
        InvalidInputError: A document that is not laid out as usual cannot be read.
    """
    start = 0
    for end in (*(match.span() for match in _BREAK.finditer(stream)), (len(stream), 0)):
        data, start = stream[start : end[0]], end[1]
        if b"CustomResourceDefinition" not in data:
            continue
        group, kind = _GROUP.search(data), _KIND.search(data)
        if group and kind:
            yield CrdDocument(source, group[1].decode(), kind[1].decode(), data)
        else:
            yield from _parsed_documents(source, data)


def _parsed_documents(source: str, data: bytes) -> Iterator[CrdDocument]:
    """Yield the CRDs of a document that has another layout than packages have."""
    try:
        manifests = parse_manifests(source, data, limits=_LIMITS)
    except ManifestError as error:
        raise InvalidInputError(source, None, f"cannot be read: {error.reason}") from error
    for manifest in filter(_is_crd, manifests):
        group, kind = _group_kind(manifest)
        if not (_NAME.match(group) and kind.isalnum() and kind.isascii()):
            raise InvalidInputError(source, f"{kind}.{group}", "is not a kind with its group")
        yield CrdDocument(source, group, kind, yaml11.dump(manifest).encode())


def _is_crd(manifest: Manifest) -> bool:
    kind = Kind.of(manifest)
    return (kind.group, kind.kind) == (CRD.group, CRD.kind)


def _group_kind(crd: Manifest) -> GroupKind:
    return str(dig(crd, "spec", "group")), str(dig(crd, "spec", "names", "kind"))


def crd_file(crd: Manifest, source: str, *, descriptions: bool) -> tuple[PurePosixPath, bytes]:
    """
    Return path and content of the file of a CRD that `CrdDocument.parsed` returned.

    Conversion, status and annotations are left out: they say nothing about fields.

    Args:
        source: Named in the file's first line.
        descriptions: Keep the descriptions of fields.

    Raises:
        InvalidInputError: It is larger than a file of a pack may be.
    """
    spec = {key: crd["spec"][key] for key in _SPEC_KEYS if key in crd["spec"]}
    spec["versions"] = [
        entry if descriptions else _without_descriptions(entry)
        for entry in spec["versions"]
        if entry.get("served")
    ]
    group, _ = _group_kind(crd)
    plural = spec["names"]["plural"]
    manifest = {
        "apiVersion": CRD.api_version,
        "kind": CRD.kind,
        "metadata": {"name": crd["metadata"]["name"]},
        "spec": spec,
    }
    path = FOLDER / f"{group}_{plural}.yaml"
    data = (_HEAD.format(shorten(source)) + yaml11.dump(manifest)).encode()
    if len(data) > FILE_MAX_BYTES:
        hint = "leave out --descriptions" if descriptions else "write a smaller schema by hand"
        raise InvalidInputError(
            str(path), len(data), f"bytes are more than {FILE_MAX_BYTES}", hint=hint
        )
    return path, data


def _without_descriptions(version: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = dig(version, "schema", "openAPIV3Schema", default=None)
    if not isinstance(schema, Mapping):
        return version
    return {**version, "schema": {"openAPIV3Schema": _plain(schema)}}


def _plain(schema: Any) -> Any:
    """Return a schema without descriptions; a property of that name stays."""
    if not isinstance(schema, Mapping):
        return schema
    plain = {key: value for key, value in schema.items() if key != "description"}
    for key in ("items", "additionalProperties", "not"):
        if key in plain:
            plain[key] = _plain(plain[key])
    for key in ("allOf", "anyOf", "oneOf"):
        if isinstance(plain.get(key), list):
            plain[key] = [_plain(subschema) for subschema in plain[key]]
    if isinstance(plain.get("properties"), Mapping):
        plain["properties"] = {
            name: _plain(property_schema) for name, property_schema in plain["properties"].items()
        }
    return plain


class SchemaSource(StrictShape, frozen=True, kw_only=True):
    """Where files of ``schemas/`` come from: a package, or a folder of CRDs."""

    package: str = ""
    """Its path in a registry, with the host if that was given in the reference."""
    folder: str = ""
    version: str = ""
    digest: Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")] = ""
    """Of the package: what its version meant when the files were written."""
    descriptions: bool = False
    files: Mapping[str, str] = {}
    """Digest of each file as it was written, by its name."""

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{self.package}@{self.version}" if self.package else self.folder

    @property
    def identity(self) -> tuple[str, str]:
        """What another version of the same source has too."""
        return self.package, self.folder


def file_digest(data: bytes) -> str:
    """Return a digest as registries write them."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def read_sources(files: Files) -> tuple[SchemaSource, ...]:
    """
    Read ``schemas/sources.yaml`` of a pack; empty if there is none.

    Raises:
        InvalidInputError: It is malformed.
    """
    if SOURCES not in files:
        return ()
    one_origin = {"oneOf": [{"required": ["package"]}, {"required": ["folder"]}]}
    source = {**json_schema(SchemaSource), **one_origin, "required": ["files"]}
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": [*_HEADER, "sources"],
        "properties": {
            **{key: {"const": value} for key, value in _HEADER.items()},
            "sources": {"type": "array", "items": source},
        },
    }
    document = yaml11.load(files[SOURCES], name=str(SOURCES), schema=schema)
    return read_shape(tuple[SchemaSource, ...], document["sources"])


def sources_file(sources: Sequence[SchemaSource]) -> bytes:
    """Return the content of ``schemas/sources.yaml``. Deterministic."""
    entries = plain(sorted(sources, key=lambda source: source.identity))
    return (_SOURCES_HEAD + yaml11.dump({**_HEADER, "sources": entries})).encode()
