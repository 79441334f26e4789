"""
The packs for workspaces, environments and clusters on a real Gitea, API server and Argo CD.

Each pack is bootstrapped onto a lab of its own. Our assembler stands in for Crossplane, and twins
for the clouds and for the controllers of workloads: all of them work on the real API server, with
the pack's admission policies in force. Every kit is ordered, changed and ended; before its end,
writes that its policy or its schema forbids are tried past Orderkit.
"""

from __future__ import annotations

import contextlib
import functools
import json
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import labplatform
import pytest
import roguery
import yaml
from commands import Command, in_process
from labplatform import LabPlatform, bootstrapped, with_portal_and_service
from quickpack import quick_pack
from rogues import Pair, Rogue

from ground.errors import OrderkitError
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    CRD,
    Kind,
    Manifest,
    ObjectKey,
    condition,
    dig,
)
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import InvalidObjectError
from orderkit_standins.providers.cloud_twin import EXTERNAL

pytestmark = pytest.mark.timeout(1200)  # the lab comes up within the first test's time
PACKS = Path(__file__).parents[2] / "packs"
VALUES = {
    "workspaces": {},
    "environments": {"BUCKET_PREFIX": "acme-mfe", "PROJECT_ID": "acme-lab"},
    "clusters": {"PROJECT_ID": "clusters-lab"},
}
TEAM, OTHER_TEAM = "ae86", "rx7"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDemoKeyOfNobodyDemoKeyOfNobodyDemoKeyOf eve@laptop"
WAIT = ("--timeout", "400s")


@dataclass(frozen=True)
class Assignment:
    """A value for a field of ``spec``."""

    field: str
    value: Any

    @property
    def path(self) -> list[str]:
        return self.field.split(".")

    @property
    def argument(self) -> str:
        """The assignment as the command line takes it."""
        value = self.value if isinstance(self.value, str) else json.dumps(self.value)
        return f"{self.field}={value}"

    @property
    def patch(self) -> Manifest:
        """The merge patch that makes the assignment."""
        patch = self.value
        for name in reversed(["spec", *self.path]):
            patch = {name: patch}
        return dict(patch)

    def edit(self, xr: Manifest, _: Pair) -> dict[PurePosixPath | None, Manifest]:
        """Make the assignment in a manifest, as a `Rogue` edits it."""
        *parents, last = self.path
        functools.reduce(operator.getitem, parents, xr["spec"])[last] = self.value
        return {None: xr}


@dataclass(frozen=True)
class Journey:
    """An order of one kit: what is asked for, what is changed, and what nobody may write."""

    pack: str
    kit: str
    kind: Kind
    name: str
    values: tuple[str, ...]
    change: Assignment
    forbidden: Assignment
    """What the policy refuses after the change."""
    refusal: str
    malformed: Assignment
    """What the schema, or a rule in it, refuses."""
    complaint: str
    parts: frozenset[str]
    """Kinds that are composed, among others."""
    namespace: str = f"team-{TEAM}"

    @property
    def entry(self) -> OrderEntry:
        return roguery.entry_of(self.kit, TEAM, self.name)

    @property
    def order(self) -> str:
        return self.entry.order

    @property
    def xr(self) -> ObjectKey:
        return ObjectKey(self.kind, self.order if self.namespace else self.name, self.namespace)


def _cluster(cloud: str, *parts: str) -> Journey:
    name = f"try-{cloud}"
    return Journey(
        "clusters",
        "cluster",
        Kind("myplatform.io", "v1alpha1", "XCluster"),
        name,
        (
            *(f"cluster_name={name}", f"owner={TEAM}", f"cloud={cloud}", "location=eu-central"),
            *("version=1.33", f"domain={cloud}.example.com"),
        ),
        Assignment("addOns", ["cert-manager"]),
        Assignment("location", "us-west"),
        r'spec\.location: changes from "eu-central" to "us-west", but it never changes',
        Assignment("pools", [{"name": "default", "minNodes": 5, "maxNodes": 4}]),
        "minNodes must not be greater than maxNodes",
        frozenset({"Release", "Usage", *parts}),
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
        Assignment("diskGb", 200),
        Assignment("diskGb", 60),
        r"spec\.diskGb: changes from 200 to 60, but it may only grow",
        Assignment("publicKey", "ssh-rsa"),
        "publicKey",
        frozenset({"Instance", "KeyPair", "SecurityGroup"}),
    ),
    Journey(
        "environments",
        "appenvironment",
        Kind("platform.acme.io", "v1alpha1", "ApplicationEnvironment"),
        "review",
        ("name=review", f"team={TEAM}", "nodeSize=small", "leaseDuration=8h"),
        Assignment("parameters.storageGB", 20),
        Assignment("parameters.storageGB", 10),
        r"spec\.parameters\.storageGB: changes from 20 to 10, but it may only grow",
        Assignment("parameters.storageGB", 9),
        "greater than or equal to 10",
        frozenset({"Cluster", "NodePool", "DatabaseInstance", "Bucket"}),
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
        Assignment("backend.image", "registry.example.org/payments:1.6.0"),
        Assignment("squad", OTHER_TEAM),
        rf'spec\.squad: changes from "{TEAM}" to "{OTHER_TEAM}", but it names the order',
        Assignment("stage", "production"),
        "Unsupported value",
        frozenset({"Deployment", "StatefulSet", "Bucket", "Namespace"}),
        namespace="",
    ),
    _cluster("gcp", "Cluster", "NodePool", "Network"),
    _cluster("aws", "Cluster", "NodeGroup", "VPC"),
    _cluster("azure", "KubernetesCluster", "VirtualNetwork"),
)
PACKS_IN_SOAK = ("workspaces",)
"""Its rule, that a number only grows, is in the suite of policies too."""
IN_SOAK = ("appenvironment-review", "cluster-try-aws", "cluster-try-azure")
"""`make e2e` tries one cloud, and of the environments the one with more kinds."""


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

    def in_the_clouds(self) -> list[str]:
        """Return the kinds of what exists in the twins' clouds."""
        return [external["spec"]["kind"] for external in self.lab.cluster.list(EXTERNAL).items]


@pytest.fixture(scope="module")
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    name: str = request.param
    folder = tmp_path_factory.mktemp(name)
    pack = quick_pack(PACKS / name, folder / "pack")
    with contextlib.ExitStack() as undo:
        lab = undo.enter_context(
            labplatform.serving(folder, teams=(TEAM,), pack=pack, twins=True, values=VALUES[name])
        )
        platform = undo.enter_context(bootstrapped(lab, pack))
        yield Site(pack, lab, platform, with_portal_and_service(lab, undo))


@pytest.fixture
def orderkit(site: Site, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(site.file, capsys)


def _marks(pack: str, order: str = "") -> list[pytest.MarkDecorator]:
    return [pytest.mark.soak] if pack in PACKS_IN_SOAK or order in IN_SOAK else []


@pytest.mark.parametrize(
    "site", [pytest.param(pack, marks=_marks(pack)) for pack in sorted(VALUES)], indirect=True
)
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
    [
        pytest.param(
            journey.pack, journey, id=journey.order, marks=_marks(journey.pack, journey.order)
        )
        for journey in JOURNEYS
    ],
    indirect=["site"],
    scope="module",
)
def test_an_order_lives_from_its_order_to_its_end_and_its_rules_hold(
    site: Site, journey: Journey, orderkit: Command
) -> None:
    ordered = orderkit("order", journey.kit, *journey.values, *WAIT, "--json")
    assert ordered.code == 0, ordered.out + ordered.err
    assert ordered.json["phase"] == "Ready"
    parts = site.composed(journey.xr)
    assert {key.kind.kind for key in parts} >= journey.parts
    assert site.in_the_clouds()

    changed = orderkit("change", journey.order, journey.change.argument, *WAIT)
    assert changed.code == 0, changed.err
    assert orderkit("wait", journey.order, "--for", "ready", *WAIT).code == 0
    assert _field(site, journey, journey.change) == journey.change.value

    _is_refused_when_applied(site, journey)
    _is_refused_when_pushed(site, journey)

    ended = orderkit("destroy", journey.order, "--confirm", journey.order, *WAIT)
    assert ended.code == 0, ended.err
    application = ObjectKey(APPLICATION, journey.order, ARGOCD_NAMESPACE)
    assert [key for key in (journey.xr, application, *parts) if site.get(key)] == []
    assert site.in_the_clouds() == []


def _field(site: Site, journey: Journey, assignment: Assignment) -> Any:
    return dig(site.get(journey.xr), "spec", *assignment.path)


def _is_refused_when_applied(site: Site, journey: Journey) -> None:
    for assignment, error, words in (
        (journey.forbidden, OrderkitError, journey.refusal),
        (journey.malformed, InvalidObjectError, journey.complaint),
    ):
        before = _field(site, journey, assignment)
        with pytest.raises(error, match=words):
            site.lab.cluster.patch(journey.xr, assignment.patch, owner="mallory")
        assert _field(site, journey, assignment) == before


def _is_refused_when_pushed(site: Site, journey: Journey) -> None:
    """Push past the forms: Argo CD meets the policy's refusal, and the order's status tells it."""
    field, before = f"spec.{journey.forbidden.field}", _field(site, journey, journey.forbidden)
    rogue = Rogue(f"a push changes {field}", journey.kit, journey.forbidden.edit, field, (field,))
    roguery.unprotect(site.platform, journey.entry.repository)
    tried = roguery.attempt(
        site.platform, site.lab.forge, rogue, Pair(TEAM, OTHER_TEAM), journey.entry
    )
    roguery.failing(site.platform, tried)
    until(
        SystemClock(),
        lambda: roguery.reasons(site.platform, journey.entry),
        lambda reasons: re.search(journey.refusal, reasons) is not None,
        timeout_s=roguery.WAIT_S,
        goal="the policy's refusal in the Application",
    )
    assert _field(site, journey, journey.forbidden) == before
    roguery.forgiven(site.platform, tried, roguery.repent(site.platform, tried))
