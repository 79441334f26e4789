"""
What a cluster's controllers would say of Deployments, Services and Ingresses; nothing runs.

A Deployment has its replicas available as soon as it is looked at, whatever its image; at zero
replicas the counts are left out, as on a real cluster. Services of type LoadBalancer and Ingresses
get the loopback address. There are no ReplicaSets, no Pods and no roll-outs.

Started by ``adapters.embedded.platform``, on any ``ports.cluster.Cluster``.
"""

from __future__ import annotations

from typing import Any

from orderkit.adapters.embedded.controller import Controller
from orderkit.adapters.embedded.crossplane.events import text_of
from orderkit.adapters.embedded.crossplane.reconciler_context import is_deleting
from orderkit.core.objects.conditions import Condition, merged
from orderkit.core.objects.kube_objects import Kind, Manifest, ObjectKey, dig, metadata
from orderkit.ports.clock import Clock, SystemClock
from orderkit.ports.cluster import Cluster

DEPLOYMENT = Kind("apps", "v1", "Deployment")
SERVICE = Kind("", "v1", "Service")
INGRESS = Kind("networking.k8s.io", "v1", "Ingress")
OWNER = "workloads"
ADDRESS = "127.0.0.1"
_CONDITIONS = (
    Condition("Available", "True", "MinimumReplicasAvailable", dated=False),
    Condition("Progressing", "True", "NewReplicaSetAvailable", dated=False),
)


class Workloads:
    """One controller for all three kinds."""

    def __init__(self, cluster: Cluster, *, clock: Clock | None = None) -> None:
        self._cluster, self._clock = cluster, clock or SystemClock()
        self._controller = Controller("workloads", cluster, self._reconcile, workers=1)
        for kind in (DEPLOYMENT, SERVICE, INGRESS):
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
        if kind == INGRESS or dig(workload, "spec", "type") == "LoadBalancer":
            return {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}
        return None

    def _of_deployment(self, deployment: Manifest) -> dict[str, Any]:
        generation = int(metadata(deployment).get("generation", 1))
        present = dig(deployment, "status", "conditions", default=None) or ()
        now = text_of(self._clock.now())
        conditions = merged(present, *_CONDITIONS, generation=generation, now=now)
        replicas = int(dig(deployment, "spec", "replicas", default=1))
        names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        counts = dict.fromkeys(names, replicas) if replicas else {}
        return {"observedGeneration": generation, **counts, "conditions": conditions}
