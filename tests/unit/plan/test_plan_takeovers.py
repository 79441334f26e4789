"""Dangers of managing what an order only observed: each change in the cloud is named."""

from __future__ import annotations

from typing import Any

from ground.objects.kube_objects import Manifest
from kubeschema.known import Behaviour
from orderkit.core.kit.kit_file import Import
from orderkit.core.plan.assembly import Assembly
from orderkit.core.plan.composed_tree import PackRules
from orderkit.core.plan.dangers import Code, DangerContext
from orderkit.core.plan.dangers.order_effects import takeover_dangers

GROUP = "storage.gcp.m.upbound.io"
LAWS = PackRules(
    behaviours={(GROUP, "Bucket"): Behaviour(replaces=("location",))},
    imports={("example.org", "XShop"): Import({"store": "taken"}, "manage")},
)


def bucket(
    order: dict[str, Any], *policies: str, there: Any = None, name: str = "photos"
) -> Manifest:
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "Bucket",
        "metadata": {
            "name": "b",
            "namespace": "shop",
            "annotations": {"crossplane.io/external-name": name},
        },
        "spec": {"forProvider": order, **({"managementPolicies": [*policies]} if policies else {})},
        **({"status": {"atProvider": there}} if there else {}),
    }


def assembly(store: Manifest | None, *, live: Manifest | None = None, **spec: Any) -> Assembly:
    xr = {
        "apiVersion": "example.org/v1",
        "kind": "XShop",
        "metadata": {"name": "order"},
        "spec": spec,
    }
    resources = {"store": store} if store else {}
    return Assembly(xr, resources, {"store": live} if live else resources)


def told(before: Assembly, after: Assembly) -> list[tuple[Code, str]]:
    found = takeover_dangers(before, after, DangerContext(LAWS))
    return [(danger.code, danger.message) for danger in found]


def test_every_change_in_the_cloud_is_named_and_what_cannot_be_changed() -> None:
    order = {"location": "US", "storageClass": "STANDARD"}
    live = bucket(order, "Observe", there={"location": "EU", "storageClass": "STANDARD", "id": "p"})

    found = told(assembly(bucket(order, "Observe"), live=live), assembly(bucket(order)))

    assert [code for code, _ in found] == [Code.REPLACES, Code.TAKES_OVER]
    assert "has location EU, and no update can make that US" in found[0][1]
    assert found[1][1] == "Bucket photos in the cloud changes: location: EU → US"


def test_what_is_as_the_order_wants_it_is_no_danger() -> None:
    live = bucket({"location": "EU"}, "Observe", there={"location": "EU", "id": "p"})

    assert not told(assembly(bucket({"location": "EU"}, "Observe"), live=live),
                    assembly(bucket({"location": "EU"})))  # fmt: skip


def test_a_flood_of_changes_is_counted() -> None:
    order = {f"field{number}": "x" for number in range(40)}
    live = bucket(order, "Observe", there={"id": "p"})

    found = told(assembly(bucket(order, "Observe"), live=live), assembly(bucket(order)))

    assert len(found) == 21
    assert found[-1][1] == "Bucket photos: 20 more fields change in the cloud"


def test_another_name_than_the_observed_one_was_not_observed() -> None:
    live = bucket({}, "Observe", there={"id": "p"})
    after = assembly(bucket({}, name="other"), taken="other")

    found = told(assembly(bucket({}, "Observe"), live=live, taken="photos"), after)

    assert [code for code, _ in found] == [Code.TAKES_OVER]
    assert "takes over 'other' without having observed it" in found[0][1]


def test_what_the_order_made_itself_is_no_takeover() -> None:
    assert not told(assembly(bucket({})), assembly(bucket({"location": "EU"})))
    assert not told(assembly(None), assembly(bucket({"location": "EU"})))
    assert not told(assembly(None), assembly(bucket({}, "Observe"), taken="photos"))
