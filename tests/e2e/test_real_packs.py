"""
The packs for workspaces, environments and clusters on a real Gitea, API server and Argo CD.

Each pack is bootstrapped onto a lab of its own. Our assembler stands in for Crossplane, and twins
for the clouds and for the controllers of workloads: all of them work on the real API server, with
the pack's admission policies in force. Every kit is ordered, changed and ended; between that, what
its policy and its schema forbid is tried past Orderkit.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import labplatform
import pytest
import roguery
import yaml
from commands import Command, in_process
from labplatform import LabPlatform, bootstrapped, with_portal_and_service
from rogues import Pair, Rogue

from orderkit.adapters.embedded.providers.cloud import EXTERNAL
from orderkit.core.errors import OrderkitError
from orderkit.core.objects.kube_objects import (
    APPLICATION,
    CRD,
    Kind,
    Manifest,
    ObjectKey,
    condition,
    dig,
)
from orderkit.flows.platform import Platform
from orderkit.flows.waiting import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import InvalidObjectError

pytestmark = pytest.mark.timeout(600)
PACKS = Path(__file__).parents[2] / "packs"
VALUES = {
    "workspaces": {},
    "environments": {"BUCKET_PREFIX": "acme-mfe", "PROJECT_ID": "acme-lab"},
    "clusters": {"PROJECT_ID": "clusters-lab"},
}
TEAM, OTHERS = "ae86", "rx7"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDemoKeyOfNobodyDemoKeyOfNobodyDemoKeyOf eve@laptop"
WAIT = ("--timeout", "200s")


@dataclass(frozen=True)
class Journey:
    """One kit's order: what is asked for, what is changed, and what nobody may write."""

    pack: str
    kit: str
    kind: Kind
    name: str
    """What the order is called after its kit."""
    values: tuple[str, ...]
    change: str
    """An assignment that a change of the kit allows."""
    changed: dict[str, Any]
    """The part of ``spec`` that the change makes."""
    forbidden: dict[str, Any]
    """A part of ``spec`` that never changes: the policy refuses it."""
    refusal: str
    malformed: dict[str, Any]
    """A part of ``spec`` that the schema, or a rule in it, refuses."""
    complaint: str
    cluster_scoped: bool = False
    parts: frozenset[str] = field(default_factory=frozenset)
    """Kinds that are composed, among others."""

    @property
    def order(self) -> str:
        return f"{self.kit}-{self.name}"

    @property
    def xr(self) -> ObjectKey:
        if self.cluster_scoped:
            return ObjectKey(self.kind, self.name)
        return ObjectKey(self.kind, self.order, f"team-{TEAM}")


def _cluster(cloud: str, *parts: str) -> Journey:
    name = f"try-{cloud}"
    pools = [{"name": "default", "minNodes": 2, "maxNodes": 4}]
    return Journey(
        "clusters",
        "cluster",
        Kind("myplatform.io", "v1alpha1", "XCluster"),
        name,
        (
            *(f"cluster_name={name}", f"owner={TEAM}", f"cloud={cloud}", "location=eu-central"),
            *("version=1.33", f"domain={cloud}.example.com"),
        ),
        f"pools={json.dumps(pools)}",
        {"pools": pools},
        {"location": "us-west"},
        r'spec\.location: changes from "eu-central" to "us-west", but it never changes',
        {"pools": [{"name": "default", "minNodes": 5, "maxNodes": 4}]},
        "minNodes must not be greater than maxNodes",
        parts=frozenset({"Release", "Usage", *parts}),
    )


JOURNEYS = (
    Journey(
        "workspaces",
        "gpuworkspace",
        Kind("platform.acme.io", "v1alpha1", "GpuDevWorkspace"),
        "vision",
        (
            *("name=vision", f"team={TEAM}", "owner=user:default/eve", f"publicKey={KEY}"),
            'sshFrom=["203.0.113.0/24"]',
        ),
        "diskGb=200",
        {"diskGb": 200},
        {"diskGb": 60},
        r"spec\.diskGb: changes from 200 to 60, but it may only grow",
        {"publicKey": "ssh-rsa"},
        "publicKey",
        parts=frozenset({"Instance", "KeyPair", "SecurityGroup"}),
    ),
    Journey(
        "environments",
        "appenvironment",
        Kind("platform.acme.io", "v1alpha1", "ApplicationEnvironment"),
        "review",
        ("name=review", f"team={TEAM}", "nodeSize=small", "leaseDuration=8h"),
        "parameters.storageGB=20",
        {"parameters": {"storageGB": 20}},
        {"parameters": {"storageGB": 10}},
        r"spec\.parameters\.storageGB: changes from 20 to 10, but it may only grow",
        {"parameters": {"storageGB": 9}},
        "greater than or equal to 10",
        parts=frozenset({"Cluster", "NodePool", "DatabaseInstance", "Bucket"}),
    ),
    Journey(
        "environments",
        "unifiedenvironment",
        Kind("platform.acme.com", "v1alpha1", "UnifiedEnvironment"),
        "feature-x",
        (
            *("environment=feature-x", f"squad={TEAM}", 'frontends=["shop"]'),
            'backend={"image": "registry.example.org/payments:1.5.0"}',
        ),
        "backend.image=registry.example.org/payments:1.6.0",
        {"backend": {"image": "registry.example.org/payments:1.6.0"}},
        {"squad": OTHERS},
        f'spec.squad: is "{OTHERS}", but order .* belongs to team "{TEAM}"',
        {"stage": "production"},
        "Unsupported value",
        cluster_scoped=True,
        parts=frozenset({"Deployment", "StatefulSet", "Bucket", "Namespace"}),
    ),
    _cluster("gcp", "Cluster", "NodePool", "Network"),
    _cluster("aws", "Cluster", "NodeGroup", "VPC"),
    _cluster("azure", "KubernetesCluster", "VirtualNetwork"),
)


@dataclass(frozen=True)
class Site:
    """A pack that was bootstrapped onto a lab of its own."""

    pack: Path
    lab: LabPlatform
    platform: Platform
    file: Path

    def get(self, key: ObjectKey) -> Manifest:
        return self.lab.cluster.get(key) or {}

    def composed(self, xr: ObjectKey) -> list[ObjectKey]:
        """Return what an XR is made of."""
        references = dig(self.get(xr), "spec", "crossplane", "resourceRefs", default=[])
        return [
            ObjectKey.from_json({"namespace": xr.namespace, **reference})
            for reference in references
        ]

    def in_the_cloud(self, journey: Journey) -> list[str]:
        """Return what the twins' clouds have of an order."""
        specs = [record["spec"] for record in self.lab.cluster.list(EXTERNAL).items]
        return [str(spec["kind"]) for spec in specs if journey.name in json.dumps(spec)]


@pytest.fixture(scope="module")
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    name: str = request.param
    pack, folder = PACKS / name, tmp_path_factory.mktemp(name)
    with contextlib.ExitStack() as undo:
        lab = undo.enter_context(
            labplatform.serving(
                folder, teams=(TEAM, OTHERS), pack=pack, twins=True, values=VALUES[name]
            )
        )
        platform = undo.enter_context(bootstrapped(lab, pack))
        yield Site(pack, lab, platform, with_portal_and_service(lab, undo))


@pytest.fixture
def orderkit(site: Site, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(site.file, capsys)


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


@pytest.mark.parametrize(
    ("site", "journey"),
    [pytest.param(journey.pack, journey, id=journey.order) for journey in JOURNEYS],
    indirect=["site"],
)
def test_an_order_lives_from_its_order_to_its_end_and_its_rules_hold(
    site: Site, journey: Journey, orderkit: Command
) -> None:
    done = orderkit("order", journey.kit, *journey.values, *WAIT, "--json")
    assert done.code == 0, done.out + done.err
    assert done.json["phase"] == "Ready"
    parts = site.composed(journey.xr)
    assert {key.kind.kind for key in parts} >= journey.parts
    assert site.in_the_cloud(journey)

    changed = orderkit("change", journey.order, journey.change, *WAIT)
    assert changed.code == 0, changed.err
    _holds(site.get(journey.xr)["spec"], journey.changed)

    _is_refused_when_applied(site, journey)
    _is_refused_when_pushed(site, journey)

    ended = orderkit("destroy", journey.order, "--confirm", journey.order, "--timeout", "300s")
    assert ended.code == 0, ended.err
    for key in (journey.xr, ObjectKey(APPLICATION, journey.order, "argocd")):
        assert site.get(key) == {}
    for left in (
        lambda: [key for key in parts if site.get(key)],
        lambda: site.in_the_cloud(journey),
    ):
        _await(left, lambda found: not found, "nothing is left")


def _holds(spec: Any, part: Any) -> None:
    """Say that a spec has this part; elements of lists may have more."""
    if isinstance(part, dict):
        for name, value in part.items():
            _holds(spec[name], value)
    elif isinstance(part, list):
        for element, value in zip(spec, part, strict=True):
            _holds(element, value)
    else:
        assert spec == part


def _is_refused_when_applied(site: Site, journey: Journey) -> None:
    before = site.get(journey.xr)["spec"]
    with pytest.raises(OrderkitError, match=journey.refusal):
        site.lab.cluster.patch(journey.xr, {"spec": journey.forbidden}, owner="mallory")
    with pytest.raises(InvalidObjectError, match=journey.complaint):
        site.lab.cluster.patch(journey.xr, {"spec": journey.malformed}, owner="mallory")
    assert site.get(journey.xr)["spec"] == before


def _is_refused_when_pushed(site: Site, journey: Journey) -> None:
    """Push the same past the forms; Argo CD and the order's status say what refuses it."""
    entry = roguery.entry_of(journey.kit, TEAM, journey.name)

    def edit(xr: Manifest, _: Pair) -> dict[PurePosixPath | None, Manifest]:
        return {None: {**xr, "spec": _merged(xr["spec"], journey.forbidden)}}

    (field_,) = _paths(journey.forbidden)
    rogue = Rogue(f"a push changes {field_}", journey.kit, edit, field_, (field_,))
    roguery.unprotect(site.platform, entry.repository)
    tried = roguery.attempt(site.platform, site.lab.forge, rogue, Pair(TEAM, OTHERS), entry)
    roguery.failing(site.platform, tried)
    _await(
        lambda: json.dumps(roguery.application(site.platform, entry).get("status", {})),
        lambda status: field_ in status,
        f"Argo CD telling what is wrong with {field_}",
    )
    _holds(site.get(journey.xr)["spec"], journey.changed)
    roguery.forgiven(site.platform, tried, roguery.repent(site.platform, tried))


def _merged(value: Any, part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    return {**value, **{name: _merged(value.get(name, {}), part[name]) for name in part}}


def _paths(part: Any, prefix: str = "spec") -> Iterator[str]:
    if not isinstance(part, dict):
        yield prefix
        return
    for name, value in part.items():
        yield from _paths(value, f"{prefix}.{name}")


def _await(look: Callable[[], Any], holds: Callable[[Any], bool], goal: str) -> None:
    until(SystemClock(), look, holds, timeout_s=120, goal=goal)
