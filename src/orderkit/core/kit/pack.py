"""
Read a pack and its kits.

``pack.yaml`` marks the root and names the kits. Each kit has three folders: ``templates/<kit>``
with ``kit.yaml`` and ``template.yaml``, ``stations/<kit>`` and ``gitops/apis/<kit>``. This module
reads from a mapping of paths to bytes; the caller fetches them from a folder, a wheel or a
repository.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Annotated

from msgspec import Meta

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.shapes import StrictShape
from ground.suggestions import did_you_mean
from orderkit.core.documents import DocumentName, PlanRules, read_document
from orderkit.core.kit.kit_reader import read_kit
from orderkit.core.kit.model import Kit
from yamlfiles.documents import Files

__all__ = ["Files", "Kit", "Pack", "read_pack"]

_Names = Annotated[tuple[DocumentName, ...], Meta(extra_json_schema={"uniqueItems": True})]
_Version = Annotated[
    str,
    Meta(
        pattern=r"^v?[0-9]+\.[0-9]+\.[0-9]+[A-Za-z0-9.-]*(@sha256:[0-9a-f]{64})?$",
        description="pin one release, as v1.2.3 or v1.2.3@sha256:…: a tag can move",
    ),
]


class PackFile(StrictShape, frozen=True, kw_only=True):
    """``metadata.name`` and ``spec`` of pack.yaml."""

    name: DocumentName
    title: str = ""
    kits: _Names
    providers: _Names | None = None
    """Folders of ``gitops/providers`` that its kits need; None: all of them."""
    versions: Annotated[
        Mapping[str, _Version],
        Meta(extra_json_schema={"propertyNames": {"pattern": "^[a-z][a-z0-9]*(-[a-z0-9]+)*$"}}),
    ] = {}
    """The releases of the foreign software that the pack delivers."""
    plan: PlanRules = PlanRules()


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack's name, its kits and all its files."""

    name: str
    kit_names: tuple[str, ...]
    files: Files
    providers: tuple[str, ...] | None = None
    """Folders of ``gitops/providers`` that its kits need; None: all of them."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """The releases of the foreign software that the pack delivers."""
    data_kinds: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    """Whether kinds hold data, as the pack declares."""

    def unknown_kit(self, name: str) -> NotFoundError:
        """Return the error about a kit that the pack does not have."""
        names = ", ".join(self.kit_names)
        other = f"use one of: {names}" if names else "start one: orderkit kit new NAME"
        hint = did_you_mean(name, self.kit_names, other)
        return NotFoundError(f"kit '{name}' is not in pack '{self.name}'", hint=hint)

    def kit(self, name: str) -> Kit:
        """
        Read one kit.

        Raises:
            NotFoundError: The pack has no kit of that name.
            InvalidInputError: One of its files is malformed.
        """
        if name not in self.kit_names:
            raise self.unknown_kit(name)
        return read_kit(name, self.files)

    def kits(self) -> tuple[Kit, ...]:
        """Read every kit; raises like `kit`."""
        return tuple(self.kit(name) for name in self.kit_names)

    def check_only(self, name: str) -> None:
        """
        Check that no other kit defines the kind of this one: the cluster holds one definition.

        Raises:
            RefusedError: Another kit does.
            What `kit` raises.
        """
        kind = self.kit(name).kind
        for other in self.kit_names:
            with suppress(InvalidInputError):  # a broken kit is no reason to refuse another
                theirs = self.kit(other).kind
                if other != name and (theirs.group, theirs.kind) == (kind.group, kind.kind):
                    raise RefusedError(
                        f"kit {name} cannot be used: kit {other} defines {kind} too",
                        hint="ask a platform admin to remove one of these kits from the pack",
                    )

    def folder(self, path: str) -> Files:
        """Return the files below a folder, by their path relative to it."""
        root = PurePosixPath(path)
        return {
            file.relative_to(root): data
            for file, data in self.files.items()
            if file.is_relative_to(root)
        }


_OUTSIDE = frozenset({"..", ".git"})


def read_pack(files: Files) -> Pack:
    """
    Read ``pack.yaml``.

    A forge may hold trees that no git would check out (Gitea accepts them). Some commands write a
    pack's files to disk, so all paths must stay inside the pack.

    Raises:
        InvalidInputError: It is missing or malformed, or a file's path leaves the pack.
    """
    for path in files:
        if path.is_absolute() or _OUTSIDE & {part.casefold() for part in path.parts}:
            raise InvalidInputError(
                "path", str(path), "leaves the pack", hint="remove it from the pack's repository"
            )
    data = files.get(PurePosixPath("pack.yaml"))
    if data is None:
        raise InvalidInputError(
            "pack.yaml",
            None,
            "is missing: this is not a pack",
            hint="orderkit init DIR makes a pack; --pack DIR names one",
        )
    file = _pack_file(data)
    return Pack(file.name, file.kits, files, file.providers, file.versions, file.plan.holds_data)


@functools.lru_cache(maxsize=8)  # every request to the service reads the pack
def _pack_file(data: bytes) -> PackFile:
    return read_document(PackFile, data, name="pack.yaml", kinds=("Pack",), named="name")
