"""
``orderkit kit``: generate, check and test kits, and the group of all commands for their authors.

``orderkit kit check`` checks kits before they are published; ``orderkit kit test`` runs a kit's
scenarios and shows the differences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ground.errors import EXIT_DIFFERS
from orderkit.cli import completion
from orderkit.cli.options import function_option, json_option
from orderkit.cli.output import say
from orderkit_workshop.commands.kit_digests import kit_digests
from orderkit_workshop.commands.kit_new import kit_import, kit_new
from orderkit_workshop.commands.kit_schemas import kit_schemas
from orderkit_workshop.commands.pack_option import pack_option

if TYPE_CHECKING:
    from pathlib import Path

    from kubeschema.validate.findings import Located
    from orderkit_workshop.folders.local_pack import LocalPack
    from orderkit_workshop.stories.check_kits import PackVerdict
    from orderkit_workshop.stories.generate_kits import Generation
    from orderkit_workshop.stories.test_kits import Tested, TestReport

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
    _show_checked(verdict, pack.root, as_json=as_json, as_sarif=as_sarif)
    failing = verdict.count(FindingSeverity.ERROR)
    failing += verdict.count(FindingSeverity.WARNING) if strict else 0
    return _FOUND if failing else 0


def _show_checked(verdict: PackVerdict, folder: Path, *, as_json: bool, as_sarif: bool) -> None:
    from orderkit.cli.output import emit_json

    if as_json:
        emit_json("orderkit.kit-check/v1", _checked_json(verdict, folder))
    elif as_sarif:
        _emit_sarif(verdict, folder)
    else:
        _emit_text(verdict, folder)


def _checked_json(verdict: PackVerdict, folder: Path) -> dict[str, Any]:
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

    from kubeschema.validate.findings import SarifResult, sarif
    from orderkit import __version__
    from orderkit.cli.output import as_json
    from orderkit_workshop.check.behaviour_rule_codes import descriptions
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


_FAILED = 1


@click.command("test")
@click.argument("kits", metavar="[KIT]...", nargs=-1, shell_complete=completion.kits_of_pack)
@pack_option
@click.option(
    "-k", "pattern", default="", metavar="PATTERN", help="Run only scenarios KIT/CASE that match."
)
@click.option(
    "--update", is_flag=True, help="Rewrite the expected files; review the diff afterwards."
)
@click.option("--junit", "junit_file", metavar="FILE", help="Also write a JUnit report.")
@function_option
@json_option
def kit_test(
    kits: tuple[str, ...],
    pack: LocalPack,
    pattern: str,
    update: bool,
    junit_file: str | None,
    function_texts: tuple[str, ...],
    as_json: bool,
) -> int:
    """
    Run the scenarios in tests/kits through form, rendering, validation and pipeline.

    Example: orderkit kit test garage -k refused
    """
    from functools import partial
    from pathlib import Path

    from compositions.function_processes import processes_of
    from orderkit.adapters.functions.local_functions import LocalFunctions
    from orderkit_workshop.stories.test_kits import TestSelection, run_tests

    connect = LocalFunctions().connect
    functions = {
        process.name: partial(connect, process) for process in processes_of(function_texts)
    }
    report = run_tests(TestSelection(pack, kits, pattern, update, functions))
    if junit_file:
        from orderkit_workshop.commands.junit import junit

        Path(junit_file).write_bytes(junit(report))
    if as_json:
        from orderkit.cli.output import emit_json

        emit_json("orderkit.kit-test/v1", _tested_json(report))
    else:
        _show_tested(report)
    return 0 if report.ok else _FAILED


def _tested_json(report: TestReport) -> dict[str, Any]:
    from orderkit_workshop.stories.test_kits import ScenarioResult

    return {
        "ok": report.ok,
        "counts": {result.value: report.count(result) for result in ScenarioResult},
        "seconds": round(report.seconds, 3),
        "untested": list(report.untested),
        "cases": [
            {
                "kit": case.kit,
                "case": case.case,
                "reason": case.reason,
                "result": case.result.value,
                "seconds": round(case.seconds, 4),
                "message": case.message,
                "not_run": case.not_run,
                "differences": [
                    {"file": str(difference.path), "diff": difference.diff()}
                    for difference in case.differences
                ],
            }
            for case in report.cases
        ],
    }


def _show_tested(report: TestReport) -> None:
    from orderkit_workshop.stories.test_kits import ScenarioResult

    for case in report.cases:
        _show_case(case)
    for kit in report.untested:
        say(f"kit '{kit}' has no scenario: add tests/kits/{kit}/CASE/scenario.yaml", err=True)
    counts = ", ".join(f"{n} {result}" for result in ScenarioResult if (n := report.count(result)))
    total = len(report.cases)
    say(f"{total} scenarios: {counts or 'none'} in {report.seconds:.2f} s", err=True)


def _show_case(case: Tested) -> None:
    from orderkit_workshop.stories.test_kits import ScenarioResult

    say(f"{case.result:<8} {case.name}")
    if case.not_run:
        say(f"  pipeline not run: {case.not_run}")
    if case.result is ScenarioResult.UPDATED:
        for difference in case.differences:
            verb = "removed" if difference.after is None else "wrote"
            say(f"  {verb} expected/{difference.path}")
    elif not case.ok:
        if case.reason:
            say(f"  why it matters: {case.reason}")
        if case.message:
            say(f"  {case.message}")
        for difference in case.differences:
            say("".join(f"  {line}" for line in difference.diff().splitlines(keepends=True)))


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
    _show_generated(generation, show_diff, as_json)
    return 0 if writes or not generation.differing else EXIT_DIFFERS


def _show_generated(generation: Generation, show_diff: bool, as_json: bool) -> None:
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
