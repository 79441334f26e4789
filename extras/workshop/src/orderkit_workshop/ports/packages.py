"""
Packages of Crossplane's providers in an OCI registry.

Implemented by ``registry``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from kubeschema.known.crd_files import PackageReference


@dataclass(frozen=True, slots=True)
class ProviderPackage:
    """A package as it was read: every byte verified against its digest."""

    digest: str
    """Of the manifest that the reference names."""
    stream: bytes
    """Its YAML stream: metadata and CRDs."""


@dataclass(frozen=True, slots=True)
class FunctionImage:
    """The image of a function; its layers can be read once, from the lowest to the highest."""

    digest: str
    config: Mapping[str, Any]
    layers: Iterator[IO[bytes]]


class Packages(Protocol):
    """Reads packages."""

    def fetch(self, reference: PackageReference) -> ProviderPackage:
        """
        Read one package.

        Raises:
            NotFoundError: The registry has no such package or version.
            AccessError: It needs other credentials.
            RefusedError: Its content has another digest than it says.
            UnreachableError: It does not answer. RemoteError: What it answers is not a package.
        """
        ...
