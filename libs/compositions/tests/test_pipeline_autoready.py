"""Readiness as function-auto-ready derives it, kind by kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from compositions.parts import auto_ready, is_ready
from compositions.station import Ready, Resource, State, StationRequest
from ground.objects.kube_objects import Manifest


def true(*types: str) -> dict[str, Any]:
    return {"conditions": [{"type": type_, "status": "True"} for type_ in types]}


@dataclass(frozen=True)
class Case:
    reason: str
    api_version: str
    kind: str
    ready: bool
    status: dict[str, Any]
    spec: dict[str, Any]

    @property
    def manifest(self) -> Manifest:
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {"name": "x", "generation": 2},
            "spec": self.spec,
            "status": self.status,
        }


def case(
    reason: str,
    kind: str,
    verdict: str,
    status: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    *,
    api: str = "v1",
) -> Case:
    return Case(reason, api, kind, verdict == READY, status or {}, spec or {})


READY, WAITS = "ready", "waits"
APPS, BATCH, HPA = "apps/v1", "batch/v1", "autoscaling/v2"
THREE = {"replicas": 3}
SPREAD = {
    "desiredNumberScheduled": 2,
    "numberReady": 2,
    "updatedNumberScheduled": 2,
    "numberAvailable": 2,
}
SET = {"readyReplicas": 3, "currentReplicas": 3, "currentRevision": "a", "updateRevision": "a"}
RUN = {"lastScheduleTime": "2026-01-01T10:00:00Z"}
INGRESS = {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}
CASES = [
    case("a namespace exists", "Namespace", READY),
    case("a config map exists", "ConfigMap", READY),
    case("a secret exists", "Secret", READY),
    case("a service account exists", "ServiceAccount", READY),
    case("a cluster service exists", "Service", READY),
    case("a load balancer has no address", "Service", WAITS, spec={"type": "LoadBalancer"}),
    case("a load balancer has one", "Service", READY, INGRESS, {"type": "LoadBalancer"}),
    case("a claim is bound", "PersistentVolumeClaim", READY, {"phase": "Bound"}),
    case("a claim is pending", "PersistentVolumeClaim", WAITS, {"phase": "Pending"}),
    case("a pod is done", "Pod", READY, {"phase": "Succeeded"}),
    case("a pod runs and is ready", "Pod", READY, {"phase": "Running", **true("Ready")}),
    case("a pod runs but is not ready", "Pod", WAITS, {"phase": "Running"}),
    case(
        "a pod that runs once is ready only when done",
        "Pod",
        WAITS,
        {"phase": "Running", **true("Ready")},
        {"restartPolicy": "Never"},
    ),
    case(
        "a deployment is rolled out",
        "Deployment",
        READY,
        {"updatedReplicas": 3, "availableReplicas": 3, **true("Available")},
        THREE,
        api=APPS,
    ),
    case(
        "a deployment has one replica by default",
        "Deployment",
        READY,
        {"updatedReplicas": 1, "availableReplicas": 1, **true("Available")},
        api=APPS,
    ),
    case(
        "a deployment scaled to zero is never ready: zeros are left out",
        "Deployment",
        WAITS,
        true("Available"),
        {"replicas": 0},
        api=APPS,
    ),
    case("a stateful set is there", "StatefulSet", READY, SET, THREE, api=APPS),
    case(
        "a stateful set is being updated",
        "StatefulSet",
        WAITS,
        {**SET, "updateRevision": "b"},
        THREE,
        api=APPS,
    ),
    case("a daemon set is there", "DaemonSet", READY, SPREAD, api=APPS),
    case("a daemon set without nodes is not", "DaemonSet", WAITS, {}, api=APPS),
    case(
        "a replica set is there",
        "ReplicaSet",
        READY,
        {"observedGeneration": 2, "availableReplicas": 3},
        THREE,
        api=APPS,
    ),
    case(
        "a replica set was changed since",
        "ReplicaSet",
        WAITS,
        {"observedGeneration": 1, "availableReplicas": 3},
        THREE,
        api=APPS,
    ),
    case("a job is complete", "Job", READY, true("Complete"), api=BATCH),
    case("a job failed", "Job", WAITS, true("Failed"), api=BATCH),
    case("a cron job never ran", "CronJob", WAITS, api=BATCH),
    case("a cron job is suspended", "CronJob", READY, spec={"suspend": True}, api=BATCH),
    case("a cron job runs", "CronJob", READY, {**RUN, "active": [{}]}, api=BATCH),
    case(
        "a cron job's last run worked",
        "CronJob",
        READY,
        {**RUN, "lastSuccessfulTime": "2026-01-01T10:05:00Z"},
        api=BATCH,
    ),
    case(
        "a cron job's last run did not",
        "CronJob",
        WAITS,
        {**RUN, "lastSuccessfulTime": "2026-01-01T09:05:00Z"},
        api=BATCH,
    ),
    case(
        "an autoscaler is at its limit",
        "HorizontalPodAutoscaler",
        READY,
        true("ScalingLimited"),
        api=HPA,
    ),
    case("an ingress has no address", "Ingress", WAITS, api="networking.k8s.io/v1"),
    case("an ingress has one", "Ingress", READY, INGRESS, api="networking.k8s.io/v1"),
    case("a network policy is never judged", "NetworkPolicy", WAITS, api="networking.k8s.io/v1"),
    case("a nested XR says so itself", "App", READY, true("Ready"), api="lab.example.org/v1"),
    case("a nested XR says nothing yet", "App", WAITS, api="lab.example.org/v1"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_readiness_by_kind(case: Case) -> None:
    assert is_ready(case.manifest) is case.ready


def resource(ready: Ready = Ready.UNSPECIFIED) -> Resource:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    return Resource(manifest, ready)


def test_what_is_not_observed_stays_open_and_what_was_decided_stays_decided() -> None:
    request = StationRequest(
        observed=State(resources={"there": resource(), "decided": resource()}),
        desired=State(
            resources={
                "there": resource(),
                "decided": resource(Ready.FALSE),
                "not yet": resource(),
            }
        ),
    )

    desired = auto_ready(request).desired.resources

    assert {name: found.ready for name, found in desired.items()} == {
        "there": Ready.TRUE,
        "decided": Ready.FALSE,
        "not yet": Ready.UNSPECIFIED,
    }
