"""
Add a team: its organisation, its part of the ledger, its AppProject.

Called by ``orderkit team add`` and by bootstrap. Every step is *ensure*: repeating it after a
crash finishes it, repeating it afterwards changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from orderkit.core import ledger
from orderkit.core.kit.kinds import kinds_of, read_kinds
from orderkit.core.names import CommitSha, TeamName, check_label, check_requester
from orderkit.flows.platform import Platform, ledger_snapshot, published_pack, write_ledger
from orderkit.flows.refreshing import refresh
from orderkit.ports.forge import Operation

LEDGER_APPLICATION = "ledger"
"""The Application that delivers ``teams/`` (gitops/apps/ledger.yaml)."""


@dataclass(frozen=True, slots=True)
class TeamAdded:
    """`created` is False when organisation and ledger already had everything."""

    team: TeamName
    created: bool
    commit: CommitSha


def add_team(platform: Platform, name: str, *, requester: str) -> TeamAdded:
    """
    Make sure a team can order. Idempotent.

    Raises:
        InvalidInputError: The name is no RFC 1123 label.
        ConflictError: The ledger was changed by others in every round.
    """
    check_requester(requester)
    team = TeamName(check_label("team", name))
    created = platform.forge.ensure_org(team)
    pack = published_pack(platform)
    kinds = read_kinds(pack.files) or kinds_of(pack.kits())
    text = ledger.team_file(
        team, forge_url=platform.forge.base_url, ledger=platform.ledger, kinds=kinds
    )
    written = write_ledger(
        platform,
        {ledger.team_path(team): text, ledger.apps_keep_path(team): ""},
        Operation(f"team-{team}", requester, f"team {team}: may order"),
    )
    if written.changed:
        refresh(platform, LEDGER_APPLICATION)
    return TeamAdded(team, created or written.changed, written.commit)


def list_teams(platform: Platform) -> list[TeamName]:
    """Return the teams of the ledger, in order."""
    return list(ledger.teams(ledger_snapshot(platform).blobs))
