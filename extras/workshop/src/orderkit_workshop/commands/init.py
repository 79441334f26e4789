"""``orderkit init``: start a new pack."""

from __future__ import annotations

import click

from orderkit.cli.options import json_option
from orderkit.cli.output import say


@click.command("init")
@click.argument("folder", metavar="DIR")
@click.option("--name", default="", metavar="NAME", help="The pack's name. Default: DIR's.")
@click.option("--title", default="", metavar="TEXT", help="Its title. Default: from the name.")
@click.option(
    "--orderkit",
    default="orderkit[embedded,workshop]",
    show_default=True,
    metavar="REQUIREMENT",
    help="How the pack's CI installs Orderkit: a line of requirements.txt.",
)
@click.option("--no-git", is_flag=True, help="Make a plain folder, no git repository.")
@json_option
def init_command(
    folder: str, name: str, title: str, orderkit: str, no_git: bool, as_json: bool
) -> None:
    """
    Start a pack in DIR, a new or empty folder: a git repository for kits of your own.

    Example: orderkit init my-pack
    """
    from pathlib import Path

    from ground.errors import UsageError
    from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
    from orderkit.adapters.folders.template_folder import check_free
    from orderkit.cli.output import emit_json
    from orderkit_workshop.folders.new_pack import write_pack
    from orderkit_workshop.folders.skeletons import render_skeleton
    from orderkit_workshop.stories.start_pack import name_of, start_pack

    target = Path(folder)
    check_free(target)
    name = name or name_of(target.absolute().name)
    if not name:
        raise UsageError(f"'{folder}' has no letter or digit for a name", hint="give --name NAME")
    reference = read_folder(reference_pack())
    files = start_pack(name, title, orderkit, reference=reference, render_skeleton=render_skeleton)
    write_pack(files, target, git=not no_git)
    if as_json:
        report = {"folder": str(target), "name": name, "repository": not no_git}
        paths = [str(path) for path in sorted(files)]
        emit_json("orderkit.init/v1", {**report, "files": paths})
        return
    repository_note = "no repository" if no_git else "one commit"
    say(f"pack '{name}' in {target}: {len(files)} files, {repository_note}")
    say(f"  next  cd {target}")
    say("        orderkit kit new NAME            # a kit from a few fields")
    say("        orderkit kit import XRD.yaml     # or from an XRD that you have")
