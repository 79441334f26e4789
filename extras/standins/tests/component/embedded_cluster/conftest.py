"""A cluster on disk, its HTTP side, kubectl, and a small custom kind."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from ground.objects.kube_objects import Kind, Manifest
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.cluster.http import cluster_app, kubeconfig

TOKEN = "test-token"
GARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")
_CONDITION = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
}
_SCHEMA = {
    "type": "object",
    "description": "A garage for a team.",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "description": "What is wanted.",
            "required": ["teamName"],
            "properties": {
                "teamName": {"type": "string", "pattern": "^[a-z][a-z0-9-]{2,28}$"},
                "stage": {
                    "type": "string",
                    "enum": ["stage1", "stage2", "stage3"],
                    "default": "stage1",
                    "description": "How far the tuning goes.",
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": _CONDITION,
                }
            },
        },
    },
}
_READY = ".status.conditions[?(@.type=='Ready')].status"
GARAGE_CRD: Manifest = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "xgarages.blog.opsbogus.dev"},
    "spec": {
        "group": GARAGE.group,
        "scope": "Cluster",
        "names": {
            "plural": "xgarages",
            "kind": "XGarage",
            "shortNames": ["xg"],
            "categories": ["composite"],
        },
        "versions": [
            {
                "name": GARAGE.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "READY", "type": "string", "jsonPath": _READY},
                    {"name": "STAGE", "type": "string", "jsonPath": ".spec.stage"},
                    {"name": "TEAM", "type": "string", "jsonPath": ".spec.teamName", "priority": 1},
                    {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {"openAPIV3Schema": _SCHEMA},
            }
        ],
    },
}


def garage(name: str = "garage-ae86", **spec: Any) -> Manifest:
    return {
        "apiVersion": GARAGE.api_version,
        "kind": GARAGE.kind,
        "metadata": {"name": name},
        "spec": {"teamName": "ae86", "stage": "stage2", **spec},
    }


def config_map(name: str = "sheet", data: dict[str, str] | None = None, **meta: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", **meta},
        "data": data or {"stage": "stage2"},
    }


def owned_by(owner: Manifest, **more: Any) -> dict[str, Any]:
    """Return metadata with an owner reference to `owner`."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return {"ownerReferences": [{**reference, **more}]}


def eventually(probe: Callable[[], Any], *, within_s: float = 90.0) -> Any:
    """Return the first truthy answer of `probe`; fail when the time is over."""
    deadline = time.monotonic() + within_s
    while not (found := probe()):
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)
    return found


@pytest.fixture
def cluster_file(tmp_path: Path) -> Path:
    return tmp_path / "cluster" / "cluster.sqlite"


@pytest.fixture
def cluster(cluster_file: Path) -> Iterator[EmbeddedCluster]:
    opened = EmbeddedCluster(cluster_file)
    opened.apply(GARAGE_CRD, owner="test")
    yield opened
    opened.close()


@dataclass(frozen=True, slots=True)
class Api:
    """The HTTP side of a cluster, asked the plain way."""

    cluster: EmbeddedCluster
    server: HttpServer

    @property
    def url(self) -> str:
        return self.server.url

    def ask(self, method: str, path: str, **more: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {TOKEN}", **more.pop("headers", {})}
        return requests.request(method, self.url + path, headers=headers, timeout=60, **more)


@pytest.fixture
def api(cluster: EmbeddedCluster) -> Iterator[Api]:
    server = HttpServer(cluster_app(cluster, token=TOKEN), bind("cluster", 0))
    server.start()
    yield Api(cluster, server)
    cluster.close()
    server.stop()


@dataclass(frozen=True, slots=True)
class Kubectl:
    """The real kubectl with a kubeconfig of this cluster."""

    arguments: tuple[str, ...]
    folder: Path

    def command(self, *arguments: str) -> list[str]:
        return [*self.arguments, *arguments]

    def fails(self, *arguments: str, stdin: Manifest | None = None) -> str:
        """Run and return what it says on stderr."""
        done = self._run(arguments, stdin)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def __call__(self, *arguments: str, stdin: Manifest | None = None) -> str:
        done = self._run(arguments, stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _run(
        self, arguments: tuple[str, ...], stdin: Manifest | None
    ) -> subprocess.CompletedProcess[str]:
        text = None if stdin is None else yaml.safe_dump(stdin)
        return subprocess.run(
            self.command(*arguments),
            input=text,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=self.folder,
        )


@pytest.fixture
def kubectl(api: Api, tmp_path: Path) -> Kubectl:
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip("no kubectl on PATH")
    config = tmp_path / "kubeconfig"
    config.write_text(yaml.safe_dump(kubeconfig(api.url, TOKEN)))
    cache = tmp_path / "cache"
    return Kubectl((found, f"--kubeconfig={config}", f"--cache-dir={cache}"), tmp_path)
