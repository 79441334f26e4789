"""
Start a platform team's own pack: the rooms of a pack and no kits yet.

What every pack shares (the delivery tree, the rooms' READMEs) is taken from the reference pack of
this installation, without its kits; the rest is rendered from ``skeletons/pack``. Called by
``orderkit init``, which writes the folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from orderkit.core.kit.generated_mark import is_generated
from orderkit.core.kit.pack import read_pack
from orderkit.core.names import check_label
from orderkit.core.portal.render import SkeletonFile
from orderkit.core.yaml.documents import Files
from orderkit.flows.kit.generate_kits import generated_from
from orderkit.ports.pack_folder import SkeletonRenderer


@dataclass(frozen=True, slots=True)
class PackRequest:
    """What to start."""

    folder_name: str
    name: str = ""
    """Empty: from the folder's name."""
    title: str = ""
    """Empty: from the name."""
    orderkit: str = "orderkit"
    """The line of requirements.txt by which the pack's CI installs Orderkit."""


@dataclass(frozen=True, slots=True)
class NewPack:
    """A pack to write."""

    name: str
    files: Mapping[PurePosixPath, SkeletonFile]


def start_pack(
    request: PackRequest, reference: Files, render_skeleton: SkeletonRenderer
) -> NewPack:
    """
    Return a complete pack, with what is generated.

    Args:
        reference: The pack of this installation.

    Raises:
        InvalidInputError: The name is no RFC 1123 label.
    """
    name = request.name or _name_of(request.folder_name)
    check_label("name", name)
    title = request.title or f"The pack of {name}"
    values = {
        "name": name,
        "title": title,
        "orderkit": request.orderkit,
        "versions": dict(read_pack(reference).versions),
    }
    files = {**_shared(reference), **render_skeleton("pack", values)}
    generation = generated_from({path: file.data for path, file in files.items()})
    for file in generation.differing:
        if file.after is not None:
            files[file.path] = SkeletonFile(file.after)
    return NewPack(name, files)


def _name_of(folder_name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", folder_name.lower()).strip("-")[:40]


def _shared(files: Files) -> Mapping[PurePosixPath, SkeletonFile]:
    """Return the reference pack without its kits and what is generated from them."""
    names = set(read_pack(files).kit_names)
    kept = {
        path: data
        for path, data in files.items()
        if names.isdisjoint(path.parts) and not is_generated(data)
    }
    return {path: SkeletonFile(data) for path, data in kept.items()}
