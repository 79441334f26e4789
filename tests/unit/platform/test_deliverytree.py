"""A pack's delivery tree as platforms get it: which layers, and what each of them holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from ground.argocd.health_lua import LAYER_LABEL
from ground.errors import InvalidInputError
from ground.names import RepoId
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.core.platform.baking import SENTINEL
from orderkit.core.platform.delivery_tree import MIRRORS, layers_of
from orderkit.core.platform.installation import (
    ArgoCDSettings,
    CrossplaneSettings,
    Installation,
    Mirror,
    PlatformTarget,
)
from orderkit.flows.install.pack_rendering import PlatformValues, render_pack

PACK = read_folder(reference_pack())
CHART = CrossplaneSettings("chart", "https://charts.example.org/stable")
EVERYTHING = Installation(
    crossplane=CHART,
    providers=("kubernetes",),
    mirrors=(Mirror("upstream.example.org", "registry.example.org/mirror"),),
)


def rendered(
    installation: Installation, files: dict[PurePosixPath, bytes] | None = None
) -> dict[PurePosixPath, bytes]:
    values = PlatformValues(
        "https://forge.example.org",
        "c" * 40,
        "registry.example.org",
        installation=installation,
        pack_repo=RepoId("idp", "kits"),
        ledger=RepoId("idp", "book"),
    )
    return render_pack({**PACK, **(files or {})}, values)


def names(found: dict[PurePosixPath, bytes]) -> list[str]:
    return [layer.name for layer in layers_of(found)]


def manifests(found: dict[PurePosixPath, bytes], path: str) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(found[PurePosixPath(path)]) if one]


@dataclass(frozen=True, slots=True)
class Case:
    reason: str
    installation: Installation
    layers: str


CASES = [
    Case(
        "everything is asked for",
        EVERYTHING,
        "argocd-settings crossplane providers provider-configs functions apis ledger",
    ),
    Case("nothing is asked for", Installation(), "argocd-settings functions apis ledger"),
    Case(
        "Crossplane is in the embedded platform, whatever is said",
        Installation(PlatformTarget.EMBEDDED, CHART),
        "argocd-settings functions apis ledger",
    ),
    Case(
        "the embedded platform pulls nothing",
        Installation(PlatformTarget.EMBEDDED, mirrors=EVERYTHING.mirrors),
        "argocd-settings functions apis ledger",
    ),
    Case(
        "idpbuilder delivers Argo CD's settings",
        Installation(PlatformTarget.IDPBUILDER, CHART),
        "crossplane functions apis ledger",
    ),
    Case(
        "a mirror is something to deliver",
        Installation(mirrors=EVERYTHING.mirrors),
        "argocd-settings providers functions apis ledger",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_a_layer_with_nothing_to_deliver_is_left_out(case: Case) -> None:
    found = rendered(case.installation)

    assert names(found) == case.layers.split()
    for layer in layers_of(found):
        assert layer.folder is None or any(map(layer.delivers, found))


def test_a_folder_of_config_that_is_no_providers_is_always_delivered() -> None:
    layers = PurePosixPath("gitops/config/layers/baseline.yaml")
    files = {layers: b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: baseline}\n"}
    login = PurePosixPath("gitops/config/kubernetes/config.yaml")
    assert login in PACK

    names_delivered = rendered(Installation(crossplane=CHART), files).keys()

    assert layers in names_delivered
    assert login not in names_delivered


def test_waves_and_labels_say_who_waits_for_whom() -> None:
    found = rendered(EVERYTHING)

    assert [layer.wave for layer in layers_of(found)] == [0, 10, 20, 30, 40, 50, 60]
    for layer in layers_of(found):
        (app,) = manifests(found, str(layer.file))
        assert app["metadata"]["labels"] == {LAYER_LABEL: layer.name}
        assert layer.file.stem == layer.name
        assert "finalizers" not in app["metadata"]


def test_repositories_versions_and_charts_are_the_platforms() -> None:
    found = rendered(
        Installation(crossplane=CrossplaneSettings("chart", CHART.chart_repository, "2.9.9"))
    )

    (root,) = manifests(found, "gitops/root.yaml")
    (ledger,) = manifests(found, "gitops/apps/ledger.yaml")
    (chart,) = manifests(found, "gitops/crossplane/crossplane.yaml")
    assert root["spec"]["source"]["repoURL"] == "https://forge.example.org/idp/kits.git"
    assert ledger["spec"]["source"]["repoURL"] == "https://forge.example.org/idp/book.git"
    assert chart["spec"]["source"]["repoURL"] == CHART.chart_repository
    assert chart["spec"]["source"]["targetRevision"] == "2.9.9", "over the pack's own"
    functions = manifests(found, "gitops/functions/functions.yaml")
    assert functions[1]["spec"]["package"].endswith(":v0.7.0"), "from pack.yaml"


def test_retries_take_the_newest_commit() -> None:
    found = rendered(Installation(crossplane=CHART, providers=("kubernetes",)))

    apps = [path for path in found if b"\nkind: Application\n" in found[path]]
    assert len([path for path in apps if path.parts[0] == "gitops"]) == 9
    for path in apps:
        if path.parts[0] == "gitops":
            retry = manifests(found, str(path))[0]["spec"]["syncPolicy"]["retry"]
            assert retry["refresh"] is True


def test_mirrors_become_image_configs_before_any_package() -> None:
    found = rendered(
        Installation(
            mirrors=(
                Mirror("upstream.example.org", "registry.example.org/mirror"),
                Mirror("registry.example.org", pull_secret="pull"),
            )
        )
    )

    rewriting, pulling = manifests(found, str(MIRRORS))
    assert rewriting["metadata"]["annotations"] == {"argocd.argoproj.io/sync-wave": "-1"}
    assert rewriting["spec"] == {
        "matchImages": [{"type": "Prefix", "prefix": "upstream.example.org"}],
        "rewriteImage": {"prefix": "registry.example.org/mirror"},
    }
    assert pulling["spec"]["registry"] == {"authentication": {"pullSecretRef": {"name": "pull"}}}


def test_rendering_is_deterministic_and_leaves_everything_else_alone() -> None:
    once, again = rendered(EVERYTHING), rendered(EVERYTHING)

    assert once == again
    for path in PACK:
        if path.parts[0] not in ("gitops", "templates", "day2"):
            assert once[path] == PACK[path]


@pytest.mark.parametrize(
    ("installation", "says"),
    [
        (Installation(providers=("moon",)), "spec.providers.*'moon'.*is not a folder"),
        (Installation(mirrors=(Mirror("a", "b"), Mirror("a", "c"))), "'a'.*two mirrors"),
    ],
)
def test_what_cannot_be_delivered_is_refused(installation: Installation, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        rendered(installation)


@pytest.mark.parametrize(
    ("sentinel", "way_out"),
    [("MOON", "values: "), ("VERSION_PROVIDER_GCP", "pin provider-gcp in spec.versions")],
)
def test_a_sentinel_without_a_value_is_named_with_file_and_line(
    sentinel: str, way_out: str
) -> None:
    text = f"kind: X\n# two\nat: __ORDERKIT_{sentinel}__\n"
    extra = {PurePosixPath("gitops/functions/more.yaml"): text.encode()}

    with pytest.raises(InvalidInputError, match=rf"more\.yaml:3.*__ORDERKIT_{sentinel}__") as told:
        rendered(Installation(), extra)
    assert way_out in told.value.hint


@pytest.mark.parametrize("target", list(PlatformTarget))
def test_no_target_leaves_a_sentinel(target: PlatformTarget) -> None:
    found = rendered(
        Installation(
            target, CHART, ArgoCDSettings(version="3.2"), EVERYTHING.mirrors, EVERYTHING.providers
        )
    )

    assert [path for path, data in found.items() if SENTINEL.search(data)] == []


def test_settings_of_a_pack_are_delivered_whichever_providers_a_platform_has() -> None:
    """A folder of gitops/config that is no provider's: layers of settings."""
    sizes = PurePosixPath("gitops/config/settings/sizes.yaml")
    files = {sizes: b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sizes}\n"}

    without, having = (rendered(Installation(providers=p), files) for p in ((), ("kubernetes",)))

    kubernetes = PurePosixPath("gitops/config/kubernetes/config.yaml")
    assert sizes in without
    assert kubernetes not in without
    assert {sizes, kubernetes} <= having.keys()
