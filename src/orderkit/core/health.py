"""
The health of one object as a real Argo CD would judge it with the checks of ``gitops/argocd``.

Pure. The Lua there and the rules here say the same; whoever changes one changes the other.
Judged are Applications, Crossplane packages and definitions, composite resources and
everything else that has Crossplane's condition ``Synced``. All other kinds have no check and
count as healthy (a Deployment too: the embedded platform runs no workloads).

Used by ``adapters.embedded.delivery`` for waves and for the health of Applications.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from orderkit.core.objects import (
    APPLICATION,
    Kind,
    Manifest,
    condition,
    dig,
    metadata,
)


class HealthStatus(StrEnum):
    """Argo CD's words, best first."""

    HEALTHY = "Healthy"
    SUSPENDED = "Suspended"
    PROGRESSING = "Progressing"
    MISSING = "Missing"
    DEGRADED = "Degraded"
    UNKNOWN = "Unknown"


_SEVERITY = {status: severity for severity, status in enumerate(HealthStatus)}


@dataclass(frozen=True, slots=True)
class Health:
    """A verdict and, where there is one, its reason."""

    status: HealthStatus
    message: str = ""


HEALTHY = Health(HealthStatus.HEALTHY)
MISSING = Health(HealthStatus.MISSING)

_PACKAGE_GROUP = "pkg.crossplane.io"
_PACKAGES = frozenset({"Provider", "Configuration", "Function"})
_XRD = ("apiextensions.crossplane.io", "CompositeResourceDefinition")


def health_of(manifest: Manifest, *, composite: bool = False) -> Health | None:
    """
    Judge a live object; None when its kind has no check (Argo CD then treats it as healthy).

    Args:
        composite: Its kind is defined by an XRD, so that no status yet means "not yet".

    Raises:
        ValueError: It is no Kubernetes object.
    """
    check = _check_for(Kind.of(manifest))
    if check is not None:
        return check(manifest)
    if composite or condition(manifest, "Synced") is not None:
        return _composite(manifest)
    return None


def worst(verdicts: Iterable[Health]) -> Health:
    """Return the worst verdict, the first of equals; healthy when there is none."""
    found = HEALTHY
    for verdict in verdicts:
        if _SEVERITY[verdict.status] > _SEVERITY[found.status]:
            found = verdict
    return found


def _check_for(kind: Kind) -> Callable[[Manifest], Health] | None:
    if (kind.group, kind.kind) == (APPLICATION.group, APPLICATION.kind):
        return _application
    if (kind.group, kind.kind) == _XRD:
        return _definition
    if kind.group == _PACKAGE_GROUP and kind.kind in _PACKAGES:
        return _package
    return None


def _application(manifest: Manifest) -> Health:
    reported = dig(manifest, "status", "health", "status")
    message = dig(manifest, "status", "health", "message", default="")
    try:
        return Health(HealthStatus(reported), str(message))
    except ValueError:
        return Health(HealthStatus.PROGRESSING, "not assessed yet")


def _definition(manifest: Manifest) -> Health:
    """Established at this generation; a stale Established lies (the CRD is still the old one)."""
    return _needs(manifest, "Established", observed=True)


def _package(manifest: Manifest) -> Health:
    for type_ in ("Installed", "Healthy"):
        verdict = _needs(manifest, type_, observed=False)
        if verdict.status is not HealthStatus.HEALTHY:
            return verdict
    return HEALTHY


def _composite(manifest: Manifest) -> Health:
    """Synced and Ready at this generation: Ready keeps its last value when a pipeline fails."""
    synced = condition(manifest, "Synced")
    if synced and synced.get("status") == "False" and _is_observed(manifest, synced):
        return Health(HealthStatus.DEGRADED, str(synced.get("message", "")))
    for type_ in ("Synced", "Ready"):
        found = condition(manifest, type_)
        if found is None:
            return Health(HealthStatus.PROGRESSING, f"condition {type_} is not there yet")
        if found.get("status") != "True" or not _is_observed(manifest, found):
            return Health(HealthStatus.PROGRESSING, str(found.get("message", "")))
    return HEALTHY


def _needs(manifest: Manifest, type_: str, *, observed: bool) -> Health:
    found = condition(manifest, type_)
    if found is None:
        return Health(HealthStatus.PROGRESSING, f"condition {type_} is not there yet")
    if observed and not _is_observed(manifest, found):
        return Health(HealthStatus.PROGRESSING, f"condition {type_} is of an older generation")
    if found.get("status") == "True":
        return HEALTHY
    message = str(found.get("message", ""))
    failed = found.get("status") == "False"
    return Health(HealthStatus.DEGRADED if failed else HealthStatus.PROGRESSING, message)


def _is_observed(manifest: Manifest, found: dict[str, object]) -> bool:
    """Say whether a condition speaks of the current generation; without the field it does."""
    generation = metadata(manifest).get("generation")
    return found.get("observedGeneration", generation) == generation
