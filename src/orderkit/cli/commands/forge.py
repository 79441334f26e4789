"""``orderkit forge check``: try on a real forge what Orderkit relies on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orderkit.cli.options import PathOption, json_option, platform_option
from orderkit.cli.output import say

if TYPE_CHECKING:
    from pathlib import Path

    from orderkit.flows.install.forge_check import CaseResult


@click.group("forge")
def forge_command() -> None:
    """Check the forge that platform.yaml names."""


@forge_command.command("check")
@click.option("--live", is_flag=True, required=True, help="Write to the forge: say so.")
@click.option("--organisation", required=True, help="An organisation to throw away.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--evidence", type=PathOption(dir_okay=False), help="Write what was found to this file."
)
@platform_option
@json_option
def check_command(
    live: bool,  # noqa: ARG001  click insists on it
    organisation: str,
    yes: bool,
    evidence: Path | None,
    platform_file: str | None,
    as_json: bool,
) -> int:
    """
    Try what Orderkit relies on, in a repository of its own that is removed again.

    Exit code 1 if something does not hold.

    Example: orderkit forge check --live --organisation my-throw-away-organisation
    """
    import json

    from ground.errors import OrderkitError
    from orderkit.cli.connecting import connect, load_settings
    from orderkit.cli.output import emit_json
    from orderkit.flows.install.forge_check import check_forge

    platform = connect(load_settings(platform_file))
    forge = platform.forge
    if not yes:
        _ask(f"Make and remove a repository in {forge.base_url}/{organisation}?")
    begun = platform.clock.now().isoformat(timespec="seconds")
    results = check_forge(
        forge, organisation, platform.clock, on_case=_ignore if as_json else _show
    )
    found = {
        "forge": forge.base_url,
        "kind": forge.capabilities.kind,
        "version": forge.version(),
        "organisation": organisation,
        "begun": begun,
        "cases": [
            {"case": r.case, "holds": not r.problem, "problem": r.problem, "seconds": r.seconds}
            for r in results
        ],
    }
    if evidence is not None:
        evidence.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if as_json:
        emit_json("orderkit.forge-check/v1", found)
    return OrderkitError.exit_code if any(result.problem for result in results) else 0


def _ask(question: str) -> None:
    """
    Ask on a terminal.

    Raises:
        RefusedError: The answer is no, or there is no one to ask.
    """
    import sys

    from ground.errors import RefusedError

    if not sys.stdin.isatty():
        raise RefusedError("there is no terminal to ask on", hint="in scripts: add --yes")
    if not click.confirm(question, err=True):
        raise RefusedError("the forge was not checked", hint="nothing was written")


def _show(result: CaseResult) -> None:
    verdict = "holds" if not result.problem else "fails"
    say(f"  {verdict:<7}{result.seconds:6.2f} s  {result.case}")
    if result.problem:
        say(f"         {result.problem}")


def _ignore(_: CaseResult) -> None:
    """With --json, stdout carries the one object at the end."""
