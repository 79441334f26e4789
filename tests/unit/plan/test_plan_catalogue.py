"""
A catalogue of dangerous changes: each is planned as any other, and the plan names the danger.

Every case goes through assembling, judging and comparing: two sides of a small shop, or an order
that changes. A case says which code stands at which resource, and words a person would look for.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from outcomes import (
    GROUP,
    Shop,
    an_xr,
    config,
    crd,
    definition,
    step,
    thing,
    wanting,
    wrapping,
)

from compositions.granted_rights import AGGREGATE
from compositions.station import Station, StationRequest, StationResponse
from ground.objects.kube_objects import Manifest
from kubeschema.known import Behaviour, layer_of
from orderkit.core.kit.kit_file import Import
from orderkit.core.plan import Plan, assemble, compare
from orderkit.core.plan.composed_tree import PackRules
from orderkit.core.plan.dangers import Code, DangerContext
from orderkit.core.plan.judging import OutcomeRule
from orderkit.core.plan.plan_json import plan_answer
from orderkit.core.plan.plan_markdown import to_markdown

ALL_RIGHTS = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "all", "labels": {AGGREGATE: "true"}},
    "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
}
_CLASSES = {"type": "string", "enum": ["warm", "cold"]}
_FIELDS = {"location": {"type": "string"}, "class": _CLASSES}
BUCKETS = crd(
    "storage.m.example.org",
    "Bucket",
    {"forProvider": {"type": "object", "required": ["location"], "properties": _FIELDS}},
)
LAWS = PackRules(
    delivered=layer_of([BUCKETS]),
    roles=[ALL_RIGHTS],
    data_kinds={("example.org", "Shelf"): True, ("*", "Scratch"): False},
    behaviours={
        ("ec2.aws.m.upbound.io", "Machine"): Behaviour(replaces=("image", "disk.key", "subnetId")),
        ("rds.aws.m.upbound.io", "Instance"): Behaviour(replaces=("engine",)),
    },
    team_fields={(GROUP, "XShop"): "team"},
    imports={(GROUP, "XShop"): Import({"it": "bucket"}, "manage")},
)
Wants = Mapping[str, Manifest]


@dataclass(frozen=True)
class Case:
    reason: str
    code: Code | OutcomeRule
    at: str
    words: str
    old: Wants = field(default_factory=dict)
    new: Wants = field(default_factory=dict)
    before: Mapping[str, Any] = field(default_factory=dict)
    """The order's spec, and after; the same unless `after` is given."""
    after: Mapping[str, Any] | None = None
    xrd: Manifest | None = None
    """Of both sides, and of the new one."""
    new_xrd: Manifest | None = None
    stations: tuple[Station, Station] | None = None
    nested: Mapping[str, Station] = field(default_factory=dict)


def one(manifest: Manifest, became: Manifest | None) -> dict[str, Any]:
    """Return the sides of a step of one resource, called ``it``."""
    return {"old": {"it": manifest}, "new": {"it": became} if became is not None else {}}


def without(wants: Wants, *names: str) -> dict[str, Any]:
    return {"old": wants, "new": {k: v for k, v in wants.items() if k not in names}}


def managed(kind: str, group: str, /, name: str = "", **spec: Any) -> Manifest:
    return thing(f"{group}/v1beta1", kind, name, namespace="shop", spec=spec)


def gcs(**for_provider: Any) -> Manifest:
    return managed("Bucket", "storage.gcp.m.upbound.io", forProvider=for_provider)


def rds(**for_provider: Any) -> Manifest:
    return managed("Instance", "rds.aws.m.upbound.io", forProvider=for_provider)


def ec2(**for_provider: Any) -> Manifest:
    return managed("Machine", "ec2.aws.m.upbound.io", forProvider=for_provider)


def legacy(**spec: Any) -> Manifest:
    return thing("storage.gcp.upbound.io/v1beta1", "Bucket", spec=spec)


def claim(storage: str = "10Gi", **spec: Any) -> Manifest:
    requests = {"resources": {"requests": {"storage": storage}}}
    return thing("v1", "PersistentVolumeClaim", namespace="shop", spec={**requests, **spec})


def pod(**spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "shop:v1", **spec.pop("container", {})}
    return {"containers": [container], **spec}


def deployment(labels: Mapping[str, str] | None = None, **spec: Any) -> Manifest:
    labels = dict(labels or {"app": "shop"})
    template = {"metadata": {"labels": labels}, "spec": pod(**spec.pop("pod", {}))}
    selector = {"matchLabels": spec.pop("selector", {"app": "shop"})}
    return thing("apps/v1", "Deployment", "web", namespace="shop",
                 spec={"selector": selector, "template": template, **spec})  # fmt: skip


def stateful(**spec: Any) -> Manifest:
    template = {"metadata": {"labels": {"app": "db"}}, "spec": pod()}
    claims = [
        {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "9Gi"}}}}
    ]
    return thing("apps/v1", "StatefulSet", "db", namespace="shop", spec={
        "selector": {"matchLabels": {"app": "db"}}, "template": template,
        "volumeClaimTemplates": claims, **spec})  # fmt: skip


def without_claims() -> Manifest:
    manifest = stateful()
    del manifest["spec"]["volumeClaimTemplates"]
    return manifest


def job(command: str) -> Manifest:
    template = {"spec": pod(container={"command": [command]}, restartPolicy="Never")}
    return thing("batch/v1", "Job", namespace="shop", spec={"template": template})


def binding(role: str, **more: Any) -> Manifest:
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    return thing(
        "rbac.authorization.k8s.io/v1", "RoleBinding", namespace="shop", roleRef=ref, **more
    )


def role(*verbs: str, resources: tuple[str, ...] = ("pods",)) -> Manifest:
    rule = {"apiGroups": [""], "resources": list(resources), "verbs": list(verbs)}
    return thing("rbac.authorization.k8s.io/v1", "Role", namespace="shop", rules=[rule])


def service(**spec: Any) -> Manifest:
    spec = {"selector": {"app": "shop"}, "ports": [{"port": 80}], **spec}
    return thing("v1", "Service", "web", namespace="shop", spec=spec)


def policy() -> Manifest:
    return thing("networking.k8s.io/v1", "NetworkPolicy", "fence", namespace="shop",
                 spec={"podSelector": {"matchLabels": {"app": "shop"}}})  # fmt: skip


def secret(**data: str) -> Manifest:
    return thing("v1", "Secret", "keys", namespace="shop", stringData=data)


def room(**labels: str) -> Manifest:
    return thing("v1", "Namespace", "room", labels=labels)


def part(**spec: Any) -> Manifest:
    return thing(f"{GROUP}/v1", "XPart", spec=spec)


def showing(**status: Any) -> Station:
    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        response.want("map", config())
        response.merge_status(status)
        return response

    return station


def early_return(request: StationRequest) -> StationResponse:
    return StationResponse.to(request)


def asking(request: StationRequest) -> StationResponse:
    """Ask for the dataset that the order names, and go on from what was known."""
    response = StationResponse.to(request)
    name = request.xr["spec"]["dataset"]
    response.require("dataset", "v1", "ConfigMap", match_name=name, namespace="shop")
    response.want("map", config())
    return response


def warning(request: StationRequest) -> StationResponse:
    response = StationResponse.to(request)
    response.want("map", config())
    response.warning("the price list is old")
    return response


def fields(**properties: Any) -> Manifest:
    return definition("XShop", properties)


TEXT = {"type": "string"}
SIZES = fields(size={**TEXT, "enum": ["s", "m", "l"]})
SECRET_VALUE = "correct-horse-battery"

# --- what goes

LOSSES = [
    Case("a bucket goes", Code.DATA_LOSS, "it", "its data is lost", **one(gcs(), None)),
    Case("a claim goes", Code.DATA_LOSS, "it", "PersistentVolumeClaim", **one(claim(), None)),
    Case("a database in a cloud goes", Code.DATA_LOSS, "it", "Instance", **one(rds(), None)),
    Case("a namespace with its content goes", Code.DATA_LOSS, "it", "everything in it",
         **one(room(), None)),
    Case("a CRD goes, and all its objects", Code.DATA_LOSS, "it", "every object of that kind",
         **one(thing("apiextensions.k8s.io/v1", "CustomResourceDefinition"), None)),
    Case("an XRD goes, and all its XRs", Code.DATA_LOSS, "it", "every XR of that kind",
         **one(thing("apiextensions.crossplane.io/v2", "CompositeResourceDefinition"), None)),
    Case("a claim inside an Object goes", Code.DATA_LOSS, "it", "PersistentVolumeClaim",
         **one(wrapping(claim()), None)),
    Case("a StatefulSet goes whose claims go with it", Code.DATA_LOSS, "it", "its volume claims",
         **one(stateful(persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"}), None)),
    Case("a StatefulSet goes whose claims stay", Code.ABANDONED, "it", "claims of StatefulSet",
         **one(stateful(), None)),
    Case("a kind that only the pack knows goes", Code.DATA_LOSS, "it", "Shelf",
         **one(thing("example.org/v1", "Shelf"), None)),
    Case("the logical name of a claim changes", Code.MADE_AGAIN, "a", "its logical name is 'b' now",
         old={"a": claim()}, new={"b": claim()}),
    Case("the same deletes its data", Code.DATA_LOSS, "a", "PersistentVolumeClaim",
         old={"a": claim()}, new={"b": claim()}),
    Case("a nested XR goes", Code.NESTED, "part", "resources composed for it",
         **without({"part": part(), "map": config()}, "part"),
         nested={"part": wanting({"store": gcs()})}),
    Case("a bucket inside a nested XR goes", Code.DATA_LOSS, "part/store", "Bucket",
         **without({"part": part(), "map": config()}, "part"),
         nested={"part": wanting({"store": gcs()})}),
    Case("an XR goes that this plan cannot expand", Code.DATA_LOSS, "it", "together with Bucket",
         **one(thing("other.org/v1", "XOther", spec={"crossplane": {"resourceRefs": [
             {"apiVersion": "storage.gcp.upbound.io/v1beta1", "kind": "Bucket", "name": "b"}]}}),
             None)),
    Case("what is deleted has a finalizer of somebody else", Code.FINALIZER, "it",
         "example.org/backup", **one(thing("example.org/v1", "Thing",
                                           finalizers=["example.org/backup"]), None)),
    Case("an orphaned bucket is let go of", Code.ABANDONED, "it", "nothing manages it",
         **one(legacy(deletionPolicy="Orphan"), None)),
    Case("deletionPolicy does not count for the namespaced family", Code.DATA_LOSS, "it", "Bucket",
         **one(managed("Bucket", "storage.gcp.m.upbound.io", deletionPolicy="Orphan"), None)),
    Case("a composition returns early and drops everything", Code.EMPTIED, "",
         "deletes all composed", stations=(wanting({"a": config("a"), "b": config("b")}),
                                         early_return)),
    Case("a composition drops a part", Code.DROPPED, "account", "no longer composed",
         **without({"map": config(), "account": thing("v1", "ServiceAccount", namespace="shop")},
                   "account")),
    Case("the kind changes under the same logical name", Code.ABANDONED, "it", "is left behind",
         **one(claim(), gcs())),
    Case("an Object wraps another object", Code.ABANDONED, "it", "wraps ConfigMap shop/b",
         **one(wrapping(config("a")), wrapping(config("b")))),
    Case("another namespace inside an Object", Code.ABANDONED, "it", "is left behind",
         **one(wrapping(claim()), wrapping({**claim(), "metadata": {
             "name": "persistentvolumeclaim", "namespace": "other"}}))),
    Case("an external name changes", Code.ABANDONED, "it", "instead of real-bucket",
         **one(thing("storage.gcp.upbound.io/v1beta1", "Bucket",
                     annotations={"crossplane.io/external-name": "real-bucket"}),
               thing("storage.gcp.upbound.io/v1beta1", "Bucket",
                     annotations={"crossplane.io/external-name": "other"}))),
    Case("another provider configuration", Code.PROVIDER, "it", "ClusterProviderConfig prod",
         **one(gcs(), managed("Bucket", "storage.gcp.m.upbound.io", forProvider={},
                              providerConfigRef={"name": "prod"}))),
    Case("what has data is replaced by another kind", Code.DATA_LOSS, "it", "starts empty",
         **one(claim(), config())),
    Case("a bucket in another account begins empty", Code.DATA_LOSS, "it", "its data stays behind",
         **one(gcs(), managed("Bucket", "storage.gcp.m.upbound.io", forProvider={},
                              providerConfigRef={"name": "prod"}))),
    Case("an Object wraps another claim", Code.DATA_LOSS, "it", "starts empty",
         **one(wrapping(claim()), wrapping(config("b")))),
    Case("orphaned becomes deleted", Code.DELETE_POLICY, "it", "is deleted with the order",
         **one(legacy(deletionPolicy="Orphan"), legacy(deletionPolicy="Delete"))),
    Case("deleted becomes orphaned", Code.DELETE_POLICY, "it", "stays when the order ends",
         **one(legacy(deletionPolicy="Delete"), legacy(deletionPolicy="Orphan"))),
    Case("Delete is taken from managementPolicies", Code.DELETE_POLICY, "it",
         "it stays when the order ends",
         **one(gcs(), managed("Bucket", "storage.gcp.m.upbound.io", forProvider={},
                              managementPolicies=["Observe", "Create", "Update"]))),
    Case("what was only observed is managed", Code.TAKES_OVER, "it", "nothing was observed of it",
         **one(managed("Bucket", "storage.gcp.m.upbound.io", forProvider={},
                       managementPolicies=["Observe"]), gcs())),
    Case("an order manages at once what it takes over", Code.TAKES_OVER, "it",
         "'real-bucket' without having observed it", xrd=fields(bucket=TEXT),
         old={"map": config()},
         new={"map": config(),
              "it": managed("Bucket", "storage.gcp.m.upbound.io", forProvider={})},
         before={"bucket": "real-bucket"}),
    Case("Update is taken from managementPolicies", Code.STOPS, "it", "no longer applied",
         **one(gcs(), managed("Bucket", "storage.gcp.m.upbound.io", forProvider={},
                              managementPolicies=["Observe", "Create", "Delete"]))),
]  # fmt: skip

# --- what is weaker, smaller, or cannot be

OTHER_CLAIMS = [{"metadata": {"name": "other"}}]
WEAKER = [
    Case("a claim shrinks", Code.SHRINKS, "it", "a volume can only grow",
         **one(claim("10Gi"), claim("9Gi"))),
    Case("a database shrinks", Code.SHRINKS, "it", "allocatedStorage",
         **one(rds(allocatedStorage=100), rds(allocatedStorage=50))),
    Case("backups are kept for a shorter time", Code.SHRINKS, "it", "backupRetentionPeriod",
         **one(rds(backupRetentionPeriod=30), rds(backupRetentionPeriod=1))),
    Case("backups are switched off", Code.UNPROTECTED, "it", "this removes a protection",
         **one(rds(backupRetentionPeriod=30), rds(backupRetentionPeriod=0))),
    Case("deletion protection goes", Code.UNPROTECTED, "it", "deletionProtection",
         **one(rds(deletionProtection=True), rds(deletionProtection=False))),
    Case("a bucket may be destroyed with its content", Code.UNPROTECTED, "it", "forceDestroy",
         **one(gcs(forceDestroy=False), gcs(forceDestroy=True))),
    Case("versions are kept no more", Code.UNPROTECTED, "it", "versioning",
         **one(gcs(versioning={"enabled": True}), gcs())),
    Case("a claim's class", Code.IMMUTABLE, "it", "spec.storageClassName",
         **one(claim(storageClassName="slow"), claim(storageClassName="fast"))),
    Case("a Job's template", Code.IMMUTABLE, "it", "spec.template", **one(job("a"), job("b"))),
    Case("a Service's address", Code.IMMUTABLE, "it", "spec.clusterIP",
         **one(service(clusterIP="10.0.0.1"), service(clusterIP="None"))),
    Case("the claims of a StatefulSet", Code.IMMUTABLE, "it", "volumeClaimTemplates",
         **one(stateful(), stateful(volumeClaimTemplates=OTHER_CLAIMS))),
    Case("all claims of a StatefulSet go", Code.IMMUTABLE, "it", "volumeClaimTemplates",
         **one(stateful(), without_claims())),
    Case("a StatefulSet gets its first claims", Code.IMMUTABLE, "it", "volumeClaimTemplates",
         **one(without_claims(), stateful())),
    Case("a sealed ConfigMap loses its data", Code.IMMUTABLE, "it", "data",
         **one({**config(a="1"), "immutable": True}, {**config(), "immutable": True})),
    Case("a ConfigMap is sealed no more", Code.IMMUTABLE, "it", "immutable",
         **one({**config(a="1"), "immutable": True}, config(a="1"))),
    Case("a binding's role", Code.IMMUTABLE, "it", "roleRef",
         **one(binding("view"), binding("edit"))),
    Case("a Deployment's selector", Code.IMMUTABLE, "it", "spec.selector",
         **one(deployment(), deployment(selector={"app": "other"}))),
    Case("a sealed ConfigMap", Code.IMMUTABLE, "it", "data",
         **one({**config(a="1"), "immutable": True}, {**config(a="2"), "immutable": True})),
    Case("a sealed Secret", Code.IMMUTABLE, "it", "stringData",
         **one({**secret(a="1"), "immutable": True}, {**secret(a="2"), "immutable": True})),
    Case("a Secret's type", Code.IMMUTABLE, "it", "type",
         **one({**secret(), "type": "Opaque"}, {**secret(), "type": "kubernetes.io/tls"})),
    Case("a StorageClass's parameters", Code.IMMUTABLE, "it", "parameters",
         **one(thing("storage.k8s.io/v1", "StorageClass", parameters={"type": "ssd"}),
               thing("storage.k8s.io/v1", "StorageClass", parameters={"type": "hdd"}))),
    Case("the scope of an XRD", Code.IMMUTABLE, "it", "spec.scope",
         **one({**definition("XOther")}, definition("XOther", scope="Namespaced"))),
    Case("the region of a database", Code.IMMUTABLE, "it", "region",
         **one(rds(region="eu"), rds(region="us"))),
    Case("a field that only another machine could have", Code.REPLACES, "it", "forProvider.image",
         **one(ec2(image="a"), ec2(image="b"))),
    Case("such a field in a list, and what to do", Code.REPLACES, "it", "until somebody deletes it",
         **one(ec2(disk=[{"key": "a"}]), ec2(disk=[{"key": "b"}]))),
    Case("a reference that sets such a field", Code.REPLACES, "it", "subnetIdRef",
         **one(ec2(subnetIdRef={"name": "a"}), ec2(subnetIdRef={"name": "b"}))),
    Case("a database that only another one could be", Code.DATA_LOSS, "it", "can only be replaced",
         **one(rds(engine="mysql"), rds(engine="postgres"))),
    Case("an immutable field inside an Object", Code.IMMUTABLE, "it", "spec.storageClassName",
         **one(wrapping(claim(storageClassName="slow")), wrapping(claim(storageClassName="fast")))),
    Case("metadata.name changes", Code.KEEPS_NAME, "it", "keeps its name",
         **one(config("old"), config("new"))),
    Case("metadata.namespace changes", Code.KEEPS_NAME, "it", "a new object would be",
         **one(config(), {**config(), "metadata": {"name": "map", "namespace": "other"}})),
    Case("another version of an API", Code.API_VERSION, "it", "storage.gcp.upbound.io/v1beta2",
         **one(legacy(), {**legacy(), "apiVersion": "storage.gcp.upbound.io/v1beta2"})),
    Case("another family of a provider is another kind", Code.ABANDONED, "it", "is left behind",
         **one(legacy(), gcs())),
]  # fmt: skip

# --- what stops, and what is shown no more

SCALER = thing("autoscaling/v2", "HorizontalPodAutoscaler", namespace="shop", spec={
    "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web"}})  # fmt: skip
BUDGET = thing("policy/v1", "PodDisruptionBudget", namespace="shop", spec={
    "minAvailable": 1, "selector": {"matchLabels": {"app": "shop"}}})  # fmt: skip
READING = {"container": {"envFrom": [{"configMapRef": {"name": "map"}}]}}
PAUSING = showing(paused=True)
RUNNING = [
    Case("replicas to zero", Code.STOPS, "it", "replicas is 0",
         **one(deployment(replicas=2), deployment(replicas=0))),
    Case("replicas from zero", Code.STARTS, "it", "runs again: replicas 0",
         **one(deployment(replicas=0), deployment(replicas=2))),
    Case("a CronJob is suspended", Code.STOPS, "it", "spec.suspend",
         **one(thing("batch/v1", "CronJob", namespace="shop", spec={"suspend": False}),
               thing("batch/v1", "CronJob", namespace="shop", spec={"suspend": True}))),
    Case("Crossplane is told to look away", Code.STOPS, "it", "nothing reconciles it",
         **one(gcs(), {**gcs(), "metadata": {"name": "bucket", "namespace": "shop",
                                             "annotations": {"crossplane.io/paused": "true"}}})),
    Case("a budget goes that has paused", Code.STARTS, "budget", "what it holds back runs again",
         old={"budget": part(), "map": config()}, new={"map": config()},
         nested={"part": PAUSING}),
    Case("it never gets ready", Code.NOT_READY, "", "ends up not Ready",
         stations=(wanting({"it": config()}),
                   wanting({"it": config(), "fence": policy()}))),
    Case("a field of the status is lost", Code.STATUS_LOST, "", "status.url is no longer set",
         stations=(showing(url="https://shop"), showing())),
    Case("the connection Secret goes", Code.CONNECTION_LOST, "it", "Secret conn",
         **one(legacy(writeConnectionSecretToRef={"name": "conn", "namespace": "shop"}), legacy())),
    Case("a key of a Secret goes", Code.CONNECTION_LOST, "it", "loses password",
         **one(secret(user="u", password="p"), secret(user="u"))),
    Case("an image without a fixed version", Code.UNPINNED, "it", "shop:latest",
         **one(deployment(), deployment(pod={"container": {"image": "shop:latest"}}))),
    Case("a Service selects nothing any more", Code.UNSELECTED, "door", "selects nothing now",
         old={"it": deployment(), "door": service()},
         new={"it": deployment(), "door": service(selector={"app": "other"})}),
    Case("a workload leaves its network policy", Code.UNSELECTED, "fence", "Deployment shop/web",
         old={"it": deployment({"app": "shop", "v": "1"}), "fence": policy()},
         new={"it": deployment({"app": "stall", "v": "1"}), "fence": policy()}),
    Case("a workload leaves its disruption budget", Code.UNSELECTED, "pdb", "selects",
         old={"it": deployment({"app": "shop"}), "pdb": BUDGET},
         new={"it": deployment({"app": "stall"}), "pdb": BUDGET}),
    Case("an autoscaler loses its target", Code.UNSELECTED, "scaler", "scales Deployment",
         old={"it": deployment(), "scaler": SCALER}, new={"scaler": SCALER}),
    Case("a workload refers to a ConfigMap that goes", Code.DANGLING, "it", "ConfigMap map",
         **without({"it": deployment(pod=READING), "map": config()}, "map")),
    Case("a network policy goes", Code.UNGUARDED, "fence", "is allowed",
         **without({"fence": policy(), "map": config()}, "fence")),
    Case("a quota goes", Code.UNGUARDED, "quota", "no quota",
         **without({"quota": thing("v1", "ResourceQuota", namespace="shop"), "map": config()},
                   "quota")),
    Case("a protection against deletion goes", Code.UNGUARDED, "use", "may be deleted",
         **without({"use": thing("protection.crossplane.io/v1beta1", "ClusterUsage"),
                    "map": config()}, "use")),
    Case("a namespace's level of security falls", Code.UNGUARDED, "it", "restricted → privileged",
         **one(room(**{"pod-security.kubernetes.io/enforce": "restricted"}),
               room(**{"pod-security.kubernetes.io/enforce": "privileged"}))),
]  # fmt: skip

# --- who may more

AWS_POLICY = json.dumps({"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:*"}]})
ACCESS = [
    Case("a bucket for everybody", Code.ACCESS, "it", "allUsers means everybody",
         **one(managed("BucketIAMMember", "storage.gcp.m.upbound.io",
                       forProvider={"member": "user:a@example.org"}),
               managed("BucketIAMMember", "storage.gcp.m.upbound.io",
                       forProvider={"member": "allUsers"}))),
    Case("a policy that lets everybody in", Code.ACCESS, "it", "lets everybody in",
         old={}, new={"it": managed("BucketPolicy", "s3.aws.m.upbound.io",
                                    forProvider={"policy": AWS_POLICY})}),
    Case("a role of a cloud that may everything", Code.ACCESS, "it", "grants roles/owner",
         **one(managed("ProjectIAMMember", "cloudplatform.gcp.m.upbound.io",
                       forProvider={"role": "roles/viewer", "member": "user:a@example.org"}),
               managed("ProjectIAMMember", "cloudplatform.gcp.m.upbound.io",
                       forProvider={"role": "roles/owner", "member": "user:a@example.org"}))),
    Case("a binding of cluster-admin", Code.ACCESS, "it", "binds cluster-admin",
         old={}, new={"it": binding("cluster-admin")}),
    Case("a role that may everything", Code.ACCESS, "it", "may use every verb on pods",
         **one(role("get"), role("*"))),
    Case("a role that may become anybody", Code.ACCESS, "it", "may use impersonate",
         **one(role("get"), role("get", "impersonate"))),
    Case("a role that reads every Secret", Code.ACCESS, "it", "every Secret",
         **one(role("get"), role("get", resources=("pods", "secrets")))),
    Case("a binding for whoever is not known", Code.ACCESS, "it", "system:anonymous",
         **one(binding("view"), binding("view", subjects=[
             {"kind": "User", "name": "system:anonymous"}]))),
    Case("a database that is reached from anywhere", Code.ACCESS, "it", "publiclyAccessible",
         **one(rds(publiclyAccessible=False), rds(publiclyAccessible=True))),
    Case("a network for everybody", Code.ACCESS, "it", "0.0.0.0/0 means everybody",
         **one(gcs(ranges=["10.0.0.0/8"]), gcs(ranges=["0.0.0.0/0"]))),
    Case("a Service that is reached from outside", Code.ACCESS, "it", "from outside the cluster",
         **one(service(), service(type="LoadBalancer"))),
    Case("a container with the powers of its node", Code.ACCESS, "it", "privileged",
         **one(deployment(), deployment(pod={"container": {
             "securityContext": {"privileged": True}}}))),
    Case("a folder of the node in a Pod", Code.ACCESS, "it", "mounts /",
         **one(deployment(), deployment(pod={"volumes": [
             {"name": "root", "hostPath": {"path": "/"}}]}))),
    Case("the same inside an Object", Code.ACCESS, "it", "binds cluster-admin",
         **one(wrapping(config()), wrapping(binding("cluster-admin")))),
    Case("a secret in a ConfigMap", Code.EXPOSED, "it", "the value of a Secret",
         old={"it": config(), "keys": secret(password=SECRET_VALUE)},
         new={"it": config(url=f"https://u:{SECRET_VALUE}@db"),
              "keys": secret(password=SECRET_VALUE)}),
    Case("a secret, decoded, in the environment", Code.EXPOSED, "it", "spec contains",
         old={"it": deployment(), "keys": {**secret(), "data": {
             "p": base64.b64encode(SECRET_VALUE.encode()).decode()}}},
         new={"it": deployment(pod={"container": {"env": [{"name": "P", "value": SECRET_VALUE}]}}),
              "keys": {**secret(), "data": {
                  "p": base64.b64encode(SECRET_VALUE.encode()).decode()}}}),
    Case("a password in a ConfigMap, by its name", Code.EXPOSED, "it", "named like a secret",
         **one(config(), config(dbPassword="x"))),
]  # fmt: skip

# --- the order itself, its definition, its Composition

ORDERS = [
    Case("a default of the XRD changes", Code.DEFAULT, "", "nobody set it",
         xrd=fields(mode={**TEXT, "default": "plain"}),
         new_xrd=fields(mode={**TEXT, "default": "fancy"})),
    Case("the XRD requires a field", OutcomeRule.SCHEMA, "", "Required value",
         before={"size": "s"}, xrd=SIZES,
         new_xrd=definition("XShop", {"size": TEXT, "team": TEXT}, required=["team"])),
    Case("the XRD allows a value no more", OutcomeRule.SCHEMA, "", "supported values",
         before={"size": "s"}, xrd=SIZES, new_xrd=fields(size={**TEXT, "enum": ["m", "l"]})),
    Case("a field of the XRD has another type", OutcomeRule.SCHEMA, "", "must be of type integer",
         before={"size": "s"}, xrd=SIZES, new_xrd=fields(size={"type": "integer"})),
    Case("a field of the XRD goes", OutcomeRule.SCHEMA, "", "unknown field",
         before={"size": "s"}, xrd=SIZES, new_xrd=fields(other=TEXT)),
    Case("the selector of Compositions flips", Code.COMPOSITION, "", "compositionSelector",
         before={"crossplane": {"compositionSelector": {"matchLabels": {"channel": "stable"}}}},
         after={"crossplane": {"compositionSelector": {"matchLabels": {"channel": "next"}}}}),
    Case("another Composition is named", Code.COMPOSITION, "", "compositionRef",
         before={}, after={"crossplane": {"compositionRef": {"name": "other"}}}),
    Case("the order goes to another team", Code.TEAM, "", "from team red to blue",
         before={"team": "red"}, after={"team": "blue"}),
    Case("the dataset vanishes", Code.MISSING_FACT, "", "ConfigMap shop/two",
         before={"dataset": "one"}, after={"dataset": "two"}, stations=(asking, asking)),
    Case("the pipeline warns", Code.WARNING, "", "the price list is old",
         stations=(wanting({"map": config()}), warning)),
    Case("two parts have the same name after it", OutcomeRule.COLLISION, "c",
         "would overwrite it",
         old={"b": config("b")}, new={"b": config("b"), "c": config("b")}),
    Case("a value that the provider does not know", OutcomeRule.SCHEMA, "it", "supported values",
         **one(thing("storage.m.example.org/v1", "Bucket", namespace="shop",
                     spec={"forProvider": {"location": "EU", "class": "warm"}}),
               thing("storage.m.example.org/v1", "Bucket", namespace="shop",
                     spec={"forProvider": {"location": "EU", "class": "hot"}}))),
    Case("a misspelt field of a provider", OutcomeRule.SCHEMA, "it", "unknown field",
         **one(thing("storage.m.example.org/v1", "Bucket", namespace="shop",
                     spec={"forProvider": {"location": "EU"}}),
               thing("storage.m.example.org/v1", "Bucket", namespace="shop",
                     spec={"forProvider": {"location": "EU", "clas": "warm"}}))),
]  # fmt: skip

CASES = [*LOSSES, *WEAKER, *RUNNING, *ACCESS, *ORDERS]


def planned(case: Case) -> Plan:
    """Plan a case as any other change."""
    stations = case.stations or (wanting(case.old), wanting(case.new))
    xrd = case.xrd or definition("XShop")
    facts = (config("one"),)
    old = Shop(stations[0], xrd=xrd, nested=case.nested, laws=LAWS, existing=facts)
    new = replace(old, station=stations[1], xrd=case.new_xrd or xrd)
    after = case.before if case.after is None else case.after
    return step(old, new, before=an_xr(case.before), after=an_xr(after))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_the_danger_is_named(case: Case) -> None:
    plan = planned(case)

    dangers = [(each.code, each.path, each.message) for each in plan.dangers]
    faults = [(each.code, each.path, each.message) for each in plan.faults]
    found = [
        text for code, path, text in (*dangers, *faults) if (code, path) == (case.code, case.at)
    ]
    assert found, (dangers, faults)
    assert any(case.words in text for text in found), found
    shown = json.dumps(plan_answer(plan).to_json())
    assert f'"{case.code}"' in shown
    assert f"({case.code})" in to_markdown(plan) or isinstance(case.code, OutcomeRule)


def test_the_catalogue_is_long_enough_and_uses_every_code() -> None:
    assert len({case.reason for case in CASES}) == len(CASES) >= 40
    by_cluster = {Code.ADOPTS}
    assert {case.code for case in CASES if isinstance(case.code, Code)} == set(Code) - by_cluster


HARMLESS = [
    one(ec2(size="s", subnetId="resolved"), ec2(size="m")),
    pytest.param(one(config(a="1"), config(a="2")), id="a value of a ConfigMap"),
    pytest.param(one(claim("9Gi"), claim("10Gi")), id="a claim that grows"),
    pytest.param(one(claim(), claim(storageClassName="slow")), id="a class where there was none"),
    pytest.param(one(wrapping(claim("9Gi")), wrapping(claim("10Gi"))),
                 id="the same claim in an Object"),
    pytest.param(one(thing("storage.gcp.upbound.io/v1beta1", "Bucket"),
                     thing("storage.gcp.upbound.io/v1beta1", "Bucket",
                           annotations={"crossplane.io/external-name": "real-bucket"})),
                 id="an external name where there was none"),
    pytest.param(one(rds(deletionProtection=False), rds(deletionProtection=True)), id="a guard"),
    pytest.param(one(binding("view", subjects=[]), binding("view", subjects=[
        {"kind": "User", "name": "eve"}])), id="one more reader"),
    pytest.param(one(without_claims(), stateful(volumeClaimTemplates=[])), id="no claims"),
    pytest.param(one(deployment(replicas=1), deployment(replicas=5)), id="more replicas"),
    pytest.param(one(gcs(publicAccessPrevention="inherited"),
                     gcs(publicAccessPrevention="enforced")), id="a bucket that is closed"),
    pytest.param(one(config(), config(passwordSecretRef="keys")), id="a reference to a Secret"),
    pytest.param({"old": {"it": gcs()}, "new": {"it": gcs(labels={"a": "b"})}}, id="a label"),
    pytest.param({"old": {"it": thing("example.org/v1", "Scratch"), "map": config()},
                  "new": {"map": config()}}, id="a kind that the pack says holds nothing"),
    pytest.param(one(ec2(size="s", subnetId="resolved"), ec2(size="m")),
                 id="a value that a provider resolved"),
    pytest.param({"old": {"map": config()}, "new": {
        "map": config(), "fence": thing("networking.k8s.io/v1", "NetworkPolicy", namespace="shop",
        spec={"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]})}},
        id="a policy that lets traffic out"),
]  # fmt: skip


@pytest.mark.parametrize("sides", HARMLESS)
def test_what_is_harmless_is_no_danger(sides: dict[str, Any]) -> None:
    case = Case("", Code.WARNING, "", "", before={"a": 1}, after={"a": 2}, **sides)

    assert [each for each in planned(case).dangers if each.code is not Code.NOT_READY] == []


def test_a_pipeline_that_fails_takes_nothing_away() -> None:
    def failing(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        response.fatal("no stock")
        return response

    case = Case("", Code.WARNING, "", "", stations=(wanting({"it": claim()}), failing))

    plan = planned(case)

    assert plan.changes == ()
    assert plan.dangers == ()
    assert [fault.code for fault in plan.faults] == ["pipeline"]


def test_a_nested_pipeline_that_fails_takes_nothing_away() -> None:
    def inner(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        if request.xr["spec"].get("bad"):
            response.fatal("no stock")
        response.want("store", gcs())
        return response

    plan = planned(
        Case("", Code.WARNING, "", "", nested={"part": inner}, **one(part(), part(bad=True)))
    )

    assert [change.path for change in plan.changes] == ["it"]
    assert [danger.code for danger in plan.dangers] == [Code.NOT_READY]


def test_what_only_the_cluster_knows_is_told_once_it_is_asked() -> None:
    """A Secret that was looked up is recognised wherever it appears."""
    known = thing("v1", "Secret", namespace="shop", stringData={"p": SECRET_VALUE})
    shop = Shop(wanting({"it": config()})).workshop
    leaking = Shop(wanting({"it": config(text=SECRET_VALUE)})).workshop
    before, after = assemble(an_xr({}), shop), assemble(an_xr({}), leaking)

    plan = compare(before, after, context=DangerContext(existing=[known]))

    assert [danger.code for danger in plan.dangers] == [Code.EXPOSED]
    assert SECRET_VALUE not in plan.dangers[0].message
