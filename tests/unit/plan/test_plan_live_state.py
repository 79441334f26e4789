"""A plan begins with what the cluster has: what counts as drift, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from outcomes import Shop, an_xr, definition, thing, wanting

from compositions.composed import RESOURCE_NAME_ANNOTATION
from ground.objects.kube_objects import Manifest
from orderkit.core.plan import Plan
from orderkit.core.plan.live_state import drifted
from orderkit.flows.composing.planner import OrderPlanner
from orderkit.flows.plan.fleet_orders import ObjectLookup

UID = an_xr({})["metadata"]["uid"]


@dataclass(frozen=True)
class Case:
    reason: str
    desired: Any
    live: Any
    fields: tuple[str, ...] = ()


CASES = [
    Case("another value", {"a": "x"}, {"a": "y"}, ("spec.a",)),
    Case("a field that is gone", {"a": "x", "b": 1}, {"b": 1}, ("spec.a",)),
    Case("a foreign field", {"a": "x"}, {"a": "x", "weight": 9}),
    Case("nothing, written in two ways", {"a": {}, "b": [], "c": None}, {}),
    Case("a quantity in its normal form", {"memory": "1024Mi"}, {"memory": "1Gi"}),
    Case("a number that became a quantity", {"cpu": 1}, {"cpu": "1"}),
    Case("another quantity", {"memory": "1Gi"}, {"memory": "2Gi"}, ("spec.memory",)),
    Case("true is not a quantity", {"on": True}, {"on": "1"}, ("spec.on",)),
    Case(
        "entries with defaults, in another order",
        {"c": [{"name": "b", "image": "x"}, {"name": "a"}]},
        {"c": [{"name": "a", "pull": "Always"}, {"name": "b", "image": "x", "pull": "Always"}]},
    ),
    Case(
        "one entry of a list", {"c": [{"name": "a", "image": "x"}]},
        {"c": [{"name": "a", "image": "y"}]}, ("spec.c[0].image",),
    ),
    Case("a foreign entry", {"c": [{"name": "a"}]}, {"c": [{"name": "b"}, {"name": "a"}]}),
    Case("an entry that is gone", {"c": [{"name": "a"}, {"name": "b"}]}, {"c": [{"name": "a"}]},
         ("spec.c",)),
    Case("entries without a key", {"c": [{"x": 1}]}, {"c": [{"x": 2, "y": 0}]}, ("spec.c[0].x",)),
    Case("another list of texts", {"c": ["a"]}, {"c": ["a", "b"]}, ("spec.c",)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_drift_is_what_crossplane_owns_and_the_cluster_has_otherwise(case: Case) -> None:
    desired = {**thing("v1", "Part", "p", namespace="shop"), "spec": case.desired}
    live = {**thing("v1", "Part", "p", namespace="shop"), "spec": case.live}
    live["status"] = {"phase": "Running"}
    live["metadata"] |= {"uid": "7", "resourceVersion": "9", "labels": {"foreign": "x"}}

    assert tuple(field.path for field in drifted(desired, live)) == case.fields


def config(name: str, **data: str) -> Manifest:
    return thing("v1", "ConfigMap", name, namespace="shop", data=data)


def composed(path: str, manifest: Manifest, owner: str = UID) -> Manifest:
    """Return an object of the cluster that an XR composes."""
    reference = {"controller": True, "kind": "XShop", "name": "one", "uid": owner}
    meta = {
        **manifest["metadata"],
        "uid": f"uid-of-{path}",
        "annotations": {RESOURCE_NAME_ANNOTATION: path.rpartition("/")[2]},
        "ownerReferences": [reference],
    }
    return {**manifest, "metadata": meta}


def xr(*objects: Manifest, **spec: Any) -> Manifest:
    references = [
        {"apiVersion": o["apiVersion"], "kind": o["kind"],
         "name": o["metadata"]["name"], "namespace": o["metadata"]["namespace"]}
        for o in objects
    ]  # fmt: skip
    return an_xr({"size": 1, **spec, "crossplane": {"resourceRefs": references}})


def planned(*objects: Manifest, live: Manifest, **shop: Any) -> Plan:
    station = wanting(lambda spec: {"map": config("map", size=str(spec["size"]), kind="shop")})
    planner = OrderPlanner(ObjectLookup([live, *objects]), Shop(station, **shop).workshop)
    return planner.plan_step(an_xr({"size": 1}), an_xr({"size": 2}))


def texts(plan: Plan) -> list[str]:
    return [drift.message for drift in plan.drift]


def changes(plan: Plan) -> list[tuple[str, str, list[str]]]:
    return [(c.path, c.action.value, list(map(str, c.fields))) for c in plan.changes]


def test_without_drift_the_plan_is_the_change() -> None:
    found = composed("map", config("map", size="1", kind="shop"))

    plan = planned(found, live=xr(found))

    assert texts(plan) == []
    assert changes(plan) == [("map", "changed", ["data.size 1 → 2"])]


def test_an_edited_field_is_changed_from_what_it_is() -> None:
    found = composed("map", config("map", size="7", kind="pub"))

    plan = planned(found, live=xr(found))

    assert texts(plan) == [
        "ConfigMap shop/map (map) was changed in data.size, data.kind: Crossplane changes it back"
    ]
    assert changes(plan) == [("map", "changed", ["data.size 7 → 2", "data.kind pub → shop"])]


def test_a_part_that_is_missing_is_made_again() -> None:
    plan = planned(live=xr())

    assert texts(plan) == [
        "ConfigMap shop/map (map) is not in the cluster: Crossplane makes it again"
    ]
    assert changes(plan)[0][:2] == ("map", "added")


def test_a_live_part_that_nothing_composes_any_more_is_deleted() -> None:
    found = composed("map", config("map", size="1", kind="shop"))
    old = composed("old", config("old"))

    plan = planned(found, old, live=xr(found, old))

    assert texts(plan) == ["ConfigMap shop/old (old) is no longer composed: Crossplane deletes it"]
    assert [change[:2] for change in changes(plan)] == [("map", "changed"), ("old", "removed")]


def test_a_part_that_another_xr_controls_is_not_this_orders() -> None:
    found = composed("map", config("map", size="1", kind="shop"))
    old = composed("old", config("old"), owner="another")

    plan = planned(found, old, live=xr(found, old))

    assert texts(plan) == []
    assert [change[0] for change in changes(plan)] == ["map"]


def test_an_xr_that_is_not_what_git_says_is_reported() -> None:
    found = composed("map", config("map", size="1", kind="shop"))

    plan = planned(found, live=xr(found, size=5))

    assert "XShop one has other values than Git in spec.size: Argo CD applies Git's" in texts(plan)


def test_the_parts_of_an_xr_that_is_not_what_git_says_are_not_compared() -> None:
    """They follow the values that are about to go: a plan after a merge, before its delivery."""
    found = composed("map", config("map", size="5", kind="shop"))

    plan = planned(found, live=xr(found, size=5))

    assert len(texts(plan)) == 1
    assert changes(plan) == [("map", "changed", ["data.size 1 → 2"])]


@pytest.mark.parametrize("by_hand", [True, False], ids=["by hand", "by its station"])
def test_a_paused_part_is_named(by_hand: bool) -> None:  # noqa: FBT001 - a parameter of pytest
    note = {"crossplane.io/paused": "true"}
    made = config("map", size="1")
    made["metadata"] |= {} if by_hand else {"annotations": note}
    found = composed("map", config("map", size="1"))
    found["metadata"]["annotations"] |= note
    planner = OrderPlanner(ObjectLookup([xr(found), found]), Shop(wanting({"map": made})).workshop)

    plan = planner.plan_step(an_xr({"size": 1}), an_xr({"size": 2}))

    resume = "; kubectl annotate configmap map -n shop crossplane.io/paused-" if by_hand else ""
    assert plan.paused == {
        "map": f"ConfigMap shop/map (map) is paused: nobody acts on its fields{resume}"
    }
    assert plan.readiness == plan.after.readiness


@pytest.mark.parametrize("in_git", [True, False])
def test_a_paused_order_is_paused_in_the_end(in_git: bool) -> None:  # noqa: FBT001 - as above
    note: dict[str, Any] = {"annotations": {"crossplane.io/paused": "true"}}
    live = xr()
    live["metadata"] |= note
    old = an_xr({"size": 1}, **(note if in_git else {}))
    planner = OrderPlanner(ObjectLookup([live]), Shop(wanting({})).workshop)

    plan = planner.plan_step(old, an_xr({"size": 2}, **(note if in_git else {})))
    resumed = planner.plan_step(an_xr({"size": 1}, **note), an_xr({"size": 2}))

    where = "in Git" if in_git else "in the cluster"
    assert f'XShop one is paused (crossplane.io/paused: "true" {where}): nothing' in plan.paused[""]
    assert plan.readiness == "Paused"
    assert resumed.paused == {}


def test_the_choice_of_the_live_order_counts() -> None:
    """Git says nothing about the Composition; Crossplane has written its choice into the XR."""
    xrd = definition("XShop")
    live = xr()
    live["spec"]["crossplane"] |= {
        "compositionUpdatePolicy": "Manual",
        "compositionRef": {"name": "shops"},
        "compositionRevisionRef": {"name": "shops-1234567"},
    }
    revision = {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "CompositionRevision",
        "metadata": {"name": "shops-1234567"},
        "spec": {"revision": 3, "pipeline": []},
    }
    workshop = Shop(wanting({"map": config("map", size="1")})).workshop
    ((key, blueprint),) = workshop.blueprints.items()
    workshop = replace(workshop, blueprints={key: replace(blueprint, xrd=xrd)})

    pinned = OrderPlanner(ObjectLookup([live, revision]), workshop).plan_step(
        an_xr({"size": 1}), an_xr({"size": 2})
    )
    missing = OrderPlanner(ObjectLookup([live]), workshop).plan_step(
        an_xr({"size": 1}), an_xr({"size": 2})
    )

    assert pinned.after.pinned == {
        "": "compositionUpdatePolicy Manual pins it to CompositionRevision shops-1234567"
    }
    assert pinned.after.resources == {}
    assert [fault.message for fault in missing.faults] == [_MISSING]


_MISSING = (
    "cannot fetch Composition: cannot get CompositionRevision: "
    'CompositionRevision.apiextensions.crossplane.io "shops-1234567" not found'
)
