"""What doctor says of the releases of forge, cluster, Argo CD and Crossplane."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ownforge import OwnForge, Watched, unanswered
from peopleforge import says
from refusedreads import RefusedReads

from ground.errors import UnreachableError
from ground.objects.kube_objects import Manifest
from orderkit.adapters.gitea import GiteaForge
from orderkit.adapters.gitea.reading import judge_gitea
from orderkit.adapters.github import GitHubForge
from orderkit.adapters.gitlab import GitLabForge
from orderkit.core.platform.installation import Installation
from orderkit.flows.install.findings import (
    argocd_release,
    check_releases,
    crossplane_release,
    kubernetes_release,
)
from orderkit_standins.cluster import EmbeddedCluster

KNOWN = "v1.34.1"
"""As real ones answer."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    found = EmbeddedCluster(tmp_path / "cluster.sqlite")
    for name in ("argocd", "crossplane-system"):
        found.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, owner="x"
        )
    yield found
    found.close()


def names(platform: Any, *without: str) -> dict[str, str]:
    return {f.check: f.verdict for f in check_releases(platform, without=without)}


CLIENTS: dict[str, Callable[..., Any]] = {
    "gitea": GiteaForge,
    "github": GitHubForge,
    "gitlab": partial(GitLabForge, group="platform"),
}


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_server_that_cannot_be_used_is_not_asked_for_its_release(
    kind: str, cluster: EmbeddedCluster, forge: OwnForge
) -> None:
    client = forge.undo.enter_context(CLIENTS[kind](forge.shared.url, token="a-token"))
    platform = forge.platform(cluster, forge=client)
    every = ["kubernetes-release", "argocd-release", "crossplane-release", "backstage-release"]

    assert [*names(platform)] == [f"{kind}-release", *every]
    assert [*names(platform, "forge")] == every
    assert [*names(platform, "cluster")] == [f"{kind}-release", "backstage-release"]


def test_a_release_that_is_not_told_or_too_old_is_a_finding(
    cluster: EmbeddedCluster, forge: OwnForge, refused: RefusedReads
) -> None:
    hidden = refused.of(cluster, {"version"}, silent=True)
    old = forge.proxied(says("/version", {"version": "1.0.0"}))
    silent = forge.proxied(Watched(unanswered(2), "/version"))
    with pytest.raises(UnreachableError) as lost:
        silent.version()

    told = list(check_releases(forge.platform(hidden, forge=old)))
    first = next(check_releases(forge.platform(cluster, forge=silent)))

    assert (told[0].verdict, told[0].detail) == ("fail", judge_gitea("1.0.0").report)
    assert "Gitea 1.0.0 is older than" in told[0].detail
    assert told[0].advice == judge_gitea("1.0.0").hint
    assert told[0].advice
    assert [finding.verdict for finding in told[1:4]] == ["warn"] * 3
    assert (first.verdict, first.detail, first.advice) == (
        "warn",
        f"the version is not known: {lost.value}",
        lost.value.hint,
    )


def test_an_api_server_that_may_not_be_asked_has_an_unknown_release(
    cluster: EmbeddedCluster, refused: RefusedReads
) -> None:
    asked = kubernetes_release(refused.of(cluster, version=KNOWN))
    hidden = kubernetes_release(refused.of(cluster, {"version"}))

    assert (asked.version, asked.basis != "unknown") == (KNOWN, True)
    assert hidden.basis == "unknown"


def workload(name: str, image: str, namespace: str, kind: str = "Deployment") -> Manifest:
    labels = {"app.kubernetes.io/version": "v0.1.0", "app.kubernetes.io/part-of": "argocd"}
    container = {"name": "a", "image": image}
    template = {"metadata": {"labels": {"a": name}}, "spec": {"containers": [container]}}
    spec: dict[str, Any] = {"selector": {"matchLabels": {"a": name}}, "template": template}
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": spec,
    }


def test_the_oldest_image_tells_the_release(
    cluster: EmbeddedCluster, refused: RefusedReads
) -> None:
    for name, image, kind in (
        ("server", "quay.io/argoproj/argocd:v3.2.1@sha256:abc", "Deployment"),
        ("controller", "quay.io/argoproj/argocd:v3.1.9", "StatefulSet"),
        ("redis", "redis:7.2", "Deployment"),
        ("latest", "quay.io/argoproj/argocd:latest", "Deployment"),
    ):
        cluster.create(workload(name, image, "argocd", kind), owner="x")

    whole = argocd_release(refused.of(cluster, version=KNOWN), Installation())
    unread = argocd_release(refused.of(cluster, {"StatefulSet"}, version=KNOWN), Installation())

    assert (whole.version, unread.version) == ("v3.1.9", "v3.2.1")


def test_labels_tell_the_release_where_no_image_does(
    cluster: EmbeddedCluster, refused: RefusedReads
) -> None:
    cluster.create(workload("server", "mirror/argo@sha256:abc", "argocd"), owner="x")
    known = refused.of(cluster, version=KNOWN)

    assert argocd_release(known, Installation()).version == "v0.1.0"
    assert crossplane_release(known, Installation()).version == ""


def test_what_the_embedded_cluster_replaces_has_no_release(cluster: EmbeddedCluster) -> None:
    found = crossplane_release(cluster, Installation())

    assert (found.basis, found.detail) == ("embedded", "embedded: Orderkit replaces Crossplane")
