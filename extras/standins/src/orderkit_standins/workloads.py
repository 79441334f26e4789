"""
What a cluster's controllers would say of workloads, claims, Services, Ingresses and budgets.

Nothing runs. Deployments, StatefulSets and DaemonSets (on one node) have their replicas available
as soon as they are looked at, whatever their image; at zero replicas the counts are left out, as on
a real cluster. Jobs are complete (not Orderkit's own), Pods are ready, claims are bound. Services
of type LoadBalancer and Ingresses get the loopback address. An autoscaler finds what it has. There
are no ReplicaSets, no Pods of others, no roll-outs, and no Jobs of CronJobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ground.objects.kube_objects import Condition, Kind, Manifest, ObjectKey, dig, merged, metadata
from orderkit.core.portal.runner_job import NAMESPACE as ROOM
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import Cluster
from orderkit_standins.controller import Controller
from orderkit_standins.crossplane.reconciler_context import is_deleting, text_of

DEPLOYMENT = Kind("apps", "v1", "Deployment")
STATEFUL_SET = Kind("apps", "v1", "StatefulSet")
CLAIM = Kind("", "v1", "PersistentVolumeClaim")
SERVICE = Kind("", "v1", "Service")
INGRESS = Kind("networking.k8s.io", "v1", "Ingress")
DAEMON_SET = Kind("apps", "v1", "DaemonSet")
JOB = Kind("batch", "v1", "Job")
POD = Kind("", "v1", "Pod")
AUTOSCALER = Kind("autoscaling", "v2", "HorizontalPodAutoscaler")
BUDGET = Kind("policy", "v1", "PodDisruptionBudget")
_KINDS = (
    DEPLOYMENT,
    STATEFUL_SET,
    DAEMON_SET,
    JOB,
    POD,
    CLAIM,
    SERVICE,
    INGRESS,
    AUTOSCALER,
    BUDGET,
)
OWNER = "workloads"
ADDRESS = "127.0.0.1"
_CONDITIONS: Mapping[Kind, tuple[Condition, ...]] = {
    DEPLOYMENT: (
        Condition("Available", "True", "MinimumReplicasAvailable", dated=False),
        Condition("Progressing", "True", "NewReplicaSetAvailable", dated=False),
    ),
    JOB: (
        Condition("SuccessCriteriaMet", "True", "CompletionsReached", dated=False),
        Condition("Complete", "True", "CompletionsReached", dated=False),
    ),
    POD: tuple(
        Condition(type_, "True", "", dated=False)
        for type_ in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ),
    AUTOSCALER: (
        Condition("AbleToScale", "True", "ReadyForNewScale", dated=False),
        Condition("ScalingActive", "True", "ValidMetricFound", dated=False),
        Condition("ScalingLimited", "False", "DesiredWithinRange", dated=False),
    ),
    BUDGET: (Condition("DisruptionAllowed", "False", "InsufficientPods", dated=False),),
}


class Workloads:
    """One controller for all of these kinds."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._clock = cluster, SystemClock()
        self._controller = Controller("workloads", cluster, self._reconcile, workers=1)
        for kind in _KINDS:
            self._controller.watch(kind)

    def start(self) -> None:
        self._controller.start()

    def stop(self) -> None:
        self._controller.stop()

    def _reconcile(self, key: ObjectKey) -> float | None:
        workload = self._cluster.get(key)
        if workload is None or is_deleting(workload):
            return None
        status = self._status(workload)
        if status is not None:
            meta = {k: metadata(workload)[k] for k in ("name", "namespace")}
            head = {
                "apiVersion": workload["apiVersion"],
                "kind": workload["kind"],
                "metadata": meta,
            }
            self._cluster.apply({**head, "status": status}, owner=OWNER, status=True)
        return None

    def _status(self, workload: Manifest) -> dict[str, Any] | None:
        kind = Kind.of(workload)
        if kind in _CONDITIONS:
            return self._with_conditions(kind, workload)
        if kind == STATEFUL_SET:
            return _of_stateful_set(workload)
        if kind == DAEMON_SET:
            return {**dict.fromkeys(_SCHEDULED, 1), "numberMisscheduled": 0, **_seen(workload)}
        if kind == CLAIM:
            capacity = dig(workload, "spec", "resources", "requests", default={})
            modes = dig(workload, "spec", "accessModes", default=[])
            return {"phase": "Bound", "capacity": capacity, "accessModes": modes}
        if kind == INGRESS or dig(workload, "spec", "type") == "LoadBalancer":
            return {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}
        return None

    def _with_conditions(self, kind: Kind, workload: Manifest) -> dict[str, Any] | None:
        if kind == JOB and (dig(workload, "spec", "suspend", default=False) or _is_over(workload)):
            return None
        if kind == JOB and metadata(workload).get("namespace") == ROOM:
            return None  # whoever reads that Orderkit's own Job is complete relies on its work
        now = text_of(self._clock.now())
        present = dig(workload, "status", "conditions", default=None) or ()
        generation = int(metadata(workload).get("generation", 1))
        conditions = merged(present, *_CONDITIONS[kind], generation=generation, now=now)
        return {**_facts(kind, workload, now), "conditions": conditions}


def _facts(kind: Kind, workload: Manifest, now: str) -> dict[str, Any]:
    if kind == DEPLOYMENT:
        return _counts(workload, "replicas", "updatedReplicas")
    if kind == JOB:
        return _of_job(workload, now)
    if kind == POD:
        return {"phase": "Running", "podIP": ADDRESS, "hostIP": ADDRESS}
    if kind == AUTOSCALER:
        return _of_autoscaler(workload)
    return {**dict.fromkeys(_HEALTHY, 0), **_seen(workload)}


_SCHEDULED = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "updatedNumberScheduled",
    "numberReady",
    "numberAvailable",
)
_HEALTHY = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")


def _seen(workload: Manifest) -> dict[str, int]:
    return {"observedGeneration": int(metadata(workload).get("generation", 1))}


def _is_over(job: Manifest) -> bool:
    return bool(dig(job, "status", "completionTime", default=""))


def _of_job(job: Manifest, now: str) -> dict[str, Any]:
    succeeded = int(dig(job, "spec", "completions", default=1))
    return {"startTime": now, "completionTime": now, "succeeded": succeeded}


def _of_autoscaler(autoscaler: Manifest) -> dict[str, Any]:
    replicas = int(dig(autoscaler, "spec", "minReplicas", default=1))
    return {"currentReplicas": replicas, "desiredReplicas": replicas, **_seen(autoscaler)}


def _of_stateful_set(stateful_set: Manifest) -> dict[str, Any]:
    counts = _counts(stateful_set, "currentReplicas", "updatedReplicas")
    revision = f"{metadata(stateful_set)['name']}-{counts['observedGeneration']}"
    replicas = int(dig(stateful_set, "spec", "replicas", default=1))
    revisions = {"currentRevision": revision, "updateRevision": revision}
    return {**counts, **revisions, "replicas": replicas}


def _counts(workload: Manifest, *names: str) -> dict[str, Any]:
    replicas = int(dig(workload, "spec", "replicas", default=1))
    names = (*names, "readyReplicas", "availableReplicas")
    counts = dict.fromkeys(names, replicas) if replicas else {}
    return {**_seen(workload), **counts}
