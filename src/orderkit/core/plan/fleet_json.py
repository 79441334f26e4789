"""
A plan for many orders as data, and the exit code of its command.

The outer structure is that of a plan for one order (``plan_json``): ``summary`` and ``changes``
over all orders, ``xrs`` with one entry per order, ``errors``. Everything that does not fit there is
under ``fleet``: counts, folds, dangers, defaults, and every order with its own plan.
"""

from __future__ import annotations

from typing import Any

from ground import errors
from ground.objects.values import to_json as value_json
from orderkit.core.plan.cost import sums_answer
from orderkit.core.plan.fleet_folding import Fold, folds
from orderkit.core.plan.fleet_plan import FleetCosts, FleetPlan, OrderPlan, OrderVerdict
from orderkit.core.plan.plan_json import plan_answer, to_json


def fleet_exit_code(fleet: FleetPlan) -> int:
    """Return 4 if an order would be refused, 1 if one is unknown, 10 if one changes, else 0."""
    counts = fleet.counts
    if counts[OrderVerdict.REFUSED]:
        return errors.RefusedError.exit_code
    if counts[OrderVerdict.UNKNOWN]:
        return errors.OrderkitError.exit_code
    return errors.EXIT_DIFFERS if counts[OrderVerdict.CHANGED] else errors.EXIT_DONE


def fleet_json(fleet: FleetPlan) -> dict[str, Any]:
    """Return the whole plan as data. Only its duration differs between two runs."""
    shapes = [to_json(order.plan) for order in fleet.orders if order.plan is not None]
    errors = [error for shape in shapes for error in shape.get("errors", ())]
    errors += [
        {"resourceID": f"order/{order.order}", "message": order.why_not}
        for order in fleet.of(OrderVerdict.UNKNOWN)
    ]
    return {
        "summary": {
            key: sum(shape["summary"][key] for shape in shapes)
            for key in ("added", "modified", "removed")
        },
        "changes": [entry for shape in shapes for entry in shape["changes"]],
        "xrs": [entry for shape in shapes for entry in shape["xrs"]],
        **({"errors": errors} if errors else {}),
        "fleet": _fleet(fleet),
    }


def _fleet(fleet: FleetPlan) -> dict[str, Any]:
    return {
        "summary": fleet.summary,
        "kits": list(fleet.kits),
        "base": {"title": fleet.base.title, "commit": fleet.base.commit},
        "candidate": {"title": fleet.candidate.title, "commit": fleet.candidate.commit},
        "counts": {verdict.value: count for verdict, count in fleet.counts.items()},
        "dangers": fleet.dangers,
        "folds": [_fold(fold) for fold in folds(fleet)],
        "defaults": [
            {
                "field": default.path,
                "from": value_json(default.old),
                "to": value_json(default.new),
                "orders": default.orders,
            }
            for default in fleet.defaults
        ],
        "costs": _costs(costs) if (costs := fleet.costs) else None,
        "told": list(fleet.notes),
        "orders": [_order(order) for order in fleet.orders],
        "seconds": {"reading": round(fleet.read_s, 3), "planning": round(fleet.planned_s, 3)},
    }


def _costs(costs: FleetCosts) -> dict[str, Any]:
    return {
        **sums_answer(costs.sums).to_json(),
        "orders": costs.orders,
        "notPriced": list(costs.unpriced),
        "notReckoned": list(costs.unread),
    }


def _fold(fold: Fold) -> dict[str, Any]:
    return {
        "what": fold.category,
        "title": fold.title,
        **({"action": fold.action.value} if fold.action else {}),
        **({"code": fold.code} if fold.code else {}),
        **({"path": fold.path, "kind": fold.kind} if fold.kind else {}),
        "fields": [
            {"field": field.path, "from": field.old, "to": field.new, "values": field.values}
            for field in fold.fields
        ],
        "count": fold.count,
        "orders": list(fold.orders),
    }


def _order(order: OrderPlan) -> dict[str, Any]:
    entry = {
        "order": order.order,
        "team": order.team,
        "verdict": order.verdict.value,
        "source": order.source,
    }
    if order.plan is None:
        return {**entry, "reason": order.why_not}
    return {**entry, "plan": plan_answer(order.plan).to_json()}
