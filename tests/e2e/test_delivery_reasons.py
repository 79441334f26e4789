"""
What keeps a real Argo CD from delivering is told in words, and its way out leads out.

``ORDERKIT_RECORD=1`` writes down what ``tests/unit/argocd/test_application_state.py`` reads.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
from collections.abc import Iterator

import pytest
from deliveries import Delivery
from deliveryfaults import (
    AUTOMATED,
    FAULTS,
    REPO_SERVER_DOWN,
    RETRY,
    Fault,
    config_map,
    operation,
    record,
)
from lab.realargocd import ArgoCD
from lab.realgitea import Gitea

from ground.argocd.delivery_obstacles import obstacle_of
from ground.objects.kube_objects import NAMESPACE, Manifest, ObjectKey, dig
from orderkit.adapters.gitea.client import GiteaForge
from orderkit.adapters.kube.cluster import KubeCluster

ORGANISATION = "lab"


@pytest.fixture(scope="module")
def cluster(real_argocd: ArgoCD, real_gitea: Gitea) -> Iterator[KubeCluster]:
    real_argocd.lend(real_gitea.url, (real_gitea.user, real_gitea.token))
    with KubeCluster.from_kubeconfig(real_argocd.kube.kubeconfig) as found:
        yield found


@contextlib.contextmanager
def delivering(gitea: Gitea, cluster: KubeCluster) -> Iterator[tuple[Delivery, str]]:
    """A delivery and a namespace for it, both removed at the end."""
    forge = GiteaForge(gitea.url, token=gitea.token, allow_http=True)
    namespace = f"lab-{secrets.token_hex(4)}"
    make_namespace(cluster, namespace)
    delivery = Delivery(forge, cluster, organisation=ORGANISATION)
    try:
        yield delivery, namespace
    finally:
        delivery.remove()
        cluster.delete(ObjectKey(NAMESPACE, namespace))


def make_namespace(cluster: KubeCluster, name: str) -> None:
    cluster.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, owner="test"
    )


def check(fault: Fault, application: Manifest) -> None:
    if os.environ.get("ORDERKIT_RECORD"):
        record(fault.name, application)
    found = obstacle_of(application)
    told = (found.reason, found.advice, found.failing) if found else ("", "", True)
    assert (fault.says in told[0], fault.advises in told[1], told[2]) == (
        True,
        True,
        fault.failing,
    ), (fault.name, told)


def test_every_fault_is_told_in_words(real_gitea: Gitea, cluster: KubeCluster) -> None:
    with contextlib.ExitStack() as undo:
        arranged = []
        for fault in FAULTS:
            delivery, namespace = undo.enter_context(delivering(real_gitea, cluster))
            fault.arrange(delivery, namespace)
            arranged.append((fault, delivery))
        for fault, delivery in arranged:
            check(fault, delivery.await_application(fault.settled))


def test_a_repo_server_that_is_down_is_told_and_a_refresh_helps_afterwards(
    real_argocd: ArgoCD, real_gitea: Gitea, cluster: KubeCluster
) -> None:
    with delivering(real_gitea, cluster) as (delivery, namespace):
        delivery.push({"a.yaml": config_map("a")})
        delivery.deliver(namespace)
        delivery.await_application(operation("Succeeded"))
        delivery.push({"a.yaml": config_map("a", "2")})
        real_argocd.stop("repo-server")
        try:
            REPO_SERVER_DOWN.arrange(delivery, namespace)
            check(REPO_SERVER_DOWN, delivery.await_application(REPO_SERVER_DOWN.settled))
        finally:
            real_argocd.start("repo-server")
        delivery.refresh()
        delivery.await_application(lambda found: obstacle_of(found) is None)


def test_the_advice_for_a_commit_given_up_has_it_tried_again(
    real_gitea: Gitea, cluster: KubeCluster, real_argocd: ArgoCD
) -> None:
    """What was missing has come since; by itself Argo CD would never look again."""
    with delivering(real_gitea, cluster) as (delivery, namespace):
        later = f"{namespace}-later"
        commit = delivery.push({"a.yaml": config_map("a", namespace=later)})
        delivery.deliver(namespace, syncPolicy={**AUTOMATED, "retry": RETRY})
        given_up = obstacle_of(delivery.await_application(operation("Failed")))
        make_namespace(cluster, later)
        assert given_up is not None
        command = given_up.advice.partition("tried again: ")[2]

        subprocess.run(
            ["sh", "-c", command],
            env={**os.environ, "KUBECONFIG": str(real_argocd.kube.kubeconfig)},
            check=True,
            capture_output=True,
            timeout=60,
        )
        found = delivery.await_application(lambda found: obstacle_of(found, commit) is None)
        cluster.delete(ObjectKey(NAMESPACE, later))

    assert dig(found, "status", "operationState", "phase") == "Succeeded"
