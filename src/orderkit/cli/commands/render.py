"""The command that renders a skeleton offline, as the portal's ``fetch:template`` would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orderkit.cli.options import json_option, size_limit_option
from orderkit.cli.output import say

if TYPE_CHECKING:
    from pathlib import Path

    from orderkit.flows.template.rendering import SkeletonReport
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

    from orderkit.adapters.folders import rendered_folder
    from orderkit.adapters.folders.pack_folder import is_reference_pack
    from orderkit.adapters.processes.confined_rendering import judge_confined
    from orderkit.flows.template import rendering

    confined = None if is_reference_pack(Path(skeleton)) else judge_confined
    options = _options(verbatim, extension, compat, trim_blocks, lstrip_blocks, size_limit)
    if only_check:
        files = rendered_folder.read_skeleton(Path(skeleton))
        report = rendering.check(files, options, confined)
        _show(report, None, as_json)
        return _FAILED if report.refused else 0
    if values_file is None or out_folder is None:
        raise click.UsageError("give --values FILE and --out DIR, or --check")
    target = Path(out_folder)
    values = rendered_folder.read_values(Path(values_file))
    rendered_folder.check_target(target)
    report = rendering.render(
        rendered_folder.read_skeleton(Path(skeleton)),
        values,
        options,
        lambda outcomes: rendered_folder.write_rendered(outcomes, target, replace=replace),
        confined=confined,
        keep_going=keep_going,
    )
    _show(report, target, as_json)
    return _PARTLY if report.refused else 0


def _options(
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
