"""Layers on a real Argo CD with our health checks: the next one begins when this one is ready."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
import yaml
from deliveries import Delivery
from healthcases import NEW, OLD
from lab.realargocd import ArgoCD
from lab.realgitea import Gitea

from ground.argocd.health_lua import LAYER_LABEL
from ground.objects.kube_objects import FUNCTION, Manifest, ObjectKey, dig
from orderkit.adapters.gitea.client import GiteaForge
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.flows.argocd.refreshing import REFRESH, application_key
from orderkit_standins.crossplane.crds import crossplane_crds

WITHIN_S = 180.0


@pytest.fixture(scope="module")
def cluster(real_argocd: ArgoCD, real_gitea: Gitea) -> Iterator[KubeCluster]:
    real_argocd.lend(real_gitea.url, (real_gitea.user, real_gitea.token))
    with KubeCluster.from_kubeconfig(real_argocd.kube.kubeconfig) as found:
        for crd in crossplane_crds():
            if crd["spec"]["names"]["kind"] == FUNCTION.kind:
                found.apply(crd, owner="test")
        await_(lambda: found.serves(FUNCTION))
        yield found


@pytest.fixture
def root(real_gitea: Gitea, cluster: KubeCluster) -> Iterator[Delivery]:
    forge = GiteaForge(real_gitea.url, token=real_gitea.token, allow_http=True)
    made = Delivery(forge, cluster, organisation="lab")
    yield made
    made.remove()
    for layer in ("one", "two"):
        key = application_key(f"{made.name}-{layer}")
        if cluster.get(key):
            cluster.delete(key)
    function = ObjectKey(FUNCTION, made.name)
    if cluster.get(function):
        cluster.delete(function)


def await_(done: Callable[[], object]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not done():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.1)


def layer(root: Delivery, name: str, wave: int) -> str:
    manifest = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": f"{root.name}-{name}",
            "namespace": "argocd",
            "labels": {LAYER_LABEL: name},
            "annotations": {"argocd.argoproj.io/sync-wave": str(wave)},
        },
        "spec": {
            "project": "default",
            "source": {
                "repoURL": f"{root.forge.base_url}/{root.repository}.git",
                "path": f"manifests/{name}",
                "targetRevision": "main",
            },
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            "syncPolicy": {
                "automated": {"prune": True, "selfHeal": True},
                "syncOptions": ["ServerSideApply=true"],
            },
        },
    }
    return yaml.safe_dump(manifest)


def function(root: Delivery) -> str:
    metadata = {"name": root.name}
    spec = {"package": NEW}
    return yaml.safe_dump(
        {
            "apiVersion": "pkg.crossplane.io/v1",
            "kind": "Function",
            "metadata": metadata,
            "spec": spec,
        }
    )


def config_map(root: Delivery) -> str:
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": root.name}}
    )


def tell(root: Delivery, package: str) -> None:
    """Write what a Crossplane would: healthy, for a package."""
    conditions = [
        {
            "type": type_,
            "status": "True",
            "reason": "Told",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for type_ in ("Installed", "Healthy")
    ]
    live: Manifest = root.cluster.get(ObjectKey(FUNCTION, root.name)) or {}
    status = {"conditions": conditions, "currentIdentifier": package}
    root.cluster.replace({**live, "status": status}, owner="test", status=True)


def refresh(root: Delivery, name: str) -> None:
    patch = {"metadata": {"annotations": {REFRESH: "normal"}}}
    root.cluster.patch(application_key(name), patch, owner="test")


def health(root: Delivery, name: str) -> str:
    found = root.cluster.get(application_key(name))
    return str(dig(found or {}, "status", "health", "status", default=""))


def test_a_layer_waits_for_the_wanted_package_and_for_files_that_can_be_read(
    root: Delivery,
) -> None:
    one, two = f"{root.name}-one", f"{root.name}-two"
    root.push(
        {
            "one.yaml": layer(root, "one", 0),
            "two.yaml": layer(root, "two", 10),
            "one/function.yaml": function(root),
            "two/map.yaml": config_map(root),
        }
    )
    root.deliver("argocd")
    await_(lambda: root.cluster.get(ObjectKey(FUNCTION, root.name)))
    waits = f"Application/{one}"
    root.await_application(
        lambda app: waits in str(dig(app, "status", "operationState", "message", default=""))
    )

    tell(root, OLD)
    refresh(root, one)
    await_(
        lambda: (
            REFRESH not in dig(root.cluster.get(application_key(one)), "metadata", "annotations")
        )
    )
    assert health(root, one) == "Progressing", "still the package before"
    assert root.cluster.get(application_key(two)) is None

    tell(root, NEW)
    await_(lambda: health(root, two) == "Healthy")
    root.await_application(lambda app: dig(app, "status", "health", "status") == "Healthy")

    root.push({"one/broken.yaml": "apiVersion: v1\nkind: [\nmetadata:\n"})
    refresh(root, one)
    await_(
        lambda: dig(root.cluster.get(application_key(one)), "status", "sync", "status") == "Unknown"
    )
    assert health(root, one) == "Healthy", "what Argo CD itself says of it"
    root.await_application(lambda app: dig(app, "status", "health", "status") == "Progressing")
