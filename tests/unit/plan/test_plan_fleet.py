"""What another pack does to many orders: verdicts, folds, what stays stored, shapes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ground.objects.kube_objects import Manifest
from orderkit.core.order.change import ABSENT
from orderkit.core.plan import Assembly, Code, Fault, Plan, compare
from orderkit.core.plan.dangers.danger_codes import AcceptedPlanDanger, Danger
from orderkit.core.plan.fleet_markdown import MAX_FOLDS, fleet_markdown
from orderkit.core.plan.fleet_plan import (
    FleetPlan,
    OrderPlan,
    OrderVerdict,
    Side,
    folds,
    of_categories,
    without_unnamed,
)
from orderkit.core.plan.live_state import (
    DefaultChange,
    default_changes,
    defaults_of,
    with_stored,
)
from orderkit.core.plan.plan_json import fleet_exit_code, fleet_json

XR_KIND = {"apiVersion": "shop.example.org/v1", "kind": "XShop"}


def an_xr(name: str, **spec: Any) -> Manifest:
    return {**XR_KIND, "metadata": {"name": name}, "spec": spec}


def a_map(name: str, **data: str) -> Manifest:
    meta = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def a_bucket(name: str) -> Manifest:
    return {"apiVersion": "storage.example.org/v1", "kind": "Bucket", "metadata": {"name": name}}


def an_order(
    name: str,
    before: dict[str, Manifest],
    after: dict[str, Manifest],
    faults: tuple[tuple[Fault, ...], tuple[Fault, ...]] = ((), ()),
) -> OrderPlan:
    """Return an order whose resources change."""
    xr = an_xr(name)
    sides = zip((before, after), faults, strict=True)
    one, other = (Assembly(xr, part, part, ready=True, faults=told) for part, told in sides)
    return OrderPlan(name, "crew", compare(one, other), source="git", stored=xr)


def a_fleet(*orders: OrderPlan, **more: Any) -> FleetPlan:
    return FleetPlan(("shop",), Side("old"), Side("new"), orders, **more)


def same(name: str) -> OrderPlan:
    return an_order(name, {"map": a_map(name)}, {"map": a_map(name)})


def painted(name: str, colour: str = "red") -> OrderPlan:
    sheet = f"{name}-sheet"
    return an_order(name, {sheet: a_map(sheet)}, {sheet: a_map(sheet, owner=name, colour=colour)})


BROKEN = Fault("", "spec.size is too small", "spec.size")


@pytest.mark.parametrize(
    ("order", "verdict"),
    [
        (same("a"), OrderVerdict.UNCHANGED),
        (painted("a"), OrderVerdict.CHANGED),
        (an_order("a", {}, {}, ((), (BROKEN,))), OrderVerdict.REFUSED),
        (an_order("a", {}, {}, ((BROKEN,), (BROKEN,))), OrderVerdict.UNCHANGED),
        (an_order("a", {}, {}, ((BROKEN,), ())), OrderVerdict.CHANGED),
        (OrderPlan("a", why_not="its repository is gone"), OrderVerdict.UNKNOWN),
    ],
    ids=[
        "nothing changes", "a resource changes", "refused from now on", "refused as before",
        "refused no more", "not read",
    ],
)  # fmt: skip
def test_what_becomes_of_an_order(order: OrderPlan, verdict: OrderVerdict) -> None:
    assert order.verdict is verdict


def test_what_is_the_same_but_for_names_is_told_once() -> None:
    found = folds(a_fleet(*(painted(f"shop-{n}") for n in range(20)), same("shop-x")))

    (fold,) = of_categories(found, "resource")
    assert fold.title == "ConfigMap <order>-sheet"
    assert fold.count == 20
    assert fold.examples() == "shop-0, shop-1, shop-2 and 17 more"
    assert {str(field) for field in fold.fields} == {
        "data.owner (not set) → <order>",
        "data.colour (not set) → red",
    }


def test_a_name_inside_of_a_word_is_no_name() -> None:
    order = an_order("a", {"map": a_map("m", text="banana")}, {"map": a_map("m", text="a cat")})

    (fold,) = of_categories(folds(a_fleet(order)), "resource")
    assert str(fold.fields[0]) == "data.text banana → <order> cat"


def test_values_that_differ_fold_with_their_number() -> None:
    fleet = a_fleet(*(painted(f"shop-{n}", f"shade {n}") for n in range(9)))

    (fold,) = of_categories(folds(fleet), "resource")
    told = {str(field) for field in fold.fields}
    assert "data.colour 9 different values, such as (not set) → shade 0" in told


def refused(name: str, message: str) -> OrderPlan:
    return an_order(name, {}, {}, ((), (Fault("map", message),)))


@pytest.mark.parametrize(
    ("messages", "titles"),
    [
        (["Namespace bay-1 is taken", "Namespace bay-2 is taken"],
         ["2 different, such as: map: Namespace bay-1 is taken"]),
        (["64Mi is too little", "5 is too little"],
         ["2 different, such as: map: 64Mi is too little"]),
        (["no field spec.size", "no field spec.color"],
         ["map: no field spec.color", "map: no field spec.size"]),
        (["Bucket.a.example.org is unknown", "Topic.a.example.org is unknown"],
         ["map: Bucket.a.example.org is unknown", "map: Topic.a.example.org is unknown"]),
    ],
    ids=["names", "amounts", "not fields", "not kinds"],
)  # fmt: skip
def test_messages_fold_that_differ_in_names_and_amounts(
    messages: list[str], titles: list[str]
) -> None:
    fleet = a_fleet(*(refused(f"o{n}", text) for n, text in enumerate(messages)))

    assert [fold.title for fold in of_categories(folds(fleet), "fault")] == titles


def test_dangers_are_summed_and_name_their_orders() -> None:
    losing = [an_order(f"shop-{n}", {"store": a_bucket(f"shop-{n}")}, {}) for n in range(3)]
    fleet = a_fleet(*losing, same("shop-x"))

    (fold,) = of_categories(folds(fleet), "danger")
    assert fold.title == "Bucket <order> is deleted: its data is lost"
    assert fold.orders == ("shop-0", "shop-1", "shop-2")
    assert fleet.summary == "4 orders: 1 unchanged, 3 changed, 3 dangers in 3 orders"


@pytest.mark.parametrize(
    ("orders", "code"),
    [
        ([same("a")], 0),
        ([same("a"), painted("b")], 10),
        ([painted("a"), OrderPlan("b", why_not="gone")], 1),
        ([OrderPlan("b", why_not="gone"), an_order("a", {}, {}, ((), (BROKEN,)))], 4),
    ],
)
def test_the_exit_code_tells_the_worst(orders: list[OrderPlan], code: int) -> None:
    assert fleet_exit_code(a_fleet(*orders)) == code


def test_the_data_has_every_order_and_the_shape_of_one_plan() -> None:
    refused = an_order("c", {}, {}, ((), (BROKEN,)))
    found = fleet_json(a_fleet(painted("a"), same("b"), refused, OrderPlan("d", why_not="gone")))

    assert found["summary"] == {"added": 0, "modified": 1, "removed": 0}
    assert [entry["type"] for entry in found["changes"]] == ["modified"]
    statuses = [(xr["xr"]["name"], xr["status"]) for xr in found["xrs"]]
    assert statuses == [("a", "changed"), ("b", "unchanged"), ("c", "error")]
    assert [error["resourceID"] for error in found["errors"]] == ["XShop/c", "order/d"]
    verdicts = [(o["order"], o["verdict"]) for o in found["fleet"]["orders"]]
    assert verdicts == [("a", "changed"), ("b", "unchanged"), ("c", "refused"), ("d", "unknown")]
    assert found["fleet"]["orders"][3]["reason"] == "gone"
    assert found["fleet"]["counts"] == dict.fromkeys(
        ("unchanged", "changed", "refused", "unknown"), 1
    )


def test_markdown_names_what_could_not_be_read_and_stays_bounded() -> None:
    many = [an_order(f"o{n}", {}, {f"part-{n}x": a_map(f"part-{n}x")}) for n in range(150)]
    text = fleet_markdown(a_fleet(*many, OrderPlan("gone", why_not="hidden from @us")))

    assert text.startswith("**Plan for shop: 151 orders: 150 changed, 1 unknown.**")
    assert "- `gone` hidden from @\u200bus" in text
    assert f"{150 - MAX_FOLDS} more changes are not shown here." in text


def test_markdown_names_a_hundred_orders_without_a_plan_and_counts_the_others() -> None:
    gone = [OrderPlan(f"gone-{number}", why_not="gone") for number in range(MAX_FOLDS + 3)]
    text = fleet_markdown(a_fleet(*gone))

    assert text.count("<code>gone-") + text.count("`gone-") == MAX_FOLDS
    assert "- and 3 more" in text


def test_what_the_kit_accepts_is_listed_apart_once_for_all_orders() -> None:
    danger = Danger(path="firewall", message="opens 0.0.0.0/0", code=Code.ACCESS)
    orders = [painted("one"), painted("two")]
    accepting = [
        replace(order, plan=replace(order.plan, accepted=(AcceptedPlanDanger(danger, "public"),)))
        for order in orders
        if order.plan
    ]

    text = fleet_markdown(a_fleet(*accepting))

    rest = "opens 0.0.0.0/0: public (access-widened): 2 orders (one, two)"
    assert f"Accepted by the kit:\n\n- {rest}" in text
    assert "Dangers:" not in text


def test_a_slim_plan_tells_the_same() -> None:
    before = {"map": a_map("m"), "store": a_bucket("b"), "same": a_map("s")}
    after = {"map": a_map("m", a="1"), "same": a_map("s")}
    plan = an_order("a", before, after, ((), (BROKEN,))).plan
    assert plan is not None

    slim = without_unnamed(plan)

    def shown(each: Plan) -> dict[str, Any]:
        found = fleet_json(a_fleet(OrderPlan("a", plan=each, stored=an_xr("a"))))
        return {key: part for key, part in found.items() if key != "seconds"}

    assert shown(slim) == shown(plan)
    assert slim.before.resources.keys() == {"map", "store"}


def xrd(**defaults: Any) -> Manifest:
    fields: dict[str, Any] = {
        name: {"type": "string", **({} if value is ABSENT else {"default": value})}
        for name, value in defaults.items()
    }
    inner = {"type": "object", "properties": {"deep": {"type": "string", "default": "d"}}}
    schema = {"properties": {"spec": {"properties": {**fields, "pit": inner}}}}
    version = {"name": "v1", "served": True, "referenceable": True}
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "spec": {
            "group": "shop.example.org",
            "names": {"kind": "XShop"},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def test_an_order_keeps_the_default_of_its_first_day() -> None:
    defaults = defaults_of(xrd(mode="fancy", late="new"))
    stored = an_xr("a", mode="plain", pit={"deep": "old"}, size="7")

    found = with_stored(an_xr("a", pit={}, own="x"), stored, defaults)

    assert found["spec"] == {"own": "x", "pit": {"deep": "old"}, "mode": "plain"}


@pytest.mark.parametrize("spec", [{}, {"pit": "closed"}], ids=["left out", "no map"])
def test_a_stored_default_brings_no_map_back_that_git_does_not_have(spec: Manifest) -> None:
    found = with_stored(an_xr("a", **spec), an_xr("a", pit={"deep": "old"}), defaults_of(xrd()))

    assert found["spec"] == spec


def test_git_wins_over_what_is_stored() -> None:
    found = with_stored(
        an_xr("a", mode="mine"), an_xr("a", mode="plain"), defaults_of(xrd(mode="x"))
    )

    assert found["spec"] == {"mode": "mine"}


def test_only_defaults_that_change_or_go_are_told() -> None:
    old, new = (
        defaults_of(xrd(**d))
        for d in ({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "9", "c": ABSENT, "d": "4"})
    )

    assert default_changes(old, new) == (
        DefaultChange("b", "2", "9"),
        DefaultChange("c", "3", ABSENT),
    )
