"""
The packs for workspaces, environments and clusters on a real Gitea, API server and Argo CD.

Each pack is bootstrapped onto a lab of its own. Our assembler stands in for Crossplane, and twins
for the clouds and for the controllers of workloads: all of them work on the real API server.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import labplatform
import pytest
import yaml
from labplatform import LabPlatform, bootstrapped

from orderkit.core.objects.kube_objects import CRD, Manifest, ObjectKey, condition, dig

pytestmark = pytest.mark.timeout(600)
PACKS = Path(__file__).parents[2] / "packs"
VALUES = {
    "workspaces": {},
    "environments": {"BUCKET_PREFIX": "acme-mfe", "PROJECT_ID": "acme-lab"},
    "clusters": {"PROJECT_ID": "clusters-lab"},
}


@dataclass(frozen=True)
class Site:
    """A pack that was bootstrapped onto a lab of its own."""

    pack: Path
    lab: LabPlatform

    def get(self, key: ObjectKey) -> Manifest:
        return self.lab.cluster.get(key) or {}


@pytest.fixture(scope="module")
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    name: str = request.param
    pack, folder = PACKS / name, tmp_path_factory.mktemp(name)
    with contextlib.ExitStack() as undo:
        lab = undo.enter_context(
            labplatform.serving(folder, teams=("ae86",), pack=pack, twins=True, values=VALUES[name])
        )
        undo.enter_context(bootstrapped(lab, pack))
        yield Site(pack, lab)


@pytest.mark.parametrize("site", sorted(VALUES), indirect=True)
def test_the_server_takes_every_kind_and_policy_of_the_pack(site: Site) -> None:
    crds = {crd["metadata"]["name"]: crd for crd in site.lab.cluster.list(CRD).items}
    xrds = [_only(path) for path in site.pack.glob("gitops/apis/*/definition.yaml")]
    schemas = {_crd_name(path) for path in site.pack.glob("schemas/*_*.yaml")}

    assert schemas | {xrd["metadata"]["name"] for xrd in xrds} <= crds.keys()
    for name, crd in crds.items():
        assert (condition(crd, "Established") or {}).get("status") == "True", name
        assert (condition(crd, "NonStructuralSchema") or {}).get("status") != "True", name
    for path in site.pack.glob("gitops/apis/*/policy.yaml"):
        for manifest in yaml.safe_load_all(path.read_text()):
            live = site.get(ObjectKey.of(manifest))
            assert live["spec"].keys() >= manifest["spec"].keys()
            assert not dig(live, "status", "typeChecking", "expressionWarnings", default=())


def _only(path: Path) -> Manifest:
    found: Manifest = yaml.safe_load(path.read_text())
    return found


def _crd_name(path: Path) -> str:
    """Return the name of the CRD in a file such as ``ec2.aws.m.upbound.io_eips.yaml``."""
    group, _, plural = path.stem.partition("_")
    return f"{plural}.{group}"
