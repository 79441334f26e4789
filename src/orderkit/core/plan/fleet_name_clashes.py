"""
Names that two orders of a fleet would take: what no plan of one order can see.

A Composition that composes an object with a fixed name is right for the first order and wrong for
every other one. Only names that are new are held against each other: living orders have theirs.
Called by the flow that plans for many orders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from orderkit.core.objects.kube_objects import ObjectKey
from orderkit.core.plan.assembly import Assembly, Fault, key_text
from orderkit.core.plan.comparison import Action, Plan
from orderkit.core.plan.fleet_plan import OrderPlan
from orderkit.core.plan.judging import OutcomeRule, collisions
from orderkit.core.plan.outcome_objects import Part, parts_of


def with_collisions(orders: Iterable[OrderPlan]) -> list[OrderPlan]:
    """Return the plans with a fault for each new object that another order makes too."""
    found = list(orders)
    new = {each.order: _new(each.plan) for each in found if each.plan is not None}
    clashes = collisions(new)
    return [
        replace(each, plan=_clashing(each.plan, new[each.order], clashes[each.order]))
        if each.plan is not None and each.order in clashes
        else each
        for each in found
    ]


def _new(plan: Plan) -> Assembly:
    """Return what a plan adds."""
    new = {
        change.path: change.new
        for change in plan.changes
        if change.action in {Action.ADDED, Action.REPLACED} and change.new is not None
    }
    return replace(plan.after, resources=new)


def _clashing(plan: Plan, new: Assembly, clashes: Mapping[ObjectKey, str]) -> Plan:
    faults = [
        _fault(part, clashes[key])
        for part in parts_of(new)
        if not part.prefix and (key := ObjectKey.of(part.manifest)) in clashes
    ]
    return replace(plan, after=replace(plan.after, faults=(*plan.after.faults, *faults)))


def _fault(part: Part, others: str) -> Fault:
    return Fault(
        part.path,
        f"{key_text(part.manifest)} is what other orders make too: {others}",
        "metadata.name",
        "give it a name that has the order's own name in it",
        code=OutcomeRule.COLLISION,
    )
