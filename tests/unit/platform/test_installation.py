"""platform.yaml about the cluster: target, Crossplane, Argo CD, mirrors, optional providers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest

from ground.errors import InvalidInputError
from orderkit.core.platform import settings
from orderkit.core.platform.installation import (
    ArgoCDSettings,
    CrossplaneSettings,
    Installation,
    Mirror,
    PlatformTarget,
)

TEXT = """apiVersion: orderkit.dev/v1alpha1
kind: Platform
metadata: {name: x}
spec:
  forge: {url: "http://127.0.0.1:1", tokenFile: f}
  portal: {url: "http://127.0.0.1:2", tokenFile: p}
  service: {url: "http://127.0.0.1:3", tokenFile: s}
  cluster: {kubeconfig: k}
"""
WHOLE = """
  target: idpbuilder
  crossplane: {install: chart, chartRepository: "https://charts.example.org/stable", version: 2.3.4}
  argocd: {namespace: argocd, version: 3.4.15}
  mirrors:
    - {prefix: upstream.example.org, rewrite: registry.example.org/mirror}
    - {prefix: registry.example.org, pullSecret: pull}
  providers: [kubernetes]
"""


def read(more: str = "") -> settings.PlatformSettings:
    return settings.parse(TEXT + more, folder=PurePosixPath("/etc/orderkit"))


def test_a_platform_that_says_nothing_is_a_cluster_that_has_crossplane() -> None:
    found = read()

    assert found == found.on(Installation())
    assert (found.target, found.crossplane.install) == (PlatformTarget.CLUSTER, "none")


def test_what_is_said_is_read_and_written_again() -> None:
    found = read(WHOLE)

    wanted = Installation(
        PlatformTarget.IDPBUILDER,
        CrossplaneSettings("chart", "https://charts.example.org/stable", "2.3.4"),
        ArgoCDSettings(version="3.4.15"),
        (
            Mirror("upstream.example.org", "registry.example.org/mirror"),
            Mirror("registry.example.org", pull_secret="pull"),
        ),
        ("kubernetes",),
    )
    assert found == found.on(wanted)
    assert settings.parse(found.to_yaml(), folder=PurePosixPath("/")) == found


@dataclass(frozen=True, slots=True)
class Case:
    reason: str
    more: str
    field: str
    says: str
    way_out: str


CASES = [
    Case("an unknown target", "target: kind", "spec.target", "'kind'", ""),
    Case(
        "a chart from nowhere",
        "crossplane: {install: chart}",
        "spec.crossplane",
        "chartRepository",
        "install: none",
    ),
    Case(
        "a version that YAML reads as a number",
        "argocd: {version: 3.2}",
        "spec.argocd.version",
        "not of type 'string'",
        "in quotes",
    ),
    Case(
        "Argo CD elsewhere",
        "argocd: {namespace: gitops}",
        "spec.argocd.namespace",
        "'gitops'",
        "there only",
    ),
    Case("a mirror that does nothing", "mirrors: [{prefix: a}]", "spec.mirrors.0", "", "rewrite"),
    Case(
        "a mirror with a scheme",
        'mirrors: [{prefix: a, rewrite: "https://b c"}]',
        "spec.mirrors.0.rewrite",
        "does not match",
        "scheme",
    ),
    Case("a misspelt key", "crosplane: {}", "spec.crosplane", "is not a known key", "'crossplane'"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_what_is_refused_is_named_with_its_line_and_a_way_out(case: Case) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read(f"  {case.more}\n")

    told = str(caught.value)
    assert "platform.yaml:9: " in told
    assert case.field.rpartition(".")[0] in told
    assert case.says in told
    assert case.way_out in caught.value.hint
