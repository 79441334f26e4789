"""
Plan what a change will do, for its pull request and its answer.

A change whose plan fails is still possible; the reason stands in place of the plan. A change that
would delete data, break a healthy order, or wait for a paused one, is not committed unless the
caller accepts that.
"""

from __future__ import annotations

from dataclasses import dataclass

from ground.errors import OrderkitError, RefusedError
from ground.objects.kube_objects import Manifest
from orderkit.core.plan import Code, Fault, Plan
from orderkit.core.plan.plan_markdown import to_markdown
from orderkit.flows.order.live_order import LiveOrder
from orderkit.flows.plan import plan_order
from orderkit.flows.platform import Platform

_NAMED = 3
"""Number of faults that a refusal lists."""


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
    """Return the plan from one XR to another; a plan that fails is not an error."""
    try:
        return ChangePlan(plan_order(platform, live, old, new))
    except OrderkitError as error:
        return ChangePlan(None, str(error))


def refuse_losses(live: LiveOrder, change_plan: ChangePlan) -> None:
    """
    Check that a change deletes no data.

    Raises:
        RefusedError: It does; the message lists the losses.
    """
    dangers = change_plan.plan.dangers if change_plan.plan else ()
    losses = [danger.message for danger in dangers if danger.code is Code.DATA_LOSS]
    if losses:
        raise RefusedError(
            f"{live.entry.order}: {'; '.join(losses)}",
            hint="to accept the loss: --accept-loss; 'orderkit plan' shows the whole plan",
            form_hint="to accept the loss, send 'acceptLoss: true'; the plan shows what goes",
        )


def refuse_paused(live: LiveOrder, change_plan: ChangePlan) -> None:
    """
    Check that the order is not paused: Crossplane would ignore what is committed.

    Raises:
        RefusedError: It is; the message says what resumes it.
    """
    text = change_plan.plan.paused.get("") if change_plan.plan else None
    if text:
        raise RefusedError(
            f"{live.entry.order}: {text}",
            hint="--pr (how: review) proposes the change meanwhile, "
            "--direct --no-wait (how: direct) commits it",
        )


def refuse_faults(
    platform: Platform, live: LiveOrder, change_plan: ChangePlan, old: Manifest
) -> None:
    """
    Check that a change does not break a healthy order.

    An order that is broken already may be changed in any way: mending it may take several steps.
    The same applies if its current state cannot be determined.

    Args:
        old: Its current XR.

    Raises:
        RefusedError: It would; the message lists the faults.
    """
    if change_plan.plan is None or not change_plan.plan.faults:
        return
    as_it_is = plan_change(platform, live, old, old).plan
    if as_it_is is None or as_it_is.faults:
        return
    faults = change_plan.plan.faults
    listed_faults = "; ".join(_fault_text(fault) for fault in faults[:_NAMED])
    rest_note = f" (and {len(faults) - _NAMED} more)" if len(faults) > _NAMED else ""
    raise RefusedError(
        f"{live.entry.order}: the change would be committed, but its outcome would be refused:"
        f" {listed_faults}{rest_note}",
        hint="'orderkit plan' shows the whole plan; --pr (how: review) proposes it anyway,"
        " --direct (how: direct) commits it anyway",
        form_hint="'how: review' proposes it anyway, 'how: direct' commits it anyway",
    )


def _fault_text(fault: Fault) -> str:
    return f"{fault.where}: {fault.message}" if fault.where else fault.message
