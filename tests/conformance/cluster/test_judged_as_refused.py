"""What a plan says of an object is what an API server says when Crossplane applies it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from ground.errors import OrderkitError
from ground.objects.kube_objects import Manifest
from kubeschema.known import SchemaSet, built_in
from orderkit.core.plan import Assembly
from orderkit.core.plan.judging import JudgingFacts, judge
from orderkit.ports.cluster import Cluster

if TYPE_CHECKING:
    from tests.conformance.cluster.conftest import World

XR = {"apiVersion": "x.example.org/v1", "kind": "X", "metadata": {"name": "x"}}
_POD = {"containers": [{"name": "main", "image": "shop:v1"}]}
_TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": _POD}
_MATCHING = {"matchLabels": {"app": "a"}}


def thing(api_version: str, kind: str, name: str = "thing", **parts: Any) -> Manifest:
    meta = {"name": name, **parts.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **parts}


def deployment(**container: Any) -> Manifest:
    pod = {"containers": [{**_POD["containers"][0], **container}]}
    template = {**_TEMPLATE, "spec": pod}
    return thing("apps/v1", "Deployment", spec={"selector": _MATCHING, "template": template})


RBAC = "rbac.authorization.k8s.io/v1"
WRONG: Mapping[str, Manifest] = {
    "a number in a ConfigMap": thing("v1", "ConfigMap", data={"n": 3}),
    "an unknown field of a ConfigMap": thing("v1", "ConfigMap", dta={}),
    "plain text in a Secret's data": thing("v1", "Secret", data={"p": "not base64!"}),
    "a misspelt field of a container": deployment(imagePullPolice="Always"),
    "a policy of pulling that is none": deployment(imagePullPolicy="Sometimes"),
    "a port that is a text": deployment(ports=[{"containerPort": "80"}]),
    "a Deployment without a selector": thing("apps/v1", "Deployment", spec={
        "template": _TEMPLATE}),
    "a Job without containers": thing("batch/v1", "Job", spec={"template": {"spec": {
        "restartPolicy": "Never"}}}),
    "a Service of no known type": thing("v1", "Service", spec={
        "type": "Public", "ports": [{"port": 80}]}),
    "a Service with a dot": thing("v1", "Service", "a.b", spec={"ports": [{"port": 80}]}),
    "a Service of 64 characters": thing("v1", "Service", "a" * 64, spec={
        "ports": [{"port": 80}]}),
    "a StatefulSet with a dot": thing("apps/v1", "StatefulSet", "a.b", spec={
        "selector": _MATCHING, "template": _TEMPLATE}),
    "a StatefulSet of 64 characters": thing("apps/v1", "StatefulSet", "a" * 64, spec={
        "selector": _MATCHING, "template": _TEMPLATE}),
    "a Job of 64 characters": thing("batch/v1", "Job", "a" * 64, spec={"template": {"spec": {
        **_POD, "restartPolicy": "Never"}}}),
    "a ConfigMap of 254 characters": thing("v1", "ConfigMap", "a" * 254),
    "a CronJob of 53 characters": thing("batch/v1", "CronJob", "c" * 53, spec={
        "schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": {
            **_POD, "restartPolicy": "Never"}}}}}),
    "a claim without a kind of access": thing("v1", "PersistentVolumeClaim", spec={
        "accessModes": ["Sometimes"], "resources": {"requests": {"storage": "1Gi"}}}),
    "a role without verbs": thing(RBAC, "Role", rules=[{"apiGroups": [""],
                                                        "resources": ["pods"]}]),
    "a binding of nothing": thing(RBAC, "RoleBinding", subjects=[]),
    "a policy of no known type": thing("networking.k8s.io/v1", "NetworkPolicy", spec={
        "podSelector": {}, "policyTypes": ["Sideways"]}),
    "an Ingress without a type of path": thing("networking.k8s.io/v1", "Ingress", spec={
        "rules": [{"http": {"paths": [{"path": "/", "backend": {
            "service": {"name": "a", "port": {"number": 80}}}}]}}]}),
    "a misspelt field of metadata": thing("v1", "ConfigMap", metadata={"label": {}}),
    "a label that is a number": thing("v1", "ConfigMap", metadata={"labels": {"n": 3}}),
    "a label of 64 characters": thing("v1", "ConfigMap", metadata={"labels": {"n": "x" * 64}}),
    "a label's key with a blank": thing("v1", "ConfigMap", metadata={"labels": {"a b": "x"}}),
    "annotations of 257 KiB": thing("v1", "ConfigMap", metadata={
        "annotations": {"a": "x" * 263_000}}),
    "a name with a capital": thing("v1", "ConfigMap", "Shop"),
    "two controllers": thing("v1", "ConfigMap", metadata={"ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": n, "uid": n, "controller": True}
        for n in ("a", "b")]}),
}  # fmt: skip
RIGHT: Mapping[str, Manifest] = {
    "a ConfigMap": thing("v1", "ConfigMap", data={"a": "1"}, binaryData={"b": "AAA="}),
    "a Secret": thing("v1", "Secret", data={"p": "cGFzcw=="}, stringData={"q": "plain"}),
    "a Secret with an empty value": thing("v1", "Secret", data={"p": ""}),
    "a Deployment": deployment(
        ports=[{"containerPort": 80, "name": "http"}],
        env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        resources={"requests": {"cpu": 0.5, "memory": "1Gi"}},
        readinessProbe={"httpGet": {"path": "/", "port": "http"}},
    ),
    "a Service that begins with a digit": thing("v1", "Service", "1st", spec={
        "ports": [{"port": 80}]}),
    "a Deployment with a dot": {**deployment(), "metadata": {"name": "a.b"}},
    "a Job of 63 characters": thing("batch/v1", "Job", "a" * 63, spec={"template": {"spec": {
        **_POD, "restartPolicy": "Never"}}}),
    "a Service": thing("v1", "Service", spec={
        "selector": {"app": "a"}, "ports": [{"port": 80, "targetPort": "http"}]}),
    "a Role with a colon": thing(RBAC, "Role", "shop:reader", rules=[
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
    "a RoleBinding without a group": thing(RBAC, "RoleBinding", roleRef={
        "kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"}),
    "a policy": thing("networking.k8s.io/v1", "NetworkPolicy", spec={
        "podSelector": {}, "egress": [{"to": [{"ipBlock": {
            "cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}], "ports": [{"port": 53}]}]}),
    "a disruption budget": thing("policy/v1", "PodDisruptionBudget", spec={
        "selector": _MATCHING, "minAvailable": "50%"}),
    "a CronJob of 52 characters": thing("batch/v1", "CronJob", "c" * 52, spec={
        "schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": {
            **_POD, "restartPolicy": "Never"}}}}}),
}  # fmt: skip


def judged(manifest: Manifest) -> Assembly:
    facts = JudgingFacts(SchemaSet((built_in(),)), assembled=[("x.example.org", "X")])
    role = {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
    facts = JudgingFacts(facts.schemas, facts.assembled, [role])
    found = Assembly(XR, {"it": manifest}, {})
    return judge(Assembly(XR, {}, {}), found, facts)


def _at_home(manifest: Manifest, world: World) -> Manifest:
    meta = {**manifest["metadata"], "namespace": world.namespace}
    return {**manifest, "metadata": meta}


@pytest.mark.parametrize("reason", WRONG)
def test_a_fault_is_what_the_server_refuses(cluster: Cluster, world: World, reason: str) -> None:
    manifest = _at_home(WRONG[reason], world)

    with pytest.raises(OrderkitError):
        cluster.apply(manifest, owner="crossplane")

    assert judged(manifest).faults


@pytest.mark.parametrize("reason", RIGHT)
def test_what_the_server_takes_is_no_fault(cluster: Cluster, world: World, reason: str) -> None:
    manifest = _at_home(RIGHT[reason], world)

    cluster.apply(manifest, owner="crossplane")

    assert judged(manifest).faults == ()
