"""
Find a scaffolder template in the platform's published pack, or read one from a file.

A template of the pack is read with its natural steps, the ones that the kit's author wrote, not
those of the copy that the portal runs (``core.portal.profile``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from ground.errors import InvalidInputError, NotFoundError
from orderkit.core.kit.model import Kit
from orderkit.core.portal.profile import TEMPLATES, natural_path
from orderkit.flows.platform import Platform, RepositorySnapshot, pack_snapshot, published_pack
from orderkit.flows.template import scaffolder
from orderkit.flows.template.actions.action_context import ForgeFolder, reader_beside
from softwaretemplates.template import Template, parse_template


@dataclass(frozen=True, slots=True)
class TemplateSource:
    """A template, its folder, and the kit that it orders, if any."""

    template: Template
    folder: scaffolder.TemplateFolder
    kit: Kit | None = None
    pack: RepositorySnapshot | None = None
    """The published pack that it was read from; None: it is a file."""


def kit_template(platform: Platform, name: str) -> TemplateSource:
    """
    Return the template of a kit of the published pack, with its natural steps.

    Raises:
        NotFoundError: The pack has no such kit. InvalidInputError: The kit has no template.
    """
    pack_files = pack_snapshot(platform)
    pack = published_pack(platform, pack_files)
    kit = pack.kit(name)
    folder = PurePosixPath("templates", name)
    template = _natural(platform, pack_files, folder)
    if template is None:
        path = natural_path(folder, pack_files.blobs)
        raise InvalidInputError(str(path), None, f"is missing in pack '{pack.name}'")
    return TemplateSource(template, _folder(platform, pack_files, folder), kit, pack_files)


def template_at(
    platform: Platform, pack_files: RepositorySnapshot, name: str
) -> TemplateSource | None:
    """Return the template of a kit as the pack had it at a commit; None: it had none."""
    folder = PurePosixPath("templates", name)
    template = _natural(platform, pack_files, folder)
    return TemplateSource(template, _folder(platform, pack_files, folder)) if template else None


def published_template(platform: Platform, name: str) -> TemplateSource:
    """
    Find a template of the published pack, with its natural steps, by its kit's name or its own.

    Raises:
        NotFoundError: The pack has no such template; the message lists its templates.
    """
    pack_files = pack_snapshot(platform)
    templates: dict[str, str] = {}
    for folder in _template_folders(pack_files, first=name):
        template = _natural(platform, pack_files, folder)
        if template is None:
            continue
        if name in {folder.name, template.name}:
            pack = published_pack(platform, pack_files)
            kit = pack.kit(folder.name) if folder.name in pack.kit_names else None
            return TemplateSource(template, _folder(platform, pack_files, folder), kit, pack_files)
        templates[template.name] = folder.name
    raise NotFoundError(
        f"template '{name}' is neither a file nor in the published pack",
        hint="templates: "
        f"{', '.join(f'{folder} ({title})' for title, folder in templates.items()) or 'none'}",
    )


def _template_folders(pack_files: RepositorySnapshot, *, first: str) -> Iterator[PurePosixPath]:
    paths = [path for path in pack_files.blobs if path.match(TEMPLATES)]
    for path in sorted(paths, key=lambda path: (path.parent.name != first, path)):
        yield path.parent


def _natural(
    platform: Platform, pack_files: RepositorySnapshot, folder: PurePosixPath
) -> Template | None:
    path = natural_path(folder, pack_files.blobs)
    revision = platform.forge.read(platform.pack_repo, path, pack_files.commit)
    if revision is None:
        return None
    read = reader_beside(_folder(platform, pack_files, folder))
    return parse_template(revision.data, name=str(path), read=read)


def _folder(
    platform: Platform, pack_files: RepositorySnapshot, folder: PurePosixPath
) -> ForgeFolder:
    return ForgeFolder(
        platform.forge,
        platform.pack_repo,
        pack_files.commit,
        folder,
        trusted=True,
        size_limit=platform.size_limit,
    )


def template_of(
    path: PurePosixPath | str, data: bytes, folder: scaffolder.TemplateFolder, choice: str = ""
) -> TemplateSource:
    """
    Read a template that is not part of a published pack; `choice` names it among several.

    Raises:
        InvalidInputError: It is not a v1beta3 Template, or the file has several.
    """
    template = parse_template(data, name=str(path), choice=choice, read=reader_beside(folder))
    return TemplateSource(template, folder)
