"""``orderkit kit``: the commands for authors of kits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ground.errors import EXIT_DIFFERS
from orderkit.cli import completion
from orderkit.cli.options import json_option
from orderkit.cli.output import say
from orderkit_workshop.commands.kit_check import kit_check
from orderkit_workshop.commands.kit_digests import kit_digests
from orderkit_workshop.commands.kit_new import kit_import, kit_new
from orderkit_workshop.commands.kit_schemas import kit_schemas
from orderkit_workshop.commands.kit_test import kit_test
from orderkit_workshop.commands.pack_option import pack_option

if TYPE_CHECKING:
    from orderkit_workshop.folders.local_pack import LocalPack
    from orderkit_workshop.stories.generate_kits import Generation


@click.group("kit")
def kit_command() -> None:
    """Create, generate, check and test kits."""


kit_command.add_command(kit_check)
kit_command.add_command(kit_new)
kit_command.add_command(kit_import)
kit_command.add_command(kit_test)
kit_command.add_command(kit_schemas)
kit_command.add_command(kit_digests)


@kit_command.command("generate")
@click.argument("kits", metavar="[KIT]...", nargs=-1, shell_complete=completion.kits_of_pack)
@pack_option
@click.option("--check", is_flag=True, help="Write nothing; exit 10 if a file differs.")
@click.option("--diff", "show_diff", is_flag=True, help="Like --check, and show the diff.")
@json_option
def kit_generate(
    kits: tuple[str, ...], pack: LocalPack, check: bool, show_diff: bool, as_json: bool
) -> int:
    """
    Generate form, skeleton and page of kits (default: every kit of the pack).

    Only files that differ are written. platform.yaml is never read: the same pack serves every
    platform.

    Example: orderkit kit generate garage --diff
    """
    from orderkit_workshop.stories import generate_kits as flow

    generation = flow.plan_generation(pack, kits)
    writes = not (check or show_diff)
    if writes:
        flow.apply_generation(pack, generation)
    _show(generation, show_diff, as_json)
    return 0 if writes or not generation.differing else EXIT_DIFFERS


def _show(generation: Generation, show_diff: bool, as_json: bool) -> None:
    from orderkit.cli.output import emit_json

    if as_json:
        files = [
            {"kit": file.kit, "path": str(file.path), "action": file.action}
            | ({"diff": file.diff()} if show_diff else {})
            for file in generation.files
        ]
        emit_json("orderkit.kit-generate/v1", {"files": files})
        return
    for file in generation.differing:
        say(file.diff() if show_diff else f"{file.action:<8} {file.path}", nl=not show_diff)
    if not generation.differing:
        say(f"{len(generation.files)} generated files are up to date")
