"""An assembly that ends at any moment loses nothing: the next one finishes its work."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compositions.station import StationRequest, StationResponse
from ground.errors import UnreachableError
from ground.objects.kube_objects import CONFIG_MAP, Kind, Manifest, ObjectKey, metadata
from orderkit.ports.cluster import (
    Cluster,
    NoSuchKindError,
    ObjectList,
    Propagation,
    WatchEvent,
    WatchStop,
)

if TYPE_CHECKING:
    from extras.standins.tests.component.assembly.conftest import Lab

APP = Kind("lab.example.org", "v1", "App")


class Dying(Cluster):
    """A cluster that this process can reach only until it made `writes` writes."""

    def __init__(self, cluster: Cluster, writes: int) -> None:
        self._cluster, self._left = cluster, writes
        self._lock = threading.Lock()
        self.dead = threading.Event()

    def _write(self) -> None:
        with self._lock:
            if self._left == 0:
                self.dead.set()
            else:
                self._left -= 1
        self._read()

    def _read(self) -> None:
        if self.dead.is_set():
            raise UnreachableError("this process is dead")

    def version(self) -> str:
        self._read()
        return self._cluster.version()

    def serves(self, kind: Kind) -> bool:
        self._read()
        return self._cluster.serves(kind)

    def is_namespaced(self, kind: Kind) -> bool:
        self._read()
        return self._cluster.is_namespaced(kind)

    def plural(self, kind: Kind) -> str | None:
        self._read()
        return self._cluster.plural(kind)

    def openapi(self, group: str, version: str) -> Mapping[str, Any] | None:
        self._read()
        return self._cluster.openapi(group, version)

    def get(self, key: ObjectKey) -> Manifest | None:
        self._read()
        return self._cluster.get(key)

    def list(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> ObjectList:
        self._read()
        return self._cluster.list(kind, namespace=namespace, labels=labels)

    def create(self, manifest: Manifest, *, owner: str) -> Manifest:
        self._write()
        return self._cluster.create(manifest, owner=owner)

    def apply(
        self, manifest: Manifest, *, owner: str, force: bool = True, status: bool = False
    ) -> Manifest:
        self._write()
        return self._cluster.apply(manifest, owner=owner, force=force, status=status)

    def replace(self, manifest: Manifest, *, owner: str, status: bool = False) -> Manifest:
        self._write()
        return self._cluster.replace(manifest, owner=owner, status=status)

    def patch(
        self, key: ObjectKey, patch: Manifest, *, owner: str, status: bool = False
    ) -> Manifest:
        self._write()
        return self._cluster.patch(key, patch, owner=owner, status=status)

    def delete(
        self, key: ObjectKey, *, propagation: Propagation = "Background", uid: str = ""
    ) -> bool:
        self._write()
        return self._cluster.delete(key, propagation=propagation, uid=uid)

    def list_pages(self, kind: Kind, *, namespace: str | None = None) -> Iterator[ObjectList]:
        self._read()
        yield from self._cluster.list_pages(kind, namespace=namespace)

    def watch(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        since: str,
        timeout_s: float,
        stop: WatchStop | None = None,
    ) -> Iterator[WatchEvent]:
        self._read()
        yield from self._cluster.watch(
            kind, namespace=namespace, since=since, timeout_s=min(timeout_s, 0.05), stop=stop
        )


@pytest.fixture
def own_lab(tmp_path: Path, lab: Lab) -> Iterator[Lab]:
    """A laboratory of its own that nothing runs in yet."""
    made = type(lab)(tmp_path / "cluster.sqlite")
    made.furnish()
    yield made
    made.close()


def three_parts(request: StationRequest, response: StationResponse) -> None:
    """Three ConfigMaps, one of them only in size 1; their names are generated."""
    size = request.xr["spec"]["size"]
    for name in ("a", "b", "only-in-1")[: 3 if size == 1 else 2]:
        meta = {"namespace": "team-a"}
        data = {"size": str(size)}
        response.want(
            name, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
        )
    response.merge_status({"count": size})


def parts(lab: Lab) -> dict[str, str]:
    """Return the composed ConfigMaps: logical name and content."""
    found = lab.cluster.list(CONFIG_MAP, namespace="team-a").items
    return {
        metadata(m)["annotations"]["crossplane.io/composition-resource-name"]: m["data"]["size"]
        for m in found
    }


SETTLED = {1: {"a": "1", "b": "1", "only-in-1": "1"}, 2: {"a": "2", "b": "2"}}


@pytest.mark.parametrize("writes", range(0, 42, 3))
def test_an_assembly_that_dies_after_any_write_is_finished_by_the_next(
    own_lab: Lab, writes: int
) -> None:
    own_lab.says["demo"] = three_parts
    dying = Dying(own_lab.cluster, writes)
    own_lab.start(dying)
    own_lab.wait("kind App", lambda: dying.dead.is_set() or own_lab.cluster.serves(APP))
    with contextlib.suppress(NoSuchKindError):
        own_lab.app("demo", three_parts)
        own_lab.wait(
            "death or success",
            lambda: dying.dead.is_set() or own_lab.status("demo", "Ready").startswith("True"),
        )
    dying.dead.set()
    own_lab.stop()

    own_lab.start(Dying(own_lab.cluster, -1))
    own_lab.wait("kind App", lambda: own_lab.cluster.serves(APP))
    own_lab.app("demo", three_parts)
    own_lab.wait_ready("demo")
    assert parts(own_lab) == SETTLED[1]


@pytest.mark.parametrize("writes", range(0, 16, 2))
def test_a_change_that_was_cut_off_is_finished_by_the_next(own_lab: Lab, writes: int) -> None:
    """The change updates two parts and deletes one."""
    own_lab.start(Dying(own_lab.cluster, -1))
    own_lab.wait("kind App", lambda: own_lab.cluster.serves(APP))
    own_lab.app("demo", three_parts)
    own_lab.wait_ready("demo")
    own_lab.stop()

    own_lab.app("demo", three_parts, size=2)
    dying = Dying(own_lab.cluster, writes)
    own_lab.start(dying)
    own_lab.wait(
        "death or success",
        lambda: dying.dead.is_set() or own_lab.status("demo", "Ready").startswith("True"),
    )
    dying.dead.set()
    own_lab.stop()

    own_lab.start(Dying(own_lab.cluster, -1))
    own_lab.wait_ready("demo")
    own_lab.wait("the parts of size 2", lambda: parts(own_lab) == SETTLED[2])


def test_changes_made_while_nobody_looked_are_caught_up_with(own_lab: Lab) -> None:
    own_lab.start(Dying(own_lab.cluster, -1))
    own_lab.wait("kind App", lambda: own_lab.cluster.serves(APP))
    own_lab.app("demo", three_parts)
    own_lab.wait_ready("demo")
    own_lab.stop()

    own_lab.app("demo", three_parts, size=2)
    for manifest in own_lab.cluster.list(CONFIG_MAP, namespace="team-a").items[:1]:
        own_lab.cluster.delete(ObjectKey.of(manifest))

    own_lab.start(Dying(own_lab.cluster, -1))
    own_lab.wait_ready("demo")
    assert parts(own_lab) == SETTLED[2]


def test_a_deletion_asked_for_while_nobody_looked_is_finished(own_lab: Lab) -> None:
    own_lab.start(Dying(own_lab.cluster, -1))
    own_lab.wait("kind App", lambda: own_lab.cluster.serves(APP))
    own_lab.app("demo", three_parts)
    own_lab.wait_ready("demo")
    own_lab.stop()
    own_lab.cluster.delete(ObjectKey(APP, "demo"))
    assert own_lab.get(APP, "demo")

    own_lab.start(Dying(own_lab.cluster, -1))

    own_lab.wait("the order's end", lambda: own_lab.get(APP, "demo") is None)
    own_lab.wait("the children's end", lambda: not parts(own_lab))


def test_an_assembly_that_starts_before_its_kinds_are_there_waits_for_them(
    tmp_path: Path, lab: Lab
) -> None:
    late = type(lab)(tmp_path / "cluster.sqlite")
    try:
        late.start(Dying(late.cluster, -1))
        late.furnish()
        late.wait("kind App", lambda: late.cluster.serves(APP))
        late.app("demo", three_parts)
        late.wait_ready("demo")
    finally:
        late.close()


def test_twenty_orders_at_once_all_become_ready(own_lab: Lab) -> None:
    own_lab.start(Dying(own_lab.cluster, -1))
    own_lab.wait("kind App", lambda: own_lab.cluster.serves(APP))
    names = [f"demo-{number}" for number in range(20)]

    def say(request: StationRequest, response: StationResponse) -> None:
        name = request.xr["metadata"]["name"]
        response.want("cm", own_lab.config_map(name))

    for name in names:
        own_lab.app(name, say)

    for name in names:
        own_lab.wait_ready(name)
        assert own_lab.get(CONFIG_MAP, name, "team-a")
