"""Changes that a kit wants reviewed: one member asks, another agrees, and they are merged."""

from __future__ import annotations

from commands import Command
from forgeusers import ForgeUser, embedded_admin, new_user

from ground.names import RepoId, TeamName
from orderkit.flows.platform import Platform
from orderkit.flows.team.teams import TeamChange, change_team
from orderkit_standins.serve_platform import Running

Members = tuple[ForgeUser, ForgeUser]


def new_members(running: Running, team: TeamName) -> Members:
    """Make two members of a team: one asks for changes, the other agrees to them."""
    admin = embedded_admin(running.settings.forge.url, running.embedded.state.folder)
    asker, reviewer = new_user(admin, "eve"), new_user(admin, "carol")
    change = TeamChange(members=(asker.login, reviewer.login))
    change_team(running.platform, team, requester="user:default/boss", change=change)
    return asker, reviewer


def reviewed(
    orderkit: Command, platform: Platform, members: Members, repo: RepoId, *changes: str
) -> None:
    """Ask for a change that is reviewed; let another member agree, merge it, and wait for Ready."""
    asker, reviewer = members
    requester = ("--requester", f"user:default/{asker.login}")
    proposed = orderkit("change", repo.name, *changes, *requester, "--json")
    assert (proposed.code, proposed.json["state"]) == (0, "proposed"), proposed.err
    (pull,) = platform.forge.pulls(repo)
    path = f"/repos/{repo}/pulls/{pull.number}/reviews"
    reviewer.api("POST", path, {"event": "APPROVED"})
    merged = orderkit("merge", repo.name, str(pull.number), "--timeout", "300")
    assert merged.code == 0, merged.err
