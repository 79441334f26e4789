"""What an AppProject permits; the table holds for Argo CD 3.2's own rules too."""

from __future__ import annotations

from typing import Any

import pytest

from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Kind
from orderkit_standins.argocd.projects import read_project

HERE = "https://kubernetes.default.svc"
XGARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")


def project(**spec: Any) -> Any:
    return read_project({"metadata": {"name": "ae86"}, "spec": spec})


@pytest.mark.parametrize(
    ("reason", "patterns", "url", "permitted"),
    [
        ("a star is one step of the path", ["http://f/ae86/*"], "http://f/ae86/x.git", True),
        ("case and .git do not matter", ["http://F/AE86/x.git"], "http://f/ae86/x", True),
        ("a star stops at a slash", ["http://f/ae86/*"], "http://f/ae86/x/y", False),
        ("another organisation", ["http://f/ae86/*"], "http://f/rx7/x", False),
        ("one whose name begins like ours", ["http://f/ae86/*"], "http://f/ae86-b/x", False),
        ("a star alone is everything", ["*"], "http://f/a/b/c", True),
        ("nothing listed, nothing permitted", [], "http://f/ae86/x", False),
        ("what is forbidden stays so", ["*", "!http://f/rx7/*"], "http://f/rx7/x", False),
        ("forbidding one permits the others", ["!http://f/rx7/*"], "http://f/ae86/x", True),
        ("a pattern that is none matches nothing", ["http://f/[", "x"], "http://f/[", False),
    ],
)
def test_sources(reason: str, patterns: list[str], url: str, *, permitted: bool) -> None:
    assert project(sourceRepos=patterns).permits_source(url) is permitted, reason


@pytest.mark.parametrize(
    ("reason", "destinations", "namespace", "permitted"),
    [
        ("this one", [{"server": HERE, "namespace": "team-ae86"}], "team-ae86", True),
        ("another", [{"server": HERE, "namespace": "team-ae86"}], "team-rx7", False),
        ("by the cluster's name", [{"name": "in-cluster", "namespace": "a"}], "a", True),
        ("of another cluster", [{"server": "https://other", "namespace": "a"}], "a", False),
        ("a star crosses everything", [{"server": "*", "namespace": "team-*"}], "team-a-b", True),
        (
            "forbidding wins",
            [{"server": HERE, "namespace": "*"}, {"server": HERE, "namespace": "!argocd"}],
            "argocd",
            False,
        ),
        ("no destination at all", [], "default", False),
    ],
)
def test_destinations(
    reason: str, destinations: list[Any], namespace: str, *, permitted: bool
) -> None:
    assert project(destinations=destinations).permits_namespace(namespace) is permitted, reason


@pytest.mark.parametrize(
    ("reason", "spec", "kind", "namespaced", "permitted"),
    [
        ("absent list, namespaced", {}, CONFIG_MAP, True, True),
        ("empty list, namespaced", {"namespaceResourceWhitelist": []}, CONFIG_MAP, True, False),
        ("absent list, cluster-scoped", {}, NAMESPACE, False, False),
        (
            "listed",
            {"clusterResourceWhitelist": [{"group": "blog.opsbogus.dev", "kind": "XGarage"}]},
            XGARAGE,
            False,
            True,
        ),
        (
            "the kind of another group",
            {"clusterResourceWhitelist": [{"group": "other.dev", "kind": "XGarage"}]},
            XGARAGE,
            False,
            False,
        ),
        (
            "denied beats allowed",
            {
                "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
                "clusterResourceBlacklist": [{"group": "", "kind": "Namespace"}],
            },
            NAMESPACE,
            False,
            False,
        ),
        (
            "a namespaced kind in the other list",
            {
                "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
                "namespaceResourceWhitelist": [],
            },
            CONFIG_MAP,
            True,
            False,
        ),
    ],
)
def test_kinds(
    reason: str, spec: dict[str, Any], kind: Kind, *, namespaced: bool, permitted: bool
) -> None:
    assert project(**spec).permits_kind(kind, is_namespaced=namespaced) is permitted, reason


def test_refusals_are_argo_cds_sentences() -> None:
    own = project(
        destinations=[{"server": HERE, "namespace": "team-ae86"}],
        namespaceResourceWhitelist=[{"group": "", "kind": "ConfigMap"}],
    )

    assert own.refusal(NAMESPACE, None) == "resource :Namespace is not permitted in project ae86"
    assert (
        own.refusal(CONFIG_MAP, "argocd") == "namespace argocd is not permitted in project 'ae86'"
    )
    assert own.refusal(CONFIG_MAP, "team-ae86") == ""
