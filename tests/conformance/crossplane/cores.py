"""
Whom the scenes are played on: our assembly on the embedded cluster, and a live Crossplane core.

A live core is never started here. ``ORDERKIT_TEST_CROSSPLANE`` names the kubeconfig of an API
server on which one runs, with Functions ``function-orderkit`` (``orderkit stations`` with the
stations of both packs) and ``function-auto-ready`` healthy, and none of the kits' objects yet.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from tests.conformance.crossplane.furnishing import AGENTS, OWNER, ROOT, furnish, twins, xr_kinds
from tests.conformance.crossplane.playing import Core, Expected
from tests.conformance.crossplane.seeing import Eyes, Tables

from compositions.python_functions import NAMES, python_functions
from compositions.station import Station
from ground.objects.kube_objects import FUNCTION, NAMESPACE, Kind, Manifest
from orderkit.adapters.folders.station_process import load_stations
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.cluster.http import cluster_app
from orderkit_standins.crossplane import EmbeddedCrossplane, crossplane_crds

CORE_VARIABLE = "ORDERKIT_TEST_CROSSPLANE"
_TOKEN = "scene-token"


def functions() -> dict[str, Station]:
    """Return the functions of both packs, as one image would serve them."""
    return python_functions({**load_stations(ROOT), **load_stations(AGENTS)})


@contextlib.contextmanager
def embedded(folder: Path, expected: Expected) -> Iterator[Core]:
    """Play on our assembly."""
    cluster = EmbeddedCluster(folder / "cluster.sqlite")
    with contextlib.ExitStack() as undo:
        undo.callback(cluster.close)
        for crd in crossplane_crds():
            cluster.apply(crd, owner=OWNER)
        server = HttpServer(cluster_app(cluster, token=_TOKEN), bind("scenes", 0))
        server.start()
        undo.callback(server.stop)
        for name in ("default", "crossplane-system"):
            cluster.apply(_named(NAMESPACE, name), owner=OWNER)
        for name in NAMES:
            package = {"package": f"registry.example.org/{name}:v1.0.0"}
            cluster.apply({**_named(FUNCTION, name), "spec": package}, owner=OWNER)
        assembly = EmbeddedCrossplane(cluster, functions())
        assembly.start()
        undo.callback(assembly.stop)
        furnish(cluster)
        undo.enter_context(twins(cluster))
        tables = Tables(server.url, f"Bearer {_TOKEN}")
        yield Core(Eyes(cluster, tables, xr_kinds()), expected)


@contextlib.contextmanager
def live(kubeconfig: Path, expected: Expected) -> Iterator[Core]:
    """Play on a core that somebody started."""
    with KubeCluster.from_kubeconfig(kubeconfig) as cluster:
        furnish(cluster)
        with twins(cluster):
            yield Core(Eyes(cluster, _tables(kubeconfig), xr_kinds()), expected, patience_s=60.0)


def _tables(kubeconfig: Path) -> Tables:
    from kubernetes.client.configuration import Configuration
    from kubernetes.config import kube_config

    found: Any = Configuration()
    load = cast("Callable[..., None]", kube_config.load_kube_config)
    load(str(kubeconfig), client_configuration=found)
    return Tables(found.host, found.auth_settings()["BearerToken"]["value"], found.ssl_ca_cert)


def _named(kind: Kind, name: str) -> Manifest:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
