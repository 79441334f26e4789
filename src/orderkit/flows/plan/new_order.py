"""Plan an order that does not exist yet: what its kit would compose, and what that would cost."""

from __future__ import annotations

from collections.abc import Mapping

from ground.names import check_requester
from orderkit.core.plan import Plan
from orderkit.flows.order.live_order import placed_xr
from orderkit.flows.order.placing import OrderDraft, TaskRequest, draft
from orderkit.flows.plan.order_plan import plan_new
from orderkit.flows.platform import Platform
from orderkit.flows.template.published_templates import kit_template
from orderkit.ports.requesters import Requester
from softwaretemplates.template import read_assignments


def plan_assignments(
    platform: Platform, kit: str, assignments: Mapping[str, str], requester: str
) -> tuple[OrderDraft, Plan]:
    """Return the same for ``field=value`` texts; raises like `plan_new_order`, and for them."""
    template = kit_template(platform, kit).template
    values = read_assignments(template, assignments, {})
    request = TaskRequest(kit, values, Requester(check_requester(requester)))
    return plan_new_order(platform, request)


def plan_new_order(platform: Platform, request: TaskRequest) -> tuple[OrderDraft, Plan]:
    """
    Return the order that form values would make, and its plan. Nothing is written.

    Raises:
        NotFoundError: The kit has no Composition in the published pack.
        OrderkitError: What `draft` raises for an order that would be refused.
    """
    order = draft(platform, request)
    xr = placed_xr(order.kit, order.entry.team, order.xr)
    return order, plan_new(platform, order.kit, xr)
