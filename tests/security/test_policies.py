"""Policies know who Crossplane is, and doctor sees those of older releases that do not hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ground.errors import RefusedError
from ground.objects.kube_objects import NAMESPACE, Kind
from orderkit.core.platform.installation import ArgoCDSettings, CrossplaneSettings, Installation
from orderkit.flows.install.bootstrapping.reach_steps import check_accounts
from orderkit_standins.cluster import EmbeddedCluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    live = EmbeddedCluster(tmp_path / "cluster.sqlite")
    yield live
    live.close()


def add_account(cluster: EmbeddedCluster, namespace: str, name: str = "crossplane") -> None:
    for kind, meta in (
        (NAMESPACE, {"name": namespace}),
        (Kind("", "v1", "ServiceAccount"), {"name": name, "namespace": namespace}),
    ):
        manifest = {"apiVersion": "v1", "kind": kind.kind, "metadata": meta}
        cluster.apply(manifest, owner="test")


def test_a_crossplane_of_another_account_is_reported_before_policies_stop_it(
    cluster: EmbeddedCluster,
) -> None:
    add_account(cluster, "upbound-system")

    with pytest.raises(RefusedError, match="there is no system:serviceaccount:crossplane") as error:
        check_accounts(cluster, Installation())

    account = "system:serviceaccount:upbound-system:crossplane"
    assert account in error.value.hint
    check_accounts(cluster, Installation(crossplane=CrossplaneSettings(account=account)))


def test_the_usual_account_is_accepted(cluster: EmbeddedCluster) -> None:
    add_account(cluster, "crossplane-system")

    check_accounts(cluster, Installation())


def test_an_argocd_of_another_account_is_reported_before_policies_miss_it(
    cluster: EmbeddedCluster,
) -> None:
    add_account(cluster, "argocd", "gitops-argocd-application-controller")
    account = "system:serviceaccount:argocd:gitops-argocd-application-controller"

    with pytest.raises(RefusedError, match="would not hold Argo CD to what") as error:
        check_accounts(cluster, Installation())

    assert account in error.value.hint
    check_accounts(cluster, Installation(argocd=ArgoCDSettings(account=account)))
