"""
Which agreements an order or a change needs: by the rules of its kit, and by the limits of its team.

Made again from what holds now whenever somebody is to agree, so that a kit or a limit that changed
meanwhile counts. Called where an order is registered, where a change is written, and by
``flows.approval``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from orderkit.core.errors import OrderkitError
from orderkit.core.kit.approval_rules import Need, Subjects, needs_of, reads_cost
from orderkit.core.objects.kube_objects import Manifest
from orderkit.core.order import ledger, team_limits
from orderkit.core.plan import Plan
from orderkit.flows.order import cost_limit
from orderkit.flows.order.live_order import LiveOrder
from orderkit.flows.platform import Platform, RepositorySnapshot, published_pack

PLATFORM = "platform"


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks for an order or a change."""

    requester: str
    proof: str = ""
    """What proves them; empty: a claim."""


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
    team, entry = live.team, live.entry
    excesses: list[Any] = []
    if team.limits.over == "ask" and team_limits.is_counted(team, live.kit.name):
        orders = ledger.living_orders(ledger_files.blobs, entry.team)
        living = [order for order in orders if order != entry.order]
        kits = published_pack(platform).kit_names
        excess = team_limits.count_excess(team, live.kit.name, living, kits)
        excesses += [excess] if excess else []
    excesses += _cost_excesses(platform, live, None, xr, ledger_files.blobs)
    needs = _needs(
        live,
        None,
        xr,
        asking,
        lambda: platform.plan_between(platform, live.kit, live.entry.team, None, xr),
    )
    return (*needs, *_over(live, None, xr, excesses))


def change_needs(
    platform: Platform,
    live: LiveOrder,
    old: Manifest,
    new: Manifest,
    asking: Asking,
    *,
    plan: Plan | None = None,
) -> tuple[Need, ...]:
    """
    Return the agreements that a change needs.

    Args:
        plan: Its plan, if there is one already.

    Raises:
        RemoteError: The forge or the cluster.
    """
    needs = _needs(
        live,
        old,
        new,
        asking,
        lambda: plan or platform.plan_between(platform, live.kit, live.entry.team, old, new),
    )
    return (*needs, *_over(live, old, new, _cost_excesses(platform, live, old, new)))


def _cost_excesses(
    platform: Platform,
    live: LiveOrder,
    old: Manifest | None,
    new: Manifest,
    paths: Collection[PurePosixPath] = (),
) -> list[Any]:
    if live.team.limits.over != "ask":
        return []
    excess = cost_limit.asked_for(platform, live, old, new, paths)
    return [excess] if excess else []


def _needs(
    live: LiveOrder,
    old: Manifest | None,
    new: Manifest,
    asking: Asking,
    plan: Callable[[], Plan | None],
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
        cost=_cost(plan) if reads_cost(kit) else {},
    )
    return needs_of(kit, subjects)


def _cost(make_plan: Callable[[], Plan | None]) -> Mapping[str, Any]:
    """Return what the rules see of the cost; nothing if it is not known."""
    try:
        plan = make_plan()
    except OrderkitError:
        return {}
    if plan is None or plan.costs is None or plan.costs.after.unread:
        return {}
    before, after = plan.costs.sums.totals
    return {
        "before": float(before),
        "after": float(after),
        "difference": float(after - before),
        "currency": plan.costs.table.currency,
    }


def _over(
    live: LiveOrder, old: Manifest | None, new: Manifest, excesses: list[Any]
) -> tuple[Need, ...]:
    """Return the platform team's agreement if the team gets more than its limits."""
    if live.team.limits.over == "ask":
        before = None if old is None else old.get("spec") or {}
        spec = new.get("spec") or {}
        excesses += team_limits.value_excesses(live.team, live.kit, spec, before=before)
    return tuple(Need((PLATFORM,), 1, str(excess)) for excess in excesses)
