"""
Findings about the certificates that platform.yaml and its kubeconfig name: when they expire.

Reads local files only. Tokens have no date and are ignored.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ground.objects.kube_objects import dig
from orderkit.core.platform.settings import PlatformSettings
from orderkit.flows.install.findings import DoctorFinding

_SOON_D = 30
"""Days before its expiry from which a certificate causes a warning."""


def certificate_findings(settings: PlatformSettings) -> Iterator[DoctorFinding]:
    """Yield a finding on each certificate, or the reason why they cannot be read."""
    try:
        certificates = list(
            _kubeconfig_certificates(Path(settings.cluster.kubeconfig), settings.cluster.context)
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
    end = min(_ends_of(pem))
    left_d = (end - dt.datetime.now(dt.UTC)).days
    detail = f"{subject} expires on {end:%Y-%m-%d}"
    if left_d < 0:
        return DoctorFinding("certificates", "fail", detail, "renew it: it has expired")
    if left_d < _SOON_D:
        return DoctorFinding("certificates", "warn", f"{detail}, in {left_d} days", "renew it")
    return DoctorFinding("certificates", "ok", detail)


def _ends_of(pem: bytes) -> Iterator[dt.datetime]:
    """
    Yield the end of each certificate in a PEM text.

    Raises:
        ValueError: It holds none that can be read.
    """
    from cryptography import x509  # lazy: heavy

    for certificate in x509.load_pem_x509_certificates(pem):
        yield certificate.not_valid_after_utc


def _kubeconfig_certificates(path: Path, context: str | None) -> Iterator[tuple[str, bytes]]:
    """
    Yield the certificates that one context of a kubeconfig uses, as PEM with a name for people.

    Raises:
        OSError, ValueError: The file or one of those it names cannot be read.
    """
    try:
        kubeconfig = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML") from error
    name = context or dig(kubeconfig, "current-context")
    context_entry = _entry_by_name(kubeconfig, "contexts", name).get("context") or {}
    cluster = (
        _entry_by_name(kubeconfig, "clusters", context_entry.get("cluster")).get("cluster") or {}
    )
    user = _entry_by_name(kubeconfig, "users", context_entry.get("user")).get("user") or {}
    for subject, entry, key in (
        ("the cluster's authority", cluster, "certificate-authority"),
        ("our client certificate", user, "client-certificate"),
    ):
        pem = _pem(entry, key, path.parent)
        if pem:
            yield subject, pem


def _entry_by_name(kubeconfig: Any, section: str, name: object) -> dict[str, Any]:
    entries = dig(kubeconfig, section, default=()) or ()
    return next((dict(entry) for entry in entries if entry.get("name") == name), {})


def _pem(entry: dict[str, Any], key: str, folder: Path) -> bytes:
    if data := entry.get(f"{key}-data"):
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{key}-data is not base64 text") from error
    return (folder / entry[key]).read_bytes() if entry.get(key) else b""
