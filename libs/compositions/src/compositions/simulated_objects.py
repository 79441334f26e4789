"""
The state of objects once they are ready, for simulations.

`made_ready` adds, by kind, the status that `compositions.parts.auto_ready` waits for. Kinds that
never get such a status (NetworkPolicy, RBAC, quotas, CRDs, Argo CD's Applications, ...) get none
here either, so a simulation shows what function-auto-ready never marks ready on a real Crossplane.
Kinds of all other groups are assumed to have the conditions Ready and Synced, like managed
resources and XRs.

Unknown here: what a provider writes into ``status.atProvider``. Callers that need such values pass
them (`compositions.simulation.simulate`, `statuses`). Pure; no clock: times are constants.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ground.objects.kube_objects import Kind, Manifest, dig, metadata
from ground.objects.values import overlaid

__all__ = ["keeps_ready_condition"]

WHEN = "2024-01-01T00:00:00Z"
"""The time of all events in a simulation, the same as in Crossplane's render."""

Status = dict[str, Any]


def made_ready(manifest: Manifest) -> Manifest:
    """
    Return the object with the status of a ready one.

    Existing status fields stay, unless they say that the object is not ready.
    """
    status = _status(manifest)
    if not status:
        return manifest
    before = manifest.get("status") or {}
    after = overlaid(before, status)
    if "conditions" in status:
        after["conditions"] = _merged(before.get("conditions") or (), status["conditions"])
    return {**manifest, "status": after}


def with_address(manifest: Manifest, before: Manifest) -> Manifest:
    """
    Return a Service with its address, which the API server chooses; other objects as they are.

    The address follows from the uid, so that a plan tells that it is a guess.
    """
    spec = manifest.get("spec") or {}
    fixed = "clusterIP" in spec or spec.get("type") == "ExternalName"
    if (Kind.of(manifest).group, manifest["kind"]) != ("", "Service") or fixed:
        return manifest
    number = uuid.UUID(metadata(manifest)["uid"]).int
    address = dig(before, "spec", "clusterIP", default=f"10.96.{number % 251}.{number % 241 + 1}")
    return {**manifest, "spec": {**spec, "clusterIP": address, "clusterIPs": [address]}}


def _merged(before: Sequence[Status], after: Sequence[Status]) -> list[Status]:
    types = {entry["type"] for entry in after}
    return [*(entry for entry in before if entry.get("type") not in types), *after]


def keeps_ready_condition(kind: Kind) -> bool:
    """Return whether objects of this kind have a condition Ready."""
    return not _is_built_in(kind)


def _status(manifest: Manifest) -> Status:
    kind = Kind.of(manifest)
    special = _SPECIAL.get((kind.group, kind.kind))
    if special is not None:
        return special(manifest)
    return _conditions("Ready", "Synced") if keeps_ready_condition(kind) else {}


def _is_built_in(kind: Kind) -> bool:
    """Kubernetes' own groups have no dot or end in k8s.io; two others behave like them."""
    return (
        "." not in kind.group
        or kind.group.endswith(".k8s.io")
        or kind.group == "argoproj.io"
        or kind == Kind("apiextensions.crossplane.io", kind.version, "EnvironmentConfig")
    )


def _conditions(*types: str) -> Status:
    return {
        "conditions": [
            {
                "type": type_,
                "status": "True",
                "reason": "Available" if type_ in {"Ready", "Available"} else "ReconcileSuccess",
                "lastTransitionTime": WHEN,
            }
            for type_ in types
        ]
    }


def _namespace(_: Manifest) -> Status:
    return {"phase": "Active"}


def _service(manifest: Manifest) -> Status:
    return _ingress(manifest) if dig(manifest, "spec", "type") == "LoadBalancer" else {}


def _claim(_: Manifest) -> Status:
    return {"phase": "Bound"}


def _pod(manifest: Manifest) -> Status:
    if dig(manifest, "spec", "restartPolicy", default="Always") != "Always":
        return {"phase": "Succeeded"}
    return {"phase": "Running", **_conditions("Ready")}


def _replicas(manifest: Manifest) -> int:
    replicas = dig(manifest, "spec", "replicas", default=1)
    return replicas if isinstance(replicas, int) else 1


def _counted(manifest: Manifest, *fields: str) -> Status:
    """Kubernetes omits counts that are zero."""
    replicas = _replicas(manifest)
    return dict.fromkeys(fields, replicas) if replicas else {}


def _deployment(manifest: Manifest) -> Status:
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return {**_counted(manifest, *counts), **_conditions("Available")}


def _stateful_set(manifest: Manifest) -> Status:
    counts = ("replicas", "currentReplicas", "readyReplicas", "availableReplicas")
    revisions = {"currentRevision": "1", "updateRevision": "1"}
    return {**_counted(manifest, *counts), **revisions}


def _daemon_set(_: Manifest) -> Status:
    counts = ("desiredNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable")
    return dict.fromkeys(counts, 1)


def _replica_set(manifest: Manifest) -> Status:
    generation = dig(manifest, "metadata", "generation", default=0)
    counts = _counted(manifest, "replicas", "readyReplicas", "availableReplicas")
    return {"observedGeneration": generation, **counts}


def _job(_: Manifest) -> Status:
    return {"succeeded": 1, **_conditions("Complete")}


def _cron_job(_: Manifest) -> Status:
    """As after its first run."""
    return {"lastScheduleTime": WHEN, "lastSuccessfulTime": WHEN}


def _autoscaler(_: Manifest) -> Status:
    return _conditions("ScalingActive")


def _ingress(manifest: Manifest) -> Status:
    if dig(manifest, "status", "loadBalancer", "ingress"):
        return {}
    return {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}


def _definition(_: Manifest) -> Status:
    return _conditions("NamesAccepted", "Established")


def _object(manifest: Manifest) -> Status:
    """provider-kubernetes shows the wrapped object as it is in the cluster."""
    wrapped = dig(manifest, "spec", "forProvider", "manifest", default={})
    return {**_conditions("Ready", "Synced"), "atProvider": {"manifest": wrapped}}


_SPECIAL: Mapping[tuple[str, str], Callable[[Manifest], Status]] = {
    ("", "Namespace"): _namespace,
    ("", "Service"): _service,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): _pod,
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "ReplicaSet"): _replica_set,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _cron_job,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("networking.k8s.io", "Ingress"): _ingress,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("kubernetes.crossplane.io", "Object"): _object,
    ("kubernetes.m.crossplane.io", "Object"): _object,
}
