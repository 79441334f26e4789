"""
Everything that is generated from a kit: one dictionary of files, the same for the same kit.

Each projection turns a kit into files of one room; none reads platform.yaml. Called by
``flows.kits.generating``, which writes what differs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from orderkit.core.documents import Files
from orderkit.core.errors import RefusedError
from orderkit.core.kit import day2, page, policy, rbac, runnerrole, skeleton, template
from orderkit.core.kit.marking import is_generated
from orderkit.core.kit.model import Kit

Projection = Callable[[Kit], dict[PurePosixPath, bytes]]

PROJECTIONS: tuple[Projection, ...] = (
    template.template,
    skeleton.skeleton,
    day2.day2,
    page.page,
    policy.policy,
    rbac.rbac,
    runnerrole.runner_role,
)


def generate(files: Files, kit: Kit) -> dict[PurePosixPath, bytes]:
    """
    Return the generated files of one kit, by their path in the pack. Deterministic.

    Args:
        files: The pack as it is, to see what was written by hand.

    Raises:
        InvalidInputError: The XRD or kit.yaml asks for what cannot be generated.
        RefusedError: A file written by hand stands where a generated one belongs.
    """
    found = projected(kit)
    for path in found:
        if is_hand_written(files, path, found[path]):
            raise RefusedError(
                f"{path}: was written by hand, and a generated file belongs there",
                hint="move it away, or bring what it says into kit.yaml and delete it",
            )
    return found


def projected(kit: Kit) -> dict[PurePosixPath, bytes]:
    """
    Return the generated files of one kit, whatever stands in their place.

    Raises:
        InvalidInputError: The XRD or kit.yaml asks for what cannot be generated.
    """
    found: dict[PurePosixPath, bytes] = {}
    for projection in PROJECTIONS:
        found |= projection(kit)
    return found


def is_hand_written(files: Files, path: PurePosixPath, generated: bytes) -> bool:
    """Say whether a file that differs from the generated one is not ours to write."""
    return path in files and files[path] != generated and not is_generated(files[path])


def leftovers(files: Files, kit_name: str, generated: Files) -> tuple[PurePosixPath, ...]:
    """Return files of a kit's rooms that were generated once and are not any more, sorted."""
    rooms = (f"templates/{kit_name}/", f"day2/{kit_name}/", f"gitops/apis/{kit_name}/")
    return tuple(
        sorted(
            path
            for path, data in files.items()
            if str(path).startswith(rooms) and path not in generated and is_generated(data)
        )
    )
