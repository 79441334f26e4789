"""
What an order costs, what its Secrets say and what a new one would become, computed when asked.

What composes is large, and few commands compose: each function imports it when it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orderkit.flows.platform import Platform

if TYPE_CHECKING:
    from ground.names import CommitSha
    from ground.objects.kube_objects import Manifest
    from orderkit.core.kit.model import Kit
    from orderkit.core.order.order_cost import OrderCost
    from orderkit.core.plan import Plan
    from orderkit.core.secret_values import SecretTexts


def plan_new(platform: Platform, kit: Kit, xr: Manifest, pack: CommitSha | None = None) -> Plan:
    """Return the plan of a new order's XR: `planner.plan_new`."""
    from orderkit.flows.composing import planner

    return planner.plan_new(platform, kit, xr, pack)


def order_secrets(platform: Platform, xr: Manifest, pack: CommitSha | None = None) -> SecretTexts:
    """Return the values of an order's Secrets: `order_secrets.order_secrets`."""
    from orderkit.flows.composing import composed_order

    return composed_order.order_secrets(platform, xr, pack)


def cost_of(platform: Platform, xr: Manifest, pack: CommitSha | None = None) -> OrderCost | None:
    """Return what an order costs a month: `order_costs.cost_of`."""
    from orderkit.flows.composing import composed_order

    return composed_order.cost_of(platform, xr, pack)
