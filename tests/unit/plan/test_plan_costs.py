"""What an order costs before and after a change: sums that can be checked by hand."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ground.errors import InvalidInputError
from ground.objects.kube_objects import Manifest
from ground.shapes import changed
from orderkit.core.documents import document_schema
from orderkit.core.order.order_cost import OrderCost, sums_answer
from orderkit.core.plan import Assembly, compare
from orderkit.core.plan.cost import Bill, costs_answer, costs_of, order_cost
from orderkit.core.plan.plan_markdown import to_markdown
from orderkit.core.plan.price_table import KINDS, PriceFile, PriceTable, read_prices, steps_of

ROOT = Path(__file__).parents[3]


def table(*prices: dict[str, Any], **more: Any) -> PriceTable:
    spec = {"currency": "EUR", "source": "a test", "date": "2026-08-01", "prices": list(prices)}
    found = {
        "apiVersion": "orderkit.dev/v1alpha1",
        "kind": "PriceTable",
        "metadata": {"name": "test"},
        "spec": {**spec, **more},
    }
    return read_prices(yaml.safe_dump(found), name="prices.yaml")


def thing(kind: str, name: str = "x", **spec: Any) -> Manifest:
    return {"apiVersion": "a.example/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def bill(prices: PriceTable, *parts: Manifest, xr: Manifest | None = None) -> Bill:
    resources = {part["metadata"]["name"]: part for part in parts}
    assembly = Assembly(xr or thing("XShop"), resources, {})
    return costs_of(assembly, assembly, prices).after


def pods(replicas: int | None, *memory: str | None) -> Manifest:
    containers = [{"resources": {"requests": {"memory": m} if m else {}}} for m in memory]
    count: dict[str, Any] = {} if replicas is None else {"replicas": replicas}
    return thing("Deployment", **count, template={"spec": {"containers": containers}})


MEMORY = {
    "kind": "Deployment",
    "count": "spec.replicas",
    "per": "spec.template.spec.containers[*].resources.requests.memory",
    "unit": "GiB",
    "price": "3.20",
}


def test_count_times_amount_times_price() -> None:
    found = bill(table(MEMORY), pods(3, "512Mi", "1Gi"))

    assert found.total == Decimal("14.40")
    assert found.lines[0].reckoned == "3 replicas × 1.5 GiB memory × 3.2 EUR"  # noqa: RUF001


def test_amounts_are_exact() -> None:
    third = {"kind": "Job", "per": "spec.n", "price": "0.1"}

    found = bill(table(third), *(thing("Job", f"j{n}", n=1) for n in range(10)))

    assert found.total == Decimal("1.0")


@given(st.integers(0, 10**6), st.integers(0, 10**9), st.integers(0, 10**6))
def test_a_sum_is_that_of_whole_numbers(replicas: int, mib: int, cents: int) -> None:
    price = {**MEMORY, "unit": "MiB", "price": f"{cents // 100}.{cents % 100:02}"}

    found = bill(table(price), pods(replicas, f"{mib}Mi"))

    assert found.total * 100 == replicas * mib * cents


def test_a_path_with_a_number_prices_that_item_alone() -> None:
    disk = {"kind": "Shop", "per": "spec.disks[1].size", "unit": "GiB", "price": "2"}
    shop = thing("Shop", disks=[{"size": "5Gi"}, {"size": "7Gi"}, {"size": "9Gi"}])

    assert bill(table(disk), shop).total == 14


def test_prices_of_an_hour_are_those_of_a_month() -> None:
    price = {"kind": "Vm", "price": "0.05", "every": "hour"}

    assert bill(table(price), thing("Vm")).total == Decimal("36.50")
    assert bill(table(price, hoursPerMonth=100), thing("Vm")).total == Decimal(5)


def test_the_price_whose_condition_holds_counts() -> None:
    prices = table(
        {"kind": "XShop", "when": {"spec.size": "small"}, "price": 10},
        {"kind": "XShop", "when": {"spec.size": "large"}, "price": 25},
    )

    assert bill(prices, xr=thing("XShop", size="large")).total == 25
    other = bill(prices, xr=thing("XShop", size="huge"))
    assert other.total == 0
    assert other.unread == ("XShop x: no price's conditions hold",)


def test_limits_are_added_apart() -> None:
    prices = table(
        {"kind": "XAgentBudget", "per": "spec.budgetUsd", "price": 1, "upTo": True},
        {"kind": "Bucket", "price": "0.40"},
    )

    found = bill(prices, thing("XAgentBudget", "b", budgetUsd=5.5), thing("Bucket"))

    assert (found.total, found.limit) == (Decimal("0.40"), Decimal("5.5"))


def test_what_a_providers_object_makes_is_priced() -> None:
    inner = {**pods(2, "1Gi"), "apiVersion": "apps/v1"}
    wrapped = thing("Object", forProvider={"manifest": inner})

    assert bill(table({**MEMORY, "group": "apps"}), wrapped).total == Decimal("6.40")


def test_what_has_no_price_is_named() -> None:
    found = bill(table(MEMORY), thing("Cat", "a"), thing("Cat", "b"), thing("Dog", "c"))

    assert found.unpriced == ("Cat (2)", "Dog")
    assert bill(table({**MEMORY, "group": "apps"}), pods(1, "1Gi")).unpriced == ("Deployment",)


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (pods(1, None), "memory is not set"),
        (pods(1, "a lot"), "quantities must match"),
        (pods(-1, "1Gi"), "is negative"),
        (thing("Deployment", replicas=True, template={"spec": {}}), "is not an amount"),
        (pods(10**30, "1Gi"), "beyond what a quantity holds"),
    ],
)
def test_an_amount_that_cannot_be_read_is_named(part: Manifest, told: str) -> None:
    found = bill(table(MEMORY), part)

    assert not found.lines
    assert told in found.unread[0]


def test_what_is_assumed_is_told() -> None:
    absent = {**MEMORY, "absent": "0.25", "assumes": "requested is used"}

    (line,) = bill(table(absent), pods(None, None)).lines

    assert line.reckoned == "1 assumed × 0.25 GiB assumed × 3.2 EUR"  # noqa: RUF001
    assert line.assumes == "requested is used"


def test_a_plan_tells_before_after_and_difference() -> None:
    sides = [Assembly(thing("XShop"), {"desk": pods(n, "1Gi")}, {}, ready=True) for n in (1, 3)]
    plan = compare(*sides)
    costs = costs_of(plan.before, plan.after, table(MEMORY))
    plan = replace(plan, costs=costs)

    assert str(costs.sums) == "3.20 → 9.60 EUR a month (+6.40)"
    assert plan.summary == "1 changed, 0 unchanged, +6.40 EUR a month"
    monthly = costs_answer(costs).monthly.to_json()
    assert monthly == {
        "before": "3.2",
        "after": "9.6",
        "difference": "6.4",
    }
    text = to_markdown(plan)
    assert "<summary>Costs: 3.20 → 9.60 EUR a month (+6.40)</summary>" in text
    assert "a test, 2026-08-01" in text
    same = costs_of(plan.before, plan.before, table(MEMORY))
    assert (same.short, str(same.sums)) == ("same costs", "3.20 EUR a month")


BAD: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("no price", {"kind": "A"}, {}, "'price' is a required property"),
    ("negative", {"kind": "A", "price": "-1"}, {}, "does not match"),
    ("a negative number", {"kind": "A", "price": -1}, {}, "minimum of 0"),
    ("beyond all numbers", {"kind": "A", "price": "1e400"}, {}, "does not match"),
    ("infinite", {"kind": "A", "price": float("inf")}, {}, "is not of type"),
    ("a binary fraction", {"kind": "A", "price": 3.2}, {}, "is not of type"),
    ("a whole number beyond all", {"kind": "A", "price": 10**400}, {}, "maximum"),
    ("true", {"kind": "A", "price": True}, {}, "is not of type"),
    ("another currency", {"kind": "A", "price": 1, "currency": "USD"}, {}, "not the table's EUR"),
    ("no currency of this world", {"kind": "A", "price": 1}, {"currency": "EURO"}, "not one of"),
    ("no such unit", {"kind": "A", "price": 1, "per": "spec.a", "unit": "GiBi"}, {}, "not one of"),
    ("a unit of nothing", {"kind": "A", "price": 1, "unit": "GiB"}, {}, "goes with 'per'"),
    ("no path", {"kind": "A", "price": 1, "per": "spec..a"}, {}, "does not match"),
    ("no date", {"kind": "A", "price": 1}, {"date": "yesterday"}, "does not match"),
    ("no prices", {}, {"prices": []}, "non-empty"),
    ("a misspelt key", {"kind": "A", "price": 1, "pre": "x"}, {}, "is not a known key"),
]


@pytest.mark.parametrize(("reason", "price", "more", "told"), BAD, ids=[case[0] for case in BAD])
def test_a_table_that_cannot_be_meant_is_refused(
    reason: str, price: dict[str, Any], more: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        table(price, **more)

    assert f" {told}" in f" {refused.value}", reason
    assert "prices.yaml:" in refused.value.field
    assert refused.value.hint


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("spec.replicas", ("spec", "replicas")),
        ("a[*].b[0]", ("a", None, "b", 0)),
        ('metadata.labels["a.b/c"]', ("metadata", "labels", "a.b/c")),
    ],
)
def test_paths_are_read(path: str, steps: tuple[object, ...]) -> None:
    assert steps_of(path) == steps


@pytest.mark.parametrize("folder", ["gitops", "packs/agents/gitops"])
def test_the_examples_can_be_used_and_say_what_they_are(folder: str) -> None:
    file = ROOT / folder / "prices.example.yaml"

    found = read_prices(file.read_bytes(), name=file.name)

    assert (found.name, "invented" in found.source) == ("example", True)
    assert file.read_text().startswith("# An EXAMPLE")
    assert not (ROOT / folder / "prices.yaml").exists()


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(document_schema(PriceFile, KINDS, "name"))


def test_what_an_order_costs_names_what_is_not_known() -> None:
    disk = {"kind": "Disk", "price": "2.50"}

    def cost(*parts: Manifest, **more: Any) -> OrderCost:
        resources = {part["metadata"]["name"]: part for part in parts}
        return order_cost(Assembly(thing("XShop"), resources, {}), table(disk, MEMORY, **more))

    known = cost(thing("Disk", "a"), thing("Disk", "b"))
    assert (str(known), known.unknown) == ("5.00 EUR", ())
    partly = cost(thing("Disk", "a"), thing("Cat"))
    assert (str(partly), partly.unknown) == ("at least 2.50 EUR", ("no price: Cat",))
    nothing = cost(thing("Cat"))
    assert (str(nothing), nothing.monthly) == ("not known", None)
    unread = cost(pods(1, None))
    assert unread.monthly is None
    assert "memory is not set" in unread.unknown[0]
    assert cost().monthly == 0


def test_old_prices_are_named_from_the_first_day_after_the_bound() -> None:
    old = {"kind": "Cat", "title": "fur", "price": 1, "date": "2026-01-01"}
    prices = table({"kind": "Disk", "price": 2}, old, staleAfterDays=30)

    def stale(today: dt.date | None) -> tuple[str, ...]:
        return changed(prices, today=today).stale

    assert stale(None) == ()
    assert stale(dt.date(2026, 1, 31)) == ()
    fur = "prices of 2026-01-01 are older than 30 days: fur"
    assert stale(dt.date(2026, 2, 1)) == stale(dt.date(2026, 8, 31)) == (fur,)
    both = stale(dt.date(2026, 9, 1))
    assert both == (fur, "prices of 2026-08-01 are older than 30 days: Disk")
    late = changed(prices, today=dt.date(2026, 9, 1))
    cost = order_cost(Assembly(thing("Disk"), {}, {}), late)
    assert str(cost) == "2.00 EUR (old prices)"
    assert cost.to_json()["stale"] == list(both)
    assert late.origin.startswith("test: a test, 2026-08-01; prices of 2026-01-01 are older")


def test_sums_count_what_is_not_known_apart() -> None:
    costs = [
        OrderCost("EUR", Decimal("0.10"), Decimal(5)),
        OrderCost("EUR", Decimal("0.20"), unknown=("no price: Cat",)),
        OrderCost("USD", Decimal(1)),
        OrderCost("EUR", None, unknown=("it would be refused",)),
        None,
    ]

    assert sums_answer(costs).to_json() == {
        "sums": [
            {"currency": "EUR", "monthly": "0.3", "upTo": "5", "orders": 2, "partlyKnown": 1},
            {"currency": "USD", "monthly": "1", "upTo": "0", "orders": 1, "partlyKnown": 0},
        ],
        "notKnown": 2,
    }
