"""
Check orders against the limits of their team: kits, number of orders, bounds of fields.

Called before anything of an order is written, and by *register*, which a portal's orders pass too.
The number of orders is limited also if several orders race for the last place: the ledger at the
commit that registered an order decides.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import Any

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import CommitSha, TeamName
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger, ledger_applications, team_file, team_limits
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.team_file import TeamFile
from orderkit.flows.platform import Platform, RepositorySnapshot, published_pack


def team_of(platform: Platform, team: TeamName, snapshot: RepositorySnapshot) -> TeamFile:
    """
    Read a team's file at a commit of the ledger.

    Raises:
        InvalidInputError: Its file is broken.
    """
    path = team_file.path_of(team)
    if path not in snapshot.blobs:
        return TeamFile(team)
    revision = platform.forge.read(platform.ledger, path, snapshot.commit)
    return TeamFile(team) if revision is None else team_file.parse(revision.data, team=team)


def check_may_order(
    platform: Platform,
    entry: OrderEntry,
    kit: str,
    snapshot: RepositorySnapshot,
    pack: RepositorySnapshot | None = None,
) -> TeamFile:
    """
    Check that the team may have this order, as far as its id and kit tell; return its file.

    An order that the ledger has already is not counted again.

    Args:
        pack: Where it is known already; None to take it as it is now.

    Raises:
        InvalidInputError: The id begins with the longer name of another kit.
        RefusedError: The team may not order the kit, its AppProject does not allow the kit's kind
            yet, it has as many orders as it may, or another kit defines the kit's kind too.
    """
    team = team_of(platform, entry.team, snapshot)
    team_limits.check_kit(team, kit)
    if entry.application_path in snapshot.blobs:
        return team
    published = published_pack(platform, pack)
    published.check_only(kit)
    _check_permitted(platform, entry.team, published.kit(kit), snapshot)
    kits = published.kit_names
    # Limits and reviews know the kit of an order by its id.
    if (named := ledger.named_kit(entry.order, kits)) not in ("", kit):
        raise InvalidInputError(
            "order",
            entry.order,
            f"is the id of an order of kit '{named}', and this is one of kit '{kit}'",
            hint="order another name",
        )
    if team_limits.is_counted(team, kit):
        team_limits.check_count(team, kit, ledger.living_orders(snapshot.blobs, entry.team), kits)
    return team


def _check_permitted(
    platform: Platform, team: TeamName, kit: Kit, snapshot: RepositorySnapshot
) -> None:
    """Refuse a kit that the team's AppProject lacks: the pack got it after the team's file."""
    file = platform.forge.read(platform.ledger, ledger.team_path(team), snapshot.commit)
    if file is not None and not ledger_applications.permits(file.data, team, kit):
        raise RefusedError(
            f"team {team} was not given kit '{kit.name}' yet: its AppProject does not allow that"
            " kit's kind",
            hint=f"a platform admin allows it with: orderkit team add {team}",
        )


def overfull(
    platform: Platform, entry: OrderEntry, kit: str, team: TeamFile, commit: CommitSha
) -> bool:
    """Say whether the commit that registered an order brought its team above its limit."""
    if not team_limits.is_counted(team, kit):
        return False
    blobs = platform.forge.tree(platform.ledger, commit)
    other_orders = [
        order for order in ledger.living_orders(blobs, entry.team) if order != entry.order
    ]
    kits = published_pack(platform).kit_names
    return team_limits.count_excess(team, kit, other_orders, kits) is not None


def check_values(team: TeamFile, kit: Kit, xr: Mapping[str, Any]) -> None:
    """
    Check a new order's XR against the bounds of its team.

    Raises:
        RefusedError: A field exceeds its bound.
    """
    team_limits.check_values(team, kit, xr.get("spec") or {})


def check_known(team: TeamName, ledger_paths: Collection[PurePosixPath]) -> None:
    """
    Return if the ledger has a team.

    Raises:
        NotFoundError: It has not. Other teams are not named: not everybody may know them.
    """
    if ledger.team_path(team) not in ledger_paths:
        raise NotFoundError(
            f"team '{team}' is not in the ledger",
            hint=f"'orderkit team list' shows teams; add one: orderkit team add {team}",
        )
