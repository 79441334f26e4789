"""The releases that the suites of ``make e2e`` run against stand as observed in the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labplatform import ARGOCD_VERSION

from orderkit.adapters.gitea import GiteaForge
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.core.platform.neighbours import ARGO_CD, KUBERNETES, judge_release

if TYPE_CHECKING:
    from lab.realgitea import Gitea
    from lab.realkube import Kube


def test_the_real_gitea_is_called_observed(real_gitea: Gitea) -> None:
    forge = GiteaForge(real_gitea.url, token=real_gitea.token)

    found = forge.judge_release()

    assert found.basis == "observed", found.detail


def test_the_real_api_server_is_called_observed(real_kube: Kube) -> None:
    found = judge_release(KUBERNETES, KubeCluster.from_kubeconfig(real_kube.kubeconfig).version())

    assert found.basis == "observed", found.detail


def test_the_real_argo_cd_is_called_observed() -> None:
    """Its plain processes tell no release, so platform.yaml does."""
    assert judge_release(ARGO_CD, ARGOCD_VERSION).basis == "observed"
