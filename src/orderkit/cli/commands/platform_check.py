"""``orderkit platform check``: report what has drifted since the platform was bootstrapped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orderkit.cli.options import default_requester, json_option, platform_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orderkit.core.platform.settings import PlatformSettings
    from orderkit.flows.install.doctor_finding import DoctorFinding

_SOON_D = 30
"""Days before its expiry from which a certificate causes a warning."""


@click.command("check")
@platform_option
@click.option(
    "--pack", "pack_folder", metavar="DIR", help="The published pack. Default: the reference pack."
)
@json_option
def platform_check(platform_file: str | None, pack_folder: str | None, as_json: bool) -> int:
    """
    Compare the platform with the result of a new bootstrap; exit 1 if anything differs.

    Only reads. 'orderkit bootstrap' repairs what has drifted.

    Example: orderkit platform check --json
    """
    from orderkit.cli.commands.doctor import show
    from orderkit.cli.connecting import load_settings
    from orderkit.cli.serving.bootstrap_ports import BootstrapOptions, prepared
    from orderkit.flows.install import drift

    settings = load_settings(platform_file)
    bootstrap_options = BootstrapOptions(
        platform_file, pack_folder, default_requester(), 0.0, probe=False
    )
    with prepared(bootstrap_options) as (platform, request):
        findings = [*drift.check(platform, request), *_certificates(settings)]
    return show("orderkit.platform-check/v1", findings, as_json)


def _certificates(settings: PlatformSettings) -> Iterator[DoctorFinding]:
    from pathlib import Path

    from orderkit.adapters.certificate_dates import kubeconfig_certificates
    from orderkit.flows.install.doctor_finding import DoctorFinding

    try:
        certificates = list(
            kubeconfig_certificates(Path(settings.cluster.kubeconfig), settings.cluster.context)
        )
        if settings.forge.ca_file:
            certificates.append(
                ("the forge's authority", Path(settings.forge.ca_file).read_bytes())
            )
        yield from (_dated(subject, pem) for subject, pem in certificates)
    except (OSError, ValueError) as error:
        yield DoctorFinding(
            "certificates", "fail", str(error), "check the kubeconfig and forge.caFile"
        )


def _dated(subject: str, pem: bytes) -> DoctorFinding:
    import datetime as dt

    from orderkit.adapters.certificate_dates import ends_of
    from orderkit.flows.install.doctor_finding import DoctorFinding

    end = min(ends_of(pem))
    left_d = (end - dt.datetime.now(dt.UTC)).days
    detail = f"{subject} expires on {end:%Y-%m-%d}"
    if left_d < 0:
        return DoctorFinding("certificates", "fail", detail, "renew it: it has expired")
    if left_d < _SOON_D:
        return DoctorFinding("certificates", "warn", f"{detail}, in {left_d} days", "renew it")
    return DoctorFinding("certificates", "ok", detail)
