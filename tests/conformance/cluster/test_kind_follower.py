"""What the live model relies on: following a kind survives whatever happens to watches."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from answering import says
from answering import server as answering_server
from tests.conformance.cluster.conftest import (
    CAR,
    CAR_SCHEMA,
    HISTORY,
    TOKEN,
    crd,
    eventually,
    forgetting,
    install,
    kubeconfig,
)

from ground.objects.kube_objects import CRD, Kind, Manifest, ObjectKey
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.flows.live.following import KindFollower, Receiver
from orderkit.ports.cluster import Cluster
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.cluster.http import cluster_app

if TYPE_CHECKING:
    from tests.conformance.cluster.conftest import World


class Held:
    """A follower and the names that it holds."""

    def __init__(self, cluster: Cluster, kind: Kind, namespace: str | None) -> None:
        self._lock = threading.Lock()
        self._objects: dict[ObjectKey, Manifest] = {}
        receiver = Receiver(self._put, self._remove, self._keys)
        self.follower = KindFollower(cluster, kind, receiver, namespace=namespace)

    def _put(self, manifest: Manifest) -> None:
        with self._lock:
            self._objects[ObjectKey.of(manifest)] = manifest

    def _remove(self, key: ObjectKey) -> None:
        with self._lock:
            self._objects.pop(key, None)

    def _keys(self) -> set[ObjectKey]:
        with self._lock:
            return set(self._objects)

    def names(self) -> set[str]:
        return {key.name for key in self._keys()}

    def sizes(self) -> set[str]:
        with self._lock:
            return {manifest["spec"]["size"] for manifest in self._objects.values()}


@contextlib.contextmanager
def following(cluster: Cluster, kind: Kind, namespace: str | None = None) -> Iterator[Held]:
    held = Held(cluster, kind, namespace)
    held.follower.start()
    try:
        eventually(lambda: held.follower.is_complete)
        yield held
    finally:
        held.follower.stop()
        held.follower.join(60)


def test_what_was_there_and_what_happens_is_held(cluster: Cluster, world: World) -> None:
    first = cluster.create(world.car("a"), owner="me")
    with following(cluster, world.CAR, world.namespace) as held:
        assert held.names() == {"a"}
        cluster.create(world.car("b"), owner="me")
        cluster.patch(ObjectKey.of(first), {"spec": {"size": "large"}}, owner="me")
        eventually(lambda: held.names() == {"a", "b"} and held.sizes() == {"small", "large"})
        cluster.delete(ObjectKey.of(first))
        eventually(lambda: held.names() == {"b"})
        assert (held.follower.restarts, held.follower.age_s) == (0, 0.0)


def test_a_kind_that_appears_later_is_found(cluster: Cluster, world: World) -> None:
    kind = world.fresh_kind()
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    with following(cluster, kind, world.namespace) as held:
        assert held.names() == set()
        world.install(world.definition(kind, spec))
        cluster.create(thing(kind, world.namespace), owner="me")

        eventually(lambda: held.names() == {"thing"})


def test_a_kind_that_goes_has_no_objects_any_more(cluster: Cluster, world: World) -> None:
    kind = world.fresh_kind()
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = world.definition(kind, spec)
    world.install(definition)
    cluster.create(thing(kind, world.namespace), owner="me")
    with following(cluster, kind, world.namespace) as held:
        eventually(lambda: held.names() == {"thing"})
        cluster.delete(ObjectKey(CRD, definition["metadata"]["name"]))

        eventually(lambda: held.names() == set())


def thing(kind: Kind, namespace: str) -> Manifest:
    meta = {"name": "thing", "namespace": namespace}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": {"a": 1}}


@pytest.mark.parametrize("forgets", [False, True], ids=["resumes", "lists again after 410"])
def test_a_server_that_restarts_is_followed_further(*, forgets: bool, tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path / "cluster.sqlite", history=HISTORY)
    install(cluster, crd(CAR, CAR_SCHEMA, status=True))
    serve: Callable[[int], HttpServer] = lambda port: HttpServer(  # noqa: E731
        cluster_app(cluster, token=TOKEN), bind("cluster", port)
    )
    server = serve(0)
    server.start()
    car: Manifest = {
        "apiVersion": CAR.api_version,
        "kind": CAR.kind,
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"size": "small"},
    }
    with KubeCluster.from_kubeconfig(kubeconfig(tmp_path / "kubeconfig", server.url)) as client:
        cluster.create(car, owner="me")
        with following(client, CAR) as held:
            port = server.port
            server.stop()
            eventually(lambda: held.follower.age_s > 0)
            cluster.delete(ObjectKey.of(car))
            cluster.create({**car, "metadata": {**car["metadata"], "name": "b"}}, owner="me")
            if forgets:
                forgetting(cluster)()
            server = serve(port)
            server.start()
            eventually(lambda: held.names() == {"b"})
            eventually(lambda: held.follower.age_s == 0)
            assert held.follower.restarts > int(forgets)
    server.stop()
    cluster.close()


def test_a_kind_that_may_not_be_read_is_left_out_and_says_why(tmp_path: Path) -> None:
    refusal = {"kind": "Status", "status": "Failure", "code": 403, "message": "cars is forbidden"}
    forbidden = says(403, json.dumps(refusal).encode(), Content_Type="application/json")
    with (
        answering_server(forbidden) as url,
        KubeCluster.from_kubeconfig(kubeconfig(tmp_path / "kubeconfig", url)) as client,
        following(client, CAR) as held,
    ):
        assert held.names() == set()
        assert "forbidden" in held.follower.refusal
