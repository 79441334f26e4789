"""The twins of providers on the embedded cluster: what they do to objects, seen from outside."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ground.objects.kube_objects import (
    CONFIG_MAP,
    NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    condition,
    dig,
    metadata,
)
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import Cluster
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.crossplane import crossplane_crds
from orderkit_standins.providers import Providers
from orderkit_standins.workloads import (
    AUTOSCALER,
    BUDGET,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    POD,
    SERVICE,
    Workloads,
)

PROVIDER = Kind("pkg.crossplane.io", "v1", "Provider")
OBJECT = Kind("kubernetes.m.crossplane.io", "v1alpha1", "Object")
LEGACY = Kind("kubernetes.crossplane.io", "v1alpha2", "Object")
SECRET = Kind("", "v1", "Secret")
BUCKET = Kind("storage.gcp.m.upbound.io", "v1beta1", "Bucket")
EXTERNAL = Kind("cloud.embedded.orderkit.dev", "v1alpha1", "ExternalResource")
TEST, HOME, PATIENCE_S = "test", "team-a", 90.0
ANNOTATION = "embedded.orderkit.dev"
REPLICATED: dict[str, Any] = {
    "selector": {"matchLabels": {"app": "a"}},
    "template": {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "a", "image": "a:1"}]},
    },
}


def made(kind: Kind, name: str, **more: Any) -> Manifest:
    meta = {"name": name, **more.pop("meta", {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **more}


def provider(name: str, **asked: str) -> Manifest:
    notes = {f"{ANNOTATION}/{key}": value for key, value in asked.items()}
    return made(PROVIDER, name, meta={"annotations": notes}, spec={"package": "example.org/x:v1"})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    store = EmbeddedCluster(tmp_path_factory.mktemp("twins") / "cluster.sqlite")
    for crd in crossplane_crds():
        store.apply(crd, owner=TEST)
    parts = (Providers(store), Workloads(store))
    for part in parts:
        part.start()
    kinds = (
        f"Bucket.v1beta1.{BUCKET.group}, ServiceAccountKey.v1beta1.cloudplatform.gcp.m.upbound.io"
    )
    store.apply(provider("kubernetes", twin="objects"), owner=TEST)
    store.apply(provider("gcp", twin="cloud", kinds=kinds, delay="0.3s"), owner=TEST)
    for name in ("kubernetes", "gcp"):
        wait(store, ObjectKey(PROVIDER, name), says("Healthy", "True"))
    store.apply(made(NAMESPACE, HOME), owner=TEST)
    for group, version in ((OBJECT.group, "v1alpha1"), ("gcp.m.upbound.io", "v1beta1")):
        config = Kind(group, version, "ClusterProviderConfig")
        store.apply(made(config, "default", spec={}), owner=TEST)
    legacy = Kind(LEGACY.group, "v1alpha1", "ProviderConfig")
    store.apply(made(legacy, "default", spec={}), owner=TEST)
    yield store
    for part in parts:
        part.stop()
    store.close()


Holds = Callable[[Manifest], bool]


def says(type_: str, status: str, text: str = "") -> Holds:
    def holds(found: Manifest) -> bool:
        entry = condition(found, type_) or {}
        return entry.get("status") == status and text in str(entry.get("message", ""))

    return holds


def wait(cluster: Cluster, key: ObjectKey, holds: Holds) -> Manifest:
    found = until(
        SystemClock(),
        lambda: cluster.get(key) or {},
        lambda seen: bool(seen) and holds(seen),
        timeout_s=PATIENCE_S,
        goal=str(key),
    )
    assert found
    return found


def wait_gone(cluster: Cluster, key: ObjectKey) -> None:
    until(
        SystemClock(),
        lambda: cluster.get(key),
        lambda seen: seen is None,
        timeout_s=PATIENCE_S,
        goal=f"end of {key}",
    )


def config_map(name: str, **data: str) -> Manifest:
    return made(CONFIG_MAP, name, meta={"namespace": HOME}, data=data)


def wrapped(name: str, manifest: Manifest, **spec: Any) -> Manifest:
    about = {"forProvider": {"manifest": manifest}, **spec}
    return made(OBJECT, name, meta={"namespace": HOME}, spec=about)


def key_of(name: str, kind: Kind = OBJECT) -> ObjectKey:
    return ObjectKey(kind, name, "" if kind == LEGACY else HOME)


def managers(manifest: Manifest, *path: str) -> set[str]:
    """Return who owns a field."""
    found = set()
    for entry in metadata(manifest)["managedFields"]:
        if dig(entry, "fieldsV1", *(f"f:{step}" for step in path)) is not None:
            found.add(entry["manager"])
    return found


def test_an_object_applies_what_it_wraps_and_shows_it(cluster: Cluster) -> None:
    cluster.create(wrapped("whole", config_map("whole", a="1")), owner=TEST)

    shown = wait(cluster, key_of("whole"), says("Ready", "True"))

    target = cluster.get(ObjectKey(CONFIG_MAP, "whole", HOME))
    assert target is not None
    assert target["data"] == {"a": "1"}
    assert managers(target, "data", "a") == {"provider-kubernetes/whole"}
    assert shown["status"]["atProvider"]["manifest"]["data"] == {"a": "1"}
    assert says("Synced", "True")(shown)


def test_what_somebody_else_edits_is_put_right_and_the_rest_left_alone(cluster: Cluster) -> None:
    cluster.create(wrapped("mended", config_map("mended", a="1")), owner=TEST)
    target = ObjectKey(CONFIG_MAP, "mended", HOME)
    wait(cluster, key_of("mended"), says("Ready", "True"))

    cluster.patch(target, {"data": {"a": "2", "b": "3"}}, owner="somebody")

    found = wait(cluster, target, lambda seen: seen["data"]["a"] == "1")
    assert found["data"]["b"] == "3"


def test_a_deleted_target_comes_back(cluster: Cluster) -> None:
    cluster.create(wrapped("back", config_map("back", a="1")), owner=TEST)
    target = ObjectKey(CONFIG_MAP, "back", HOME)
    first = wait(cluster, target, lambda _: True)

    cluster.delete(target)

    wait(cluster, target, lambda seen: metadata(seen)["uid"] != metadata(first)["uid"])


def test_a_sparse_manifest_that_may_only_update_owns_one_field(cluster: Cluster) -> None:
    """What a budget does: replicas are its own, the rest stays the operator's."""
    replicas = made(DEPLOYMENT, "planner", meta={"namespace": HOME}, spec={"replicas": 0})
    policies = ["Observe", "Update"]
    cluster.create(wrapped("budget", replicas, managementPolicies=policies), owner=TEST)
    wait(cluster, key_of("budget"), says("Ready", "False"))
    target = ObjectKey(DEPLOYMENT, "planner", HOME)
    assert cluster.get(target) is None

    template = {"spec": {"containers": [{"name": "main", "image": "example.org/x:1"}]}}
    whole = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    cluster.apply({**replicas, "spec": whole}, owner="operator")

    found = wait(cluster, target, lambda seen: seen["spec"]["replicas"] == 0)
    assert managers(found, "spec", "replicas") == {"provider-kubernetes/budget"}
    assert managers(found, "spec", "template") == {"operator"}
    wait(cluster, key_of("budget"), says("Ready", "True"))
    stopped = wait(
        cluster, target, lambda seen: dig(seen, "status", "observedGeneration") is not None
    )
    cluster.delete(key_of("budget"))
    wait_gone(cluster, key_of("budget"))
    left = cluster.get(target)
    assert left is not None
    assert left["spec"]["replicas"] == stopped["spec"]["replicas"] == 0


@pytest.mark.parametrize(("policies", "left"), [(["*"], False), (["Observe", "Create"], True)])
def test_what_a_deleted_object_leaves(cluster: Cluster, policies: list[str], *, left: bool) -> None:
    name = f"ends-{str(left).lower()}"
    made_of = wrapped(name, config_map(name, a="1"), managementPolicies=policies)
    cluster.create(made_of, owner=TEST)
    wait(cluster, key_of(name), says("Ready", "True"))

    cluster.delete(key_of(name))

    wait_gone(cluster, key_of(name))
    assert (cluster.get(ObjectKey(CONFIG_MAP, name, HOME)) is not None) is left


def test_the_old_flavour_makes_namespaces(cluster: Cluster) -> None:
    about = {"forProvider": {"manifest": {"apiVersion": "v1", "kind": "Namespace"}}}
    cluster.create(made(LEGACY, "space", spec=about), owner=TEST)

    wait(cluster, key_of("space", LEGACY), says("Ready", "True"))

    assert cluster.get(ObjectKey(NAMESPACE, "space")) is not None


def test_an_object_waits_for_its_namespace(cluster: Cluster) -> None:
    inside = config_map("later", a="1")
    inside["metadata"]["namespace"] = "not-yet"
    cluster.create(wrapped("early", inside), owner=TEST)
    wait(cluster, key_of("early"), says("Synced", "False", 'namespaces "not-yet" not found'))

    cluster.apply(made(NAMESPACE, "not-yet"), owner=TEST)

    wait(cluster, key_of("early"), says("Ready", "True"))


def test_a_query_says_when_an_object_is_ready(cluster: Cluster) -> None:
    readiness = {"policy": "DeriveFromCelQuery", "celQuery": 'object.data.a == "2"'}
    cluster.create(wrapped("asked", config_map("asked", a="1"), readiness=readiness), owner=TEST)
    wait(cluster, key_of("asked"), says("Ready", "False"))

    cluster.apply(wrapped("asked", config_map("asked", a="2"), readiness=readiness), owner=TEST)

    wait(cluster, key_of("asked"), says("Ready", "True"))


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"references": [{"dependsOn": {}}]}, "spec.references"),
        (
            {"readiness": {"policy": "DeriveFromCelQuery", "celQuery": "object."}},
            "spec.readiness.celQuery",
        ),
        ({"managementPolicies": ["Create"]}, "invalid managementPolicies: Create"),
        (
            {"providerConfigRef": {"kind": "ClusterProviderConfig", "name": "nobody"}},
            "ClusterProviderConfig.kubernetes.m",
        ),
    ],
    ids=["references", "cel", "policies", "config"],
)
def test_what_is_not_done_is_said(cluster: Cluster, spec: dict[str, Any], text: str) -> None:
    name = f"odd-{next(iter(spec)).lower()}"
    cluster.create(wrapped(name, config_map(name), **copy.deepcopy(spec)), owner=TEST)

    wait(cluster, key_of(name), says("Synced", "False", text))

    assert cluster.get(ObjectKey(CONFIG_MAP, name, HOME)) is None


def test_readiness_follows_the_object(cluster: Cluster) -> None:
    bucket = made(BUCKET, "followed", meta={"namespace": HOME}, spec={"forProvider": {}})
    derived = {"readiness": {"policy": "DeriveFromObject"}}
    cluster.create(wrapped("follows", bucket, **derived), owner=TEST)

    wait(cluster, key_of("follows"), says("Ready", "False"))
    wait(cluster, key_of("follows"), says("Ready", "True"))


def test_a_managed_resource_is_synced_first_and_ready_after_a_while(cluster: Cluster) -> None:
    bucket = made(
        BUCKET, "slow", meta={"namespace": HOME}, spec={"forProvider": {"location": "EU"}}
    )
    cluster.create(bucket, owner=TEST)
    key = ObjectKey(BUCKET, "slow", HOME)

    wait(cluster, key, lambda seen: says("Synced", "True")(seen) and says("Ready", "False")(seen))
    found = wait(cluster, key, says("Ready", "True"))

    assert found["metadata"]["annotations"]["crossplane.io/external-name"] == "slow"
    observed = found["status"]["atProvider"]
    assert (observed["location"], observed["id"]) == ("EU", "slow")
    assert observed["selfLink"].endswith("/buckets/slow"), "as Google names it"
    assert "Bucket slow" in external(cluster)


def external(cluster: Cluster) -> list[str]:
    found = cluster.list(EXTERNAL).items
    return sorted(f"{m['spec']['kind']} {m['spec']['externalName']}" for m in found)


@pytest.mark.parametrize(("policies", "left"), [(["*"], False), (["Observe", "Create"], True)])
def test_what_a_deleted_resource_leaves_in_the_cloud(
    cluster: Cluster, policies: list[str], *, left: bool
) -> None:
    name = f"cloudy-{str(left).lower()}"
    notes = {"crossplane.io/external-name": f"the-{name}"}
    meta = {"namespace": HOME, "annotations": notes}
    spec = {"forProvider": {}, "managementPolicies": policies}
    cluster.create(made(BUCKET, name, meta=meta, spec=spec), owner=TEST)
    wait(cluster, ObjectKey(BUCKET, name, HOME), says("Ready", "True"))
    assert f"Bucket the-{name}" in external(cluster)

    cluster.delete(ObjectKey(BUCKET, name, HOME))

    wait_gone(cluster, ObjectKey(BUCKET, name, HOME))
    assert (f"Bucket the-{name}" in external(cluster)) is left


def test_a_key_comes_as_a_secret_and_goes_with_its_resource(cluster: Cluster) -> None:
    kind = Kind("cloudplatform.gcp.m.upbound.io", "v1beta1", "ServiceAccountKey")
    spec = {"forProvider": {}, "writeConnectionSecretToRef": {"name": "the-key"}}
    cluster.create(made(kind, "key", meta={"namespace": HOME}, spec=spec), owner=TEST)

    secret = wait(cluster, ObjectKey(SECRET, "the-key", HOME), lambda _: True)

    assert "private_key" in secret["data"]
    assert metadata(secret)["ownerReferences"][0]["kind"] == "ServiceAccountKey"


def test_a_provider_without_a_twin_is_not_healthy(cluster: Cluster) -> None:
    cluster.apply(provider("other"), owner=TEST)
    cluster.apply(provider("wrong", twin="cloud", kinds="Bucket"), owner=TEST)

    wait(cluster, ObjectKey(PROVIDER, "other"), says("Healthy", "False", "has no twin for"))
    wait(
        cluster,
        ObjectKey(PROVIDER, "wrong"),
        says("Healthy", "False", "not a Kind.version.group"),
    )


def test_a_stopped_twin_makes_nothing_ready(cluster: Cluster) -> None:
    """Its Provider is gone, so what it looked after stays as it is."""
    kind = Kind("sql.gcp.m.upbound.io", "v1beta1", "Database")
    name = "gcp-sql"
    cluster.apply(provider(name, twin="cloud", kinds=f"Database.v1beta1.{kind.group}"), owner=TEST)
    wait(cluster, ObjectKey(PROVIDER, name), says("Healthy", "True"))
    cluster.delete(ObjectKey(PROVIDER, name))
    wait_gone(cluster, ObjectKey(PROVIDER, name))
    until(
        SystemClock(),
        lambda: [t.name for t in _threads() if "Database" in t.name],
        lambda left: not left,
        timeout_s=PATIENCE_S,
        goal="end of the twin",
    )

    spec: dict[str, Any] = {"forProvider": {}}
    cluster.create(made(kind, "never", meta={"namespace": HOME}, spec=spec), owner=TEST)
    bucket = made(BUCKET, "meanwhile", meta={"namespace": HOME}, spec=spec)
    cluster.create(bucket, owner=TEST)

    wait(cluster, ObjectKey(BUCKET, "meanwhile", HOME), says("Ready", "True"))
    found = cluster.get(ObjectKey(kind, "never", HOME)) or {}
    assert condition(found, "Ready") is None


def _threads() -> list[Any]:
    import threading

    return threading.enumerate()


def test_a_deployment_counts_its_replicas(cluster: Cluster) -> None:
    key = ObjectKey(DEPLOYMENT, "counted", HOME)
    cluster.create(
        made(DEPLOYMENT, "counted", meta={"namespace": HOME}, spec=REPLICATED), owner=TEST
    )
    found = wait(cluster, key, says("Available", "True"))
    assert found["spec"]["replicas"] == found["status"]["availableReplicas"] == 1

    cluster.patch(key, {"spec": {"replicas": 0}}, owner=TEST)

    found = wait(cluster, key, lambda seen: "availableReplicas" not in seen["status"])
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]


POD_SPEC = REPLICATED["template"]["spec"]
RAN = {"template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}}
WORKLOADS: dict[str, tuple[Kind, dict[str, Any], tuple[str, Any]]] = {
    "a DaemonSet runs on one node": (DAEMON_SET, REPLICATED, ("numberAvailable", 1)),
    "a Job is complete": (JOB, {**RAN, "completions": 3}, ("succeeded", 3)),
    "a Pod runs": (POD, POD_SPEC, ("phase", "Running")),
    "an autoscaler finds what it has": (
        AUTOSCALER,
        {"scaleTargetRef": {"kind": "Deployment", "name": "a"}, "maxReplicas": 5},
        ("currentReplicas", 1),
    ),
    "a budget allows nothing": (BUDGET, {"maxUnavailable": "20%"}, ("disruptionsAllowed", 0)),
}


@pytest.mark.parametrize("case", WORKLOADS)
def test_what_a_cluster_runs_has_a_status(cluster: Cluster, case: str) -> None:
    kind, spec, (field, value) = WORKLOADS[case]
    key = ObjectKey(kind, "made", HOME)
    cluster.create(made(kind, "made", meta={"namespace": HOME}, spec=spec), owner=TEST)

    found = wait(cluster, key, lambda seen: field in (seen.get("status") or {}))

    assert found["status"][field] == value


def test_a_job_that_is_suspended_does_not_run(cluster: Cluster) -> None:
    spec = {**RAN, "suspend": True}
    cluster.create(made(JOB, "later", meta={"namespace": HOME}, spec=spec), owner=TEST)
    cluster.create(made(JOB, "now", meta={"namespace": HOME}, spec=RAN), owner=TEST)

    wait(cluster, ObjectKey(JOB, "now", HOME), says("Complete", "True"))

    assert "status" not in (cluster.get(ObjectKey(JOB, "later", HOME)) or {})


def test_a_service_keeps_the_address_that_it_was_given(cluster: Cluster) -> None:
    key = ObjectKey(SERVICE, "shop", HOME)
    spec = {"ports": [{"port": 80}]}
    service = made(SERVICE, "shop", meta={"namespace": HOME}, spec=spec)
    given = cluster.create(service, owner=TEST)["spec"]

    cluster.apply({**service, "spec": {"ports": [{"port": 81}]}}, owner="other")

    found = (cluster.get(key) or {})["spec"]
    assert given["type"] == "ClusterIP"
    assert given["clusterIP"] == found["clusterIP"] == found["clusterIPs"][0]
