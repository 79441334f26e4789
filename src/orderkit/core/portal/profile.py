"""
The portal's profile: how one platform's portal runs a pack's templates.

``service`` (default): the portal's copy is one idempotent request to Orderkit's service
(``core.portal.service_copy``); the natural template stays beside it as ``natural.yaml``.
``plugin``: as ``service``, but by the actions of Orderkit's plugin for the scaffolder, which follow
the order until it is Ready; forms of changes and ends too (``core.portal.service_copy``).
``natural``: the portal runs the steps as the pack has them. A template can keep its natural steps
with the annotation ``orderkit.dev/profile: natural``. ``job``: the natural steps, but Jobs in the
cluster do what the service would do (``core.portal.job_copy``); this applies to forms of changes
too.

Pure. Called while a pack is published; `natural_path` by everything that interprets a template.
"""

from __future__ import annotations

import enum
import posixpath
from collections.abc import Callable, Collection, Container, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from ground.errors import InvalidInputError
from ground.names import Files
from ground.objects.kube_objects import dig
from yamlfiles import yaml12

TEMPLATES = "templates/*/template.yaml"
NATURAL_FILE = "natural.yaml"
CHANGE_TEMPLATES = "day2/*/*.yaml"
JOBS_FOLDER = "job"
"""The folder of ``day2`` that contains no forms."""
ANNOTATION = "orderkit.dev/profile"


class Profile(enum.StrEnum):
    """How the portal runs a pack's templates."""

    SERVICE = "service"
    PLUGIN = "plugin"
    NATURAL = "natural"
    JOB = "job"


def read_profile(field: str, value: str) -> Profile:
    """
    Return the profile with that name.

    Raises:
        InvalidInputError: There is none. `field` says where the name was given.
    """
    try:
        return Profile(value)
    except ValueError as error:
        profiles = ", ".join(Profile)
        raise InvalidInputError(
            field, value, "is not a profile", hint=f"profiles: {profiles}"
        ) from error


def apply_profile(
    files: Files,
    profile: Profile,
    *,
    actions: Collection[str],
    team_parameters: Mapping[str, str] = MappingProxyType({}),
) -> dict[PurePosixPath, bytes]:
    """
    Return the pack's files as this platform's portal should see them. Not yet baked.

    Args:
        actions: Ids of the actions that the service can run.
        team_parameters: By kit, the parameter that names the team.

    Raises:
        InvalidInputError: A template cannot run in the service (the step is named), or a file of
            the pack has the path of the natural template.
    """
    from orderkit.core.portal.job_copy import job_copy  # lazy: with the renderer, which is heavy
    from orderkit.core.portal.service_copy import plugin_copy, service_copy

    published = dict(files)
    copy_form = {Profile.JOB: job_copy, Profile.PLUGIN: plugin_copy}.get(profile)
    if copy_form is not None:
        for path in sorted(path for path in files if is_form_of_change(path)):
            published[path] = copy_form(files[path], name=str(path))
    for path in sorted(path for path in files if path.match(TEMPLATES)):
        file_profile = _file_profile(files[path], str(path), profile)
        if file_profile is Profile.NATURAL:
            continue
        natural = path.with_name(NATURAL_FILE)
        if natural in files:
            raise InvalidInputError(
                str(natural), None, "has a name that publishing needs", hint="rename the file"
            )
        published[natural] = files[path]
        published[path] = (
            job_copy(files[path], name=str(path))
            if file_profile is Profile.JOB
            else service_copy(
                files[path],
                name=str(path),
                folder=path.parent.name,
                actions=actions,
                plugin=file_profile is Profile.PLUGIN,
                team_parameter=team_parameters.get(path.parent.name, ""),
                read=_reader_beside(files, path.parent),
            )
        )
    return published


def _reader_beside(files: Files, folder: PurePosixPath) -> Callable[[str], bytes]:
    """Return what reads files of a pack for the placeholders of a template in a folder."""

    def read(target: str) -> bytes:
        start = "." if target.startswith("/") else str(folder)
        path = PurePosixPath(posixpath.normpath(posixpath.join(start, target.lstrip("/"))))
        if path not in files:
            raise InvalidInputError("", target, "is not a file of the pack")
        return files[path]

    return read


def is_form_of_change(path: PurePosixPath) -> bool:
    """Return whether a file of a pack is the form of a change or of the end of an order."""
    return path.match(CHANGE_TEMPLATES) and path.parts[1] != JOBS_FOLDER


def natural_path(folder: PurePosixPath, paths: Container[PurePosixPath]) -> PurePosixPath:
    """Return the path of a template's natural steps in a published pack."""
    natural = folder / NATURAL_FILE
    return natural if natural in paths else folder / "template.yaml"


def _file_profile(data: bytes, name: str, profile: Profile) -> Profile:
    entity = yaml12.load(data, name=name)
    annotation = (
        dig(entity, "metadata", "annotations", ANNOTATION) if isinstance(entity, dict) else None
    )
    if annotation is None:
        return profile
    if annotation != Profile.NATURAL:
        field = f"{name}: metadata.annotations.{ANNOTATION}"
        raise InvalidInputError(field, annotation, "is not 'natural'", hint="leave it out")
    return Profile.NATURAL
