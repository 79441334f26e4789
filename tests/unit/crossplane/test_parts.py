"""`Parts` creates in order, protects in order, and never drops what exists."""

from __future__ import annotations

from typing import Any

import pytest

from compositions.parts import WAITING
from orderkit.stations import (
    Manifest,
    Parts,
    Ready,
    Resource,
    SecretKey,
    State,
    StationRequest,
    StationResponse,
    managed,
    provider_config,
)

NETWORK, POOL = ("compute.gcp.m.upbound.io/v1beta1", "Network"), ("c.gcp.m.upbound.io/v1", "Pool")
READY = [{"type": "Ready", "status": "True"}, {"type": "Synced", "status": "True"}]


def parts_of(observed: dict[str, Manifest], *, namespace: str = "team-a", **options: Any) -> Parts:
    meta = {"name": "cluster-one"} | ({"namespace": namespace} if namespace else {})
    resources = {part: Resource(manifest) for part, manifest in observed.items()}
    request = StationRequest(State(Resource({"metadata": meta, "spec": {}}), resources))
    return Parts(request, StationResponse.to(request), **options)


def existing(kind: tuple[str, str], name: str, conditions: list[dict[str, Any]]) -> Manifest:
    return {
        "apiVersion": kind[0],
        "kind": kind[1],
        "metadata": {"name": name, "namespace": "team-a"},
        "status": {"conditions": conditions},
    }


def desired(parts: Parts) -> dict[str, Manifest]:
    return {name: r.resource for name, r in parts.response.desired.resources.items()}


def test_a_part_gets_the_orders_name_namespace_and_labels() -> None:
    parts = parts_of({}, labels={"owner": "ann"})

    parts.want("network", {**managed(*NETWORK, {}), "metadata": {"labels": {"tier": "base"}}})

    assert desired(parts)["network"]["metadata"] == {
        "name": "cluster-one-network",
        "namespace": "team-a",
        "labels": {"owner": "ann", "tier": "base"},
    }
    assert parts.reference("network") == {"name": "cluster-one-network"}


def test_an_existing_object_keeps_its_name() -> None:
    parts = parts_of({"network": existing(NETWORK, "old-name", [])})

    parts.want("network", managed(*NETWORK, {}))

    assert desired(parts)["network"]["metadata"]["name"] == "old-name"


def test_a_long_name_is_cut_and_stays_unique() -> None:
    parts = parts_of({})

    first, second = parts.name("x" * 80), parts.name("x" * 81)

    assert len(first) == len(second) == 63
    assert first != second
    assert first == parts_of({}).name("x" * 80)


def test_parts_in_the_orders_own_namespace_wait_for_it() -> None:
    options: dict[str, Any] = {"namespace": "home", "after": ("namespace",)}
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "home"}}
    config: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "data": {}}
    meta: Manifest = {"metadata": {"name": "one"}}
    before, after = (
        Parts(request, StationResponse.to(request), **options)
        for request in (
            StationRequest(State(Resource(meta)), State(resources={"namespace": Resource(home)})),
            StationRequest(State(Resource(meta), {"namespace": Resource(home)})),
        )
    )

    before.want("sheet", config)
    after.want("sheet", config)

    assert set(desired(before)) == {"namespace"}
    assert before.waiting == {"sheet": ["namespace"]}
    assert desired(after)["sheet"]["metadata"] == {"name": "sheet", "namespace": "home"}


@pytest.mark.parametrize("conditions", [None, [], [{"type": "Ready", "status": "False"}]])
def test_a_part_waits_until_what_it_uses_is_ready(conditions: list[Any] | None) -> None:
    observed = {} if conditions is None else {"network": existing(NETWORK, "n", conditions)}
    parts = parts_of(observed)

    parts.want("network", managed(*NETWORK, {}))
    parts.want("pool", managed(*POOL, {}), uses=["network"])

    assert set(desired(parts)) == {"network"}
    assert parts.waiting == {"pool": ["network"]}
    assert parts.phase() == "Provisioning"


def test_a_part_that_exists_stays_when_what_it_uses_is_ready_no_more() -> None:
    parts = parts_of(
        {"network": existing(NETWORK, "n", []), "pool": existing(POOL, "p", READY)},
    )

    parts.want("network", managed(*NETWORK, {}))
    parts.want("pool", managed(*POOL, {}), uses=["network"])

    assert {"network", "pool", "usage-network-by-pool"} == set(desired(parts))
    assert parts.waiting == {}


def test_what_is_only_needed_is_waited_for_and_not_protected() -> None:
    before = parts_of({"network": existing(NETWORK, "n", [])})
    after = parts_of({"network": existing(NETWORK, "n", READY)})
    for parts in (before, after):
        parts.want("network", managed(*NETWORK, {}))
        parts.want("pool", managed(*POOL, {}), needs=["network"])

    assert set(desired(before)) == {"network"}
    assert set(desired(after)) == {"network", "pool"}


def test_a_usage_outlives_an_outage_of_what_it_protects() -> None:
    parts = parts_of({"pool": existing(POOL, "p", READY)})

    parts.want("network", managed(*NETWORK, {}))
    parts.want("pool", managed(*POOL, {}), uses=["network"])

    spec = desired(parts)["usage-network-by-pool"]["spec"]
    assert spec["of"]["resourceRef"] == {"name": "cluster-one-network"}
    assert spec["by"]["resourceRef"] == {"name": "p"}


def test_one_list_gives_the_usage_too() -> None:
    parts = parts_of({"network": existing(NETWORK, "cluster-one-network", READY)})

    parts.want("network", managed(*NETWORK, {}))
    parts.want("pool", managed(*POOL, {}), uses=["network"])

    assert desired(parts)["usage-network-by-pool"] == {
        "apiVersion": "protection.crossplane.io/v1beta1",
        "kind": "Usage",
        "metadata": {"name": "cluster-one-usage-network-by-pool", "namespace": "team-a"},
        "spec": {
            "of": {
                "apiVersion": NETWORK[0],
                "kind": NETWORK[1],
                "resourceRef": {"name": "cluster-one-network"},
            },
            "by": {
                "apiVersion": POOL[0],
                "kind": POOL[1],
                "resourceRef": {"name": "cluster-one-pool"},
            },
            "replayDeletion": True,
        },
    }


def test_a_cluster_scoped_pair_gets_a_cluster_usage_and_a_mixed_one_is_refused() -> None:
    role = ("rbac.authorization.k8s.io/v1", "ClusterRole")
    observed = existing(role, "one-role", [])
    del observed["metadata"]["namespace"]
    parts = parts_of({"role": observed}, namespace="")
    api, kind = role
    parts.want("role", {"apiVersion": api, "kind": kind})

    parts.want("binding", {"apiVersion": api, "kind": "ClusterRoleBinding"}, uses=["role"])

    assert desired(parts)["usage-role-by-binding"]["kind"] == "ClusterUsage"
    with pytest.raises(ValueError, match='uses "role", but only one of them has a namespace'):
        parts.want("pool", {**managed(*POOL, {}), "metadata": {"namespace": "x"}}, uses=["role"])


def test_a_misspelt_dependency_is_refused_and_not_waited_for() -> None:
    with pytest.raises(ValueError, match='depends on "netwrok", which no station wants'):
        parts_of({}).want("pool", managed(*POOL, {}), uses=["netwrok"])


def test_a_later_step_may_depend_on_a_part_that_waits() -> None:
    first = parts_of({})
    first.want("network", managed(*NETWORK, {}))
    first.want("cluster", managed(*POOL, {}), uses=["network"])
    request = StationRequest(first.request.observed, first.response.desired, first.response.context)
    later = Parts(request, StationResponse.to(request))

    later.want("pool", managed(*POOL, {}), uses=["cluster"])

    assert later.response.context[WAITING] == {"cluster": ["network"], "pool": ["cluster"]}


def test_kinds_without_a_status_are_ready_once_they_exist() -> None:
    config = provider_config("helm.m.crossplane.io/v1beta1", SecretKey("kube", "config", "team-a"))
    observed = {**config, "metadata": {"name": "c"}}
    before, after = parts_of({}), parts_of({"config": observed})

    before.want("config", config)
    after.want("config", config)

    assert before.response.desired.resources["config"].ready is Ready.FALSE
    assert after.response.desired.resources["config"].ready is Ready.TRUE


def test_a_providers_problem_makes_the_order_failed_and_is_bounded() -> None:
    broken = {
        "type": "Synced",
        "status": "False",
        "reason": "ReconcileError",
        "message": "q" * 9999,
    }
    parts = parts_of({"network": existing(NETWORK, "n", [broken])})

    parts.want("network", managed(*NETWORK, {}))

    assert parts.phase() == "Failed"
    assert parts.problems() == {"network": "q" * 300}


def test_the_order_is_ready_when_all_parts_are() -> None:
    parts = parts_of({"network": existing(NETWORK, "n", READY)})

    parts.want("network", managed(*NETWORK, {}))

    assert parts.phase() == "Ready"


def test_connection_details_are_read_as_text() -> None:
    parts = parts_of({"db": existing(NETWORK, "n", READY)})
    parts.request.observed.resources["db"].connection_details["host"] = b"db.example.org"

    assert (parts.connection("db", "host"), parts.connection("db", "x")) == ("db.example.org", "")
