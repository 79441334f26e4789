"""The agents' pack on an embedded platform, a person as its provider, and what agents spend."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import yaml

from ground.errors import OrderkitError
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, dig
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.flows.team.teams import TeamChange, add_team
from orderkit_standins.platform import PortalOptions, Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

PACK = Path(__file__).parents[2] / "packs" / "agents"
TEAM = "ae86"
OBJECT = Kind("kubernetes.m.crossplane.io", "v1alpha1", "Object")
BUDGET = Kind("whisperops.io", "v1alpha1", "XAgentBudget")


@contextlib.contextmanager
def agents_platform(folder: Path, portal: PortalOptions | None = None) -> Iterator[Running]:
    """Run the agents' kits on the reference pack's layers, without providers and controllers."""
    pack, layers = folder / "pack", reference_pack() / "gitops"
    own = ("root.yaml", "apps", "crossplane")
    left_out = shutil.ignore_patterns("controllers", "tests", "providers", "config", *own)
    shutil.copytree(PACK, pack, ignore=left_out)
    for name in own:
        source, target = layers / name, pack / "gitops" / name
        if source.is_dir():
            shutil.copytree(source, target)
        elif source.is_file():
            shutil.copy(source, target)
    described = yaml.safe_load((pack / "pack.yaml").read_text())
    described["spec"].pop("providers", None)
    (pack / "pack.yaml").write_text(yaml.safe_dump(described, sort_keys=False))
    values = {"BASE_DOMAIN": "apps.example.org", "PROJECT_ID": "lab-123"}
    request = EmbeddedRunRequest(
        folder / "state",
        pack,
        Ports(0, 0, 0, 0),
        (TEAM,),
        portal=portal or PortalOptions(),
        values=values,
    )
    with running(request, on_step=lambda *_: None) as found:
        cluster = found.platform.cluster
        cluster.apply(crd("Object", OBJECT), owner="test")
        for name, ready in (("houses", True), ("songs", True), ("empty", False)):
            cluster.apply(dataset(name, ready=ready), owner="test")
            cluster.apply(dataset(name, ready=ready), owner="test", status=True)
        yield found


def crd(kind: str, of: Kind) -> Manifest:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": of.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {**free, "properties": {"spec": free, "status": free}}},
    }
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{of.group}"},
        "spec": {
            "group": of.group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [version],
        },
    }


def dataset(name: str, *, ready: bool) -> Manifest:
    spec = {"gcsPath": f"gs://data/{name}.csv", "displayName": name.title(), "sizeBytes": 10}
    return {
        "apiVersion": "whisperops.io/v1alpha1",
        "kind": "XDataset",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"ready": ready},
    }


class Provider(threading.Thread):
    """Plays provider-kubernetes: says of each Object that its Deployment is as it wants it."""

    def __init__(self, site: Running) -> None:
        super().__init__(daemon=True)
        self._cluster, self._stopped = site.platform.cluster, threading.Event()
        self.seen: dict[tuple[str, str], list[int]] = {}
        """For each Object the replicas that its Deployment got, one after the other."""

    def run(self) -> None:
        while not self._stopped.wait(0.05):
            for found in self._cluster.list(OBJECT).items:
                with contextlib.suppress(OrderkitError):
                    self._play(found)

    def _play(self, found: Manifest) -> None:
        wanted = dig(found, "spec", "forProvider", "manifest")
        if dig(found, "status", "atProvider", "manifest", default=None) != wanted:
            ready = [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "True"}]
            status = {"atProvider": {"manifest": wanted}, "conditions": ready}
            key = ObjectKey.of(found)
            self._cluster.patch(key, {"status": status}, owner="provider", status=True)
            self.seen.setdefault((key.namespace, key.name), []).append(wanted["spec"]["replicas"])

    def stop(self) -> None:
        self._stopped.set()
        self.join(10)


def spend(site: Running, agent: str, amount: str) -> ObjectKey:
    """
    Make an agent's namespace that is the team's, with the meter's record of what was spent.

    Returns the key that the agent's budget will have.
    """
    home = f"agent-{agent}"
    more = TeamChange(namespaces=(home,))
    add_team(site.platform, TEAM, requester="user:default/test", change=more)
    namespace: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}}
    site.platform.cluster.apply(namespace, owner="test")
    record = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"spend-{agent}", "namespace": home},
        "data": {"spentUsd": amount, "measured": "true", "windowStart": "2026-11-01T00:00:00Z"},
    }
    site.platform.cluster.apply(record, owner="test")
    return ObjectKey(BUDGET, agent, home)
