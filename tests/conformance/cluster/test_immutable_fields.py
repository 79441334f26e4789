"""What is set once: an API server refuses the update, and the embedded cluster with its words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from ground.objects.kube_objects import Kind, Manifest
from orderkit.ports.cluster import Cluster, InvalidObjectError

if TYPE_CHECKING:
    from tests.conformance.cluster.conftest import World

POD = {"containers": [{"name": "main", "image": "a:1"}]}
OTHER_POD = {"containers": [{"name": "main", "image": "a:2"}]}
LABELS = {"app": "a"}
MORE = {"app": "a", "tier": "b"}
RBAC = "rbac.authorization.k8s.io"


def thing(api_version: str, kind: str, **parts: Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, **parts}


def selecting(kind: str, labels: Mapping[str, str] = LABELS, **spec: Any) -> Manifest:
    template = {"metadata": {"labels": labels}, "spec": POD}
    body = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return thing("apps/v1", kind, spec=body)


def stateful(labels: Mapping[str, str] = LABELS, **spec: Any) -> Manifest:
    return selecting("StatefulSet", labels, **{"serviceName": "s", **spec})


def claims(size: str) -> list[dict[str, Any]]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return [{"metadata": {"name": "data"}, "spec": spec}]


def job(pod: Mapping[str, Any] = POD, **spec: Any) -> Manifest:
    return thing(
        "batch/v1", "Job", spec={"template": {"spec": {**pod, "restartPolicy": "Never"}}, **spec}
    )


def service(**spec: Any) -> Manifest:
    return thing("v1", "Service", spec={"selector": LABELS, "ports": [{"port": 80}], **spec})


def claim(**spec: Any) -> Manifest:
    return thing("v1", "PersistentVolumeClaim", spec={**claims("1Gi")[0]["spec"], **spec})


def binding(role: str) -> Manifest:
    ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    return thing(f"{RBAC}/v1", "RoleBinding", roleRef=ref)


def storage(provisioner: str = "a.example.org/b", **parts: Any) -> Manifest:
    return thing("storage.k8s.io/v1", "StorageClass", provisioner=provisioner, **parts)


def priority(value: int) -> Manifest:
    return thing("scheduling.k8s.io/v1", "PriorityClass", value=value)


def ingress(controller: str) -> Manifest:
    return thing("networking.k8s.io/v1", "IngressClass", spec={"controller": controller})


def sealed(kind: str, *, immutable: bool = True, **parts: Any) -> Manifest:
    return thing("v1", kind, immutable=immutable, **parts)


ONCE = "field is immutable"
SEALED = "Forbidden: field is immutable when `immutable` is set"
CLAIM = "spec: Forbidden: spec is immutable after creation except resources.requests and"
SELECTOR = f'spec.selector: Invalid value: {{"matchLabels":{{"app":"a","tier":"b"}}}}: {ONCE}'
REFUSED: Mapping[str, tuple[Manifest, Manifest, str, str]] = {
    "a StatefulSet's Service": (
        stateful(), stateful(serviceName="z"), 'spec.serviceName: Invalid value: "z": ', ONCE),
    "how a StatefulSet starts Pods": (
        stateful(), stateful(podManagementPolicy="Parallel"),
        'spec.podManagementPolicy: Invalid value: "Parallel": ', ONCE),
    "the claims of a StatefulSet": (
        stateful(volumeClaimTemplates=claims("1Gi")), stateful(volumeClaimTemplates=claims("2Gi")),
        "spec.volumeClaimTemplates: Invalid value: ", ONCE),
    "the first claims of a StatefulSet": (
        stateful(), stateful(volumeClaimTemplates=claims("2Gi")),
        "spec.volumeClaimTemplates: Invalid value: ", ONCE),
    "a StatefulSet's selector": (stateful(), stateful(MORE), SELECTOR, ONCE),
    "a Deployment's selector": (selecting("Deployment"), selecting("Deployment", MORE), SELECTOR,
                                ONCE),
    "a DaemonSet's selector": (
        selecting("DaemonSet"), selecting("DaemonSet", MORE), SELECTOR, ONCE),
    "a Job's template": (job(), job(OTHER_POD), "spec.template: Invalid value: ", ONCE),
    "a Job's completions": (
        job(), job(completions=3), "spec.completions: Invalid value: 3: ", ONCE),
    "how a Job counts": (
        job(completions=2), job(completions=2, completionMode="Indexed"),
        'spec.completionMode: Invalid value: "Indexed": ', ONCE),
    "the image of a suspended Job": (
        job(suspend=True), job(OTHER_POD, suspend=True), "spec.template", ONCE),
    "a Service's address": (
        service(clusterIP="10.0.0.77"), service(clusterIP="10.0.0.78"),
        'spec.clusterIPs[0]: Invalid value: ["10.0.0.78"]: ', "may not change once set"),
    "a headless Service": (
        service(clusterIP="None"), service(clusterIP="10.0.0.79"),
        'spec.clusterIPs[0]: Invalid value: ["10.0.0.79"]: ', "may not change once set"),
    "a claim's class": (claim(storageClassName="a"), claim(storageClassName="b"), CLAIM, "claims"),
    "a claim's access": (claim(), claim(accessModes=["ReadWriteMany"]), CLAIM, "claims"),
    "a sealed ConfigMap": (
        sealed("ConfigMap", data={"a": "1"}), sealed("ConfigMap", data={"a": "2"}), "data: ",
        SEALED),
    "a ConfigMap that is sealed no more": (
        sealed("ConfigMap", data={"a": "1"}), sealed("ConfigMap", immutable=False, data={"a": "1"}),
        "immutable: ", SEALED),
    "a sealed Secret": (
        sealed("Secret", data={"a": "MQ=="}), sealed("Secret", data={"a": "Mg=="}), "data: ",
        SEALED),
    "a Secret's type": (
        thing("v1", "Secret", type="a/b"), thing("v1", "Secret", type="a/c"),
        'type: Invalid value: "a/c": ', ONCE),
    "a binding's role": (binding("view"), binding("edit"), "roleRef: Invalid value: {", ONCE),
    "who makes volumes": (storage(), storage("c.example.org/d"), "provisioner: Invalid value: null",
                          ONCE),
    "how volumes are made": (
        storage(parameters={"a": "1"}), storage(parameters={"a": "2"}),
        "parameters: Invalid value: null", ONCE),
    "what becomes of volumes": (
        storage(), storage(reclaimPolicy="Retain"), "reclaimPolicy: Invalid value: null", ONCE),
    "a priority": (
        priority(3), priority(4), "value: ", "Forbidden: may not be changed in an update."),
    "who serves Ingresses": (
        ingress("a.example.org/b"), ingress("a.example.org/c"),
        'spec.controller: Invalid value: "a.example.org/c": ', ONCE),
}  # fmt: skip
"""Before, after, how the server's error begins, and how it ends."""
TAKEN: Mapping[str, tuple[Manifest, Manifest]] = {
    "the size and pace of a StatefulSet": (
        stateful(), stateful(replicas=3, minReadySeconds=4, revisionHistoryLimit=2)),
    "a default that is written out": (stateful(), stateful(podManagementPolicy="OrderedReady")),
    "a Deployment's replicas": (selecting("Deployment"), selecting("Deployment", replicas=2)),
    "the pace of a Job": (job(), job(parallelism=2, activeDeadlineSeconds=100, backoffLimit=3)),
    "where a suspended Job runs": (
        job(suspend=True), job({**POD, "nodeSelector": {"a": "b"}}, suspend=True)),
    "a Service's type": (service(), service(type="NodePort")),
    "a ConfigMap is sealed": (thing("v1", "ConfigMap"), sealed("ConfigMap")),
    "a class that allows to grow": (storage(), storage(allowVolumeExpansion=True)),
}  # fmt: skip


def served(cluster: Cluster, manifest: Manifest) -> None:
    kind = Kind.of(manifest)
    if not cluster.serves(kind):
        pytest.skip(f"the embedded cluster serves no {kind}")


def named(manifest: Manifest, world: World, name: str) -> Manifest:
    return {**manifest, "metadata": {"name": name, "namespace": world.namespace}}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_set_once_is_refused(cluster: Cluster, world: World, reason: str) -> None:
    old, new, begin, end = REFUSED[reason]
    served(cluster, old)
    name = world.fresh("once")
    cluster.apply(named(old, world, name), owner="crossplane")

    with pytest.raises(InvalidObjectError) as error:
        cluster.apply(named(new, world, name), owner="crossplane")

    text = str(error.value)
    assert f'{name}" is invalid: {begin}' in text, text
    assert end in text or text.endswith("…"), text  # the client cuts what is long


@pytest.mark.parametrize("reason", TAKEN)
def test_what_may_change_is_taken(cluster: Cluster, world: World, reason: str) -> None:
    old, new = TAKEN[reason]
    served(cluster, old)
    name = world.fresh("many")
    cluster.apply(named(old, world, name), owner="crossplane")

    cluster.apply(named(new, world, name), owner="crossplane")
