"""What Jobs need in the cluster, judged by a real API server: taken, closed enough, no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from accessreviews import may
from lab.realkube import Kube

from ground.objects.kube_objects import NAMESPACE as NAMESPACE_KIND
from ground.objects.kube_objects import Kind
from orderkit import __version__
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.core.platform.baking import SENTINEL
from orderkit.core.portal.runner_job import ACCOUNT, NAMESPACE, RunnerJob, manifest
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import Cluster, InvalidObjectError

ROOM = Path(__file__).parents[2] / "day2" / "job"
POD = Kind("", "v1", "Pod")


@pytest.fixture(scope="module")
def cluster(real_kube: Kube) -> Iterator[Cluster]:
    with KubeCluster.from_kubeconfig(real_kube.kubeconfig) as found:
        argocd = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}}
        found.apply(argocd, owner="test")
        for file in sorted(ROOM.glob("*.yaml")):
            text = file.read_bytes().replace(b"__ORDERKIT_REGISTRY__", b"registry.local")
            text = SENTINEL.sub(b"http://127.0.0.1", text)
            for each in yaml.safe_load_all(text):
                found.apply(each, owner="test")
        yield found


def job(name: str) -> dict[str, Any]:
    return manifest(RunnerJob(name, f"registry.local/orderkit/orderkit:v{__version__}", ["change"]))


def pod(name: str, **security: Any) -> dict[str, Any]:
    """Return the Pod that the Job controller would make."""
    template = job(name)["spec"]["template"]
    spec = {**template["spec"], **security}
    meta = {**template["metadata"], "name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def test_the_job_is_one_the_server_takes(cluster: Cluster) -> None:
    found = cluster.create(job("taken"), owner="test")

    assert found["spec"]["ttlSecondsAfterFinished"] == 3600
    assert found["spec"]["template"]["spec"]["automountServiceAccountToken"] is False


def test_its_pod_satisfies_the_restricted_standard(cluster: Cluster) -> None:
    cluster.create(pod("closed"), owner="test")


def test_a_pod_that_is_more_open_is_refused_there(cluster: Cluster) -> None:
    with pytest.raises(Exception, match="violates PodSecurity") as error:
        cluster.create(pod("open", securityContext={}), owner="test")
    assert not isinstance(error.value, InvalidObjectError), "forbidden, not malformed"


@pytest.mark.parametrize(
    ("verb", "resource", "namespace", "allowed", "reason"),
    [
        ("get", "argoproj.io/applications", "argocd", True, "to see whether it is delivered"),
        ("patch", "argoproj.io/applications", "argocd", True, "to refresh it"),
        ("list", "argoproj.io/applications", "argocd", False, "it knows the name"),
        ("update", "argoproj.io/applications", "argocd", False, "a patch is enough"),
        ("delete", "argoproj.io/applications", "argocd", False, "the ledger removes it"),
        ("create", "argoproj.io/applications", "argocd", False, "the ledger makes it"),
        ("get", "argoproj.io/applications", "default", False, "only where orders are"),
        ("get", "/secrets", NAMESPACE, False, "the kubelet mounts what it needs"),
        ("create", "batch/jobs", NAMESPACE, False, "no Job starts another"),
        ("create", "/namespaces", "", False, "it makes nothing in the cluster"),
    ],
)
def test_the_account_may_do_this_and_no_more(
    cluster: Cluster, verb: str, resource: str, namespace: str, *, allowed: bool, reason: str
) -> None:
    group, _, plural = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": plural, "namespace": namespace}

    until(
        SystemClock(),
        lambda: may(cluster, NAMESPACE, ACCOUNT, attributes),
        lambda found: found is allowed,
        timeout_s=60,
        goal=reason,
    )


def test_the_namespace_enforces_it(cluster: Cluster) -> None:
    (found,) = [
        each for each in cluster.list(NAMESPACE_KIND).items if each["metadata"]["name"] == NAMESPACE
    ]

    assert found["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
