"""
Commands that do what the portal does with templates: render, run.

``orderkit render`` renders a skeleton offline, as the portal's ``fetch:template`` would.
``orderkit run`` executes a scaffolder template as the portal would.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from orderkit.cli.options import json_option, platform_option, requester_option, size_limit_option
from orderkit.cli.output import say

if TYPE_CHECKING:
    from pathlib import Path

    from orderkit.flows.platform import Platform
    from orderkit.flows.template.published_templates import TemplateSource
    from orderkit.flows.template.rendering import SkeletonReport
    from orderkit.flows.template.scaffolder import TaskOptions
    from softwaretemplates.render import TreeOptions

_PARTLY, _FAILED = 5, 1


@click.command("render")
@click.argument("skeleton", metavar="SKELETON_DIR")
@click.option("--values", "values_file", metavar="FILE", help="Values, as JSON or YAML.")
@click.option("--out", "out_folder", metavar="DIR", help="Where the tree is written.")
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Compile all files without rendering; needs no values.",
)
@click.option(
    "--copy-without-templating",
    "verbatim",
    metavar="GLOB",
    multiple=True,
    help="Copy these files without rendering them. Repeatable.",
)
@click.option(
    "--template-file-extension",
    "extension",
    metavar="EXT",
    is_flag=False,
    flag_value=".njk",
    default="",
    help="Render only files with this extension and remove it. Without EXT: .njk.",
)
@click.option(
    "--cookiecutter-compat", "compat", is_flag=True, help="Use the syntax {{ cookiecutter.x }}."
)
@click.option("--trim-blocks", is_flag=True, help="Remove the line break after a block tag.")
@click.option("--lstrip-blocks", is_flag=True, help="Remove the spaces before a block tag.")
@click.option("--replace", is_flag=True, help="Overwrite existing files. Default: keep them.")
@click.option(
    "--keep-going", is_flag=True, help="Write the files that render and report the others."
)
@size_limit_option
@json_option
def render_command(
    skeleton: str,
    values_file: str | None,
    out_folder: str | None,
    only_check: bool,
    verbatim: tuple[str, ...],
    extension: str,
    compat: bool,
    trim_blocks: bool,
    lstrip_blocks: bool,
    replace: bool,
    keep_going: bool,
    size_limit: int,
    as_json: bool,
) -> int:
    """
    Render the skeleton in SKELETON_DIR into a folder, byte for byte as the portal does.

    Refuses, with line and column, what Backstage's releases render differently; then writes
    nothing, unless --keep-going is given. Exit code 5: some files were refused.

    Example: orderkit render templates/garage/skeleton --values values.yaml --out /tmp/garage
    """
    from pathlib import Path

    from orderkit.adapters.folders import template_folder
    from orderkit.adapters.folders.pack_folder import is_reference_pack
    from orderkit.adapters.processes.confined_rendering import judge_confined
    from orderkit.flows.template import rendering

    confined = None if is_reference_pack(Path(skeleton)) else judge_confined
    options = _rendering_options(
        verbatim, extension, compat, trim_blocks, lstrip_blocks, size_limit
    )
    if only_check:
        files = template_folder.read_skeleton(Path(skeleton))
        report = rendering.check(files, options, confined)
        _show(report, None, as_json)
        return _FAILED if report.refused else 0
    if values_file is None or out_folder is None:
        raise click.UsageError("give --values FILE and --out DIR, or --check")
    target = Path(out_folder)
    values = template_folder.read_values(Path(values_file))
    template_folder.check_target(target)
    report = rendering.render(
        template_folder.read_skeleton(Path(skeleton)),
        values,
        options,
        lambda outcomes: template_folder.write_rendered(outcomes, target, replace=replace),
        confined=confined,
        keep_going=keep_going,
    )
    _show(report, target, as_json)
    return _PARTLY if report.refused else 0


def _rendering_options(
    verbatim: tuple[str, ...],
    extension: str,
    compat: bool,
    trim: bool,
    lstrip: bool,
    size_limit: int,
) -> TreeOptions:
    from ground.errors import UsageError
    from softwaretemplates.render import Delimiters, TreeOptions
    from softwaretemplates.render.tree import dotted
    from softwaretemplates.size_limit import SIZE_LIMIT

    if extension and (verbatim or compat):
        raise UsageError(
            "--template-file-extension cannot be combined with --copy-without-templating "
            "or --cookiecutter-compat",
            hint="Backstage refuses it too",
        )
    start = "{{" if compat else "${{"
    marks = Delimiters(start, trim_blocks=trim, lstrip_blocks=lstrip, cookiecutter=compat)
    size_limit = size_limit or SIZE_LIMIT
    return TreeOptions(verbatim, dotted(extension), marks, links=True, size_limit=size_limit)


def _show(report: SkeletonReport, target: Path | None, as_json: bool) -> None:
    from orderkit.cli.output import emit_json, emit_table

    words = ("written", "fits", "skipped", "refused")
    if as_json:
        counts = {word: report.count(word) for word in words}
        files = [report.to_json(file) for file in report.files]
        out_folder = str(target) if target else None
        emit_json("orderkit.render/v1", {"out": out_folder, "counts": counts, "files": files})
        return
    emit_table(
        ("FILE", "OUTCOME", "TARGET"),
        [(str(file.path), file.how, str(file.target or "-")) for file in report.files],
    )
    for file in report.refused:
        say(f"{file.error}", err=True)
        if file.error is not None and file.error.hint:
            say(f"  hint: {file.error.hint}", err=True)


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
            _run_options(secrets, environment_file, dry_run=dry_run, size_limit=size_limit),
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


def _run_options(
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
