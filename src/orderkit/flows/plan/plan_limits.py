"""What a plan may be about: the order's own XR, within what the team may have."""

from __future__ import annotations

from dataclasses import replace

from ground.errors import RefusedError, SeveralProblemsError
from ground.objects.kube_objects import Kind, Manifest, metadata
from orderkit.core.order import team_limits
from orderkit.core.plan import Fault, Plan
from orderkit.core.plan.judging import OutcomeRule
from orderkit.flows.order import cost_limit
from orderkit.flows.order.live_order import ANOTHER_XR, LiveOrder, delivered_xr
from orderkit.flows.platform import Platform


def check_same(live: LiveOrder, old: Manifest, new: Manifest) -> None:
    """
    Check that both are the order's XR.

    Raises:
        RefusedError: The new one has another kind, name or namespace.
    """
    old_kind, new_kind = Kind.of(old), Kind.of(new)
    names = [metadata(manifest).get("name") for manifest in (old, new)]
    homes = [metadata(delivered_xr(live, xr)).get("namespace") for xr in (old, new)]
    if (old_kind.group, old_kind.kind) != (new_kind.group, new_kind.kind) or names[0] != names[1]:
        raise RefusedError(
            f"{new_kind} {names[1]} is not the XR of {live.entry.order}, {old_kind} {names[0]}",
            hint="an XR of another name or kind is another order",
        )
    if homes[0] != homes[1]:
        raise RefusedError(
            f"{live.entry.order}: metadata.namespace is '{homes[1]}', not '{homes[0]}'",
            hint=f"restore the namespace: {ANOTHER_XR.format('in another one')}",
        )


def within_limits(platform: Platform, live: LiveOrder, old: Manifest, plan: Plan) -> Plan:
    """Return the plan with what the team may not have, as a change would be refused for it."""
    try:
        team_limits.check_kit(live.team, live.kit.name)
        spec, before = plan.after.xr.get("spec") or {}, old.get("spec") or {}
        team_limits.check_values(live.team, live.kit, spec, before=before)
        if not plan.faults:
            cost_limit.check_change(platform, live, old, plan.after.input_xr or plan.after.xr)
    except (RefusedError, SeveralProblemsError) as error:
        faults = [
            Fault("", str(problem), "spec", problem.hint, code=OutcomeRule.LIMIT)
            for problem in error.problems
        ]
        return replace(plan, after=replace(plan.after, faults=(*plan.after.faults, *faults)))
    return plan
