"""
What a pack's templates do in one platform's portal: the portal's profile.

``service`` (default): the portal's copy is one idempotent request to Orderkit's service
(``core.servicecopy``), and the natural template stands beside it as ``natural.yaml``.
``natural``: the steps as the pack has them; the portal runs them itself. A template may insist
on its natural steps by the annotation ``orderkit.dev/profile: natural``. ``job`` (natural steps,
registration by a Job in the cluster) has its name here and is refused.

Pure. Called while a pack is published; `natural_path` by whoever interprets a template.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Container
from pathlib import PurePosixPath

from orderkit.core import yaml12
from orderkit.core.documents import Files
from orderkit.core.errors import InvalidInputError
from orderkit.core.objects import dig

TEMPLATES = "templates/*/template.yaml"
NATURAL_FILE = "natural.yaml"
ANNOTATION = "orderkit.dev/profile"
_LATER = "job"


class Profile(enum.StrEnum):
    """How the portal runs a pack's templates."""

    SERVICE = "service"
    NATURAL = "natural"


def read_profile(field: str, value: str) -> Profile:
    """
    Return the profile of that name.

    Raises:
        InvalidInputError: There is none; `field` says where it stood.
    """
    if value == _LATER:
        raise InvalidInputError(
            field,
            value,
            "is not available yet: registration by a Job in the cluster",
            hint="choose service, or natural for a portal that cannot reach the service at all",
        )
    try:
        return Profile(value)
    except ValueError as error:
        known = ", ".join(Profile)
        raise InvalidInputError(field, value, "is no profile", hint=f"profiles: {known}") from error


def apply_profile(
    files: Files, profile: Profile, *, actions: Collection[str]
) -> dict[PurePosixPath, bytes]:
    """
    Return the pack's files as this platform's portal shall see them. Not yet baked.

    Args:
        actions: Ids of the actions the service can run.

    Raises:
        InvalidInputError: A template cannot run in the service (the step is named), or a file
            of the pack stands where the natural template belongs.
    """
    from orderkit.core.servicecopy import service_copy  # lazy: the renderer is heavy

    found = dict(files)
    for path in sorted(path for path in files if path.match(TEMPLATES)):
        if _wanted(files[path], str(path), profile) is Profile.NATURAL:
            continue
        natural = path.with_name(NATURAL_FILE)
        if natural in files:
            raise InvalidInputError(
                str(natural), None, "has a name that publishing needs", hint="rename the file"
            )
        found[natural] = files[path]
        found[path] = service_copy(
            files[path], name=str(path), folder=path.parent.name, actions=actions
        )
    return found


def natural_path(folder: PurePosixPath, known: Container[PurePosixPath]) -> PurePosixPath:
    """Return where a template's natural steps stand in a published pack."""
    natural = folder / NATURAL_FILE
    return natural if natural in known else folder / "template.yaml"


def _wanted(data: bytes, name: str, profile: Profile) -> Profile:
    entity = yaml12.load(data, name=name)
    own = dig(entity, "metadata", "annotations", ANNOTATION) if isinstance(entity, dict) else None
    if own is None:
        return profile
    if own != Profile.NATURAL:
        field = f"{name}: metadata.annotations.{ANNOTATION}"
        raise InvalidInputError(field, own, "is not 'natural'", hint="leave it out")
    return Profile.NATURAL
