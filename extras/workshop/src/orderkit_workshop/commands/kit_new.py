"""
``orderkit init`` starts a pack; ``orderkit kit new`` and ``orderkit kit import`` add kits to it.

Kits are made from fields or from an XRD.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from orderkit.cli.options import json_option
from orderkit.cli.output import say
from orderkit_workshop.commands.pack_option import pack_option

if TYPE_CHECKING:
    from pathlib import Path

    from orderkit_workshop.folders.local_pack import LocalPack
    from orderkit_workshop.generate.imported_kit import ImportSource
    from orderkit_workshop.generate.kit_draft import Draft, FieldDraft
    from orderkit_workshop.stories.start_kit import KitAdded


@click.command("new")
@click.argument("name")
@pack_option
@click.option("--kind", default="", metavar="KIND", help="The XR's kind. Default: from NAME.")
@click.option("--group", default="", metavar="GROUP", help="Its API group. Default: the pack's.")
@click.option(
    "--scope", type=click.Choice(["cluster", "namespaced"]), help="Its scope. Default: cluster."
)
@click.option("--title", default="", metavar="TEXT", help="Its title. Default: from NAME.")
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="NAME:TYPE[:enum=A|B][:default=X][:optional]",
    help="A field of the order: string, integer, number or boolean. Repeatable.",
)
@click.option("--no-input", is_flag=True, help="Never ask, even on a terminal.")
@json_option
def kit_new(
    name: str,
    pack: LocalPack,
    kind: str,
    group: str,
    scope: str | None,
    title: str,
    fields: tuple[str, ...],
    no_input: bool,
    as_json: bool,
) -> None:
    """
    Add a complete kit that works: XRD, Composition, station, tests and generated files.

    On a terminal, asks for options that are missing. Adds a field 'team' for the ordering team.

    Example: orderkit kit new bucket --field "size:string:enum=small|large" --no-input
    """
    from orderkit_workshop.folders.skeletons import render_skeleton
    from orderkit_workshop.generate.kit_draft import Draft, parse_field
    from orderkit_workshop.stories.start_kit import group_of, new_kit

    draft = Draft(
        name=name,
        group=group or group_of(pack),
        kind=kind,
        title=title,
        namespaced=scope == "namespaced",
        fields=tuple(parse_field(text) for text in fields),
    )
    if sys.stdin.isatty() and not (no_input or as_json):
        given_options = {
            key for key, value in (("kind", kind), ("group", group), ("scope", scope)) if value
        }
        draft = _prompted(draft, given_options | ({"fields"} if fields else set()))
    _show(
        new_kit(pack, draft, render_skeleton),
        (f"write the composed resources in stations/{name}/station.py",),
        as_json,
    )


def _prompted(draft: Draft, given_options: set[str]) -> Draft:
    """Ask on the terminal for missing options; an empty answer takes the default."""
    from dataclasses import replace

    from orderkit_workshop.generate.kit_draft import default_kind

    if "kind" not in given_options:
        default = draft.kind or default_kind(draft.name)
        draft = replace(draft, kind=click.prompt("Kind of the XR", default=default))
    if "group" not in given_options:
        draft = replace(draft, group=click.prompt("API group", default=draft.group))
    if "scope" not in given_options:
        scopes = click.Choice(["cluster", "namespaced"])
        answer = click.prompt("Scope", type=scopes, default="cluster")
        draft = replace(draft, namespaced=answer == "namespaced")
    if "fields" not in given_options:
        say("Fields, one per line, as NAME:TYPE[:enum=A|B][:default=X]; an empty line ends it.")
        draft = replace(draft, fields=tuple(_prompted_fields()))
    return draft


def _prompted_fields() -> list[FieldDraft]:
    from ground.errors import OrderkitError
    from orderkit_workshop.generate.kit_draft import parse_field

    fields: list[FieldDraft] = []
    while text := click.prompt("Field", default="", show_default=False):
        try:
            fields.append(parse_field(text))
        except OrderkitError as error:
            say(f"  {error} {error.hint}".rstrip(), err=True)
    return fields


@click.command("import")
@click.argument("files", metavar="[XRD.yaml|-]...", nargs=-1)
@pack_option
@click.option("--name", default="", metavar="NAME", help="The kit's name. Default: from the kind.")
@click.option(
    "--from-cluster", "xrd_name", metavar="XRD", help="Read the XRD of this name from a cluster."
)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    envvar="KUBECONFIG",
    help="Kubeconfig of the cluster. Default: $KUBECONFIG, else ~/.kube/config.",
)
@click.option(
    "--context", metavar="NAME", help="Context of the kubeconfig. Default: the current one."
)
@click.option(
    "--composition",
    default="",
    metavar="NAME",
    help="The Composition of orders, if there are several and the XRD names no default.",
)
@click.option(
    "--convert",
    is_flag=True,
    help="Turn a Composition of mode Resources into a pipeline of function-patch-and-transform.",
)
@click.option(
    "--not-secret",
    multiple=True,
    metavar="FIELD",
    help="A field below spec that only looks like a secret, such as login.tokenCount. Repeatable.",
)
@json_option
def kit_import(
    files: tuple[str, ...],
    pack: LocalPack,
    name: str,
    xrd_name: str | None,
    kubeconfig: str | None,
    context: str | None,
    composition: str,
    convert: bool,
    not_secret: tuple[str, ...],
    as_json: bool,
) -> None:
    """
    Add a kit from an existing XRD (v1 or v2), with its Composition if given.

    Give files ('-' is standard input) or --from-cluster. Without a Composition, the kit gets a
    first station to edit. With one, its Functions are added: their packages come from the files,
    or from crossplane.yaml, upbound.yaml and functions.yaml beside them. An XR or a claim among the
    files becomes the kit's example order.

    Example: orderkit kit import xrd.yaml composition.yaml examples/xr.yaml
    """
    from orderkit_workshop.folders.skeletons import render_skeleton
    from orderkit_workshop.stories.import_kit import ImportRequest, import_kit

    if bool(files) == bool(xrd_name):
        raise click.UsageError("give XRD.yaml, '-' or --from-cluster XRD")
    xrd_sources = [_from_cluster(xrd_name, kubeconfig, context)] if xrd_name else _read(files)
    request = ImportRequest(
        pack, xrd_sources, render_skeleton, name, composition, _beside(files), convert, not_secret
    )
    imported = import_kit(request)
    _show(imported.added, imported.next, as_json)


def _read(files: tuple[str, ...]) -> list[ImportSource]:
    from pathlib import Path

    from orderkit.adapters.folders.template_folder import read_limited
    from orderkit_workshop.generate.imported_kit import read_source

    return [
        read_source("standard input", sys.stdin.buffer.read())
        if name == "-"
        else read_source(name, read_limited(Path(name), field="XRD"))
        for name in files
    ]


def _beside(files: tuple[str, ...]) -> list[ImportSource]:
    """Read the files of a Configuration beside the given ones that name packages of functions."""
    from ground.errors import OrderkitError
    from orderkit.adapters.folders.template_folder import read_limited
    from orderkit_workshop.generate.imported_kit import read_source

    sources: dict[Path, ImportSource] = {}
    for folder in _folders_above(files):
        for path in (p for pattern in _PACKAGE_FILES for p in sorted(folder.glob(pattern))):
            try:
                source = read_source(str(path), read_limited(path, field="functions"))
            except (OrderkitError, OSError):
                continue  # not meant for this
            sources.setdefault(path, source)
    return list(reversed(sources.values()))  # the nearest file counts


_PACKAGE_FILES = (
    "crossplane.yaml",
    "upbound.yaml",
    "functions.yaml",
    "functions/*.yaml",
    "examples/functions.yaml",
)


def _folders_above(files: tuple[str, ...]) -> list[Path]:
    """Return the folders of the files, and those above them within the same Configuration."""
    from pathlib import Path

    folders: list[Path] = []
    for name in files:
        above = list(Path(name).resolve().parents) if name != "-" else []
        ends = [
            number
            for number, folder in enumerate(above)
            if any((folder / name).exists() for name in ("crossplane.yaml", "upbound.yaml", ".git"))
        ]
        folders += above[: ends[0] + 1] if ends else above[:1]
    return list(dict.fromkeys(folders))


def _from_cluster(name: str, kubeconfig: str | None, context: str | None) -> ImportSource:
    from pathlib import Path

    from orderkit.adapters.kube.cluster import KubeCluster
    from orderkit_workshop.stories.import_kit import from_cluster

    path = Path(kubeconfig) if kubeconfig else Path.home() / ".kube" / "config"
    with KubeCluster.from_kubeconfig(path, context=context) as cluster:
        return from_cluster(cluster, name)


def _show(added: KitAdded, next_steps: tuple[str, ...], as_json: bool) -> None:
    from orderkit.cli.output import emit_json

    if as_json:
        report = {
            "kit": added.name,
            "scenarios": added.scenarios,
            "findings": list(added.findings),
            "next": list(next_steps),
        }
        files = {
            "written": [str(path) for path in added.new_files],
            "changed": [str(path) for path in added.changed],
        }
        emit_json("orderkit.kit-added/v1", {**report, **files})
        return
    for word, paths in (("new", added.new_files), ("changed", added.changed)):
        for path in paths:
            say(f"{word:<8} {path}")
    say(f"kit '{added.name}' is in the pack; {added.scenarios} scenarios pass")
    for line in (*(f"kit check: {finding}" for finding in added.findings), *next_steps):
        say(f"  next  {line}")


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
    from orderkit_workshop.folders.skeletons import render_skeleton, write_pack
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
