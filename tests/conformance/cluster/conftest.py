"""
The contract of ``ports.cluster.Cluster``, and whom it is held against.

``embedded`` is `EmbeddedCluster` in process, ``embedded-http`` is `KubeCluster` speaking to its
HTTP app, ``real`` is `KubeCluster` speaking to a real API server (``--e2e``). The real server
decides what is right, with its garbage collector and namespace controller beside it (tests marked
``controllers`` need those).

Clusters live for the whole session; every test has a namespace and names of its own.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
import yaml
from lab.realkube import Kube

from ground.objects.kube_objects import CONFIG_MAP, CRD, NAMESPACE, Kind, Manifest, ObjectKey, dig
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.ports.cluster import Cluster, WatchEvent
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.cluster.http import cluster_app

IMPLEMENTATIONS = ("embedded", "embedded-http", "real")
TOKEN = "suite-token"
DEADLINE_S = 120.0
"""A real garbage collector looks for new kinds every 30 s."""
HISTORY, TRIM_EVERY = 500, 1_000
"""Changes an embedded cluster of this suite remembers, and how often it forgets older ones."""

GROUP = "conformance.orderkit.dev"
CAR = Kind(GROUP, "v1", "Car")
TRACK = Kind(GROUP, "v1", "Track")

T = TypeVar("T")

CAR_SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "string", "enum": ["small", "medium", "large"]},
        "replicas": {"type": "integer", "minimum": 1, "maximum": 5, "default": 1},
        "team": {"type": "string", "pattern": "^[a-z][a-z0-9-]{2,28}$"},
        "message": {"type": "string", "maxLength": 20, "minLength": 2},
        "fast": {"type": "boolean"},
        "weight": {"type": "number", "minimum": 0.5, "exclusiveMinimum": True},
        "when": {"type": "string", "format": "date-time"},
        "engine": {
            "type": "object",
            "required": ["power"],
            "properties": {
                "fuel": {"type": "string", "default": "petrol"},
                "power": {"type": "integer"},
            },
        },
        "tyres": {
            "type": "object",
            "default": {},
            "properties": {"kind": {"type": "string", "default": "street"}},
        },
        "notes": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "port": {"x-kubernetes-int-or-string": True},
        "maybe": {"type": "string", "nullable": True, "default": "yes"},
        "plain": {"type": "array", "maxItems": 3, "items": {"type": "string"}},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "stops": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "seconds": {"type": "integer"},
                    "crew": {"type": "string"},
                },
            },
        },
    },
}
CAR_SCHEMA = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": CAR_SPEC,
        "status": {
            "type": "object",
            "properties": {
                "laps": {"type": "integer"},
                "best": {"type": "string", "enum": ["slow", "quick"]},
            },
        },
    },
}


def crd(kind: Kind, schema: dict[str, Any], *, scope: str = "Namespaced", status: bool) -> Manifest:
    """Return the CustomResourceDefinition of a kind."""
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    if status:
        version["subresources"] = {"status": {}}
    plural = kind.kind.lower() + "s"
    return {
        "apiVersion": CRD.api_version,
        "kind": CRD.kind,
        "metadata": {"name": f"{plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": scope,
            "names": {"kind": kind.kind, "plural": plural, "singular": kind.kind.lower()},
            "versions": [version],
        },
    }


def eventually(probe: Callable[[], T | None], *, within_s: float = DEADLINE_S) -> T:
    """Return the first truthy answer of `probe`."""
    deadline = time.monotonic() + within_s
    while not (found := probe()):
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)
    return found


@dataclass
class Implementation:
    """One cluster under test."""

    name: str
    cluster: Cluster
    forget_history: Callable[[], None] | None = None
    """Make the oldest versions unknown to watches, if a test can do that."""
    controllers: bool = True
    """Whether garbage is collected and namespaces are emptied."""
    serial: Iterator[int] = field(default_factory=itertools.count)
    run: str = field(default_factory=lambda: secrets.token_hex(3))

    def fresh(self, word: str) -> str:
        """Return a name that no other test of this or an earlier run has."""
        return f"{word}-{self.run}-{next(self.serial)}"


@dataclass
class World:
    """What a test works in: a cluster, a namespace of its own, short ways to say things."""

    CAR: ClassVar[Kind] = CAR
    """Namespaced, with status subresource and a rich schema."""
    TRACK: ClassVar[Kind] = TRACK
    """Cluster-scoped, without status subresource, any fields."""

    implementation: Implementation
    namespace: str

    @property
    def cluster(self) -> Cluster:
        return self.implementation.cluster

    def fresh(self, word: str = "x") -> str:
        return self.implementation.fresh(word)

    def car(self, name: str = "", *, spec: dict[str, Any] | None = None, **meta: Any) -> Manifest:
        """Return a valid Car with the given parts; nothing is sent."""
        return {
            "apiVersion": CAR.api_version,
            "kind": CAR.kind,
            "metadata": {"name": name or self.fresh("car"), "namespace": self.namespace, **meta},
            "spec": {"size": "small"} if spec is None else spec,
        }

    def track(self, name: str = "", **meta: Any) -> Manifest:
        """Return a cluster-scoped object of a kind without status subresource."""
        return {
            "apiVersion": TRACK.api_version,
            "kind": TRACK.kind,
            "metadata": {"name": name or self.fresh("track"), **meta},
        }

    def config_map(
        self, name: str = "", data: dict[str, str] | None = None, **meta: Any
    ) -> Manifest:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name or self.fresh("cm"), "namespace": self.namespace, **meta},
            "data": {"a": "1"} if data is None else data,
        }

    def new_namespace(self) -> str:
        name = self.fresh("ns")
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        self.cluster.create(manifest, owner="suite")
        return name

    def install(self, definition: Manifest) -> Kind:
        """Create a CRD and wait until its kind is served and accepts objects."""
        return install(self.cluster, definition)

    def definition(self, kind: Kind, spec: dict[str, Any], *, status: bool = False) -> Manifest:
        """Return the CRD of a namespaced kind whose ``spec`` has that schema."""
        return crd(kind, {"type": "object", "properties": {"spec": spec}}, status=status)

    def fresh_kind(self) -> Kind:
        """Return a kind in a group of its own, not installed yet."""
        return Kind(f"{self.fresh('g')}.orderkit.dev", "v1", "Thing")

    def eventually(self, probe: Callable[[], T | None]) -> T:
        """Return the first truthy answer of `probe`; fail after a generous deadline."""
        return eventually(probe)

    def read(self, manifest: Manifest) -> Manifest:
        """Return what the cluster holds now."""
        found = self.cluster.get(ObjectKey.of(manifest))
        assert found is not None
        return found

    def gone(self, manifest: Manifest) -> None:
        """Wait until the object is gone."""
        eventually(lambda: self.cluster.get(ObjectKey.of(manifest)) is None)

    def version(self, kind: Kind) -> str:
        """Return the version to watch a kind from, as of now."""
        return self.cluster.list(kind, namespace=self.namespace).resource_version

    def seen(self, kind: Kind, since: str, count: int) -> list[WatchEvent]:
        """Watch this test's namespace until `count` events came (bookmarks left out)."""
        events = []
        stream = self.cluster.watch(
            kind, namespace=self.namespace, since=since, timeout_s=DEADLINE_S
        )
        for event in stream:
            if event.type != "BOOKMARK":
                events.append(event)
            if len(events) == count:
                break
        return events


def install(cluster: Cluster, definition: Manifest) -> Kind:
    """Apply a CRD; return its kind once it is served and can be listed."""
    cluster.apply(definition, owner="suite")
    spec = definition["spec"]
    kind = Kind(spec["group"], spec["versions"][0]["name"], spec["names"]["kind"])
    key = ObjectKey(CRD, definition["metadata"]["name"])
    eventually(lambda: _established(cluster.get(key)) and cluster.serves(kind))
    return kind


def _established(manifest: Manifest | None) -> bool:
    conditions = dig(manifest, "status", "conditions") or ()  # null right after creation
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def kubeconfig(path: Path, url: str) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "suite", "cluster": {"server": url}}],
        "users": [{"name": "suite", "user": {"token": TOKEN}}],
        "contexts": [{"name": "suite", "context": {"cluster": "suite", "user": "suite"}}],
        "current-context": "suite",
    }
    path.write_text(yaml.safe_dump(content))
    return path


def forgetting(cluster: EmbeddedCluster) -> Callable[[], None]:
    """Return what writes until the history of before is gone."""

    def forget() -> None:
        manifest: Manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "noise", "namespace": "default"},
        }
        for number in range(HISTORY + TRIM_EVERY):
            cluster.apply({**manifest, "data": {"n": str(number)}}, owner="noise")

    return forget


def _embedded(folder: Path) -> Iterator[Implementation]:
    cluster = EmbeddedCluster(folder / "cluster.sqlite", history=HISTORY)
    yield Implementation("embedded", cluster, forgetting(cluster))
    cluster.close()


def _embedded_http(folder: Path) -> Iterator[Implementation]:
    cluster = EmbeddedCluster(folder / "cluster.sqlite", history=HISTORY)
    server = HttpServer(cluster_app(cluster, token=TOKEN), bind("cluster", 0))
    server.start()
    with KubeCluster.from_kubeconfig(kubeconfig(folder / "kubeconfig", server.url)) as client:
        yield Implementation("embedded-http", client, forgetting(cluster))
    server.stop()
    cluster.close()


def _real(kube: Kube) -> Iterator[Implementation]:
    with KubeCluster.from_kubeconfig(kube.kubeconfig) as client:
        yield Implementation("real", client, controllers=kube.controllers)


@pytest.fixture(scope="package", params=IMPLEMENTATIONS)
def implementation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Implementation]:
    """One cluster per implementation, with the suite's kinds installed."""
    if request.param == "real":
        source = _real(request.getfixturevalue("real_kube"))
    else:
        makers = {"embedded": _embedded, "embedded-http": _embedded_http}
        source = makers[request.param](tmp_path_factory.mktemp(request.param))
    for made in source:
        install(made.cluster, crd(CAR, CAR_SCHEMA, status=True))
        free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        install(made.cluster, crd(TRACK, free, scope="Cluster", status=False))
        yield made


@pytest.fixture
def world(implementation: Implementation, request: pytest.FixtureRequest) -> Iterator[World]:
    """A fresh namespace; what is left in it is deleted in the background."""
    if request.node.get_closest_marker("controllers") and not implementation.controllers:
        pytest.skip("no controllers run beside this API server")
    made = World(implementation, "")
    made.namespace = made.new_namespace()
    yield made
    for kind in (CAR, CONFIG_MAP):
        for item in made.cluster.list(kind, namespace=made.namespace).items:
            if item["metadata"].get("finalizers"):
                made.cluster.patch(
                    ObjectKey.of(item), {"metadata": {"finalizers": None}}, owner="suite"
                )
    made.cluster.delete(ObjectKey(NAMESPACE, made.namespace))


@pytest.fixture
def cluster(world: World) -> Cluster:
    """The cluster of this test's world."""
    return world.cluster
