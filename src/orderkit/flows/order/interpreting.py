"""
Run any scaffolder template: a file on this machine, or one of the published pack by its name.

Without a platform it works for templates that need none. Publishing is *ensure*: the same files for
the same repository are found as done, whatever was committed since; a kit's order is checked
against its XRD as ``orderkit order`` does. Called by ``orderkit run``, ``adopting`` and
``portal_tasks``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from orderkit.core.errors import AlreadyOrderedError, InvalidInputError, NotFoundError
from orderkit.core.kit.pack import Kit
from orderkit.core.names import CommitSha
from orderkit.core.order import order_file
from orderkit.core.order.order_check import check_order_files
from orderkit.core.portal.profile import TEMPLATES, natural_path
from orderkit.core.portal.template import Template, parse_template
from orderkit.flows.order.ordering import read_assignments
from orderkit.flows.order.publishing import operation, publish
from orderkit.flows.order.reference_check import check_references
from orderkit.flows.order.registering import archived
from orderkit.flows.platform import Platform, ledger_snapshot, published_pack, snapshot
from orderkit.flows.team.limit_check import check_values, team_of
from orderkit.flows.template import scaffolder
from orderkit.flows.template.actions.file_sources import ForgeFolder
from orderkit.flows.template.scaffolder import StepEvent, TaskOptions, TaskResult
from orderkit.ports.forge import FileChange, Forge

BRANCH = "main"
SECRET_SHOWN = "*" * 10
"""What the form posts in the place of a secret (measured)."""
_HISTORY = 200


@dataclass(frozen=True, slots=True)
class TemplateSource:
    """A template, the folder it lies in, and the kit it orders if it is a kit's."""

    template: Template
    folder: scaffolder.TemplateFolder
    kit: Kit | None = None


@dataclass(frozen=True, slots=True)
class TemplateRunRequest:
    """What a person asks for. `values` come from a file; `assignments` win over them."""

    assignments: Mapping[str, str]
    values: Mapping[str, Any]
    requester: str
    options: TaskOptions
    proof: str = ""
    """What proves the requester; empty: a claim."""
    task_id: str = ""
    """What ``context.task.id`` is; empty: made from template, values and requester."""


def published_template(platform: Platform, name: str) -> TemplateSource:
    """
    Find a template of the published pack, its natural steps, by its kit's name or its own.

    Raises:
        NotFoundError: The pack has no such template; those it has are named.
    """
    found = snapshot(platform, platform.pack_repo)
    names: dict[str, str] = {}
    for path in sorted(found.blobs if found else (), key=lambda p: (p.parent.name != name, p)):
        if found is None or not path.match(TEMPLATES):
            continue
        natural = natural_path(path.parent, found.blobs)
        revision = platform.forge.read(platform.pack_repo, natural, found.commit)
        if revision is None:
            continue
        template = parse_template(revision.data, name=str(natural))
        folder = path.parent.name
        if name in {folder, template.name}:
            pack = published_pack(platform)
            kit = pack.kit(folder) if folder in pack.kit_names else None
            place = ForgeFolder(
                platform.forge, platform.pack_repo, found.commit, path.parent, trusted=True
            )
            return TemplateSource(template, place, kit)
        names[template.name] = folder
    raise NotFoundError(
        f"template '{name}' is neither a file nor in the published pack",
        hint=f"templates: {', '.join(f'{kit} ({own})' for own, kit in names.items()) or 'none'}",
    )


def run(
    source: TemplateSource,
    wanted: TemplateRunRequest,
    platform: Platform | None,
    *,
    on_step: Callable[[StepEvent], None],
) -> TaskResult:
    """
    Run a template as its form would be answered.

    Raises:
        InvalidInputError: A value, a secret or an input is refused.
        AlreadyOrderedError: A repository to publish holds something else.
        OrderkitError: What a step raises.
    """
    template = source.template
    parameters = _parameters(template, wanted)
    services = None if platform is None else _services(platform, source, template, parameters)
    return scaffolder.run(
        template,
        parameters,
        files=source.folder,
        services=services,
        user=scaffolder.User(wanted.requester, proof=wanted.proof),
        task_id=wanted.task_id or _task_id(template, parameters, wanted.requester),
        on_step=on_step,
        options=wanted.options,
    )


def _parameters(template: Template, wanted: TemplateRunRequest) -> dict[str, Any]:
    """Put values, assignments and the asterisks of secret fields together."""
    parameters = {**wanted.values, **read_assignments(template, wanted.assignments)}
    for name, schema in template.properties.items():
        if schema.get("ui:field") != "Secret":
            continue
        if name in parameters and parameters[name] != SECRET_SHOWN:
            raise InvalidInputError(
                name,
                scaffolder.MASK,
                "is a secret of the form, not a parameter",
                hint=f"pass it with --secret {name}=@FILE or --secret {name}=env",
            )
        if name in wanted.options.secrets:
            parameters[name] = SECRET_SHOWN
    return parameters


def _task_id(template: Template, parameters: Mapping[str, Any], requester: str) -> str:
    """Name the task by what it does, so that the same command is the same task."""
    written = json.dumps([template.entity["ref"], parameters, requester], sort_keys=True)
    return f"run-{hashlib.sha256(written.encode()).hexdigest()[:20]}"


def _services(
    platform: Platform, source: TemplateSource, template: Template, parameters: Mapping[str, Any]
) -> scaffolder.Services:
    def publish_files(request: scaffolder.PublishRequest) -> scaffolder.Published:
        kit = source.kit
        if kit is not None:
            answered = template.validate(parameters)
            xr = check_order_files(kit, kit.order_id(answered), request.files)
            if platform.forge.head(request.repo) is None:
                seen = ledger_snapshot(platform)
                check_values(team_of(platform, kit.team(answered), seen), kit, xr)
                check_references(platform, kit, xr["spec"])
        is_order = order_file.PATH in request.files
        commit = (publish if is_order else _publish)(platform.forge, request)
        url = f"{platform.forge.base_url}/{request.repo}"
        return scaffolder.Published(f"{url}.git", f"{url}/src/branch/{BRANCH}/", commit)

    return scaffolder.Services(
        forge=platform.forge,
        catalog=platform.catalog,
        cluster=platform.cluster,
        portal=platform.portal,
        publish=publish_files,
    )


def _publish(forge: Forge, wanted: scaffolder.PublishRequest) -> CommitSha:
    """
    Make sure a repository was made from these files; return that commit. Idempotent.

    Raises:
        AlreadyOrderedError: It was made from something else.
    """
    repository = forge.ensure_repo(
        wanted.repo, description=wanted.description, private=wanted.private
    )
    if repository.archived:
        raise archived(wanted.repo)
    task = operation(wanted)
    if forge.head(wanted.repo) is None:
        changes = [FileChange(path, wanted.files[path], None) for path in sorted(wanted.files)]
        return forge.write(wanted.repo, changes, task).commit
    for commit in forge.commits(wanted.repo, limit=_HISTORY):
        if commit.operation == task.id:
            return commit.id
    raise AlreadyOrderedError(
        f"{wanted.repo} exists and was not made from these files",
        hint=f"look at {repository.web_url}, or publish under another name; Backstage would "
        "fail with '409 Conflict'",
    )


def read_values(data: bytes, *, name: str) -> dict[str, Any]:
    """
    Read a file of form values: one YAML or JSON map.

    Raises:
        InvalidInputError: It is something else.
    """
    from orderkit.core.yaml import yaml12

    found = yaml12.load(data, name=name)
    if not isinstance(found, dict):
        raise InvalidInputError(name, found, "is no map of values", hint="write 'field: value'")
    return found


def template_of(
    path: PurePosixPath | str, data: bytes, folder: scaffolder.TemplateFolder
) -> TemplateSource:
    """
    Read a template that is no part of a published pack.

    Raises:
        InvalidInputError: It is no v1beta3 Template.
    """
    return TemplateSource(parse_template(data, name=str(path)), folder)
