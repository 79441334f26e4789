"""
Render the skeleton of a new pack or kit.

They lie in ``skeletons/`` beside the reference pack and are cookiecutter's. Rendered without its
prompts, hooks, replay files and user configuration, so the same values give the same files. Not
for what the portal renders: that is ``softwaretemplates.render``.

Rendering changes the working directory for a moment, as cookiecutter does: not for threads.
Given to the flows of kits as the port `SkeletonRenderer`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from ground.errors import InvalidInputError, NotFoundError
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.adapters.folders.template_folder import DiskFolder
from softwaretemplates.render import SkeletonFile

FOLDER = "skeletons"


def render_skeleton(name: str, values: Mapping[str, Any]) -> dict[PurePosixPath, SkeletonFile]:
    """
    Return the files of a skeleton of this installation, their paths relative to its folder.

    Args:
        values: Over the defaults of the skeleton's ``cookiecutter.json``.

    Raises:
        NotFoundError: The installation lacks it. InvalidInputError: It cannot be rendered.
    """
    from cookiecutter.exceptions import CookiecutterException  # lazy: heavy
    from cookiecutter.generate import generate_files

    skeleton = reference_pack() / FOLDER / name
    if not (skeleton / "cookiecutter.json").is_file():
        raise NotFoundError(f"there is no skeleton {skeleton}", hint="install Orderkit again")
    defaults = json.loads((skeleton / "cookiecutter.json").read_bytes())
    with tempfile.TemporaryDirectory(prefix="orderkit-") as scratch:
        try:
            rendered = generate_files(
                skeleton,
                {"cookiecutter": {**defaults, **values, "folder": "made"}},
                output_dir=scratch,
                accept_hooks=False,
            )
        except CookiecutterException as error:
            raise InvalidInputError(f"skeletons/{name}", dict(values), str(error)) from error
        files = DiskFolder(Path(rendered), trusted=True).tree(PurePosixPath())
        return {path: replace(file, content=file.data) for path, file in files.items()}
