"""Find the orders that a campaign is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ground.errors import InvalidInputError, NotFoundError
from ground.names import OrderId, TeamName
from ground.objects.kube_objects import Manifest
from ground.suggestions import did_you_mean
from orderkit.core.campaign.computing import Computer, Variables
from orderkit.core.campaign.definition import Campaign
from orderkit.core.kit.model import Kit
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.plan.fleet_orders import OrderSelection, read_orders
from orderkit.flows.platform import Platform, published_pack


@dataclass(frozen=True, slots=True)
class SelectedOrder:
    """An order of a campaign, as it is now."""

    entry: OrderEntry
    xr: Manifest
    variables: Variables


@dataclass(frozen=True, slots=True)
class Selected:
    """The orders of a campaign; and those of which it cannot be known whether they belong to it."""

    orders: Mapping[str, SelectedOrder]
    unknown: Mapping[str, str]
    notes: tuple[str, ...]


def kit_of(platform: Platform, campaign: Campaign) -> Kit:
    """
    Return the kit of a campaign's orders, as it is published.

    Raises:
        InvalidInputError: The pack has no such kit.
    """
    kits = {kit.name: kit for kit in published_pack(platform).kits()}
    name = campaign.which.kit
    if name not in kits:
        hint = did_you_mean(name, kits, f"kits: {', '.join(sorted(kits))}")
        rule = "is not a kit of this platform"
        raise InvalidInputError("spec.which.kit", name, rule, hint=hint)
    return kits[name]


def select(platform: Platform, campaign: Campaign, computer: Computer) -> Selected:
    """
    Return the orders that a campaign matches now, in one list of the cluster.

    An order is left out if its condition cannot be evaluated: `unknown` says why.

    Raises:
        NotFoundError: It names an order or a team that the ledger does not have.
    """
    which = campaign.which
    selection = OrderSelection(which.orders, which.teams)
    reading = read_orders(platform, computer.kit, selection, platform.cluster)
    orders: dict[str, SelectedOrder] = {}
    unknown: dict[str, str] = {}
    for read in reading.orders:
        if read.order in which.but:
            continue
        entry = OrderEntry(TeamName(read.team), OrderId(read.order))
        if read.xr is None:
            unknown[read.order] = read.why_not
            continue
        values = computer.variables(entry, read.xr, read.xr)
        match = computer.matches(which.where, values)
        if match.holds:
            orders[read.order] = SelectedOrder(entry, read.xr, values)
        elif match.why:
            unknown[read.order] = match.why
    missing = sorted({*which.orders} - {order.order for order in reading.orders})
    if missing:
        raise NotFoundError(
            f"campaign {campaign.name}: {missing[0]} is not an order of kit {which.kit}",
            hint="take it out of spec.which.orders",
        )
    return Selected(orders, unknown, reading.notes)
