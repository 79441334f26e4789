"""
What stands on a cluster before a scene: kinds, Compositions, twins of all that is not the core.

Providers, kagent, Kyverno and the controllers of Deployments and Ingresses are the twins of the
embedded platform and of the agents' demo. They work through the Cluster port, so the same ones
stand beside a real core and beside ours; whatever then differs, differs between the cores.

Not here: the core itself, its functions, admission policies (they have a suite of their own).
"""

from __future__ import annotations

import contextlib
import copy
import random
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from ground.objects.kube_objects import NAMESPACE, Kind, Manifest
from kubeschema.xrd import xr_kind
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import Cluster
from orderkit_standins.crossplane.reconciler_context import EventRecorder, ReconcilerContext
from orderkit_standins.providers.cloud_twin import CloudSettings, CloudTwin, external_crd
from orderkit_standins.providers.plain_twins import CONFIG_VERSION, LEGACY, MODERN, ObjectTwin
from orderkit_standins.providers.played_kinds import (
    ManagedLibrary,
    config_crds,
    managed_crd,
    object_crd,
)
from orderkit_standins.workloads import Workloads
from whisperops.demo.kagent import Operators
from yamlfiles.manifests import parse_manifests

ROOT = Path(__file__).parents[3]
AGENTS = ROOT / "packs" / "agents"
OWNER = "scene"
VALUES = {"REGISTRY": "registry.example.org", "PROJECT_ID": "whisperops-lab"}
BUCKET = Kind("storage.gcp.m.upbound.io", "v1beta1", "Bucket")
_STORAGE = (BUCKET, Kind(BUCKET.group, "v1beta1", "BucketIAMMember"))
_ACCOUNTS = (
    Kind("cloudplatform.gcp.m.upbound.io", "v1beta1", "ServiceAccount"),
    Kind("cloudplatform.gcp.m.upbound.io", "v1beta1", "ServiceAccountKey"),
)
_CLOUD_DELAY_S = 0.2
_SERVED_S = 60.0
_KITS = (
    ROOT / "gitops/apis/garage",
    AGENTS / "gitops/apis/agentbudget",
    AGENTS / "gitops/apis/datasetagent",
)


@cache
def files(path: Path) -> tuple[Manifest, ...]:
    """Return the objects of a pack's file, baked."""
    text = path.read_text()
    for name, value in VALUES.items():
        text = text.replace(f"__ORDERKIT_{name}__", value)
    return parse_manifests(str(path), text.encode())


def definitions() -> list[Manifest]:
    """Return the XRDs of all kits, as the real core had them that was recorded."""
    xrds = [copy.deepcopy(xrd) for kit in _KITS for xrd in files(kit / "definition.yaml")]
    for xrd in xrds:
        # Only the text of an event depends on it: "Default composition has been selected".
        xrd["spec"]["defaultCompositionRef"] = xrd["spec"].pop("enforcedCompositionRef")
    return xrds


def compositions() -> list[Manifest]:
    """Return the Compositions of all kits, baked."""
    return [one for kit in _KITS for one in files(kit / "composition.yaml")]


def furnish(cluster: Cluster) -> None:
    """Bring everything that scenes rely on; Crossplane's own CRDs are there."""
    crds = [external_crd(), object_crd(LEGACY), object_crd(MODERN)]
    crds += [*config_crds(LEGACY, CONFIG_VERSION), *config_crds(MODERN, CONFIG_VERSION)]
    crds += [managed_crd(kind) for kind in (*_STORAGE, *_ACCOUNTS)]
    crds += config_crds(BUCKET, BUCKET.version)
    _apply(cluster, crds)
    _apply(cluster, files(AGENTS / "gitops/apis/dataset/definition.yaml"))
    _apply(cluster, [{"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": {"name": "kagent"}}])
    configs = ("gcp", "kubernetes")
    for each in configs:
        _patiently(cluster, files(AGENTS / f"gitops/config/{each}/config.yaml"))
    _apply(cluster, files(AGENTS / "gitops/apis/agentbudget/reader.yaml"))
    _apply(cluster, definitions())
    _apply(cluster, compositions())
    for xrd in definitions():
        _served(cluster, xr_kind(xrd))


@contextlib.contextmanager
def twins(cluster: Cluster) -> Iterator[None]:
    """Run providers, operators and the controllers of workloads on a furnished cluster."""
    clock = SystemClock()
    chance = random.Random(1)  # noqa: S311 - no secret; twins apply one thing at a time
    site = ReconcilerContext(cluster, {}, EventRecorder(cluster, clock), clock, chance)
    settings = CloudSettings((*_STORAGE, *_ACCOUNTS), _CLOUD_DELAY_S)
    cloud = CloudTwin(site, settings, ManagedLibrary({}))
    parts = (ObjectTwin(site), cloud, Workloads(cluster), Operators(cluster))
    with contextlib.ExitStack() as undo:
        for part in parts:
            part.start()
            undo.callback(part.stop)
        yield


def xr_kinds() -> dict[Kind, str]:
    """Return the kinds of XRs, and what each is called in paths of the API."""
    return {xr_kind(xrd): xrd["spec"]["names"]["plural"] for xrd in definitions()}


def _apply(cluster: Cluster, manifests: Sequence[Manifest]) -> None:
    for manifest in manifests:
        cluster.apply(manifest, owner=OWNER)


def _patiently(cluster: Cluster, manifests: Sequence[Manifest]) -> None:
    for manifest in manifests:
        _served(cluster, Kind.of(manifest))
        cluster.apply(manifest, owner=OWNER)


def _served(cluster: Cluster, kind: Kind) -> None:
    deadline = time.monotonic() + _SERVED_S
    while not cluster.serves(kind):
        assert time.monotonic() < deadline, f"{kind} is not served"
        time.sleep(0.02)
