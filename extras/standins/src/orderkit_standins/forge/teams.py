"""
Who belongs to an organisation, and which repositories its teams and collaborators may use.

Each organisation has a team of owners, who may do everything. Another team either administers its
repositories or has a level per unit (code, issues, pull requests, …), on the repositories it was
given or on all. A collaborator has one level on one repository. What follows from all this for
somebody is computed in ``api.access``.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ground.errors import ConflictError, RefusedError
from orderkit_standins.forge.store import Store, load

UNITS = (
    *("repo.code", "repo.issues", "repo.pulls", "repo.releases", "repo.wiki", "repo.ext_wiki"),
    *("repo.ext_issues", "repo.projects", "repo.packages", "repo.actions"),
)
LEVELS = ("none", "read", "write", "admin", "owner")
OWNERS = "Owners"
_TEAMS_WITH_REPOSITORY = (
    "SELECT t.* FROM teams t JOIN team_members m ON m.team_id = t.id"
    " WHERE m.account_id = ? AND t.org_id = ? AND (t.all_repositories = 1 OR EXISTS"
    " (SELECT 1 FROM team_repositories r WHERE r.team_id = t.id AND r.repo_id = ?))"
)


@dataclass(frozen=True, slots=True)
class TeamSettings:
    """What a caller may choose about a team."""

    name: str
    description: str = ""
    permission: str = "none"
    """``owner``, ``admin``, or ``none``: then `units` says what."""
    units: Mapping[str, str] = dataclasses.field(default_factory=dict)
    all_repositories: bool = False
    may_create: bool = False
    """Its members may create repositories in the organisation."""

    def level(self, unit: str) -> str:
        """Return the level on a unit."""
        return self.permission if self.permission != "none" else self.units.get(unit, "none")


@dataclass(frozen=True, slots=True)
class Team:
    """A team of an organisation."""

    id: int
    org_id: int
    settings: TeamSettings

    @property
    def owns(self) -> bool:
        return self.settings.permission == "owner"


class Teams:
    """Teams, their members and repositories, and collaborators, in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, org_id: int, settings: TeamSettings) -> Team:
        """
        Add a team.

        Raises:
            ConflictError: The organisation has a team of that name.
        """
        try:
            return Team(
                self._store.insert("teams", org_id=org_id, **_values(settings)), org_id, settings
            )
        except sqlite3.IntegrityError as error:
            raise _name_taken(org_id, settings.name) from error

    def create_owners(self, org_id: int, owner_id: int) -> Team:
        """Add the team of owners with its first member. Call in the organisation's transaction."""
        settings = TeamSettings(OWNERS, permission="owner", all_repositories=True, may_create=True)
        team = self.create(org_id, settings)
        self.add_member(team, owner_id)
        return team

    def change(self, team: Team, settings: TeamSettings) -> Team:
        """
        Replace what may be chosen.

        Raises:
            ConflictError: Another team of the organisation has that name.
        """
        try:
            self._store.update("teams", team.id, **_values(settings))
        except sqlite3.IntegrityError as error:
            raise _name_taken(team.org_id, settings.name) from error
        return dataclasses.replace(team, settings=settings)

    def find(self, team_id: int) -> Team | None:
        """Return a team, or None."""
        row = self._store.row("SELECT * FROM teams WHERE id = ?", team_id)
        return _team(row) if row else None

    def named(self, org_id: int, name: str) -> Team | None:
        """Return a team of an organisation by name, whatever its case, or None."""
        lower = name.lower()
        return next((t for t in self.of_org(org_id) if t.settings.name.lower() == lower), None)

    def of_org(self, org_id: int) -> list[Team]:
        """Return the teams of an organisation: owners first, then by name."""
        sql = "SELECT * FROM teams WHERE org_id = ? ORDER BY permission <> 'owner', lower_name"
        return [_team(row) for row in self._store.rows(sql, org_id)]

    def of_user(self, account_id: int, org_id: int) -> list[Team]:
        """Return the teams of an organisation that somebody is in."""
        rows = self._store.rows(
            "SELECT t.* FROM teams t JOIN team_members m ON m.team_id = t.id"
            " WHERE m.account_id = ? AND t.org_id = ? ORDER BY t.id",
            account_id,
            org_id,
        )
        return [_team(row) for row in rows]

    def of_user_on(self, account_id: int, org_id: int, repo_id: int) -> list[Team]:
        """Return those of somebody's teams that have a repository."""
        rows = self._store.rows(_TEAMS_WITH_REPOSITORY, account_id, org_id, repo_id)
        return [_team(row) for row in rows]

    def is_owner(self, org_id: int, user_id: int) -> bool:
        """Say whether a user owns an organisation."""
        return any(team.owns for team in self.of_user(user_id, org_id))

    def is_member(self, org_id: int, user_id: int) -> bool:
        """Say whether a user is in any team of an organisation."""
        return bool(self.of_user(user_id, org_id))

    # Members

    def members(self, team: Team) -> list[int]:
        """Return the accounts in a team."""
        sql = "SELECT account_id FROM team_members WHERE team_id = ? ORDER BY account_id"
        return [int(row["account_id"]) for row in self._store.rows(sql, team.id)]

    def add_member(self, team: Team, account_id: int) -> None:
        """Put somebody into a team. Idempotent."""
        self._store.change("INSERT OR IGNORE INTO team_members VALUES (?, ?)", team.id, account_id)

    def remove_member(self, team: Team, account_id: int) -> None:
        """
        Take somebody out of a team. Idempotent.

        Raises:
            RefusedError: The organisation would have no owner.
        """
        sql = "DELETE FROM team_members WHERE team_id = ? AND account_id = ?"
        with self._store.transaction():
            if team.owns and self.members(team) == [account_id]:
                raise RefusedError("user is the last member of team 'Owners'")
            self._store.change(sql, team.id, account_id)

    # Repositories

    def repositories(self, team: Team) -> list[int]:
        """Return the repositories a team has."""
        rows = self._store.rows(
            "SELECT r.id FROM repositories r WHERE r.owner_id = ? AND r.state = 'ready' AND"
            " (? OR EXISTS (SELECT 1 FROM team_repositories x"
            " WHERE x.team_id = ? AND x.repo_id = r.id)) ORDER BY r.id",
            team.org_id,
            team.settings.all_repositories,
            team.id,
        )
        return [int(row["id"]) for row in rows]

    def add_repository(self, team: Team, repo_id: int) -> None:
        """Give a repository to a team. Idempotent."""
        sql = "INSERT OR IGNORE INTO team_repositories VALUES (?, ?)"
        self._store.change(sql, team.id, repo_id)

    def remove_repository(self, team: Team, repo_id: int) -> None:
        """Take a repository from a team. Idempotent."""
        sql = "DELETE FROM team_repositories WHERE team_id = ? AND repo_id = ?"
        self._store.change(sql, team.id, repo_id)

    # Collaborators

    def collaborators(self, repo_id: int) -> list[int]:
        """Return the accounts that collaborate on a repository."""
        sql = "SELECT account_id FROM collaborators WHERE repo_id = ? ORDER BY account_id"
        return [int(row["account_id"]) for row in self._store.rows(sql, repo_id)]

    def collaboration(self, repo_id: int, account_id: int) -> str:
        """Return a collaborator's level, ``none`` for anybody else."""
        sql = "SELECT level FROM collaborators WHERE repo_id = ? AND account_id = ?"
        row = self._store.row(sql, repo_id, account_id)
        return str(row["level"]) if row else "none"

    def set_collaborator(self, repo_id: int, account_id: int, level: str) -> None:
        """Let somebody collaborate at a level. Idempotent."""
        sql = "INSERT OR REPLACE INTO collaborators VALUES (?, ?, ?)"
        self._store.change(sql, repo_id, account_id, level)

    def remove_collaborator(self, repo_id: int, account_id: int) -> None:
        """End a collaboration. Idempotent."""
        sql = "DELETE FROM collaborators WHERE repo_id = ? AND account_id = ?"
        self._store.change(sql, repo_id, account_id)


def known_units(levels: Mapping[str, str]) -> dict[str, str]:
    """Return the units that exist with their levels; an unknown level counts as ``none``."""
    valid = ("none", "read", "write")
    return {
        unit: level if level in valid else "none" for unit, level in levels.items() if unit in UNITS
    }


def highest(levels: Iterable[str]) -> str:
    """Return the highest of some levels."""
    return max(levels, key=LEVELS.index, default="none")


def _name_taken(org_id: int, name: str) -> ConflictError:
    return ConflictError(f"team already exists [org_id: {org_id}, name: {name.lower()}]")


def _values(settings: TeamSettings) -> dict[str, object]:
    values = dataclasses.asdict(settings)
    return {**values, "lower_name": settings.name.lower(), "units": json.dumps(values["units"])}


def _team(row: sqlite3.Row) -> Team:
    settings = load(TeamSettings, row, units=json.loads(row["units"]))
    return Team(row["id"], row["org_id"], settings)
