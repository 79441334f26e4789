"""``orderkit kit test``: run a kit's scenarios and show the differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from orderkit.cli import completion
from orderkit.cli.options import function_option, json_option
from orderkit.cli.output import say
from orderkit_workshop.commands.pack_option import pack_option

if TYPE_CHECKING:
    from orderkit_workshop.folders.local_pack import LocalPack
    from orderkit_workshop.stories.test_kits import Tested, TestReport

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

        emit_json("orderkit.kit-test/v1", _json(report))
    else:
        _show(report)
    return 0 if report.ok else _FAILED


def _json(report: TestReport) -> dict[str, Any]:
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


def _show(report: TestReport) -> None:
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
