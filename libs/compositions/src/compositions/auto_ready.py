"""
A reimplementation ("twin") of function-auto-ready v0.7.0: derive readiness from the resources.

It looks at every existing desired resource without a readiness and sets READY_TRUE or nothing,
never READY_FALSE. Not implemented: the CEL customisations behind the function's alpha gate.

Runs as a step's function in ``pipeline``, usually as the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from compositions.station import Ready, StationRequest, StationResponse
from ground.objects.kube_objects import Kind, Manifest, condition, dig

Check = Callable[[Manifest], bool]


def auto_ready(request: StationRequest) -> StationResponse:
    """Mark ready resources; keep the readiness that earlier steps set."""
    response = StationResponse.to(request)
    for name, desired in response.desired.resources.items():
        observed = request.observed_resource(name)
        if desired.ready is Ready.UNSPECIFIED and observed is not None and is_ready(observed):
            desired.ready = Ready.TRUE
    return response


def is_ready(observed: Manifest) -> bool:
    """Judge an existing object by the check for its kind, otherwise by its condition Ready."""
    kind = Kind.of(observed)
    check = _CHECKS.get((kind.api_version, kind.kind))
    return check(observed) if check else _is_true(observed, "Ready")


def _is_true(manifest: Manifest, type_: str) -> bool:
    return (condition(manifest, type_) or {}).get("status") == "True"


def _status(manifest: Manifest, *path: str) -> Any:
    return dig(manifest, "status", *path)


def _exists(_: Manifest) -> bool:
    return True


def _service(manifest: Manifest) -> bool:
    if dig(manifest, "spec", "type") != "LoadBalancer":
        return True
    return bool(_status(manifest, "loadBalancer", "ingress"))


def _claim(manifest: Manifest) -> bool:
    return bool(_status(manifest, "phase") == "Bound")


def _pod(manifest: Manifest) -> bool:
    phase = _status(manifest, "phase")
    if phase == "Succeeded":
        return True
    always = dig(manifest, "spec", "restartPolicy", default="Always") == "Always"
    return bool(phase == "Running" and always and _is_true(manifest, "Ready"))


def _all_equal(manifest: Manifest, expected: Any, *fields: str) -> bool:
    """
    Return whether all status fields exist and equal `expected`.

    Kubernetes omits zeros, so zero is never ready.
    """
    status: Mapping[str, Any] = manifest.get("status") or {}
    return all(field in status and status[field] == expected for field in fields)


def _replicas(manifest: Manifest) -> Any:
    return dig(manifest, "spec", "replicas", default=1)


def _deployment(manifest: Manifest) -> bool:
    counts = _all_equal(manifest, _replicas(manifest), "updatedReplicas", "availableReplicas")
    return counts and _is_true(manifest, "Available")


def _stateful_set(manifest: Manifest) -> bool:
    counts = _all_equal(manifest, _replicas(manifest), "readyReplicas", "currentReplicas")
    return counts and _status(manifest, "currentRevision") == _status(manifest, "updateRevision")


def _daemon_set(manifest: Manifest) -> bool:
    scheduled = _status(manifest, "desiredNumberScheduled")
    return scheduled is not None and _all_equal(
        manifest, scheduled, "numberReady", "updatedNumberScheduled", "numberAvailable"
    )


def _replica_set(manifest: Manifest) -> bool:
    observed = _status(manifest, "observedGeneration") or 0
    current = observed >= dig(manifest, "metadata", "generation", default=0)
    available = _status(manifest, "availableReplicas") or 0
    failed = _is_true(manifest, "ReplicaFailure")
    return bool(current and not failed and available >= _replicas(manifest))


def _job(manifest: Manifest) -> bool:
    stopped = _is_true(manifest, "Failed") or _is_true(manifest, "Suspended")
    return _is_true(manifest, "Complete") and not stopped


def _cron_job(manifest: Manifest) -> bool:
    if dig(manifest, "spec", "suspend"):
        return True
    scheduled = _status(manifest, "lastScheduleTime")
    if not scheduled:
        return False
    if _status(manifest, "active"):
        return True
    succeeded = _status(manifest, "lastSuccessfulTime")
    return bool(succeeded) and _time(succeeded) >= _time(scheduled)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _autoscaler(manifest: Manifest) -> bool:
    return _is_true(manifest, "ScalingActive") or _is_true(manifest, "ScalingLimited")


def _ingress(manifest: Manifest) -> bool:
    return bool(_status(manifest, "loadBalancer", "ingress"))


_CHECKS: Mapping[tuple[str, str], Check] = {
    ("v1", "Namespace"): _exists,
    ("v1", "ConfigMap"): _exists,
    ("v1", "Secret"): _exists,
    ("v1", "ServiceAccount"): _exists,
    ("v1", "Service"): _service,
    ("v1", "PersistentVolumeClaim"): _claim,
    ("v1", "Pod"): _pod,
    ("apps/v1", "Deployment"): _deployment,
    ("apps/v1", "StatefulSet"): _stateful_set,
    ("apps/v1", "DaemonSet"): _daemon_set,
    ("apps/v1", "ReplicaSet"): _replica_set,
    ("batch/v1", "Job"): _job,
    ("batch/v1", "CronJob"): _cron_job,
    ("autoscaling/v1", "HorizontalPodAutoscaler"): _autoscaler,
    ("autoscaling/v2", "HorizontalPodAutoscaler"): _autoscaler,
    ("networking.k8s.io/v1", "Ingress"): _ingress,
}
"""Kinds with a check of their own. All others are judged by their condition Ready."""
