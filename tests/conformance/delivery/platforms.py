"""
Whom the scenarios are played on: the embedded Argo CD on two clusters, and the real Argo CD.

``embedded`` is `EmbeddedArgoCD` on the embedded cluster, ``embedded-kube`` the same through the
Kubernetes adapter on a real API server with its controllers, ``argocd`` is the real Argo CD on
such a server. The real one decides what is right.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from tests.conformance.delivery import builders
from tests.conformance.delivery.builders import GROUP, RIG, WIDGET
from tests.conformance.delivery.eventlog import EventLog
from tests.conformance.delivery.repositories import Repositories
from tests.conformance.delivery.stage import Platform

from ground.errors import NotFoundError
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    CONFIG_MAP,
    CRD,
    NAMESPACE,
    XRD,
    Kind,
    Manifest,
    ObjectKey,
    condition,
    metadata,
)
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.ports.cluster import Cluster
from orderkit_standins.argocd import BareRepositories, EmbeddedArgoCD, argocd_crds
from orderkit_standins.cluster import EmbeddedCluster

GITOPS = Path(__file__).parents[3] / "gitops"
SECRET = Kind("", "v1", "Secret")
ROLE = Kind("rbac.authorization.k8s.io", "v1", "Role")
WATCHED = (NAMESPACE, CONFIG_MAP, SECRET, ROLE, CRD, WIDGET, RIG, APPLICATION)
NEVER_S = 3600.0
_DEFINED_S = 90.0


@contextlib.contextmanager
def embedded(folder: Path, repositories: Repositories) -> Iterator[Platform]:
    """Play on the embedded cluster, in process."""
    cluster = EmbeddedCluster(folder / "cluster.sqlite")
    try:
        with _delivered_by_us("embedded", cluster, cluster, repositories, 0.02) as found:
            yield found
    finally:
        cluster.close()


@contextlib.contextmanager
def embedded_kube(kubeconfig: Path, repositories: Repositories) -> Iterator[Platform]:
    """Play the embedded Argo CD on a real API server."""
    with (
        KubeCluster.from_kubeconfig(kubeconfig) as ours,
        KubeCluster.from_kubeconfig(kubeconfig) as delivery,
        _delivered_by_us("embedded-kube", ours, delivery, repositories, 0.25) as found,
    ):
        yield found


@contextlib.contextmanager
def argocd(kubeconfig: Path, repositories: Repositories) -> Iterator[Platform]:
    """Play the Argo CD that already runs on a real API server."""
    with KubeCluster.from_kubeconfig(kubeconfig) as cluster:
        cluster.apply(health_checks(), owner="suite")
        prepare(cluster)
        cluster.apply(_credentials(repositories), owner="suite")
        with _watched(cluster) as log:
            platform = Platform("argocd", cluster, repositories, log, 180.0, 0.4, 20)
            yield platform
        _leave(platform)


@contextlib.contextmanager
def _delivered_by_us(
    name: str, cluster: Cluster, own: Cluster, repositories: Repositories, look_s: float
) -> Iterator[Platform]:
    cluster.apply(builders.namespace(ARGOCD_NAMESPACE), owner="suite")
    for definition in argocd_crds():
        cluster.apply(definition, owner="suite")
    prepare(cluster)
    _say_composite(cluster)
    sources = BareRepositories(repositories.url, repositories.root)
    delivery = EmbeddedArgoCD(own, sources, poll_s=NEVER_S)
    with _watched(cluster) as log:
        delivery.start()
        try:
            yield Platform(name, cluster, repositories, log, 180.0, look_s, 6)
        finally:
            delivery.stop()


@contextlib.contextmanager
def _watched(cluster: Cluster) -> Iterator[EventLog]:
    log = EventLog(cluster, WATCHED)
    log.start()
    try:
        yield log
    finally:
        log.stop()


def _leave(platform: Platform) -> None:
    """Remove the Applications of a run, and them alone: others share this Argo CD."""
    for app in platform.cluster.list(APPLICATION).items:
        if f"-{platform.run}" in metadata(app)["name"]:
            released = {"metadata": {"finalizers": None}}
            with contextlib.suppress(NotFoundError):  # a child that went with its root
                platform.cluster.patch(ObjectKey.of(app), released, owner="suite")
                platform.cluster.delete(ObjectKey.of(app))


def _credentials(repositories: Repositories) -> Manifest:
    """Let Argo CD read as somebody: to a stranger the forge does not say what is not there."""
    user, password = repositories.login
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "suite-forge",
            "namespace": ARGOCD_NAMESPACE,
            "labels": {"argocd.argoproj.io/secret-type": "repo-creds"},
        },
        "stringData": {
            "type": "git",
            "url": repositories.url,
            "username": user,
            "password": password,
        },
    }


def prepare(cluster: Cluster) -> None:
    """Install the scenarios' kinds and the AppProject ``default``."""
    kinds = [builders.crd(WIDGET, scope="Namespaced"), builders.crd(RIG, scope="Cluster")]
    for definition in kinds:
        cluster.apply(definition, owner="suite")
    for definition in (*kinds, *argocd_crds()):
        _established(cluster, definition)
    cluster.apply(builders.project("default"), owner="suite")


def _say_composite(cluster: Cluster) -> None:
    """Define our kinds by XRDs: where the embedded Argo CD learns that their health counts."""
    definition = builders.crd(XRD, scope="Cluster")
    cluster.apply(definition, owner="suite")
    _established(cluster, definition)
    for kind in (WIDGET, RIG):
        cluster.apply(builders.xrd(kind), owner="suite")


def _established(cluster: Cluster, definition: Manifest) -> None:
    """Wait until a kind is served: a moment later than its CRD says so."""
    spec = definition["spec"]
    kind = Kind(spec["group"], spec["versions"][0]["name"], spec["names"]["kind"])
    deadline = time.monotonic() + _DEFINED_S
    while not (_says_so(cluster, definition) and cluster.serves(kind)):
        assert time.monotonic() < deadline, f"{kind} is not served"
        time.sleep(0.05)


def _says_so(cluster: Cluster, definition: Manifest) -> bool:
    live = cluster.get(ObjectKey(CRD, definition["metadata"]["name"])) or {}
    return (condition(live, "Established") or {}).get("status") == "True"


def health_checks() -> Manifest:
    """Return Argo CD's settings of this repository, with the check of an XR for our kinds."""
    found: dict[str, Any] = {}
    for path in sorted((GITOPS / "argocd").rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document and document["metadata"]["name"] == "argocd-cm":
                found = document
    data: dict[str, str] = found["data"]
    prefix = "resource.customizations.health"
    composite = next(text for key, text in data.items() if key.endswith("_XGarage"))
    checks = {f"{prefix}.{GROUP}_{kind.kind}": composite for kind in (WIDGET, RIG)}
    return {**found, "data": {**data, **checks}}
