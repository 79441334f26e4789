"""Plan an order that does not exist yet: what its kit would compose, and what that would cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ground.names import check_requester
from orderkit.core.kit.change_forms import by_form_names
from orderkit.core.order.order_file import OrderFile
from orderkit.core.plan import Plan
from orderkit.flows.order.approval_foresight import foreseen
from orderkit.flows.order.approval_needs import Asking, order_needs
from orderkit.flows.order.change_approvals import may_need_approval
from orderkit.flows.order.live_order import LiveOrder, placed_xr
from orderkit.flows.order.placing import OrderDraft, TaskRequest, draft
from orderkit.flows.plan.order_plan import plan_new
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.flows.team.limit_check import team_of
from orderkit.flows.template.published_templates import kit_template
from orderkit.ports.requesters import Requester
from softwaretemplates.template import read_assignments


def plan_assignments(
    platform: Platform, kit: str, assignments: Mapping[str, str], requester: str
) -> tuple[OrderDraft, Plan]:
    """Return the same for ``field=value`` texts; raises like `plan_new_order`, and for them."""
    source = kit_template(platform, kit)
    named = by_form_names(source.kit, source.template.properties, assignments)
    values = read_assignments(source.template, named, {})
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
    plan = plan_new(platform, order.kit, xr)
    return order, replace(plan, approval=_approval(platform, order, request.requester))


def _approval(platform: Platform, order: OrderDraft, requester: Requester) -> str:
    """Return who would have to approve an order that is not written yet."""
    ledger_files, entry = ledger_snapshot(platform), order.entry
    record = OrderFile(entry.order, order.kit.name, entry.team, requester.ref, {})
    team = team_of(platform, entry.team, ledger_files)
    live = LiveOrder(entry, order.kit, record, team)
    if not may_need_approval(live):
        return ""
    asking = Asking(requester.ref, requester.proof)
    needs = order_needs(platform, live, order.xr, asking, ledger_files)
    return foreseen(platform, entry, needs, asking)
