"""The command that validates files against a pack's XRDs, for repositories and CI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from orderkit.cli.options import json_option
from orderkit.cli.output import say

if TYPE_CHECKING:
    from orderkit.core.schema.validate.file_check import Definitions, ValidationOutcome
    from orderkit.core.schema.validate.located_findings import Located

_FOUND = 1


@click.command("validate")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--pack", "pack_folder", metavar="DIR", help="The pack. Default: the reference pack.")
@click.option(
    "--xrd",
    "xrd_files",
    metavar="FILE",
    multiple=True,
    help="An XRD or CRD to use instead of a pack's. Repeatable.",
)
@click.option(
    "--old",
    "old_files",
    metavar="FILE",
    multiple=True,
    help="A file before the change, for transition rules. Repeatable.",
)
@click.option(
    "--strict", is_flag=True, help="Also fail on warnings and on rules that could not be evaluated."
)
@click.option("--sarif", "as_sarif", is_flag=True, help="Print SARIF 2.1.0 for code hosts.")
@json_option
def validate_command(
    files: tuple[str, ...],
    pack_folder: str | None,
    xrd_files: tuple[str, ...],
    old_files: tuple[str, ...],
    strict: bool,
    as_sarif: bool,
    as_json: bool,
) -> int:
    """
    Validate files of orders as the API server will: fields, defaults, CEL rules, names.

    Also checks XRDs among the files, including what Crossplane would drop silently.

    FILE is a file or a folder; of an order's repository, only manifests/ is read. Exit code 1:
    there are errors. Rules that Orderkit cannot evaluate are shown as "not evaluated".

    Example: orderkit validate my-order/ --old my-order-before/
    """
    from pathlib import Path

    from orderkit.adapters.folders.source_files import sources
    from orderkit.core.schema.validate.file_check import validate

    if as_json and as_sarif:
        raise click.UsageError("give --json or --sarif")
    definitions = _definitions(pack_folder, xrd_files)
    outcome = validate(
        sources([Path(name) for name in files]),
        definitions,
        sources([Path(name) for name in old_files]),
    )
    _refuse_nothing(outcome)
    _show(outcome, as_json=as_json, as_sarif=as_sarif)
    failed = outcome.errors or (strict and (outcome.warnings or outcome.not_evaluated))
    return _FOUND if failed else 0


def _definitions(pack_folder: str | None, xrd_files: tuple[str, ...]) -> Definitions:
    from pathlib import Path

    from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
    from orderkit.adapters.folders.source_files import sources
    from orderkit.core.schema.validate.file_check import Definitions, definition_sources

    if xrd_files and pack_folder:
        raise click.UsageError("give --pack or --xrd")
    if xrd_files:
        return Definitions.of(sources([Path(name) for name in xrd_files]))
    folder = Path(pack_folder) if pack_folder else reference_pack()
    return Definitions.of(definition_sources(folder, read_folder(folder)))


def _refuse_nothing(outcome: ValidationOutcome) -> None:
    from orderkit.core.errors import UsageError

    if not (outcome.objects or outcome.definitions or outcome.findings):
        raise UsageError(
            f"nothing to validate: no XRD defines the kinds of the {outcome.skipped} objects "
            f"in {outcome.files} files",
            hint="give the pack with --pack, or its XRDs with --xrd",
        )


def _show(outcome: ValidationOutcome, *, as_json: bool, as_sarif: bool) -> None:
    from orderkit.cli.output import emit_json

    if as_json:
        emit_json("orderkit.validate/v1", _json(outcome))
    elif as_sarif:
        _emit_sarif(outcome)
    else:
        _emit_text(outcome)


def _json(outcome: ValidationOutcome) -> dict[str, Any]:
    counts = {
        "files": outcome.files,
        "objects": len(outcome.objects),
        "definitions": outcome.definitions,
        "skipped": outcome.skipped,
        "findings": len(outcome.findings),
        "warnings": outcome.warnings,
        "not_evaluated": len(outcome.not_evaluated),
    }
    return {
        "valid": not outcome.errors,
        "counts": counts,
        "objects": [
            {
                "file": str(judged.file),
                "line": judged.line,
                "kind": str(judged.report.kind),
                "name": judged.report.name,
                "valid": judged.report.valid,
                "defaulted": [
                    {"path": change.path, "value": change.value}
                    for change in judged.report.defaulted
                ],
                "pruned": list(judged.report.pruned),
            }
            for judged in outcome.objects
        ],
        "findings": [_located(entry) for entry in outcome.findings],
        "not_evaluated": [_located(entry) for entry in outcome.not_evaluated],
    }


def _located(entry: Located) -> dict[str, Any]:
    from orderkit.core.schema.validate import Finding

    about = entry.about
    details = (
        about.to_json()
        if isinstance(about, Finding)
        else {"path": about.path, "rule": about.rule, "why": about.why}
    )
    location = {"file": str(entry.file), "line": entry.line, "column": entry.column}
    return {**location, "subject": entry.subject, **details}


def _emit_sarif(outcome: ValidationOutcome) -> None:
    import json

    from orderkit import __version__
    from orderkit.core.schema.validate import Finding
    from orderkit.core.schema.validate.sarif import NOT_EVALUATED, SarifResult, sarif

    results = []
    for entry in (*outcome.findings, *outcome.not_evaluated):
        about, location = entry.about, (entry.file, entry.line, entry.column)
        lead = f"{entry.subject}: " if entry.subject else ""
        if isinstance(about, Finding):
            hint = f" ({about.hint})" if about.hint else ""
            results.append(
                SarifResult(
                    str(about.reason), about.severity.value, f"{lead}{about}{hint}", *location
                )
            )
        else:
            text = f"{lead}{about.path}: not evaluated: {about.rule} ({about.why})"
            results.append(SarifResult(NOT_EVALUATED, "note", text, *location))
    say(json.dumps(sarif(results, version=__version__), indent=2, ensure_ascii=False))


def _emit_text(outcome: ValidationOutcome) -> None:
    from orderkit.core.schema.validate import Finding, FindingSeverity

    for entry in (*outcome.findings, *outcome.not_evaluated):
        location = ":".join(
            str(coordinate) for coordinate in (entry.file, entry.line, entry.column) if coordinate
        )
        about = entry.about
        if isinstance(about, Finding):
            lead = "" if about.severity is FindingSeverity.ERROR else f"{about.severity}: "
            say(f"{location}: {lead}{about.reason}: {about}")
            if about.hint:
                say(f"  hint: {about.hint}")
        else:
            say(f"{location}: not evaluated: {about.path}: {about.rule}")
            say(f"  why: {about.why}")
    counted = (
        (len(outcome.objects), "objects"),
        (outcome.definitions, "XRDs"),
        (len(outcome.findings), "findings"),
        (len(outcome.not_evaluated), "rules not evaluated"),
        (outcome.skipped, "objects of other kinds skipped"),
    )
    say(", ".join(f"{count} {label}" for count, label in counted), err=True)
