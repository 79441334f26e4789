"""
Every manifest of the delivery tree, for every target and Argo CD, against the kinds' own schemas.

Argo CD's are the CRDs in its modules (``lab/argocdcrds``); the others are ours.
"""

from __future__ import annotations

import functools
from pathlib import Path, PurePosixPath

import pytest
import yaml
from deliveredkinds import validators
from lab.binaries import built

from ground.objects.kube_objects import Kind, Manifest
from kubeschema.validate import Validator
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.core.platform.installation import (
    ArgoCDSettings,
    CrossplaneSettings,
    Installation,
    Mirror,
    PlatformTarget,
)
from orderkit.flows.install.pack_rendering import PlatformValues, render_pack
from orderkit_workshop.generate.health_checks import EXCLUSIONS

RELEASES = ("3.4.10", "3.5.4", "3.6.1")
BUILT_IN_GROUPS = ("admissionregistration.k8s.io",)
"""Judged elsewhere: policies by a real API server."""
NO_MANIFESTS = ("kinds.yaml", "prices.example.yaml")
"""Beside the layers, in no layer's folder: what Orderkit reads, not Argo CD."""
OURS = validators()


@pytest.fixture(scope="module")
def crds() -> Path:
    return built("argocdcrds")


@functools.cache
def argo_cd(crds: Path, release: str) -> dict[tuple[str, str], Validator]:
    found = [
        Validator(yaml.load((crds / release / f"{kind}-crd.yaml").read_bytes(), yaml.CSafeLoader))
        for kind in ("application", "appproject")
    ]
    return {(one.group, one.kind): one for one in found}


@functools.cache
def delivered(target: PlatformTarget, release: str | None) -> list[tuple[PurePosixPath, Manifest]]:
    """What Argo CD gets, with everything asked for that a platform can ask for."""
    installation = Installation(
        target,
        CrossplaneSettings("chart", "https://charts.example.org/stable"),
        ArgoCDSettings(version=release or ""),
        (Mirror("upstream.example.org", "registry.example.org/mirror", "pull"),),
        ("kubernetes",),
    )
    values = PlatformValues(
        "https://forge.example.org", "c" * 40, "registry.example.org", installation=installation
    )
    rendered = render_pack(read_folder(reference_pack()), values)
    return [
        (path, manifest)
        for path, data in sorted(rendered.items())
        if path.parts[0] == "gitops" and path.suffix == ".yaml" and path.name not in NO_MANIFESTS
        for manifest in yaml.safe_load_all(data)
        if manifest
    ]


def findings(known: dict[tuple[str, str], Validator], manifest: Manifest) -> list[str]:
    kind = Kind.of(manifest)
    if kind.group in BUILT_IN_GROUPS:
        return []
    assert (kind.group, kind.kind) in known, f"nobody judges {kind}"
    report = known[kind.group, kind.kind].check(manifest)
    return [str(finding) for finding in report.findings]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("target", list(PlatformTarget))
def test_every_manifest_is_what_its_kind_asks_for(
    crds: Path, target: PlatformTarget, release: str
) -> None:
    known = {**OURS, **argo_cd(crds, release)}
    found = delivered(target, release)

    assert {Kind.of(manifest).kind for _, manifest in found} >= {
        "Application",
        "Provider",
        "ClusterProviderConfig",
        "Function",
        "CompositeResourceDefinition",
        "Composition",
    }
    assert {str(path): told for path, one in found if (told := findings(known, one))} == {}


def test_what_only_newer_releases_know_is_found_by_the_older_ones(crds: Path) -> None:
    """The check can fail: idpbuilder's 3.1.7 does not know retry.refresh."""
    apps = [
        one for _, one in delivered(PlatformTarget.CLUSTER, "3.6.1") if one["kind"] == "Application"
    ]
    known = argo_cd(crds, "3.1.7")

    told = [findings(known, app) for app in apps]

    assert all(any("refresh" in text for text in one) for one in told)


@pytest.mark.parametrize("release", RELEASES)
def test_what_argo_cd_excludes_by_itself_is_still_excluded(crds: Path, release: str) -> None:
    theirs = yaml.safe_load((crds / release / "argocd-cm.yaml").read_bytes())["data"]
    excluded = {
        (group, kind)
        for entry in yaml.safe_load(theirs["resource.exclusions"])
        for group in entry["apiGroups"]
        for kind in entry["kinds"]
    }

    ours = {(group, kind) for groups, kinds in EXCLUSIONS for group in groups for kind in kinds}
    assert excluded <= ours
