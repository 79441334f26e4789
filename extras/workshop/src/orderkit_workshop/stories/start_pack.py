"""
Start a platform team's own pack: the rooms of a pack and no kits yet.

What every pack shares (the delivery tree, the rooms' READMEs) is taken from the reference pack of
this installation, without its kits; the rest is rendered from ``skeletons/pack``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from ground.names import NAME_MAX, Files, check_label
from orderkit.core.kit.generated_mark import is_generated
from orderkit.core.kit.pack import read_pack
from orderkit_workshop.ports.pack_folder import SkeletonRenderer
from orderkit_workshop.stories.generate_kits import generated_from
from softwaretemplates.render import SkeletonFile


def start_pack(
    name: str, title: str, orderkit: str, *, reference: Files, render_skeleton: SkeletonRenderer
) -> dict[PurePosixPath, SkeletonFile]:
    """
    Return the files of a complete pack, with what is generated.

    Args:
        title: Empty: from the name.
        orderkit: The line of requirements.txt by which the pack's CI installs Orderkit.
        reference: The pack of this installation.

    Raises:
        InvalidInputError: The name is not an RFC 1123 label.
    """
    check_label("name", name, longest=NAME_MAX)
    values = {
        "name": name,
        "title": title or f"The pack of {name}",
        "orderkit": orderkit,
        "versions": dict(read_pack(reference).versions),
    }
    files = {**_shared(reference), **render_skeleton("pack", values)}
    generation = generated_from({path: file.data for path, file in files.items()})
    for file in generation.differing:
        if file.after is not None:
            files[file.path] = SkeletonFile(file.after)
    return files


def name_of(folder_name: str) -> str:
    """Return what a pack in a folder of this name is called if nobody says."""
    return re.sub(r"[^a-z0-9]+", "-", folder_name.lower()).strip("-")[:NAME_MAX].rstrip("-")


def _shared(files: Files) -> Mapping[PurePosixPath, SkeletonFile]:
    """Return the reference pack without its kits and what is generated from them."""
    names = set(read_pack(files).kit_names)
    kept = {
        path: data
        for path, data in files.items()
        if names.isdisjoint(path.parts) and not is_generated(data)
    }
    return {path: SkeletonFile(data) for path, data in kept.items()}
