"""
Write the Applications of teams and orders again that an earlier release left open to a push.

A file that somebody pushes could choose their tool, or a tag the commit of a protected order; a new
name, or a file that the ledger lost, could delete an order.

``orderkit team add`` and registering an order write what is pinned. Nothing is deleted in any case.
"""

from __future__ import annotations

from collections.abc import Sequence

from ground.names import TeamName
from ground.objects.kube_objects import labels_of
from orderkit.core.order import ledger
from orderkit.flows.argocd.commit_pinning import (
    following_orders,
    unpinned_applications,
    unsafe_applications,
)
from orderkit.flows.platform import Platform, snapshot
from orderkit.flows.team.teams import add_team


def unpinned_teams(platform: Platform) -> Sequence[TeamName]:
    """Return the teams of the ledger that have an Application of which a push decides too much."""
    files = snapshot(platform.forge, platform.ledger)
    if files is None:
        return []
    old = (*unpinned_applications(platform), *unsafe_applications(platform.cluster))
    labels = [labels_of(application) for application in old]
    teams = {label.get(ledger.TEAM_LABEL) for label in labels}
    teams |= {entry.team for entry in following_orders(platform, files)}
    return [team for team in ledger.teams(files.blobs) if team in teams]


def pin_teams(platform: Platform, *, requester: str) -> Sequence[TeamName]:
    """
    Write their files of the ledger as this version does; return the teams. Idempotent.

    Raises:
        OrderkitError: As `orderkit.flows.team.teams.add_team` says.
    """
    teams = unpinned_teams(platform)
    for team in teams:
        add_team(platform, team, requester=requester)
    return teams
