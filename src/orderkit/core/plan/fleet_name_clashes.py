"""
Find names that two orders of a fleet would use, which no plan of a single order can show.

A Composition that composes an object with a fixed name works for the first order and fails for
every other one. Only new names are compared: existing orders already have theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ground.objects.kube_objects import ObjectKey
from orderkit.core.plan.assembly import Assembly, Fault
from orderkit.core.plan.comparison import Action, Plan
from orderkit.core.plan.fleet_plan import OrderPlan
from orderkit.core.plan.judging import OutcomeRule, collisions
from orderkit.core.plan.object_texts import key_text
from orderkit.core.plan.outcome_objects import OutcomeObject, objects_of


def with_collisions(orders: Iterable[OrderPlan]) -> list[OrderPlan]:
    """Return the plans with a fault for each new object that another order creates too."""
    all_orders = list(orders)
    new = {order.order: _new(order.plan) for order in all_orders if order.plan is not None}
    clashes = collisions(new)
    return [
        replace(order, plan=_clashing(order.plan, new[order.order], clashes[order.order]))
        if order.plan is not None and order.order in clashes
        else order
        for order in all_orders
    ]


def _new(plan: Plan) -> Assembly:
    """Return the resources that a plan adds."""
    new = {
        change.path: change.new
        for change in plan.changes
        if change.action in {Action.ADDED, Action.REPLACED} and change.new is not None
    }
    return replace(plan.after, resources=new)


def _clashing(plan: Plan, new: Assembly, clashes: Mapping[ObjectKey, str]) -> Plan:
    faults = [
        _fault(obj, clashes[key])
        for obj in objects_of(new)
        if not obj.prefix and (key := ObjectKey.of(obj.manifest)) in clashes
    ]
    return replace(plan, after=replace(plan.after, faults=(*plan.after.faults, *faults)))


def _fault(obj: OutcomeObject, other_orders: str) -> Fault:
    return Fault(
        obj.path,
        f"{key_text(obj.manifest)} is what other orders make too: {other_orders}",
        "metadata.name",
        "give it a name that has the order's own name in it",
        code=OutcomeRule.COLLISION,
    )
