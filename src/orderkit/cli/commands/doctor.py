"""``orderkit doctor``: report what is missing or unreachable, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orderkit.cli.options import json_option, platform_option

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orderkit.flows.install.findings import DoctorFinding


@click.command("doctor")
@platform_option
@json_option
def doctor_command(platform_file: str | None, as_json: bool) -> int:
    """
    Check this machine and the platform; exit 1 if anything fails.

    Example: orderkit doctor
    """
    return show("orderkit.doctor/v1", list(findings(platform_file)), as_json)


def row(found: DoctorFinding) -> dict[str, str]:
    """Return the stable shape of ``--json``."""
    return {
        "what": found.check,
        "verdict": found.verdict,
        "detail": found.full_detail,
        "advice": found.advice,
    }


def show(schema: str, findings: Sequence[DoctorFinding], as_json: bool) -> int:
    """Print findings as a table or as JSON; return the exit code."""
    from orderkit.cli.output import emit_json, emit_table, say

    failed = any(finding.verdict == "fail" for finding in findings)
    if as_json:
        emit_json(schema, {"ok": not failed, "findings": [row(found) for found in findings]})
        return int(failed)
    emit_table(
        ("CHECK", "VERDICT", "DETAIL"), [(f.check, f.verdict, f.full_detail) for f in findings]
    )
    for finding in findings:
        if finding.advice:
            say(f"\n{finding.check}: {finding.advice}")
    return int(failed)


def findings(platform_file: str | None) -> Iterator[DoctorFinding]:
    """Yield what was found, one check after the other."""
    from ground.errors import OrderkitError
    from orderkit.cli.connecting import connect, load_settings, requesters
    from orderkit.flows.install.doctor_checks import check, check_notifications, check_requesters
    from orderkit.flows.install.findings import DoctorFinding

    yield from _machine()
    try:
        settings = load_settings(platform_file)
        platform, proofs = connect(settings), requesters(settings)
    except OrderkitError as error:
        yield DoctorFinding("platform", "fail", str(error), error.hint)
        return
    absent = [name for name in ("portal", "service") if not getattr(settings, name).url]
    yield from check(platform, settings, without=absent)
    yield check_requesters(proofs, settings.service.access.platform_groups)
    yield check_notifications(platform.cluster, settings.notifications)


def _machine() -> Iterator[DoctorFinding]:
    """Check for the programs that people and the embedded forge use."""
    import shutil
    import sys

    from orderkit.flows.install.findings import DoctorFinding

    version = ".".join(str(number) for number in sys.version_info[:3])
    yield DoctorFinding("python", "ok", version)
    for name, is_required in (("git", True), ("kubectl", False)):
        path = shutil.which(name)
        if path:
            yield DoctorFinding(name, "ok", path)
        elif is_required:
            yield DoctorFinding(name, "fail", "is not on PATH", f"install {name}")
        else:
            yield DoctorFinding(
                name, "warn", "is not on PATH", "only needed to inspect the cluster by hand"
            )
