"""Many objects of a kind are read by listing it once; answers about a kind are of one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ground.errors import AccessError
from ground.objects.kube_objects import CONFIG_MAP, Kind, Manifest, ObjectKey
from orderkit.flows.plan.fleet_planning import BulkLookup
from orderkit.ports.cluster import NoSuchKindError, ObjectList
from orderkit_standins.cluster import EmbeddedCluster

NOTHING = Kind("nothing.example.org", "v1", "Nothing")
KEYS = [ObjectKey(CONFIG_MAP, f"m{number}", "default") for number in range(8)]


class Counted:
    """A real cluster whose reads are noted; it may forbid to list."""

    def __init__(self, cluster: EmbeddedCluster, *, may_list: bool = True) -> None:
        self.cluster, self.may_list = cluster, may_list
        self.reads: list[str] = []

    def get(self, key: ObjectKey) -> Manifest | None:
        self.reads.append(f"get {key.name}")
        return self.cluster.get(key)

    def list(self, kind: Kind, *, namespace: str | None = None) -> ObjectList:
        self.reads.append(f"list {kind.kind}")
        if not self.may_list:
            raise AccessError(f"{kind.kind}: 403, you may not list")
        return self.cluster.list(kind, namespace=namespace)

    def plural(self, kind: Kind) -> str | None:
        self.reads.append(f"plural {kind.kind}")
        return self.cluster.plural(kind)

    def serves(self, kind: Kind) -> bool:
        return self.cluster.serves(kind)

    def openapi(self, group: str, version: str) -> Mapping[str, Any] | None:
        return self.cluster.openapi(group, version)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    opened = EmbeddedCluster(tmp_path / "cluster.sqlite")
    for key in KEYS:
        opened.create(
            {**_identity(key), "data": {"a": key.name}},
            owner="me",
        )
    yield opened
    opened.close()


def _identity(key: ObjectKey) -> dict[str, Any]:
    names = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": names}


def test_after_a_few_objects_their_kind_is_listed_once(cluster: EmbeddedCluster) -> None:
    counted = Counted(cluster)
    bulk = BulkLookup(counted)

    read = [bulk.get(key) for key in [*KEYS, *KEYS]]

    assert counted.reads == [*(f"get m{number}" for number in range(5)), "list ConfigMap"]
    assert read == [cluster.get(key) for key in [*KEYS, *KEYS]]
    assert bulk.get(ObjectKey(CONFIG_MAP, "missing", "default")) is None
    assert len(bulk.list(CONFIG_MAP, namespace="default").items) == len(KEYS)
    assert bulk.list(CONFIG_MAP, namespace="other").items == ()
    assert len(counted.reads) == 6, "answered from what was listed"


def test_what_may_not_be_listed_is_read_one_by_one(cluster: EmbeddedCluster) -> None:
    counted = Counted(cluster, may_list=False)
    bulk = BulkLookup(counted)

    assert [bulk.get(key) for key in KEYS] == [cluster.get(key) for key in KEYS]
    assert counted.reads.count("list ConfigMap") == 1
    with pytest.raises(AccessError, match="403"):
        bulk.list(CONFIG_MAP)


def test_a_kind_that_is_not_served_is_asked_for_once(cluster: EmbeddedCluster) -> None:
    counted = Counted(cluster)
    bulk = BulkLookup(counted)

    for _ in range(2):
        with pytest.raises(NoSuchKindError):
            bulk.list(NOTHING)
        with pytest.raises(NoSuchKindError):
            bulk.get(ObjectKey(NOTHING, "n"))
        assert not bulk.serves(NOTHING)
        assert bulk.plural(CONFIG_MAP) == "configmaps"

    assert counted.reads == ["list Nothing", "plural Nothing", "plural ConfigMap"]
    assert bulk.openapi("", "v1") == cluster.openapi("", "v1")
