"""
A plan as data: the JSON that scripts read, and the exit code that CI acts on.

The outer structure is that of crossplane-diff's output (0.6 and later): ``summary``, ``changes``,
``xrs``, ``errors`` with the same names and nesting, so that tools which read its output can read
ours (taken from its documentation, August 2026). Everything else is under our own key ``plan``.
Exit codes are those of every Orderkit command, not crossplane-diff's: 0 nothing changes, 10
something changes, 4 the change would be refused, 1 the plan could not be made.

`fleet_json` is a plan for many orders as data. Its outer structure is that of a plan for one order:
``summary`` and ``changes`` over all orders, ``xrs`` with one entry per order, ``errors``.
Everything that does not fit there is under ``fleet``: counts, folds, dangers, defaults, and every
order with its own plan. `fleet_exit_code` returns the exit code of its command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from ground import errors
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, metadata
from ground.objects.values import to_json as value_json
from ground.shapes import LEFT_OUT, Answer, Known, LocatedAnswer, located
from orderkit.core.order.change import Difference, FieldDifference
from orderkit.core.plan.assembly import Fault
from orderkit.core.plan.comparison import Action, Plan, ResourceChange, shown_manifest
from orderkit.core.plan.cost import CostsAnswer, costs_answer, sums_answer
from orderkit.core.plan.fleet_plan import (
    FleetCosts,
    FleetPlan,
    Fold,
    OrderPlan,
    OrderVerdict,
    folds,
)


def exit_code(plan: Plan) -> int:
    """Return the exit code of the command; 1 is for errors, which make no plan."""
    if plan.faults:
        return errors.RefusedError.exit_code
    changes = plan.changes or plan.fields
    return errors.EXIT_DIFFERS if changes else errors.EXIT_DONE


class PartSentence(Answer, frozen=True):
    """What is said of a part."""

    path: str
    message: str


class PartDrift(PartSentence, frozen=True):
    """What differs between what was composed and what is there."""

    fields: tuple[Difference, ...]


class KeptPart(LocatedAnswer, frozen=True, kw_only=True):
    """An object that outlives the change."""

    path: str


class PlannedResource(KeptPart, frozen=True, kw_only=True):
    """An object that the change makes, changes or removes."""

    action: Action
    fields: tuple[Difference, ...]


class PlannedSetting(Answer, frozen=True):
    """A value of the settings, and the layer that it comes from."""

    path: str
    value: Any
    layer: str


class PlannedDanger(PartSentence, frozen=True):
    """What should be known before."""

    code: str


class AcceptedDanger(PlannedDanger, frozen=True):
    """What the kit accepts, and why."""

    reason: str


class PlannedFault(PlannedDanger, frozen=True):
    """What would be refused."""

    field: str
    value: str
    rule: str
    hint: str


class PlanAnswer(Answer, frozen=True):
    """What crossplane-diff's format cannot express: fields, waves, dangers, unknowns."""

    summary: str
    ready: bool | None
    """None: not known."""
    approval: Known
    """Who has to agree to it, and why; empty: nobody."""
    paused: tuple[PartSentence, ...]
    pinned: tuple[PartSentence, ...]
    drift: tuple[PartDrift, ...]
    unchanged: int
    kept: tuple[KeptPart, ...]
    fields: tuple[Difference, ...]
    status: tuple[Difference, ...]
    settings: tuple[PlannedSetting, ...]
    setting_changes: tuple[Mapping[str, Any], ...]
    resources: tuple[PlannedResource, ...]
    waves: tuple[tuple[str, ...], ...]
    dangers: tuple[PlannedDanger, ...]
    accepted: tuple[AcceptedDanger, ...]
    faults: tuple[PlannedFault, ...]
    unknowns: tuple[str, ...]
    costs: CostsAnswer | None


class PlanSummary(Answer, frozen=True):
    """How many resources a plan adds, modifies and removes; a replaced one is two of these."""

    added: int
    modified: int
    removed: int


class PlanDocument(Answer, frozen=True, kw_only=True):
    """A plan in crossplane-diff's format, and in ours. Deterministic."""

    summary: PlanSummary
    changes: tuple[Mapping[str, Any], ...]
    xrs: tuple[Mapping[str, Any], ...]
    errors: Annotated[tuple[Mapping[str, Any], ...] | None, LEFT_OUT] = None
    plan: PlanAnswer


def plan_document(plan: Plan) -> PlanDocument:
    """Return a plan as data."""
    changes = tuple(entry for change in plan.changes for entry in _entries(change))
    replaced = plan.count(Action.REPLACED)
    summary = PlanSummary(
        plan.count(Action.ADDED) + replaced,
        plan.count(Action.CHANGED),
        plan.count(Action.REMOVED) + replaced,
    )
    errors = tuple(_error(plan, fault) for fault in plan.faults) or None
    xr = {
        "xr": _identity(plan.after.xr),
        "status": "error" if errors else "changed" if changes else "unchanged",
        "summary": summary,
        "changes": changes,
        **({"errors": errors} if errors else {}),
    }
    return PlanDocument(
        summary=summary, changes=changes, xrs=(xr,), errors=errors, plan=plan_answer(plan)
    )


def plan_answer(plan: Plan) -> PlanAnswer:
    """Return what is said of a plan."""
    return PlanAnswer(
        summary=plan.summary,
        ready=None if plan.readiness == "not known" else plan.readiness == "Ready",
        approval=plan.approval,
        paused=_sentences(plan.paused),
        pinned=_sentences(plan.after.pinned),
        drift=tuple(
            PartDrift(drift.path, drift.message, _differences(drift.fields)) for drift in plan.drift
        ),
        unchanged=plan.unchanged,
        kept=tuple(
            KeptPart(**located(_key(manifest)), path=path)
            for path, manifest in sorted(plan.kept.items())
        ),
        fields=_differences(plan.fields),
        status=_differences(plan.status),
        settings=tuple(
            PlannedSetting(path, setting.value, setting.layer)
            for path, setting in plan.after.settings.items()
        ),
        setting_changes=tuple(
            {**change.field.answer.to_json(), "oldLayer": change.old_layer, "layer": change.layer}
            for change in plan.settings
        ),
        resources=tuple(
            PlannedResource(
                **located(_key(change.manifest)),
                path=change.path,
                action=change.action,
                fields=_differences(change.fields),
            )
            for change in plan.changes
        ),
        waves=tuple(map(tuple, plan.waves)),
        dangers=tuple(
            PlannedDanger(danger.path, danger.message, danger.code.value) for danger in plan.dangers
        ),
        accepted=tuple(
            AcceptedDanger(
                accepted.danger.path,
                accepted.danger.message,
                accepted.danger.code.value,
                accepted.reason,
            )
            for accepted in plan.accepted
        ),
        faults=tuple(map(_fault, plan.faults)),
        unknowns=tuple(plan.unknowns),
        costs=costs_answer(plan.costs) if plan.costs else None,
    )


def _differences(fields: Iterable[FieldDifference]) -> tuple[Difference, ...]:
    return tuple(field.answer for field in fields)


def _sentences(by_path: Mapping[str, str]) -> tuple[PartSentence, ...]:
    return tuple(PartSentence(path, text) for path, text in sorted(by_path.items()))


def _fault(fault: Fault) -> PlannedFault:
    return PlannedFault(
        fault.path,
        fault.message,
        str(fault.code),
        fault.field,
        fault.value,
        fault.rule,
        fault.hint,
    )


def _entries(change: ResourceChange) -> Iterator[dict[str, Any]]:
    """Yield a change in crossplane-diff's format. A replacement is a removal and an addition."""
    old, new = change.old, change.new
    if old is not None and new is not None and change.action is Action.CHANGED:
        diff = {"old": shown_manifest(old), "new": shown_manifest(new)}
        yield {"type": "modified", **_identity(new), "diff": diff}
        return
    if old is not None:
        yield {"type": "removed", **_identity(old), "diff": {"spec": shown_manifest(old)}}
    if new is not None:
        yield {"type": "added", **_identity(new), "diff": {"spec": shown_manifest(new)}}


def _error(plan: Plan, fault: Fault) -> dict[str, Any]:
    xr = plan.after.xr
    error: dict[str, Any] = {
        "resourceID": f"{Kind.of(xr).kind}/{metadata(xr).get('name', '')}",
        "message": f"{fault.field}: {fault.message}" if fault.field else fault.message,
    }
    if fault.field:
        about = plan.after.resources.get(fault.path, xr)
        failure = {"type": str(fault.code), "field": fault.field, "message": fault.message}
        error["validationFailures"] = [
            {**_identity(about), "status": "invalid", "errors": [failure]}
        ]
    return error


def _key(manifest: Manifest) -> ObjectKey:
    meta = metadata(manifest)
    name, namespace = str(meta.get("name", "")), str(meta.get("namespace") or "")
    return ObjectKey(Kind.of(manifest), name, namespace)


def _identity(manifest: Manifest) -> dict[str, str]:
    return _key(manifest).to_json()


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
    shapes = [plan_document(o.plan).to_json() for o in fleet.orders if o.plan is not None]
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
