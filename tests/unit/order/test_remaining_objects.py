"""What is still there of an order that ends: its own objects, not those of others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bareplatform import platform_of
from refusedreads import RefusedReads

from ground.errors import AccessError
from ground.names import OrderId
from ground.objects.kube_objects import CONFIG_MAP, TRACKING_ID, Kind, Manifest, ObjectKey
from orderkit.core.kit.kit_file import KindRef
from orderkit.core.kit.model import Kit
from orderkit.flows.end.destroying import left_in_the_cluster
from orderkit.flows.end.remaining_objects import Absence
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.testing import permissive_crd

XR = Kind("lab.example.org", "v1", "XApp")
GONE = Kind("gone.example.org", "v1", "Gone")
SECRET = Kind("", "v1", "Secret")
ORDER = OrderId("app-a")
ROOT = ObjectKey(XR, "root")
COMPOSITE = "crossplane.io/composite"
XRD = {
    "spec": {
        "group": XR.group,
        "names": {"kind": XR.kind, "plural": "xapps"},
        "versions": [{"name": "v1", "referenceable": True}],
    }
}


def kit(*composes: Kind) -> Kit:
    kinds = tuple(KindRef(kind.api_version, kind.kind) for kind in composes)
    return Kit(name="app", xrd=XRD, composes=kinds)


def made(kind: Kind, name: str, **meta: Any) -> Manifest:
    whole: dict[str, Any] = {"name": name, **meta}
    if kind != XR:
        whole["namespace"] = "default"
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": whole}


def own(
    cluster: EmbeddedCluster, kind: Kind, name: str, *, owner: str, label: str = "root"
) -> None:
    """Make an object that an XR composed, with the label of an outermost XR."""
    above = cluster.get(ObjectKey(XR, owner))
    assert above
    reference = {"apiVersion": XR.api_version, "kind": XR.kind, "name": owner, "controller": True}
    owners = [{**reference, "uid": above["metadata"]["uid"]}]
    cluster.create(made(kind, name, labels={COMPOSITE: label}, ownerReferences=owners), owner="x")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    found = EmbeddedCluster(tmp_path / "cluster.sqlite")
    found.create(permissive_crd(XR, namespaced=False), owner="x")
    yield found
    found.close()


def left(cluster: Any, keys: list[ObjectKey], of: Kit | None) -> list[str]:
    absence = Absence(platform_of(cluster), ORDER, keys, of)
    return [f"{each.key.name}: {each.why}" for each in absence.remaining()]


def key(name: str, kind: Kind = CONFIG_MAP) -> ObjectKey:
    return ObjectKey(kind, name, "default")


def test_what_the_xr_composed_is_found_without_knowing_it(cluster: EmbeddedCluster) -> None:
    for name in ("root", "other"):
        cluster.create(made(XR, name), owner="x")
    own(cluster, XR, "nested", owner="root")
    own(cluster, CONFIG_MAP, "part", owner="root")
    own(cluster, CONFIG_MAP, "deep", owner="nested")
    own(cluster, CONFIG_MAP, "of-another", owner="other")
    own(cluster, CONFIG_MAP, "labelled-otherwise", owner="root", label="other")

    assert left(cluster, [ROOT], kit(CONFIG_MAP, XR, GONE)) == [
        "deep: not deleted yet",
        "part: not deleted yet",
        "nested: not deleted yet",
        "root: not deleted yet",
    ]
    assert left(cluster, [ROOT, key("part")], None) == [
        "part: not deleted yet",
        "root: not deleted yet",
    ]
    assert left(cluster, [key("part")], kit(CONFIG_MAP)) == [], "its owner is none of the order's"


def test_an_object_of_the_same_name_that_something_else_owns_is_not_of_the_order(
    cluster: EmbeddedCluster,
) -> None:
    ours = {"annotations": {TRACKING_ID: f"{ORDER}:/ConfigMap:default/tracked"}}
    theirs = {"annotations": {TRACKING_ID: "app-b:/ConfigMap:default/theirs"}}
    for one in (
        made(XR, "other"),
        made(CONFIG_MAP, "tracked", **ours),
        made(CONFIG_MAP, "untracked"),
        made(CONFIG_MAP, "theirs", **theirs),
    ):
        cluster.create(one, owner="x")
    own(cluster, CONFIG_MAP, "owned", owner="other")
    names = ("tracked", "untracked", "theirs", "owned", "gone")

    found = left(cluster, [key(name) for name in names], None)

    assert found == ["tracked: not deleted yet", "untracked: not deleted yet"]


def test_what_a_deletion_waits_for_is_told(cluster: EmbeddedCluster) -> None:
    held = made(CONFIG_MAP, "held", finalizers=["example.org/a", "example.org/b"])
    cluster.create(held, owner="x")
    cluster.delete(key("held"))
    platform = platform_of(cluster)

    described = Absence(platform, ORDER, [key("held")], None).describe()

    assert described.startswith("still there: ")
    assert "its deletion waits for example.org/a, example.org/b" in described
    assert Absence(platform, ORDER, [key("gone")], None).describe() == ""


def test_a_secret_that_may_not_be_read_goes_with_its_owner(
    cluster: EmbeddedCluster, refused: RefusedReads
) -> None:
    cluster.create(made(XR, "root"), owner="x")
    secrets = refused.of(cluster, {"Secret"})

    assert left(secrets, [ROOT, key("s", SECRET)], kit(SECRET)) == ["root: not deleted yet"]
    for keys, of in (([key("c")], None), ([ROOT], kit(CONFIG_MAP))):
        with pytest.raises(AccessError):
            left(refused.of(cluster, {"ConfigMap"}), keys, of)


CLAIM = Kind("", "v1", "PersistentVolumeClaim")
SETS = Kind("apps", "v1", "StatefulSet")


@pytest.mark.parametrize(
    ("refused_kinds", "told"),
    [
        ((), ["PersistentVolumeClaim default/data-db-0: StatefulSet db made it"]),
        (("PersistentVolumeClaim",), ["the claims that StatefulSet db made (data-db-N)"]),
        (("StatefulSet",), []),
    ],
)
def test_the_claims_that_an_order_leaves_are_told_also_if_they_may_not_be_listed(
    cluster: EmbeddedCluster, refused: RefusedReads, refused_kinds: tuple[str, ...], told: list[str]
) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    for name in ("data-db-0", "data-other-0"):
        cluster.create({**made(CLAIM, name), "spec": claim}, owner="x")
    labels = {"app": "db"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "i"}]}}
    spec = {
        "serviceName": "db",
        "selector": {"matchLabels": labels},
        "template": pod,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    cluster.create({**made(SETS, "db"), "spec": spec}, owner="x")

    found = left_in_the_cluster(refused.of(cluster, refused_kinds), [key("db", SETS)])

    assert [*found] == told
