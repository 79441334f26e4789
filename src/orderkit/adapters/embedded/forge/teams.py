"""
Who belongs to an organisation, and which repositories its teams and collaborators may use.

Each organisation has a team of owners, who may do everything. Another team either
administers its repositories or has a level per unit (code, issues, pull requests, …), on the
repositories it was given or on all. A collaborator has one level on one repository. What
follows from all this for somebody is computed in ``api.access``.

Called by ``accounts``, ``api.access`` and the endpoints of teams and collaborators.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from orderkit.adapters.embedded.forge.store import Store
from orderkit.core.errors import ConflictError, RefusedError

UNITS = (
    "repo.code",
    "repo.issues",
    "repo.pulls",
    "repo.releases",
    "repo.wiki",
    "repo.ext_wiki",
    "repo.ext_issues",
    "repo.projects",
    "repo.packages",
    "repo.actions",
)
LEVELS = ("none", "read", "write", "admin", "owner")
OWNERS = "Owners"


@dataclass(frozen=True, slots=True)
class TeamSettings:
    """What a caller may choose about a team."""

    name: str
    description: str = ""
    permission: str = "none"
    """``owner``, ``admin``, or ``none``: then `units` says what."""
    units: Mapping[str, str] | None = None
    all_repositories: bool = False
    may_create: bool = False
    """Its members may create repositories in the organisation."""

    def level(self, unit: str) -> str:
        """Return the level on a unit."""
        if self.permission != "none":
            return self.permission
        return (self.units or {}).get(unit, "none")


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
            new_id = self._store.insert(
                "INSERT INTO teams (org_id, name, lower_name, description, permission, units,"
                " all_repositories, may_create) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                org_id,
                *_values(settings),
            )
        except sqlite3.IntegrityError as error:
            raise _taken(org_id, settings.name) from error
        return Team(new_id, org_id, settings)

    def create_owners(self, org_id: int, owner_id: int) -> Team:
        """Add the team of owners with its first member. Call in the organisation's transaction."""
        settings = TeamSettings(OWNERS, "", "owner", all_repositories=True, may_create=True)
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
            self._store.change(
                "UPDATE teams SET name = ?, lower_name = ?, description = ?, permission = ?,"
                " units = ?, all_repositories = ?, may_create = ? WHERE id = ?",
                *_values(settings),
                team.id,
            )
        except sqlite3.IntegrityError as error:
            raise _taken(team.org_id, settings.name) from error
        return replace(team, settings=settings)

    def delete(self, team: Team) -> None:
        """Remove a team; its members stay members only through other teams."""
        self._store.change("DELETE FROM teams WHERE id = ?", team.id)

    def find(self, team_id: int) -> Team | None:
        """Return a team, or None."""
        row = self._store.row("SELECT * FROM teams WHERE id = ?", team_id)
        return _team(row) if row else None

    def named(self, org_id: int, name: str) -> Team | None:
        """Return a team of an organisation by name, whatever its case, or None."""
        lower = name.lower()
        return next((t for t in self.of(org_id) if t.settings.name.lower() == lower), None)

    def of(self, org_id: int) -> list[Team]:
        """Return the teams of an organisation: owners first, then by name."""
        sql = "SELECT * FROM teams WHERE org_id = ? ORDER BY permission <> 'owner', lower_name"
        return [_team(row) for row in self._store.rows(sql, org_id)]

    def of_user(self, account_id: int, *, org_id: int | None = None) -> list[Team]:
        """Return the teams somebody is in, everywhere or in one organisation."""
        rows = self._store.rows(
            "SELECT t.* FROM teams t JOIN team_members m ON m.team_id = t.id"
            " WHERE m.account_id = ? AND t.org_id = coalesce(?, t.org_id) ORDER BY t.id",
            account_id,
            org_id,
        )
        return [_team(row) for row in rows]

    def of_user_on(self, account_id: int, org_id: int, repo_id: int) -> list[Team]:
        """Return those of somebody's teams that have a repository."""
        rows = self._store.rows(
            "SELECT t.* FROM teams t JOIN team_members m ON m.team_id = t.id"
            " WHERE m.account_id = ? AND t.org_id = ? AND (t.all_repositories = 1 OR EXISTS"
            " (SELECT 1 FROM team_repositories r WHERE r.team_id = t.id AND r.repo_id = ?))",
            account_id,
            org_id,
            repo_id,
        )
        return [_team(row) for row in rows]

    def on_repository(self, org_id: int, repo_id: int) -> list[Team]:
        """Return the teams that have a repository."""
        rows = self._store.rows(
            "SELECT t.* FROM teams t WHERE t.org_id = ? AND (t.all_repositories = 1 OR EXISTS"
            " (SELECT 1 FROM team_repositories r WHERE r.team_id = t.id AND r.repo_id = ?))"
            " ORDER BY t.permission <> 'owner', t.lower_name",
            org_id,
            repo_id,
        )
        return [_team(row) for row in rows]

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
        with self._store.transaction():
            if team.owns and self.members(team) == [account_id]:
                raise RefusedError("user is the last member of team 'Owners'")
            self._store.change(
                "DELETE FROM team_members WHERE team_id = ? AND account_id = ?",
                team.id,
                account_id,
            )

    def org_members(self, org_id: int) -> list[int]:
        """Return the accounts in any team of an organisation."""
        rows = self._store.rows(
            "SELECT DISTINCT m.account_id FROM team_members m JOIN teams t ON t.id = m.team_id"
            " WHERE t.org_id = ? ORDER BY m.account_id",
            org_id,
        )
        return [int(row["account_id"]) for row in rows]

    def leave(self, org_id: int, account_id: int) -> None:
        """
        Take somebody out of all teams of an organisation, and out of its repositories.

        Raises:
            RefusedError: The organisation would have no owner.
        """
        with self._store.transaction():
            for team in self.of_user(account_id, org_id=org_id):
                self.remove_member(team, account_id)
            self._store.change(
                "DELETE FROM collaborators WHERE account_id = ? AND repo_id IN"
                " (SELECT id FROM repositories WHERE owner_id = ?)",
                account_id,
                org_id,
            )

    # Repositories

    def repositories(self, team: Team) -> list[int]:
        """Return the repositories a team has."""
        rows = self._store.rows(
            "SELECT r.id FROM repositories r WHERE r.owner_id = ? AND r.state = 'ready' AND"
            " (? OR EXISTS (SELECT 1 FROM team_repositories x"
            " WHERE x.team_id = ? AND x.repo_id = r.id)) ORDER BY r.id",
            team.org_id,
            int(team.settings.all_repositories),
            team.id,
        )
        return [int(row["id"]) for row in rows]

    def add_repository(self, team: Team, repo_id: int) -> None:
        """Give a repository to a team. Idempotent."""
        self._store.change(
            "INSERT OR IGNORE INTO team_repositories VALUES (?, ?)", team.id, repo_id
        )

    def remove_repository(self, team: Team, repo_id: int) -> bool:
        """Take a repository from a team. True if the team had been given it."""
        sql = "DELETE FROM team_repositories WHERE team_id = ? AND repo_id = ?"
        return self._store.change(sql, team.id, repo_id) > 0

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
        self._store.change(
            "INSERT INTO collaborators VALUES (?, ?, ?)"
            " ON CONFLICT (repo_id, account_id) DO UPDATE SET level = excluded.level",
            repo_id,
            account_id,
            level,
        )

    def remove_collaborator(self, repo_id: int, account_id: int) -> None:
        """End a collaboration. Idempotent."""
        sql = "DELETE FROM collaborators WHERE repo_id = ? AND account_id = ?"
        self._store.change(sql, repo_id, account_id)


def units_of(levels: Mapping[str, str]) -> dict[str, str]:
    """Return the units that exist with their levels; a level that is none counts as ``none``."""
    known = ("none", "read", "write")
    return {
        unit: level if level in known else "none" for unit, level in levels.items() if unit in UNITS
    }


def highest(levels: Iterable[str]) -> str:
    """Return the highest of some levels."""
    return max(levels, key=LEVELS.index, default="none")


def _taken(org_id: int, name: str) -> ConflictError:
    return ConflictError(f"team already exists [org_id: {org_id}, name: {name.lower()}]")


def _values(settings: TeamSettings) -> tuple[object, ...]:
    return (
        settings.name,
        settings.name.lower(),
        settings.description,
        settings.permission,
        json.dumps(dict(settings.units or {})),
        int(settings.all_repositories),
        int(settings.may_create),
    )


def _team(row: sqlite3.Row) -> Team:
    settings = TeamSettings(
        name=row["name"],
        description=row["description"],
        permission=row["permission"],
        units=json.loads(row["units"]),
        all_repositories=bool(row["all_repositories"]),
        may_create=bool(row["may_create"]),
    )
    return Team(row["id"], row["org_id"], settings)
