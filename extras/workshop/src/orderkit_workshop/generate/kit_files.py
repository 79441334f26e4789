"""
Generate all files of a kit, as one dictionary. Deterministic.

Each generator turns a kit into the files of one folder; none reads platform.yaml.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from ground.errors import RefusedError
from ground.names import Files
from orderkit.core.kit.generated_mark import is_generated
from orderkit.core.kit.model import Kit
from orderkit_workshop.generate import (
    admission_policy,
    cluster_roles,
    day2_forms,
    kit_page,
    order_skeleton,
    order_template,
)

Projection = Callable[[Kit], dict[PurePosixPath, bytes]]

PROJECTIONS: tuple[Projection, ...] = (
    order_template.template,
    order_skeleton.skeleton,
    day2_forms.day2,
    kit_page.page,
    admission_policy.policy,
    cluster_roles.rbac,
    cluster_roles.runner_role,
)


def generate(files: Files, kit: Kit) -> dict[PurePosixPath, bytes]:
    """
    Return the generated files of one kit, by their path in the pack. Deterministic.

    Args:
        files: The pack as it is, to find hand-written files.

    Raises:
        InvalidInputError: The XRD or kit.yaml requires something that cannot be generated.
        RefusedError: A hand-written file has the path of a generated one.
    """
    generated = projected(kit)
    for path in generated:
        if is_hand_written(files, path, generated[path]):
            raise RefusedError(
                f"{path}: was written by hand, and a generated file belongs there",
                hint="move it away, or bring what it says into kit.yaml and delete it",
            )
    return generated


def projected(kit: Kit) -> dict[PurePosixPath, bytes]:
    """
    Return the generated files of one kit, regardless of existing files.

    Raises:
        InvalidInputError: The XRD or kit.yaml requires something that cannot be generated.
    """
    files: dict[PurePosixPath, bytes] = {}
    for projection in PROJECTIONS:
        files |= projection(kit)
    return files


def is_hand_written(files: Files, path: PurePosixPath, generated: bytes) -> bool:
    """Return whether a file that differs from the generated one was written by hand."""
    return path in files and files[path] != generated and not is_generated(files[path])


def leftovers(files: Files, kit_name: str, generated: Files) -> tuple[PurePosixPath, ...]:
    """Return generated files in a kit's folders that are no longer generated, sorted."""
    rooms = (f"templates/{kit_name}/", f"day2/{kit_name}/", f"gitops/apis/{kit_name}/")
    return tuple(
        sorted(
            path
            for path, data in files.items()
            if str(path).startswith(rooms) and path not in generated and is_generated(data)
        )
    )
