"""Usages on the embedded platform: what is used is not deleted before what uses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ground.errors import OrderkitError
from ground.objects.kube_objects import (
    CLUSTER_USAGE,
    CONFIG_MAP,
    NAMESPACE,
    USAGE,
    Kind,
    Manifest,
    ObjectKey,
    condition,
    labels_of,
    metadata,
)
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import Cluster
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.crossplane import EmbeddedCrossplane, crossplane_crds

HOME, TEST = "shop", "test"


def made(kind: Kind, name: str, **more: Any) -> Manifest:
    home = {} if kind in (NAMESPACE, CLUSTER_USAGE) else {"namespace": HOME}
    meta = {"name": name, **home, **more.pop("meta", {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **more}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    store = EmbeddedCluster(tmp_path_factory.mktemp("usages") / "cluster.sqlite")
    for crd in crossplane_crds():
        store.apply(crd, owner=TEST)
    store.apply(made(NAMESPACE, HOME), owner=TEST)
    core = EmbeddedCrossplane(store, {})
    core.start()
    yield store
    core.stop()
    store.close()


def config_map(cluster: Cluster, name: str, **meta: Any) -> Manifest:
    return cluster.create(made(CONFIG_MAP, name, meta=meta), owner=TEST)


def gone(cluster: Cluster, key: ObjectKey) -> None:
    until(
        SystemClock(), lambda: cluster.get(key), lambda seen: seen is None, timeout_s=60.0,
        goal=f"end of {key}",
    )  # fmt: skip


def ready(cluster: Cluster, usage: Manifest) -> ObjectKey:
    key = ObjectKey.of(cluster.create(usage, owner=TEST))
    until(
        SystemClock(),
        lambda: cluster.get(key) or {},
        lambda seen: (condition(seen, "Ready") or {}).get("status") == "True",
        timeout_s=60.0,
        goal=f"{key} ready",
    )
    return key


def side(name: str = "", **more: Any) -> Manifest:
    reference = {"resourceRef": {"name": name, **more.pop("ref", {})}} if name else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", **reference, **more}


def test_what_is_used_is_not_deleted_until_its_usage_is_gone(cluster: Cluster) -> None:
    used = ObjectKey.of(config_map(cluster, "database"))
    using = ObjectKey.of(config_map(cluster, "shopfront"))
    usage = made(USAGE, "keeps", spec={"of": side("database"), "by": side("shopfront")})
    key = ready(cluster, usage)

    refusal = (
        r'admission webhook "nousages\.protection\.crossplane\.io" denied the request: This '
        r"resource is in-use by 1 usage\(s\), including the \*v1beta1\.Usage "
        r'"keeps" \(in namespace "shop"\) by resource ConfigMap/shopfront\.'
    )
    with pytest.raises(OrderkitError, match=refusal):
        cluster.delete(used)
    cluster.delete(using)  # it owns the Usage
    gone(cluster, key)

    assert "crossplane.io/in-use" not in labels_of(cluster.get(used) or {})
    cluster.delete(used)
    gone(cluster, used)


def test_a_reason_protects_without_a_user(cluster: Cluster) -> None:
    used = ObjectKey.of(config_map(cluster, "precious"))
    of = side("precious", ref={"namespace": HOME})
    key = ready(
        cluster, made(CLUSTER_USAGE, "production", spec={"of": of, "reason": "is production"})
    )

    with pytest.raises(OrderkitError, match='ClusterUsage "production" with reason: "is prod'):
        cluster.delete(used)

    assert metadata(cluster.get(key) or {})["annotations"] == {
        "crossplane.io/usage-details": "is production"
    }
    cluster.delete(key)
    gone(cluster, key)
    assert cluster.delete(used)


def test_the_parts_of_an_order_go_in_the_order_that_usages_say(cluster: Cluster) -> None:
    """The garbage collector is refused too, and tries again when nothing uses the part."""
    whole = config_map(cluster, "whole")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "whole", "controller": True}
    composed: dict[str, Any] = {
        "ownerReferences": [{**owner, "uid": metadata(whole)["uid"]}],
        "labels": {"crossplane.io/composite": "whole"},
    }
    network = ObjectKey.of(config_map(cluster, "network", **composed))
    finalizers = {"finalizers": ["example.org/slow"]}
    nodes = ObjectKey.of(config_map(cluster, "nodes", **composed, **finalizers))
    selector = {"matchControllerRef": True, "matchLabels": {"crossplane.io/composite": "whole"}}
    by = {"apiVersion": "v1", "kind": "ConfigMap", "resourceSelector": selector}
    usage = ready(
        cluster,
        made(USAGE, "order", meta=composed, spec={"of": side("network"), "by": side("nodes")}),
    )
    reason = {"of": by, "reason": "selected"}
    selected = ready(cluster, made(USAGE, "other", meta=composed, spec=reason))
    assert (cluster.get(selected) or {})["spec"]["of"]["resourceRef"]["name"] == "network"
    cluster.delete(selected)
    gone(cluster, selected)

    cluster.delete(ObjectKey.of(whole))

    until(
        SystemClock(),
        lambda: cluster.get(nodes) or {},
        lambda seen: bool(metadata(seen).get("deletionTimestamp")),
        timeout_s=60.0,
        goal="nodes are being deleted",
    )
    assert cluster.get(usage) is not None
    assert not metadata(cluster.get(network) or {}).get("deletionTimestamp")
    cluster.patch(nodes, {"metadata": {"finalizers": None}}, owner=TEST)
    for key in (nodes, usage, network):
        gone(cluster, key)


def test_a_refused_deletion_is_replayed_when_the_last_usage_asks_for_it(cluster: Cluster) -> None:
    used = ObjectKey.of(config_map(cluster, "replayed"))
    spec = {"of": side("replayed"), "reason": "in use", "replayDeletion": True}
    first, last = (ready(cluster, made(USAGE, name, spec=spec)) for name in ("first", "last"))
    with pytest.raises(OrderkitError, match="in-use by 2 usage"):
        cluster.delete(used, propagation="Foreground")
    attempt = "usage.crossplane.io/deletion-attempt-with-policy"
    assert metadata(cluster.get(used) or {})["annotations"] == {attempt: "Foreground"}

    cluster.delete(first)
    gone(cluster, first)
    assert cluster.get(used) is not None
    cluster.delete(last)
    gone(cluster, used)


def test_a_usage_without_user_and_reason_is_refused(cluster: Cluster) -> None:
    with pytest.raises(OrderkitError, match=r'"spec\.by" or "spec\.reason" must be specified'):
        cluster.create(made(USAGE, "empty", spec={"of": side("x")}), owner=TEST)
    with pytest.raises(OrderkitError, match="a resource reference or a resource selector"):
        cluster.create(made(USAGE, "empty", spec={"of": side(), "reason": "x"}), owner=TEST)
