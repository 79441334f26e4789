"""
Which agreements an order or a change needs: by the rules of its kit, and by the limits of its team.

Made again from what holds now whenever somebody is to agree, so that a kit or a limit that changed
meanwhile counts. Called where an order is registered, where a change is written, and by
``flows.approval``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from ground.errors import OrderkitError
from ground.objects.kube_objects import Manifest
from orderkit.core.durations import parse_duration
from orderkit.core.kit.approval_rules import Need, Subjects, needs_of, reads_cost
from orderkit.core.order import ledger, team_limits
from orderkit.core.order.approval import WaitingOrder
from orderkit.core.order.order_cost import OrderCost
from orderkit.flows.composing.on_demand import cost_of
from orderkit.flows.order import cost_limit
from orderkit.flows.order.live_order import LiveOrder, delivered_xr
from orderkit.flows.platform import Platform, RepositorySnapshot, published_pack

PLATFORM = "platform"


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks for an order or a change."""

    requester: str
    proof: str = ""
    """What proves them; empty: a claim."""
    agent: str = ""
    """The AI agent that asks on their behalf."""


def asking_of(waiting: WaitingOrder) -> Asking:
    """Return who asked for an order that waits."""
    return Asking(waiting.requester, waiting.proof, waiting.agent)


def order_needs(
    platform: Platform,
    live: LiveOrder,
    xr: Manifest,
    asking: Asking,
    ledger_files: RepositorySnapshot,
) -> tuple[Need, ...]:
    """
    Return the agreements that a new order needs.

    Raises:
        RemoteError: The forge or the cluster.
    """
    team, entry, kit = live.team, live.entry, live.kit
    needs = _needs_by_rules(platform, live, None, xr, asking)
    if asking.agent and team.agents != "write":
        because = f"the AI agent '{asking.agent}' ordered it for {asking.requester}"
        needs += (Need(("team", PLATFORM), 1, because),)
    if team.limits.over != "ask":
        return needs
    delivered, paths = delivered_xr(live, xr), ledger_files.blobs
    orders = (order for order in ledger.living_orders(paths, entry.team) if order != entry.order)
    excesses = [
        team_limits.count_excess(team, kit.name, orders, published_pack(platform).kit_names),
        cost_limit.new_excess(platform, team, entry, delivered, paths),
        *team_limits.value_excesses(team, kit, xr.get("spec") or {}),
    ]
    return (*needs, *_needs_of_platform(excesses))


def change_needs(
    platform: Platform,
    live: LiveOrder,
    old: Manifest,
    new: Manifest,
    asking: Asking,
    *,
    stood: Callable[[timedelta], Manifest] | None = None,
) -> tuple[Need, ...]:
    """
    Return the agreements that a change needs.

    Args:
        stood: Returns the XR that was delivered so long ago, for rules with a window.

    Raises:
        RemoteError: The forge or the cluster.
    """
    team, before, spec = live.team, old.get("spec") or {}, new.get("spec") or {}
    needs = _needs_by_rules(platform, live, old, new, asking)
    for within in sorted({rule.within for rule in live.kit.approval.rules if rule.within}):
        if stood is None:
            break
        then = stood(parse_duration(within, field="within"))
        summed = _needs_by_rules(platform, live, then, new, asking, within=within)
        needs += tuple(
            replace(need, because=f"{need.because} (counted over {within})")
            for need in summed
            if need not in needs
        )
    if team.limits.over != "ask":
        return needs
    excesses = [
        cost_limit.change_excess(platform, live, old, new),
        *team_limits.value_excesses(team, live.kit, spec, before=before),
    ]
    return (*needs, *_needs_of_platform(excesses))


def _needs_of_platform(excesses: Iterable[OrderkitError | None]) -> Iterator[Need]:
    """Yield the platform team's agreement to each limit that the team exceeds."""
    return (Need((PLATFORM,), 1, str(excess)) for excess in excesses if excess)


def _needs_by_rules(
    platform: Platform,
    live: LiveOrder,
    old: Manifest | None,
    new: Manifest,
    asking: Asking,
    *,
    within: str = "",
) -> tuple[Need, ...]:
    entry, kit = live.entry, live.kit
    subjects = Subjects(
        old=None if old is None else old.get("spec") or {},
        new=new.get("spec") or {},
        requester={
            "ref": asking.requester,
            "name": asking.requester.rpartition("/")[2],
            "proved": bool(asking.proof),
        },
        order={
            "name": str(entry.order),
            "team": str(entry.team),
            "kit": kit.name,
            "isNew": old is None,
        },
        cost=_cost(platform, live, old, new) if reads_cost(kit) else {},
    )
    return needs_of(kit, subjects, within)


def _cost(
    platform: Platform, live: LiveOrder, old: Manifest | None, new: Manifest
) -> Mapping[str, Any]:
    """Return what the rules see of the cost; nothing if a part of it is not known."""
    if old == {}:  # what was delivered then cannot be known
        return {}

    def delivered_cost(xr: Manifest) -> OrderCost | None:
        return cost_of(platform, delivered_xr(live, xr))

    try:
        before = OrderCost("", Decimal(0)) if old is None else delivered_cost(old)
        after = delivered_cost(new)
    except OrderkitError:
        return {}
    if before is None or after is None or before.unknown or after.unknown:
        return {}
    if before.monthly is None or after.monthly is None:
        return {}
    return {
        "before": float(before.monthly),
        "after": float(after.monthly),
        "difference": float(after.monthly - before.monthly),
        "currency": after.currency,
    }
