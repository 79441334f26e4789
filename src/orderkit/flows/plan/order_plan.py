"""
Plan an order that does not exist yet, and the step from one XR of an order to another.

``flows.composing.planner`` computes; here the platform's ports, the draft of the order and who
would have to approve it come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ground.names import check_requester
from ground.objects.kube_objects import Manifest
from kubeschema.known import Layer
from orderkit.core.kit.change_forms import by_form_names
from orderkit.core.order.change import in_group
from orderkit.core.order.order_file import OrderFile
from orderkit.core.plan import Plan
from orderkit.core.plan.price_table import PriceTable
from orderkit.flows.composing.cluster_questions import Lookup, with_schemas
from orderkit.flows.composing.planner import OrderPlanner, plan_new, priced, workshop_of
from orderkit.flows.composing.recording import PlanRecorder
from orderkit.flows.order.approvals import Asking, foreseen, may_need_approval, order_needs
from orderkit.flows.order.live_order import LiveOrder, delivered_xr, placed_xr
from orderkit.flows.order.placing import OrderDraft, TaskRequest, draft
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.flows.team.limit_check import team_of
from orderkit.flows.template.published_templates import kit_template
from orderkit.ports.requesters import Requester
from softwaretemplates.template import read_assignments


@dataclass(frozen=True, slots=True)
class Basis:
    """The inputs of a plan besides the platform's pack."""

    offline: bool = False
    """Ask the cluster nothing; the plan says what it lacks."""
    prices: PriceTable | None = None
    """What things cost; None: by the platform's own table, if it has one."""
    schemas: Layer | None = None
    """Kinds to judge by before the cluster's and the pack's."""
    recorder: PlanRecorder | None = None
    """Records everything that the plan is computed from."""
    historical: bool = False
    """The plan begins with an older commit than what is delivered."""


USUAL = Basis()


def plan_order(
    platform: Platform, live: LiveOrder, old: Manifest, new: Manifest, *, basis: Basis = USUAL
) -> Plan:
    """
    Return the plan of the step from one XR of an order, as Git has it, to another.

    Raises:
        NotFoundError: No pack is published, or the kit has no Composition in it.
        RefusedError: Another kit defines the kind of this one too.
        RemoteError: The forge.
    """
    kit, old, new = live.kit, delivered_xr(live, old), delivered_xr(live, new)
    workshop = workshop_of(platform, kit, old, live.pack)
    if basis.schemas:
        workshop = with_schemas(workshop, basis.schemas)
    cluster: Lookup | None = None if basis.offline else platform.cluster
    if basis.recorder is not None:
        cluster = basis.recorder.record_order(cluster, old, kit)
    planner = OrderPlanner(cluster, workshop, basis.recorder)
    plan = planner.plan_step(old, new, historical=basis.historical)
    plan = replace(plan, fields=in_group(plan.fields, kit.unfold))
    return priced(platform, plan, basis.prices, live.pack)


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
