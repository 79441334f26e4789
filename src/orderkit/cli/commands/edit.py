"""The command that edits values of any YAML file, for people and scripts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from orderkit.cli.options import json_option

if TYPE_CHECKING:
    from yamlfiles.assignments import Assignment, EditedText
    from yamlfiles.edit import EditRefusedError

_SCHEMA = "orderkit.edit/v1"


@click.command("edit")
@click.argument("file")
@click.argument("edits", metavar="EDIT...", nargs=-1)
@click.option("--string", "texts", metavar="PATH=TEXT", multiple=True,
              help="Set a string, also if it looks like another type. Repeatable.")  # fmt: skip
@click.option("--unset", "unsets", metavar="PATH", multiple=True,
              help="Remove a key or an item. Repeatable.")  # fmt: skip
@click.option("--document", type=click.IntRange(min=0), metavar="N",
              help="Number of the document in the file, counted from 0.")  # fmt: skip
@click.option("-i", "--in-place", is_flag=True, help="Write the file instead of printing it.")
@click.option("--diff", "as_diff", is_flag=True, help="Print the diff instead of the text.")
@json_option
def edit_command(
    file: str,
    edits: tuple[str, ...],
    texts: tuple[str, ...],
    unsets: tuple[str, ...],
    document: int | None,
    in_place: bool,
    as_diff: bool,
    as_json: bool,
) -> int:
    """
    Edit values of a YAML file and leave every other byte alone, or refuse.

    EDIT is PATH=VALUE (set), PATH+=VALUE (append to a list), PATH-=VALUE (remove that item) or
    PATH- (remove the key). PATH is keys with dots, [N] for items, ["a.b/c"] for keys with dots.
    VALUE is read as YAML 1.2: 3, true, null, [a, b]; quotes make it a string. FILE - is standard
    input. Makes all edits or none; prints the new text to standard output.

    Example: orderkit edit manifests/xgarage.yaml spec.stage=stage3 --in-place
    """
    from yamlfiles.assignments import edit_bytes
    from yamlfiles.edit import EditRefusedError

    wishes = _wishes(edits, texts, unsets)
    if in_place and file == "-":
        raise click.UsageError("--in-place needs a file")
    try:
        edited = edit_bytes(
            "stdin" if file == "-" else file, _read(file), [wish.edit(document) for wish in wishes]
        )
    except EditRefusedError as error:
        if not as_json:
            raise
        return _show_refused(file, error)
    if in_place and edited.changed:
        from pathlib import Path

        from orderkit.adapters.folders.edited_file import write_file

        write_file(Path(file), edited)
    _show(edited, wishes, in_place=in_place, as_diff=as_diff, as_json=as_json)
    return 0


def _wishes(
    edits: tuple[str, ...], texts: tuple[str, ...], unsets: tuple[str, ...]
) -> list[Assignment]:
    from yamlfiles.assignments import Assignment, parse, parse_path
    from yamlfiles.edit import Op

    wishes = [
        *(parse(text) for text in edits),
        *(parse(text, as_text=True) for text in texts),
        *(Assignment(parse_path(text), Op.UNSET) for text in unsets),
    ]
    if not wishes:
        raise click.UsageError("no edit given, for example spec.stage=stage3")
    return wishes


def _read(file: str) -> bytes:
    from pathlib import Path

    from orderkit.adapters.folders.edited_file import read_file
    from yamlfiles.edit import LIMITS

    if file == "-":
        return sys.stdin.buffer.read(LIMITS.size_bytes + 1)
    return read_file(Path(file))


def _show(
    edited: EditedText, wishes: list[Assignment], *, in_place: bool, as_diff: bool, as_json: bool
) -> None:
    if as_json:
        _show_json(edited, wishes, in_place=in_place)
    elif as_diff:
        sys.stdout.buffer.write(edited.diff().encode())
    elif not in_place:
        sys.stdout.buffer.write(edited.after)


def _show_json(edited: EditedText, wishes: list[Assignment], *, in_place: bool) -> None:
    from orderkit.cli.output import emit_json

    report: dict[str, Any] = {
        "file": edited.name,
        "changed": edited.changed,
        "written": in_place and edited.changed,
        "edits": [{"path": list(wish.path), "op": wish.op, "value": wish.value} for wish in wishes],
        "diff": edited.diff(),
    }
    emit_json(_SCHEMA, report if in_place else {**report, "text": edited.after.decode()})


def _show_refused(file: str, error: EditRefusedError) -> int:
    from orderkit.cli.output import emit_json

    refused = {"code": error.code, "message": error.reason, "line": error.line, "hint": error.hint}
    emit_json(_SCHEMA, {"file": file, "changed": False, "written": False, "refused": refused})
    return error.exit_code
