"""``orderkit kit check``: check kits before they are published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from orderkit.cli import completion
from orderkit.cli.options import json_option
from orderkit.cli.output import say
from orderkit_workshop.commands.pack_option import pack_option

if TYPE_CHECKING:
    from pathlib import Path

    from kubeschema.validate.findings import Located
    from orderkit_workshop.folders.local_pack import LocalPack
    from orderkit_workshop.stories.check_kits import PackVerdict

_FOUND = 1


@click.command("check")
@click.argument("kits", metavar="[KIT]...", nargs=-1, shell_complete=completion.kits_of_pack)
@pack_option
@click.option(
    "--since",
    metavar="REF",
    help="Compare with the kits at this commit, tag or branch: would live orders break?",
)
@click.option("--strict", is_flag=True, help="Also fail on warnings.")
@click.option("--sarif", "as_sarif", is_flag=True, help="Print SARIF 2.1.0 for code hosts.")
@json_option
def kit_check(
    kits: tuple[str, ...],
    pack: LocalPack,
    since: str | None,
    strict: bool,
    as_sarif: bool,
    as_json: bool,
) -> int:
    """
    Check kits (default: every kit of the pack): sources, generated files, Composition, pipeline.

    Stations run confined, with the kit's examples. Exit code 1: there are errors (with
    --strict: or warnings). The rules are in docs/kit-check.md.

    Example: orderkit kit check garage --since origin/main
    """
    from kubeschema.validate.findings import FindingSeverity
    from orderkit.cli.extras import stand_ins
    from orderkit_workshop.stories import check_kits

    if as_json and as_sarif:
        raise click.UsageError("give --json or --sarif")
    platform = stand_ins()
    verdict = check_kits.check_pack(
        pack, kits, since=since, embedded=platform.serves if platform else None
    )
    _show(verdict, pack.root, as_json=as_json, as_sarif=as_sarif)
    failing = verdict.count(FindingSeverity.ERROR)
    failing += verdict.count(FindingSeverity.WARNING) if strict else 0
    return _FOUND if failing else 0


def _show(verdict: PackVerdict, folder: Path, *, as_json: bool, as_sarif: bool) -> None:
    from orderkit.cli.output import emit_json

    if as_json:
        emit_json("orderkit.kit-check/v1", _json(verdict, folder))
    elif as_sarif:
        _emit_sarif(verdict, folder)
    else:
        _emit_text(verdict, folder)


def _json(verdict: PackVerdict, folder: Path) -> dict[str, Any]:
    from orderkit_workshop.stories.check_kits import severity_of

    return {
        "kits": list(verdict.kits),
        "runs": verdict.runs,
        "counts": _counts(verdict),
        "findings": [
            {
                "file": str(folder / entry.file),
                "line": entry.line,
                "column": entry.column,
                "subject": entry.subject,
                "rule": _rule(entry),
                "severity": str(severity_of(entry)),
                "path": entry.about.path,
                "message": _message(entry),
                "advice": _advice(entry),
            }
            for entry in verdict.findings
        ],
    }


def _counts(verdict: PackVerdict) -> dict[str, int]:
    from kubeschema.validate.findings import FindingSeverity

    return {f"{severity}s": verdict.count(severity) for severity in FindingSeverity}


def _rule(entry: Located) -> str:
    return str(getattr(entry.about, "reason", ""))


def _message(entry: Located) -> str:
    return str(getattr(entry.about, "message", ""))


def _advice(entry: Located) -> str:
    return str(getattr(entry.about, "hint", ""))


def _emit_sarif(verdict: PackVerdict, folder: Path) -> None:

    from kubeschema.validate.sarif import SarifResult, sarif
    from orderkit import __version__
    from orderkit.cli.output import as_json
    from orderkit_workshop.check.rule_codes_markdown import descriptions
    from orderkit_workshop.stories.check_kits import severity_of

    results = [
        SarifResult(
            _rule(entry),
            severity_of(entry).value,
            f"{entry.subject}: {_message(entry)} ({_advice(entry)})",
            folder / entry.file,
            entry.line,
            entry.column,
        )
        for entry in verdict.findings
    ]
    log = sarif(results, version=__version__, descriptions=descriptions())
    say(as_json(log))


def _emit_text(verdict: PackVerdict, folder: Path) -> None:
    from orderkit_workshop.stories.check_kits import severity_of

    for entry in verdict.findings:
        parts = (folder / entry.file, entry.line, entry.column)
        location = ":".join(str(part_text) for part_text in parts if part_text)
        path_prefix = f"{entry.about.path}: " if entry.about.path else ""
        say(f"{location}: {severity_of(entry)}: {_rule(entry)}: {path_prefix}{_message(entry)}")
        say(f"  hint: {_advice(entry)}")
    counts = ", ".join(f"{count} {severity}" for severity, count in _counts(verdict).items())
    kits = f"{len(verdict.kits)} kit{'' if len(verdict.kits) == 1 else 's'}"
    say(f"{kits}, {verdict.runs} example orders run: {counts}", err=True)
