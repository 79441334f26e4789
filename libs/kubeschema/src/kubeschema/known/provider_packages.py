"""
Names of provider packages in an OCI registry, and the YAML stream inside one.

A reference is ``[HOST/]PATH@VERSION`` or ``[HOST/]PATH:TAG``, where VERSION is a tag, a digest, or
both (``v2.6.0@sha256:...``). The layer of a package is a tar archive whose ``package.yaml`` holds
its metadata and CRDs (Crossplane's xpkg specification). Nothing is unpacked to disk, and all sizes
are limited: a registry is not trusted.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zlib
from dataclasses import dataclass

from ground.errors import InvalidInputError, RemoteError, shorten

__all__ = ["DIGEST", "PackageReference", "package_stream", "parse_reference"]

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
