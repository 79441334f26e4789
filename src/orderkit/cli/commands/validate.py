"""
Commands about what a file must be: validate, schema.

``orderkit validate`` checks files against a pack's XRDs, for repositories and CI. ``orderkit
schema`` prints the JSON Schema of a file that people write, such as platform.yaml.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from orderkit.cli.options import json_option
from orderkit.cli.output import say

if TYPE_CHECKING:
    from pathlib import Path

    from kubeschema.validate.file_check import Definitions, OldObject, ValidationOutcome
    from orderkit.core.kit.pack import Pack

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

    from kubeschema.validate.file_check import ValidationOutcome, old_objects, validate
    from orderkit.adapters.folders.plan_files import sources

    if as_json and as_sarif:
        raise click.UsageError("give --json or --sarif")
    definitions, pack = _definitions(pack_folder, xrd_files)
    old_of = old_objects(sources([Path(name) for name in old_files]))
    outcome, others = ValidationOutcome(), []
    for path in map(Path, files):
        of_order = _order_outcome(path, pack, definitions, old_of) if pack else None
        if of_order:
            outcome.merge(of_order)
        else:
            others.append(path)
    outcome.merge(validate(sources(others), definitions, old_of=old_of))
    _refuse_nothing(outcome)
    _show(outcome, as_json=as_json, as_sarif=as_sarif)
    failed = outcome.errors or (strict and (outcome.warnings or outcome.not_evaluated))
    return _FOUND if failed else 0


def _order_outcome(
    folder: Path, pack: Pack, definitions: Definitions, old_of: OldObject
) -> ValidationOutcome | None:
    """Check a folder as an order's repository; None if it is none, or of a kit of another pack."""
    from orderkit.adapters.folders.plan_files import order_record, order_repository
    from orderkit.core.order.order_check import check_repository

    record = order_record(folder)
    if record is None or record.kit not in pack.kit_names:
        return None
    repository = order_repository(folder, pack.kit(record.kit), record)
    return check_repository(repository, definitions, old_of)


def _definitions(
    pack_folder: str | None, xrd_files: tuple[str, ...]
) -> tuple[Definitions, Pack | None]:
    """Return what to validate against, and the pack, if it is one with a ``pack.yaml``."""
    from pathlib import Path, PurePosixPath

    from kubeschema.validate.file_check import Definitions, definition_sources
    from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
    from orderkit.adapters.folders.plan_files import sources
    from orderkit.core.kit.pack import read_pack

    if xrd_files and pack_folder:
        raise click.UsageError("give --pack or --xrd")
    if xrd_files:
        return Definitions.of(sources([Path(name) for name in xrd_files])), None
    folder = Path(pack_folder) if pack_folder else reference_pack()
    files = read_folder(folder)
    pack = read_pack(files) if PurePosixPath("pack.yaml") in files else None
    return Definitions.of(definition_sources(folder, files)), pack


def _refuse_nothing(outcome: ValidationOutcome) -> None:
    from ground.errors import UsageError

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
    from kubeschema.validate.findings import answer

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
        "findings": [answer(entry).to_json() for entry in outcome.findings],
        "not_evaluated": [answer(entry).to_json() for entry in outcome.not_evaluated],
    }


def _emit_sarif(outcome: ValidationOutcome) -> None:
    from kubeschema.validate import Finding
    from kubeschema.validate.findings import NOT_EVALUATED, SarifResult, sarif
    from orderkit import __version__
    from orderkit.cli.output import as_json

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
    say(as_json(sarif(results, version=__version__)))


def _emit_text(outcome: ValidationOutcome) -> None:
    from kubeschema.validate import Finding, FindingSeverity
    from kubeschema.validate.findings import explanation, remedy

    for entry in (*outcome.findings, *outcome.not_evaluated):
        about = entry.about
        location = ":".join(str(part) for part in (entry.file, entry.line, entry.column) if part)
        if isinstance(about, Finding):
            lead = "" if about.severity is FindingSeverity.ERROR else f"{about.severity}: "
            say(f"{location}: {lead}{about.reason}: {explanation(entry)}")
            say(f"  hint: {remedy(entry)}")
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


_FILES = ("kit", "platform", "team", "campaign", "prices")
"""A test holds them to `orderkit.core.editor_schemas.EDITOR_SCHEMAS`, whose import takes long."""


@click.command("schema")
@click.argument("file", type=click.Choice(_FILES))
def schema_command(file: str) -> None:
    """
    Print the JSON Schema of kit.yaml, platform.yaml, team.yaml or prices.yaml, for an editor.

    Example: orderkit schema platform > platform.schema.json
    """
    from orderkit.cli.output import say
    from orderkit.core.editor_schemas import editor_schema

    say(editor_schema(file), nl=False)
