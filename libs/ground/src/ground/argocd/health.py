"""
The health of an object as Argo CD would judge it with a pack's health checks.

Pure. ``argocd.health_lua`` says the same in Lua; one table of cases holds for both, so whoever
changes one changes the other. Judged are Applications, Crossplane's packages, definitions and
revisions, provider configs, composite resources and everything else that has Crossplane's condition
``Synced``. All other kinds have no check and count as healthy (a Deployment too: the embedded
platform runs no workloads). Whatever is being deleted is Progressing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ground.argocd.health_lua import LAYER_LABEL
from ground.objects.kube_objects import APPLICATION, Kind, Manifest, condition, dig, metadata

__all__ = ["MISSING", "Health", "HealthStatus", "health_of", "worst"]


class HealthStatus(StrEnum):
    """Argo CD's health states, best first."""

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

_CONFIGS = frozenset({"ProviderConfig", "ClusterProviderConfig"})


def health_of(manifest: Manifest, *, composite: bool = False) -> Health | None:
    """
    Judge a live object; None when its kind has no check (Argo CD then treats it as healthy).

    Args:
        composite: Its kind is defined by an XRD, so that no status yet means "not yet".

    Raises:
        ValueError: It is not a Kubernetes object.
    """
    check = _check_for(Kind.of(manifest))
    # Argo CD says so itself, before it runs a check
    if metadata(manifest).get("deletionTimestamp"):
        return Health(HealthStatus.PROGRESSING, "Pending deletion")
    if check is not None:
        return check(manifest)
    if composite or condition(manifest, "Synced") is not None:
        return _reconciled(manifest)
    return None


def worst(verdicts: Iterable[Health]) -> Health:
    """Return the worst verdict, the first of equal ones; healthy if there is none."""
    worst_verdict = HEALTHY
    for verdict in verdicts:
        if _SEVERITY[verdict.status] > _SEVERITY[worst_verdict.status]:
            worst_verdict = verdict
    return worst_verdict


def _check_for(kind: Kind) -> Callable[[Manifest], Health] | None:
    if kind.kind in _CONFIGS:
        return lambda _: HEALTHY
    return _CHECKS.get((kind.group, kind.kind))


def _application(manifest: Manifest) -> Health:
    if LAYER_LABEL in (metadata(manifest).get("labels") or {}):
        unapplied = _unapplied(manifest)
        if unapplied is not None:
            return unapplied
    reported = dig(manifest, "status", "health", "status")
    message = dig(manifest, "status", "health", "message", default="")
    if reported is None:
        return _progressing("not assessed yet")
    try:
        return Health(HealthStatus(reported), str(message or ""))
    except ValueError:
        return Health(HealthStatus.UNKNOWN, "Lua returned an invalid health status")


def _unapplied(layer: Manifest) -> Health | None:
    """Return what a layer waits for before its own health counts; None once it is applied."""
    sync = dig(layer, "status", "sync", default={})
    operation = dig(layer, "status", "operationState", default={})
    # Argo CD calls it Healthy before it looked, and when it cannot read its files
    if sync.get("status") in (None, "Unknown"):
        first: dict[str, Any] = next(iter(dig(layer, "status", "conditions", default=())), {})
        return _progressing(first.get("message", "not compared yet"))
    if operation.get("phase") in ("Running", "Terminating"):
        return _progressing(operation.get("message", ""))
    return None if sync["status"] == "Synced" else _differing(sync, operation)


def _differing(sync: dict[str, Any], operation: dict[str, Any]) -> Health | None:
    if not operation.get("phase"):
        return _progressing("not applied yet")
    if dig(operation, "syncResult", "revision") != sync.get("revision"):
        return _progressing("a newer commit is not applied yet")
    if operation["phase"] != "Succeeded":
        return Health(HealthStatus.DEGRADED, str(operation.get("message", "")))
    return None


def _definition(manifest: Manifest) -> Health:
    """Established at this generation; an older Established belongs to the previous CRD."""
    established = condition(manifest, "Established")
    if established is None:
        return _progressing("condition Established is not there yet")
    if not _is_observed(manifest, established):
        return _progressing("condition Established is of an older generation")
    return _condition_health(established)


def _revision(manifest: Manifest) -> Health:
    valid_pipeline = condition(manifest, "ValidPipeline")
    return (
        _condition_health(valid_pipeline)
        if valid_pipeline
        else _progressing("condition ValidPipeline is not there yet")
    )


def _package(manifest: Manifest) -> Health:
    """Installed and healthy with the desired package; a permanent failure is not recognisable."""
    paused = _paused(manifest)
    if paused is not None:
        return paused
    for type_ in ("Installed", "Healthy"):
        lacking = _lacking(manifest, type_)
        if lacking is not None:
            return lacking
    current = dig(manifest, "status", "currentIdentifier")
    if current is not None and current != dig(manifest, "spec", "package"):
        return _progressing(f"still installed: {current}")
    return HEALTHY


def _lacking(package: Manifest, type_: str) -> Health | None:
    package_condition = condition(package, type_)
    if package_condition is None:
        return _progressing(f"condition {type_} is not there yet")
    if not _is_observed(package, package_condition):
        return _progressing(f"condition {type_} is of an older generation")
    if package_condition.get("reason") == "InactivePackageRevision":
        return Health(HealthStatus.SUSPENDED, str(package_condition.get("message", "")))
    return (
        None
        if package_condition.get("status") == "True"
        else _progressing(package_condition.get("message", ""))
    )


def _reconciled(manifest: Manifest) -> Health:
    """Judge Synced and Ready at this generation."""
    paused = _paused(manifest)
    if paused is not None:
        return paused
    synced = condition(manifest, "Synced")
    if synced and synced.get("status") == "False" and _is_observed(manifest, synced):
        return Health(HealthStatus.DEGRADED, str(synced.get("message", "")))
    for type_ in ("Synced", "Ready"):
        reconcile_condition = condition(manifest, type_)
        if reconcile_condition is None:
            return _progressing(f"condition {type_} is not there yet")
        # Ready keeps its last value when a pipeline fails, so it has to be of this generation
        if reconcile_condition.get("status") != "True" or not _is_observed(
            manifest, reconcile_condition
        ):
            return _progressing(reconcile_condition.get("message", ""))
    # a round that began before a change says both of the changed generation, so Responsive, which
    # is said when a round begins, must be of it too
    responsive = condition(manifest, "Responsive")
    if responsive is not None and not _is_observed(manifest, responsive):
        return _progressing("a round with the newest values has not begun yet")
    return HEALTHY


def _paused(manifest: Manifest) -> Health | None:
    synced = condition(manifest, "Synced") or {}
    if synced.get("reason") != "ReconcilePaused":
        return None
    return Health(HealthStatus.SUSPENDED, str(synced.get("message", "")))


def _condition_health(condition_: dict[str, Any]) -> Health:
    """Return the health that a condition states."""
    if condition_.get("status") == "True":
        return HEALTHY
    failed = condition_.get("status") == "False"
    status = HealthStatus.DEGRADED if failed else HealthStatus.PROGRESSING
    return Health(status, str(condition_.get("message", "")))


def _progressing(message: object) -> Health:
    return Health(HealthStatus.PROGRESSING, str(message))


def _is_observed(manifest: Manifest, condition_: dict[str, Any]) -> bool:
    """Say whether a condition is of the current generation; without the field it counts as such."""
    generation = metadata(manifest).get("generation")
    return condition_.get("observedGeneration", generation) == generation


_CHECKS: dict[tuple[str, str], Callable[[Manifest], Health]] = {
    (APPLICATION.group, APPLICATION.kind): _application,
    ("apiextensions.crossplane.io", "CompositeResourceDefinition"): _definition,
    ("apiextensions.crossplane.io", "CompositionRevision"): _revision,
    ("pkg.crossplane.io", "Provider"): _package,
    ("pkg.crossplane.io", "Function"): _package,
    ("pkg.crossplane.io", "Configuration"): _package,
    ("kubernetes.crossplane.io", "Object"): _reconciled,
    ("kubernetes.m.crossplane.io", "Object"): _reconciled,
}
