"""
What a cluster's controllers would say of Deployments, StatefulSets, claims, Services and Ingresses.

Nothing runs. Deployments and StatefulSets have their replicas available as soon as they are looked
at, whatever their image; at zero replicas the counts are left out, as on a real cluster. Claims are
bound. Services of type LoadBalancer and Ingresses get the loopback address. There are no
ReplicaSets, no Pods and no roll-outs.

Started by ``platform``, on any ``ports.cluster.Cluster``.
"""

from __future__ import annotations

from typing import Any

from ground.objects.conditions import Condition, merged
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig, metadata
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import Cluster
from orderkit_standins.controller import Controller
from orderkit_standins.crossplane.events import text_of
from orderkit_standins.crossplane.reconciler_context import is_deleting

DEPLOYMENT = Kind("apps", "v1", "Deployment")
STATEFUL_SET = Kind("apps", "v1", "StatefulSet")
CLAIM = Kind("", "v1", "PersistentVolumeClaim")
SERVICE = Kind("", "v1", "Service")
INGRESS = Kind("networking.k8s.io", "v1", "Ingress")
OWNER = "workloads"
ADDRESS = "127.0.0.1"
_CONDITIONS = (
    Condition("Available", "True", "MinimumReplicasAvailable", dated=False),
    Condition("Progressing", "True", "NewReplicaSetAvailable", dated=False),
)


class Workloads:
    """One controller for all of these kinds."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._clock = cluster, SystemClock()
        self._controller = Controller("workloads", cluster, self._reconcile, workers=1)
        for kind in (DEPLOYMENT, STATEFUL_SET, CLAIM, SERVICE, INGRESS):
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
        if kind == DEPLOYMENT:
            return self._of_deployment(workload)
        if kind == STATEFUL_SET:
            return _of_stateful_set(workload)
        if kind == CLAIM:
            capacity = dig(workload, "spec", "resources", "requests", default={})
            modes = dig(workload, "spec", "accessModes", default=[])
            return {"phase": "Bound", "capacity": capacity, "accessModes": modes}
        if kind == INGRESS or dig(workload, "spec", "type") == "LoadBalancer":
            return {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}
        return None

    def _of_deployment(self, deployment: Manifest) -> dict[str, Any]:
        counts = _counts(deployment, "replicas", "updatedReplicas")
        present = dig(deployment, "status", "conditions", default=None) or ()
        now = text_of(self._clock.now())
        generation = counts["observedGeneration"]
        conditions = merged(present, *_CONDITIONS, generation=generation, now=now)
        return {**counts, "conditions": conditions}


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
    return {"observedGeneration": int(metadata(workload).get("generation", 1)), **counts}
