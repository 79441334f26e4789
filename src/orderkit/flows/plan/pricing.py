"""
What a plan costs: by the price table that was given, else by the platform's own.

The platform's own is ``gitops/prices.yaml`` of its pack, as published; a platform without one has
plans without costs. A broken table of the platform does not stop a plan; a broken table given for
this plan does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ground.errors import InvalidInputError
from orderkit.core.plan import Plan
from orderkit.core.plan.cost import costs_of
from orderkit.core.plan.price_table import PriceTable

if TYPE_CHECKING:
    from orderkit.flows.platform import Platform


def priced(platform: Platform, plan: Plan, table: PriceTable | None = None) -> Plan:
    """
    Return a plan with what it costs. One that would be refused costs nothing yet.

    Args:
        table: None: the platform's own.

    Raises:
        RemoteError: The forge.
    """
    from orderkit.flows.published_prices import published_prices  # lazy: a snapshot needs none

    try:
        price_table = table or published_prices(platform)
    except InvalidInputError as error:
        unknowns = (*plan.after.unknowns, f"costs are not known: {error}")
        return replace(plan, after=replace(plan.after, unknowns=unknowns))
    return with_costs(plan, price_table)


def with_costs(plan: Plan, table: PriceTable | None) -> Plan:
    """Return a plan with what it costs by a table, if there is one."""
    if table is None or plan.faults:
        return plan
    return replace(plan, costs=costs_of(plan.before, plan.after, table))
