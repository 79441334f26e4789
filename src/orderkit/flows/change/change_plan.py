"""
The plan of a change, as the change itself carries it: in its pull request and its answer.

A plan that cannot be made stops no change; why it could not is told in its place. A change that
would delete data, or leave an order that nothing is wrong with one that is refused, is not
committed until it is said that this is meant.

Called by the other modules of this package.
"""

from __future__ import annotations

from dataclasses import dataclass

from orderkit.core.errors import OrderkitError, RefusedError
from orderkit.core.objects.kube_objects import Manifest
from orderkit.core.plan import Code, Fault, Plan
from orderkit.core.plan.plan_markdown import to_markdown
from orderkit.flows.order.live_order import LiveOrder
from orderkit.flows.plan import plan_order
from orderkit.flows.platform import Platform

_NAMED = 3
"""So many faults are named in a refusal."""


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """What a change will do, or why that is not known."""

    plan: Plan | None
    why_not: str = ""

    @property
    def markdown(self) -> str:
        """The plan for a pull request."""
        if self.plan is None:
            return f"No plan: {self.why_not}"
        return to_markdown(self.plan)


def plan_change(platform: Platform, live: LiveOrder, old: Manifest, new: Manifest) -> ChangePlan:
    """Return what a step does; never raises for what only the plan needs."""
    try:
        return ChangePlan(plan_order(platform, live.kit, old, new))
    except OrderkitError as error:
        return ChangePlan(None, str(error))


def refuse_losses(live: LiveOrder, change_plan: ChangePlan) -> None:
    """
    Check that a change deletes no data.

    Raises:
        RefusedError: It does; what is lost is named.
    """
    dangers = change_plan.plan.dangers if change_plan.plan else ()
    losses = [danger.message for danger in dangers if danger.code is Code.DATA_LOSS]
    if losses:
        raise RefusedError(
            f"{live.entry.order}: {'; '.join(losses)}",
            hint="if that is meant, say so: --accept-loss; 'orderkit plan' shows everything",
        )


def refuse_faults(
    platform: Platform, live: LiveOrder, change_plan: ChangePlan, old: Manifest
) -> None:
    """
    Check that an order that gets through now does so after the change.

    One that does not may be changed in any way: it may take several steps to mend it. So may one
    of which that cannot be found out.

    Args:
        old: Its XR as it is.

    Raises:
        RefusedError: It would be refused; where and why is named.
    """
    if change_plan.plan is None or not change_plan.plan.faults:
        return
    as_it_is = plan_change(platform, live, old, old).plan
    if as_it_is is None or as_it_is.faults:
        return
    faults = change_plan.plan.faults
    listed_faults = "; ".join(_named(fault) for fault in faults[:_NAMED])
    rest_note = f" (and {len(faults) - _NAMED} more)" if len(faults) > _NAMED else ""
    raise RefusedError(
        f"{live.entry.order}: the change would be committed, but what comes of it refused:"
        f" {listed_faults}{rest_note}",
        hint="'orderkit plan' shows everything; --pr (how: review) proposes it all the same,"
        " --direct (how: direct) commits it",
    )


def _named(fault: Fault) -> str:
    return f"{fault.where}: {fault.message}" if fault.where else fault.message
