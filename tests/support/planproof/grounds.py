"""
A cluster on which plans come true: XRDs, Compositions, our assembler, the twins of the providers.

The cluster is a real API server (with two of its controllers) or the embedded one; everything else
is the same, through the same port. Nothing delivers: XRs are applied as Argo CD would apply them.
Kinds that packs compose and neither has are permissive CRDs, but for what the twins bring.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from compositions.python_functions import python_functions
from compositions.station import Station
from ground.errors import OrderkitError
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, condition
from orderkit.adapters.folders.pack_folder import SCHEMAS, read_folder, read_room, reference_pack
from orderkit.adapters.folders.station_process import load_stations
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import read_pack
from orderkit.core.plan import AssemblyContext
from orderkit.flows.composing.planner import OrderPlanner
from orderkit.flows.composing.published_pack import workshop_of
from orderkit.ports.cluster import Cluster
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.cluster.http import cluster_app
from orderkit_standins.controller import side_by_side
from orderkit_standins.crossplane import EmbeddedCrossplane, crossplane_crds
from orderkit_standins.loopback_certificate import ensure_certificate
from orderkit_standins.providers import ManagedLibrary, Providers
from orderkit_standins.providers.provider_objects import DELAY
from orderkit_standins.workloads import Workloads
from planproof.reading import Reader
from whisperops.demo.kagent import Operators

AGENTS = Path(__file__).parents[3] / "packs" / "agents"
PACKS = (reference_pack(), AGENTS)
_OWNER = "argocd-controller"
_LAST = "kubectl.kubernetes.io/last-applied-configuration"
_DELIVERED = (
    "gitops/functions/*.yaml",
    "gitops/providers/*/provider*.yaml",
    "gitops/config/*/*.yaml",
    "gitops/apis/*/definition.yaml",
    "gitops/apis/*/rbac.yaml",
    "gitops/apis/*/reader.yaml",
    "gitops/apis/*/composition.yaml",
)
"""What of a pack the proof needs, in this order; without policies."""
_CONDITIONS = {
    "CustomResourceDefinition": "Established",
    "CompositeResourceDefinition": "Established",
    "Function": "Healthy",
    "Provider": "Healthy",
}
_PATIENCE_S = 120.0
_TOKEN = "planproof"


@dataclass(frozen=True)
class Ground:
    """A cluster where XRs are assembled, and the two ways to look at it: ours, and another."""

    cluster: Cluster
    reader: Reader
    kits: Mapping[str, Kit]
    workshops: Mapping[str, AssemblyContext]
    """By kit: that of its own pack, as a platform has it."""
    quiet_s: float
    """How long nothing must move: longer than the assembler gathers events before it looks."""

    def plan_order(self, kit: Kit) -> OrderPlanner:
        """Return the plan side for a kit's orders."""
        return OrderPlanner(self.cluster, self.workshops[kit.name])

    def apply(self, manifest: Manifest) -> Manifest:
        """Put an object there, as whoever runs the platform would."""
        return self.cluster.apply(manifest, owner=_OWNER)

    def deliver(self, manifest: Manifest) -> None:
        """
        Deliver an XR as Argo CD does unless told otherwise: as ``kubectl apply`` on this side.

        A list is replaced as a whole. By server-side apply, elements that the XRD's default put
        into a list with keys would stay, since nobody owns them.
        """
        last = json.dumps(manifest)
        wanted = {**manifest, "metadata": {**manifest["metadata"], "annotations": {_LAST: last}}}
        present = self.cluster.get(ObjectKey.of(manifest))
        if present is None:
            self.cluster.create(wanted, owner=_OWNER)
            return
        before = json.loads(present["metadata"]["annotations"][_LAST])
        self.cluster.patch(ObjectKey.of(manifest), _patch(before, wanted), owner=_OWNER)

    def establish(self, crd: Manifest) -> None:
        """Bring a kind, and wait until it is served."""
        names = crd["spec"]["names"]
        kind = Kind(crd["spec"]["group"], crd["spec"]["versions"][0]["name"], names["kind"])
        if self.cluster.serves(kind):
            return
        self.apply(crd)
        _until(lambda: self.cluster.serves(kind), f"{kind} is served")
        self.reader.discover()

    def delete(self, manifest: Manifest) -> None:
        """End an object."""
        self.cluster.delete(ObjectKey.of(manifest))


def _patch(before: Manifest, wanted: Manifest) -> Manifest:
    """Return the merge patch that sets what is wanted and removes what was wanted before."""
    gone = dict.fromkeys(key for key in before if key not in wanted)
    return gone | {
        key: _patch(before.get(key) or {}, value) if isinstance(value, dict) else value
        for key, value in wanted.items()
    }


@contextlib.contextmanager
def embedded(folder: Path, **more: Any) -> Iterator[Ground]:
    """Prove on the embedded cluster; it is read over HTTP, as a real one is."""
    with contextlib.ExitStack() as undo:
        certificate = ensure_certificate(folder)
        cluster = EmbeddedCluster(folder / "cluster.sqlite")
        server = HttpServer(cluster_app(cluster, token=_TOKEN), bind("cluster", 0), certificate)
        server.start()
        undo.callback(server.stop)
        undo.callback(cluster.close)
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(_kubeconfig(server.url, certificate.authority))
        yield undo.enter_context(assembling(cluster, kubeconfig, quiet_s=0.4, **more))


@contextlib.contextmanager
def real(kubeconfig: Path, **more: Any) -> Iterator[Ground]:
    """Prove on an API server of Kubernetes."""
    with (
        KubeCluster.from_kubeconfig(kubeconfig) as cluster,
        assembling(cluster, kubeconfig, quiet_s=1.1, **more) as ground,
    ):
        yield ground


@contextlib.contextmanager
def assembling(
    cluster: Cluster,
    kubeconfig: Path,
    *,
    quiet_s: float,
    packs: Sequence[Path] = PACKS,
) -> Iterator[Ground]:
    """Bring everything up on a cluster, wait until it is there, and end it after the block."""
    found = _read(packs)
    with contextlib.ExitStack() as undo:
        for crd in crossplane_crds():
            cluster.apply(crd, owner=_OWNER)
        parts = (
            EmbeddedCrossplane(cluster, python_functions(found.stations), seed=1),
            Providers(cluster, ManagedLibrary(found.schemas)),
            Workloads(cluster),
            Operators(cluster),
        )
        undo.callback(side_by_side, [part.stop for part in parts])
        for part in parts:
            _patiently(part.start, "the kinds of Crossplane are served")
        for manifest in found.delivered:
            _patiently(lambda wanted=manifest: cluster.apply(wanted, owner=_OWNER), str(manifest))  # type: ignore[misc]
        _until(lambda: all(_is_up(cluster, each) for each in found.delivered), "the pack is up")
        reader = undo.enter_context(Reader(kubeconfig))
        reader.discover()
        yield Ground(cluster, reader, found.kits, found.workshops, quiet_s)


@dataclass(frozen=True)
class _Packs:
    """What several packs hold together."""

    kits: Mapping[str, Kit]
    stations: Mapping[str, Station]
    workshops: Mapping[str, AssemblyContext]
    delivered: Sequence[Manifest]
    schemas: Mapping[PurePosixPath, bytes]


def _read(packs: Sequence[Path]) -> _Packs:
    kits: dict[str, Kit] = {}
    stations: dict[str, Station] = {}
    workshops: dict[str, AssemblyContext] = {}
    schemas: dict[PurePosixPath, bytes] = {}
    for folder in packs:
        schemas |= read_room(folder, SCHEMAS)
        pack, own = read_pack(read_folder(folder)), load_stations(folder)
        stations |= own
        for kit in pack.kits():
            kits[kit.name] = kit
            workshops[kit.name] = workshop_of(pack, own)
    delivered = {ObjectKey.of(manifest): manifest for manifest in _files(packs)}
    return _Packs(kits, stations, workshops, tuple(delivered.values()), schemas)


def _files(packs: Sequence[Path]) -> Iterator[Manifest]:
    """Yield what packs deliver, the last one's word last; unbaked: both sides see sentinels."""
    for pattern in _DELIVERED:
        for file in [file for pack in packs for file in sorted(pack.glob(pattern))]:
            for found in yaml.safe_load_all(file.read_text()):
                if Kind.of(found).kind == "Provider":
                    found["metadata"]["annotations"][DELAY] = "0.1s"
                yield found


def _is_up(cluster: Cluster, wanted: Manifest) -> bool:
    """Say whether what waits for a condition has it."""
    type_ = _CONDITIONS.get(Kind.of(wanted).kind)
    if type_ is None:
        return True
    found = cluster.get(ObjectKey.of(wanted)) or {}
    return (condition(found, type_) or {}).get("status") == "True"


def _patiently(call: Callable[[], object], what: str) -> None:
    """Do something as soon as the cluster is ready for it."""

    def done() -> bool:
        try:
            call()
        except OrderkitError as error:
            if not error.retryable:
                raise
            return False
        return True

    _until(done, what)


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"waited {_PATIENCE_S:.0f} s: {what}"
        time.sleep(0.05)


def _kubeconfig(url: str, authority: Path) -> str:
    cluster = {"server": url, "certificate-authority": str(authority)}
    context = {"cluster": "proof", "user": "proof"}
    found = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "proof",
        "clusters": [{"name": "proof", "cluster": cluster}],
        "contexts": [{"name": "proof", "context": context}],
        "users": [{"name": "proof", "user": {"token": _TOKEN}}],
    }
    return yaml.safe_dump(found)
