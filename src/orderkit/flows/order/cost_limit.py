"""
Hold orders and changes to what their team may spend.

Costs are those of the XRs in Git, composed by the published pack: what would be delivered counts,
whether it is already or not. Orders whose end has begun do not count. Called before an order or a
change is written, and again with the ledger at the commit that registered an order: if orders race,
that commit decides.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import PurePosixPath

from ground.errors import OrderkitError, RefusedError
from ground.names import CommitSha, TeamName
from ground.objects.kube_objects import Manifest
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger, team_limits
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_cost import OrderCost
from orderkit.core.order.order_file import OrderFile
from orderkit.core.order.team_file import TeamFile
from orderkit.flows.composing.on_demand import cost_of
from orderkit.flows.order.live_order import LiveOrder, delivered_xr, read_xr
from orderkit.flows.platform import Platform, ledger_snapshot, published_pack


def check_new(
    platform: Platform,
    team: TeamFile,
    entry: OrderEntry,
    xr: Manifest,
    paths: Collection[PurePosixPath],
) -> None:
    """
    Check that a team may spend what a new order costs, unless it may ask for more.

    Args:
        xr: As Argo CD will apply it.
        paths: The ledger's, at the commit that decides.

    Raises:
        RefusedError: With it, the team's orders cost more than the limit, or the cost of one is
            not known.
        RemoteError: The forge or the cluster.
    """
    if team.limits.over == "refuse" and (excess := new_excess(platform, team, entry, xr, paths)):
        raise excess


def new_excess(
    platform: Platform,
    team: TeamFile,
    entry: OrderEntry,
    xr: Manifest,
    paths: Collection[PurePosixPath],
) -> RefusedError | None:
    """Return why a new order is above the limit of its team; None if it is not. As `check_new`."""
    if team.limits.cost is None:
        return None
    cost = cost_of(platform, xr)
    return team_limits.cost_excess(team, entry.order, cost, _others(platform, entry, paths))


def check_change(platform: Platform, live: LiveOrder, old: Manifest, new: Manifest) -> None:
    """Check that a team may spend what a change adds; raises like `check_new`."""
    if live.team.limits.over == "refuse" and (excess := change_excess(platform, live, old, new)):
        raise excess


def change_excess(
    platform: Platform, live: LiveOrder, old: Manifest, new: Manifest
) -> RefusedError | None:
    """
    Return why a change that makes an order dearer is above the limit; None if it is not.

    Changes of two orders that are made at the same moment do not see each other before.
    """
    if live.team.limits.cost is None:
        return None
    before, cost = (cost_of(platform, delivered_xr(live, xr)) for xr in (old, new))
    if before is not None and not team_limits.is_dearer(cost, before):
        return None
    other_costs = _others(platform, live.entry, ledger_snapshot(platform).blobs)
    return team_limits.cost_excess(live.team, live.entry.order, cost, other_costs)


def team_excess(platform: Platform, team: TeamFile, paths: Collection[PurePosixPath]) -> str:
    """
    Say that what Git has of a team's orders costs more than its limit; empty if it does not.

    A push past Orderkit can bring that about, and so can a lower limit or a higher price.

    Raises:
        RemoteError: The forge or the cluster.
    """
    if team.limits.cost is None:
        return ""
    return team_limits.sum_excess(team, _costs(platform, team.team, paths))


def _others(
    platform: Platform, entry: OrderEntry, paths: Collection[PurePosixPath]
) -> dict[str, OrderCost | None]:
    return _costs(platform, entry.team, paths, besides=entry.order)


def _costs(
    platform: Platform, team: TeamName, paths: Collection[PurePosixPath], *, besides: str = ""
) -> dict[str, OrderCost | None]:
    """Return what a team's live orders cost, as Git has them."""
    entries = [OrderEntry(team, order) for order in ledger.living_orders(paths, team)]
    entries = [e for e in entries if e.order != besides and e.end_path not in paths]
    kits = {kit.name: kit for kit in published_pack(platform).kits()}
    with InheritingThreads(thread_name_prefix="costs") as threads:
        costs = threads.map(lambda other: _cost(platform, other, kits), entries)
        return {other.order: cost for other, cost in zip(entries, costs, strict=True)}


def _cost(platform: Platform, entry: OrderEntry, kits: dict[str, Kit]) -> OrderCost | None:
    try:
        xr = git_xr(platform, entry, kits)
        return cost_of(platform, xr)
    except OrderkitError as error:
        if error.retryable:
            raise
        return OrderCost("", None, unknown=(str(error),))


def git_xr(
    platform: Platform, entry: OrderEntry, kits: dict[str, Kit], commit: CommitSha | None = None
) -> Manifest:
    """
    Return the XR of an order as Argo CD applies it from a commit; None: from the head.

    Raises:
        OrderkitError: The pack has no such kit, or there is no one readable XR.
    """
    kit = kits.get(ledger.named_kit(entry.order, kits))
    if kit is None:
        raise RefusedError(f"the pack has no kit for {entry.order}")
    commit = commit or platform.forge.head(entry.repository)
    if commit is None:
        raise RefusedError(f"{entry.repository} has no commit on main, or does not exist")
    record = OrderFile(entry.order, kit.name, entry.team, "", {})
    live = LiveOrder(entry, kit, record, TeamFile(entry.team))
    return delivered_xr(live, read_xr(platform, live, commit).xr)
