"""Argo CD of the lab: reads a private repository of the lab's Gitea, delivers, heals, prunes."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
import yaml
from deliveries import Delivery
from lab.realargocd import ArgoCD
from lab.realgitea import Gitea

from orderkit.adapters.gitea.client import GiteaForge
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.core.objects.kube_objects import CONFIG_MAP, Manifest, ObjectKey, dig
from orderkit.flows.argocd.refreshing import REFRESH

ORGANISATION = "lab"


@pytest.fixture(scope="module")
def forge(real_gitea: Gitea) -> GiteaForge:
    return GiteaForge(real_gitea.url, token=real_gitea.token, allow_http=True)


@pytest.fixture(scope="module")
def cluster(real_argocd: ArgoCD, real_gitea: Gitea) -> Iterator[KubeCluster]:
    real_argocd.lend(real_gitea.url, (real_gitea.user, real_gitea.token))
    with KubeCluster.from_kubeconfig(real_argocd.kube.kubeconfig) as found:
        yield found


@pytest.fixture
def namespace(cluster: KubeCluster) -> Iterator[str]:
    name = f"lab-{secrets.token_hex(4)}"
    metadata = {"name": name}
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, owner="test")
    yield name
    cluster.delete(ObjectKey.from_json({"apiVersion": "v1", "kind": "Namespace", "name": name}))


@pytest.fixture
def delivery(forge: GiteaForge, cluster: KubeCluster) -> Iterator[Delivery]:
    made = Delivery(forge, cluster, organisation=ORGANISATION)
    yield made
    made.remove()


def config_map(name: str, value: str) -> str:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return yaml.safe_dump(manifest | {"data": {"value": value}})


def refresh(delivery: Delivery) -> None:
    patch = {"metadata": {"annotations": {REFRESH: "normal"}}}
    delivery.cluster.patch(delivery.key, patch, owner="test")


def delivered_at(commit: str, application: Manifest) -> bool:
    status = application.get("status", {})
    sync, operation = status.get("sync", {}), status.get("operationState", {})
    return (sync.get("status"), sync.get("revision"), operation.get("phase")) == (
        "Synced",
        commit,
        "Succeeded",
    )


def test_it_delivers_a_private_repository_heals_and_prunes(
    delivery: Delivery, namespace: str
) -> None:
    first = delivery.push({"a.yaml": config_map("a", "1"), "b.yaml": config_map("b", "1")})
    delivery.deliver(namespace)
    delivery.await_application(lambda found: delivered_at(first, found))
    a, b = (ObjectKey(CONFIG_MAP, name, namespace) for name in "ab")

    delivery.cluster.patch(a, {"data": {"value": "by hand"}}, owner="somebody")
    delivery.await_application(
        lambda _: dig(delivery.cluster.get(a), "data", "value") == "1"  # self-heal
    )
    second = delivery.push({"a.yaml": config_map("a", "2"), "b.yaml": None})
    refresh(delivery)
    delivery.await_application(lambda found: delivered_at(second, found))

    assert dig(delivery.cluster.get(a), "data", "value") == "2"
    assert delivery.cluster.get(b) is None
