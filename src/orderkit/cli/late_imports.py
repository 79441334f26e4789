"""What a platform does with modules that few commands need: each is imported when it is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orderkit.flows.platform import Platform

if TYPE_CHECKING:
    from ground.objects.kube_objects import Manifest
    from orderkit.core.kit.model import Kit
    from orderkit.core.order.order_cost import OrderCost
    from orderkit.core.plan import Plan
    from orderkit.core.secret_values import SecretTexts
    from softwaretemplates.render import FileOutcome, Tree, TreeOptions


def plan_new(platform: Platform, kit: Kit, xr: Manifest) -> Plan:
    """Import the planner once an order is proposed."""
    from orderkit.flows.plan.order_plan import plan_new

    return plan_new(platform, kit, xr)


def secrets_of(platform: Platform, xr: Manifest) -> SecretTexts:
    """Import the pipeline once there is a text that a station may have written."""
    from orderkit.flows.plan.order_secrets import order_secrets

    return order_secrets(platform, xr)


def cost_of(platform: Platform, xr: Manifest) -> OrderCost | None:
    """Import the pipeline once something has a cost."""
    from orderkit.flows.plan.order_costs import cost_of

    return cost_of(platform, xr)


class LazyRenderer:
    """Import the renderer once something has to be rendered: few commands do."""

    def __call__(
        self, files: Tree, values: Mapping[str, Any] | None, options: TreeOptions
    ) -> list[FileOutcome]:
        from orderkit.adapters.processes.confined_rendering import judge_confined

        return judge_confined(files, values, options)


def run_program(program: str, order: Mapping[str, Any]) -> Mapping[str, str | None]:
    """Import what runs programs once a campaign has one."""
    from orderkit.adapters.processes import confined_edits

    return confined_edits.run_program(program, order)
