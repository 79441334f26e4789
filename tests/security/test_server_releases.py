"""
Servers with known holes, told by the servers themselves over real HTTP.

``orderkit bootstrap`` refuses a server older than the oldest supported release before it writes
anything; ``orderkit doctor`` fails, and names known holes of supported releases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from commands import Command
from platformsettings import settings_with
from versionproxy import telling

from ground.objects.kube_objects import APPLICATION, NAMESPACE, Kind, Manifest, ObjectKey
from ground.shapes import changed
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.cli.connecting import connect
from orderkit.core.platform.installation import ArgoCDSettings, Installation, PlatformTarget
from orderkit.core.platform.settings import PlatformSettings
from orderkit.flows.install.findings import check_releases
from orderkit.flows.platform import Platform
from orderkit_standins.platform import EmbeddedPlatform, Ports

DEPLOYMENT = Kind("apps", "v1", "Deployment")
STATEFUL_SET = Kind("apps", "v1", "StatefulSet")


@dataclass(frozen=True)
class Site:
    """A platform that nobody has bootstrapped."""

    folder: Path
    settings: PlatformSettings
    platform: Platform

    def written(self, **changes: Any) -> Path:
        path = self.folder / "platform.yaml"
        path.write_text(settings_with(self.settings, **changes).to_yaml())
        return path

    @contextmanager
    def forge_telling(self, version: str) -> Iterator[tuple[Path, list[str]]]:
        forge = self.settings.forge
        with telling(forge.url, "/api/v1/version", {"version": version}) as (url, writes):
            yield self.written(forge=changed(forge, url=url)), writes

    @contextmanager
    def cluster_telling(self, version: str) -> Iterator[tuple[Path, list[str]]]:
        text = Path(str(self.settings.cluster.kubeconfig)).read_text()
        (url,) = re.findall(r"server: (\S+)", text)
        (authority,) = re.findall(r"certificate-authority: (\S+)", text)
        answer = {"gitVersion": version}
        with telling(url, "/version", answer, authority=Path(authority)) as (told, writes):
            kubeconfig = self.folder / "told.kubeconfig"
            kubeconfig.write_text(
                re.sub(r"\n    certificate-authority: \S+", "", text).replace(url, told)
            )
            yield self.written(cluster__kubeconfig=kubeconfig), writes


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("releases")
    embedded = EmbeddedPlatform(
        folder / "state", pack=reference_pack(), ports=Ports(0, 0, 0, 0), teams=("ae86",)
    )
    try:
        settings = settings_with(embedded.start(), Installation(PlatformTarget.CLUSTER))
        embedded.service_socket.close()  # nobody serves there
        yield Site(folder, settings, connect(settings))
    finally:
        embedded.stop()


@pytest.fixture
def orderkit(capsys: pytest.CaptureFixture[str], site: Site) -> Command:
    from commands import in_process

    return in_process(site.written(), capsys)


def workload(kind: Kind, name: str, image: str, namespace: str, label: str = "") -> Manifest:
    labels = {"app.kubernetes.io/part-of": namespace, "app": namespace.removesuffix("-system")}
    if label:
        labels["app.kubernetes.io/version"] = label
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "one", "image": image}]},
            },
        },
    }


@pytest.fixture
def installed(site: Site) -> Iterator[Callable[..., None]]:
    """Store a workload as it would run in the cluster; take all away at the end."""
    cluster = site.platform.cluster
    made: list[ObjectKey] = []

    def install(
        image: str, *, kind: Kind = DEPLOYMENT, namespace: str = "argocd", label: str = ""
    ) -> None:
        name = f"server-{len(made)}"
        metadata = {"name": namespace}
        cluster.apply(
            {"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": metadata}, owner="test"
        )
        manifest = workload(kind, name, image, namespace, label)
        if kind is DEPLOYMENT:
            del manifest["spec"]["serviceName"]
        cluster.create(manifest, owner="test")
        made.append(ObjectKey(kind, name, namespace))

    yield install
    for key in made:
        cluster.delete(key)


def nothing_is_written(site: Site) -> bool:
    platform = site.platform
    repos = (platform.pack_repo, platform.ledger)
    return (
        not any(platform.forge.has_org(repo.owner) for repo in repos)
        and platform.cluster.list(APPLICATION).items == ()
    )


def findings(orderkit: Command, file: Path | None = None) -> dict[str, dict[str, str]]:
    done = orderkit("doctor", "--json", **({"platform_file": file} if file else {}))
    return {each["what"]: each for each in done.json["findings"]}


def test_a_forge_that_runs_commands_of_pushers_is_refused(site: Site, orderkit: Command) -> None:
    with site.forge_telling("1.27.0") as (file, writes):
        done = orderkit("bootstrap", "--timeout", "5s", platform_file=file)
        found = findings(orderkit, file)["gitea-release"]

    assert done.code == 4
    assert "Gitea 1.27.0 is older than 1.27.1" in done.err
    assert "CVE-2026-60004 (critical, fixed in 1.27.1): anyone who can write" in done.err
    assert "list of 2026-11-27" in done.err
    assert "install Gitea 28.4.0, or 1.27.3" in done.err
    assert not [write for write in writes if "/api/v1/" in write and "/contents" in write]
    assert nothing_is_written(site)
    assert found["verdict"] == "fail"
    assert "CVE-2026-60004" in found["detail"]
    assert "install Gitea 28.4.0" in found["advice"]


def test_an_ended_api_server_is_refused(site: Site, orderkit: Command) -> None:
    with site.cluster_telling("v1.34.4") as (file, writes):
        done = orderkit("bootstrap", "--timeout", "5s", platform_file=file)
        found = findings(orderkit, file)["kubernetes-release"]

    assert done.code == 4
    assert "Kubernetes v1.34.4 is older than 1.35.0" in done.err
    assert "install Kubernetes 1.37.2" in done.err
    assert {write.split("/")[-1] for write in writes} <= {"selfsubjectaccessreviews"}
    assert nothing_is_written(site)
    assert found["verdict"] == "fail"


def test_argo_cd_with_delete_hooks_past_the_project_is_refused(
    site: Site, orderkit: Command, installed: Callable[..., None]
) -> None:
    """By the oldest of the images: half an upgrade is no upgrade."""
    installed("registry.example.org/argoproj/argocd:v3.6.3")
    installed("registry.example.org/argoproj/argocd:v3.2.11@sha256:" + "a" * 64, kind=STATEFUL_SET)

    done = orderkit("bootstrap", "--timeout", "5s")
    found = findings(orderkit)["argocd-release"]

    assert done.code == 4
    assert "Argo CD v3.2.11 is older than 3.4.10" in done.err
    assert "CVE-2026-77459 (critical, fixed in 3.3.15)" in done.err
    assert nothing_is_written(site)
    assert (found["verdict"], found["advice"][:27]) == ("fail", "install Argo CD 3.6.3; supp")


def test_what_platform_yaml_says_does_not_hide_the_image(
    site: Site, orderkit: Command, installed: Callable[..., None]
) -> None:
    installed("registry.example.org/argoproj/argocd:v3.2.11")
    file = site.written(installation=Installation(argocd=ArgoCDSettings(version="3.6.3")))

    assert (
        "Argo CD v3.2.11 is older"
        in orderkit("bootstrap", "--timeout", "5s", platform_file=file).err
    )
    assert findings(orderkit, file)["argocd-release"]["verdict"] == "fail"


def test_crossplane_of_the_first_generation_is_refused(
    site: Site, orderkit: Command, installed: Callable[..., None]
) -> None:
    installed("registry.example.org/crossplane:v1.20.9", namespace="crossplane-system")

    done = orderkit("bootstrap", "--timeout", "5s")

    assert done.code == 4
    assert "Crossplane v1.20.9 is older than 2.3.0" in done.err
    assert nothing_is_written(site)
    assert findings(orderkit)["crossplane-release"]["verdict"] == "fail"


def test_a_supported_server_with_a_known_hole_is_named_and_used(
    orderkit: Command, installed: Callable[..., None]
) -> None:
    installed("registry.example.org/argoproj/argocd:v3.6.1")

    planned = orderkit("bootstrap", "--plan", "--json")
    found = findings(orderkit)["argocd-release"]

    (step,) = [step for step in planned.json["steps"] if step["step"] == "argocd"]
    assert (planned.code, step["verdict"]) == (0, "already so")
    for told in (step["detail"], found["detail"]):
        assert "observed" in told
        assert "GHSA-w7rw-fg89-2cjf (high, fixed in 3.6.3): one request without" in told
        assert "list of 2026-11-27" in told
    assert found["verdict"] == "warn"
    assert step["advice"] == found["advice"] == "install Argo CD 3.6.3, which has the fixes"


def test_a_label_tells_what_a_digest_does_not(
    orderkit: Command, installed: Callable[..., None]
) -> None:
    installed("registry.example.org/argocd@sha256:" + "b" * 64, label="v3.4.15")

    assert "Argo CD v3.4.15: supported" in findings(orderkit)["argocd-release"]["detail"]


def test_other_programs_beside_argo_cd_tell_nothing(
    orderkit: Command, installed: Callable[..., None]
) -> None:
    installed("registry.example.org/argocd-image-updater:v1.2.2")
    installed("registry.example.org/argocd:latest")

    found = findings(orderkit)["argocd-release"]

    assert found["detail"] == "embedded: Orderkit replaces Argo CD"


def test_a_version_that_nobody_tells_is_not_known(site: Site, orderkit: Command) -> None:
    with site.cluster_telling("v1.37.2") as (file, _):
        found = findings(orderkit, file)

    assert found["kubernetes-release"]["detail"].startswith("Kubernetes v1.37.2: observed")
    for name in ("argocd-release", "crossplane-release"):
        assert found[name]["verdict"] == "warn"
        assert "is not known" in found[name]["detail"]
    assert found["backstage-release"]["detail"] == (
        "not checked: Backstage does not tell its release;"
        " supported are 1.56.0 and newer, 1.57.0 and newer"
    )


def test_the_embedded_servers_are_not_taken_for_real_ones(orderkit: Command) -> None:
    found = findings(orderkit)

    names = ("gitea-release", "kubernetes-release", "argocd-release", "crossplane-release")
    assert [found[name]["verdict"] for name in names] == ["ok"] * 4
    assert all(found[name]["detail"].startswith("embedded: ") for name in names)


def test_a_release_that_no_suite_ran_against_is_not_called_observed(
    site: Site, orderkit: Command
) -> None:
    for version in ("1.27.2", "1.27.3-vendor", "28.4.0", "15.0.1+gitea-1.22.0"):
        with site.forge_telling(version) as (file, _):
            assert "observed" not in findings(orderkit, file)["gitea-release"]["detail"]


def test_an_unreachable_version_is_a_finding_and_no_crash(site: Site) -> None:
    with site.cluster_telling("") as (file, _):
        from orderkit.cli.connecting import load_settings

        settings = load_settings(str(file))
        (found,) = [
            finding
            for finding in check_releases(connect(settings))
            if finding.check == "kubernetes-release"
        ]

    assert (found.verdict, found.detail) == ("warn", "the version of Kubernetes is not known")
