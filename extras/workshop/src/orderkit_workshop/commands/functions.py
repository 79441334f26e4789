"""``orderkit functions``: the programs of Composition functions, on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orderkit.cli.options import PathOption, json_option
from orderkit.cli.output import say
from orderkit_workshop.commands.pack_option import pack_option

if TYPE_CHECKING:
    from pathlib import Path

    from orderkit_workshop.folders.local_pack import LocalPack

_SHORT = 19


@click.group("functions", invoke_without_command=True)
@click.option(
    "--pack",
    "folder",
    metavar="DIR",
    default=".",
    help="The pack's folder. Default: the current folder.",
)
@json_option
@click.pass_context
def functions_command(context: click.Context, folder: str, as_json: bool) -> None:
    """
    List the functions of a pack, and what runs each here.

    Example: orderkit functions
    """
    if context.invoked_subcommand:
        return
    from pathlib import Path

    from orderkit.cli.output import emit_json
    from orderkit_workshop.folders.local_pack import LocalPack
    from orderkit_workshop.stories.function_programs import list_functions

    rows = list(list_functions(LocalPack(Path(folder)).files()))
    if as_json:
        listed = [
            {
                "name": row.name,
                "package": row.package,
                "digest": row.digest,
                "runs": row.runs,
                "note": row.note,
            }
            for row in rows
        ]
        emit_json("orderkit.functions/v1", {"functions": listed})
        return
    width = max((len(row.name) for row in rows), default=0)
    for row in rows:
        runs = f"{row.runs} {row.digest[:_SHORT]}" if row.runs == "program" else row.runs
        say(f"{row.name:<{width}}  {runs:<28}  {row.package}")
        if row.note:
            say(f"  note  {row.note}")


@functions_command.command("add")
@click.argument("package", required=False, default="", metavar="[PACKAGE]")
@pack_option
@click.option("--name", default="", help="The Function that it runs. Default: by its package.")
@click.option(
    "--from",
    "configuration",
    type=PathOption(),
    metavar="PATH",
    help="Instead: every function that a crossplane.yaml or upbound.yaml (or a folder with one) "
    "depends on. Providers are named with the command that brings their schemas.",
)
@click.option(
    "--network",
    "hosts",
    multiple=True,
    metavar="HOST[:PORT]",
    help="A host that this program may reach, on this machine only. Repeatable. Default: none; "
    "port 443.",
)
@click.option(
    "--ca-file",
    type=PathOption(),
    metavar="FILE",
    help="A CA certificate to trust instead of those of this machine.",
)
@json_option
def functions_add(
    package: str,
    pack: LocalPack,
    name: str,
    configuration: Path | None,
    hosts: tuple[str, ...],
    ca_file: Path | None,
    as_json: bool,
) -> None:
    """
    Bring a function's program to this machine, and run it for the pack's orders.

    PACKAGE is HOST/PATH:TAG, HOST/PATH@sha256:..., a Function of the pack, or a file; without it,
    every program that the pack names. The program runs confined (docs/functions.md).

    Example: orderkit functions add function-kcl
    """
    from pathlib import Path

    from orderkit.adapters.functions.local_functions import granted_host
    from orderkit.cli.output import emit_json
    from orderkit_workshop.registry.images import image_of_file, image_of_registry
    from orderkit_workshop.stories.function_programs import (
        add_function,
        add_missing,
        reference_of,
    )

    network = tuple(map(granted_host, hosts))
    if network and not package:
        raise click.UsageError("--network is for one PACKAGE")
    if configuration is not None:
        if package or name:
            raise click.UsageError("give PACKAGE, or --from")
        _add_from(pack, configuration, ca_file, as_json=as_json)
        return
    if not package:
        added = list(add_missing(pack, lambda reference: image_of_registry(reference, ca_file)))
    elif Path(package).is_file():
        with image_of_file(Path(package)) as image:
            added = [add_function(pack, image, "", name, network)]
    else:
        reference = reference_of(package, pack.files())
        image = image_of_registry(reference, ca_file)
        address = f"{reference.registry}/{reference.path}"
        tag = f":{reference.tag}" if reference.tag else ""
        digest = f"@{reference.digest}" if reference.digest else ""
        added = [add_function(pack, image, address + tag + digest, name, network)]
    if as_json:
        programs = [{"name": name, "digest": program.digest} for name, program in added]
        emit_json("orderkit.functions-added/v1", {"added": programs})
        return
    for function, program in added:
        say(f"{function}  program {program.digest}")
    if not added:
        say("every program that the pack names is on this machine")


def _add_from(pack: LocalPack, path: Path, ca_file: Path | None, *, as_json: bool) -> None:
    from dataclasses import asdict

    from orderkit.adapters.folders.template_folder import read_limited
    from orderkit.cli.output import emit_json
    from orderkit_workshop.generate.imported_kit import read_source
    from orderkit_workshop.registry.images import image_of_registry
    from orderkit_workshop.stories.function_programs import add_dependencies

    files = (
        [path / name for name in ("crossplane.yaml", "upbound.yaml")] if path.is_dir() else [path]
    )
    sources = (
        read_source(str(file), read_limited(file, field="--from"))
        for file in files
        if file.exists() or file == path
    )
    objects = [manifest for source in sources for manifest in source.objects]
    rows = add_dependencies(pack, objects, lambda wanted: image_of_registry(wanted, ca_file))
    if as_json:
        emit_json("orderkit.dependencies-added/v1", {"added": [asdict(row) for row in rows]})
        return
    for row in rows:
        done = f"program {row.digest}" if row.digest else row.note
        say(f"{row.name or row.package}  {done}")
