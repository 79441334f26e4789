"""The command ``run``: execute a scaffolder template as the portal would."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from orderkit.cli.options import json_option, platform_option, requester_option, size_limit_option

if TYPE_CHECKING:
    from orderkit.flows.platform import Platform
    from orderkit.flows.template.published_templates import TemplateSource
    from orderkit.flows.template.scaffolder import TaskOptions


@click.command("run")
@click.argument("template")
@click.option(
    "-p",
    "--parameter",
    "assignments",
    metavar="FIELD=VALUE",
    multiple=True,
    help="A value of the form; JSON if the field is not a string. Repeatable.",
)
@click.option("--values", "values_file", metavar="FILE", help="YAML or JSON map of form values.")
@click.option(
    "--secret",
    "secrets",
    metavar="NAME=@FILE|env[:VARIABLE]",
    multiple=True,
    help="A secret, from a file or an environment variable (default: its own name).",
)
@click.option(
    "--environment",
    "environment_file",
    metavar="FILE",
    help="YAML or JSON map that templates read as environment.parameters.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Render, but call nothing: show the calls, also those that Orderkit does not know.",
)
@click.option(
    "--out", "out_folder", metavar="DIR", help="Write the workspace to this new folder at the end."
)
@click.option(
    "--repository",
    "checkout",
    metavar="DIR",
    help="The checkout of the template's repository, where '../' and '/' in URLs may lead.",
)
@click.option(
    "--template-name",
    "choice",
    metavar="NAME",
    default="",
    help="The Template to run, if TEMPLATE is a file with several.",
)
@click.option(
    "--lenient",
    is_flag=True,
    help="Print nothing where a skeleton prints a value that nobody passed, as Backstage does.",
)
@size_limit_option
@requester_option
@platform_option
@json_option
def run_command(
    template: str,
    assignments: tuple[str, ...],
    values_file: str | None,
    secrets: tuple[str, ...],
    environment_file: str | None,
    dry_run: bool,
    out_folder: str | None,
    checkout: str | None,
    choice: str,
    lenient: bool,
    size_limit: int,
    requester: str,
    platform_file: str | None,
    as_json: bool,
) -> None:
    """
    Run TEMPLATE: a template.yaml, its folder, or the name of a template in the published pack.

    Templates that only render need no platform; the others use the connected one.

    Example: orderkit run ./template.yaml -p name=cart --dry-run --out ./cart
    """
    from dataclasses import replace
    from pathlib import Path

    from orderkit.adapters.folders.template_folder import check_free, write_tree
    from orderkit.cli.views import order_views, run_views
    from orderkit.flows.order.placing import TaskRequest, run
    from orderkit.ports.requesters import Requester

    if out_folder:
        check_free(Path(out_folder))
    platform = _platform(platform_file, size_limit)
    steps = run_views.Steps(as_json=as_json)
    request = TaskRequest(
        template,
        _map(values_file, "--values"),
        Requester(requester),
        assignments=order_views.assignments(assignments),
        options=replace(
            _options(secrets, environment_file, dry_run=dry_run, size_limit=size_limit),
            is_strict=not lenient,
        ),
        on_step=steps,
    )
    source = _source(template, platform, checkout, choice)
    result = run(source, request, platform)
    if out_folder:
        write_tree(result.workspace, Path(out_folder))
    run_views.show_run(result, steps.events, run_views.RunDestination(dry_run, out_folder), as_json)


def _platform(platform_file: str | None, size_limit: int) -> Platform | None:
    """Connect to the platform; None if none is named and none was started."""
    from dataclasses import replace

    from orderkit.cli.connecting import settings_path
    from orderkit.cli.options import connect_to

    if not platform_file and not settings_path(platform_file).exists():
        return None
    platform = connect_to(platform_file)
    return replace(platform, size_limit=size_limit) if size_limit else platform


def _source(
    template_name: str, platform: Platform | None, checkout: str | None, choice: str
) -> TemplateSource:
    from pathlib import Path

    from ground.errors import NotFoundError
    from orderkit.adapters.folders.pack_folder import is_reference_pack
    from orderkit.adapters.folders.template_folder import DiskFolder, read_limited, template_path
    from orderkit.flows.template.published_templates import published_template, template_of

    path = template_path(template_name)
    if path is not None:
        data = read_limited(path, field="template")
        trusted = is_reference_pack(path.parent)
        repository = Path(checkout) if checkout else None
        folder = DiskFolder(path.parent, trusted=trusted, checkout=repository)
        return template_of(template_name, data, folder, choice)
    if platform is None:
        raise NotFoundError(
            f"template '{template_name}': no such file, and no platform whose pack could have it",
            hint="give a template.yaml, or name a platform with --platform FILE",
        )
    return published_template(platform, template_name)


def _options(
    secrets: tuple[str, ...], environment_file: str | None, *, dry_run: bool, size_limit: int
) -> TaskOptions:
    from orderkit.adapters.processes.confined_rendering import judge_confined
    from orderkit.flows.template.scaffolder import Environment, TaskOptions

    return TaskOptions(
        secrets=dict(_secret(text) for text in secrets),
        environment=Environment(_map(environment_file, "--environment")),
        dry_run=dry_run,
        confined=judge_confined,
        size_limit=size_limit,
    )


def _map(file: str | None, option: str) -> dict[str, Any]:
    """
    Read a file of values: one YAML or JSON map.

    Raises:
        InvalidInputError: It is something else.
    """
    from pathlib import Path

    from ground.errors import InvalidInputError
    from orderkit.adapters.folders.template_folder import read_limited
    from yamlfiles import yaml12

    if file is None:
        return {}
    values = yaml12.load(read_limited(Path(file), field=option), name=file)
    if not isinstance(values, dict):
        raise InvalidInputError(file, values, "is not a map of values", hint="write 'field: value'")
    return values


def _secret(text: str) -> tuple[str, str]:
    """Read a secret. Its value is never on the command line, where other users could see it."""
    from pathlib import Path

    from ground.errors import InvalidInputError, UsageError
    from orderkit.adapters.folders.template_folder import read_limited

    name, _, source = text.partition("=")
    kind, _, variable = source.partition(":")
    if source.startswith("@"):
        data = read_limited(Path(source[1:]), field=f"--secret {name}")
        data = data.removesuffix(b"\n").removesuffix(b"\r")
    elif name and kind == "env":
        variable = variable or name
        data = os.environb.get(os.fsencode(variable), b"")
        if not data:
            raise UsageError(
                f"--secret {name}: the variable {variable} is not set",
                hint=f"export {variable}=..., or --secret {name}=@FILE",
            )
    else:
        # The source is not shown: it may be the secret itself.
        raise UsageError(
            f"--secret {name}: the value comes from a file or a variable",
            hint="write NAME=@FILE, NAME=env or NAME=env:VARIABLE",
        )
    try:
        return name, data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"--secret {name}", source, "is not UTF-8 text", hint="save the file as UTF-8"
        ) from error
