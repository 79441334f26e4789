"""
Teams on Gitea.

Called through ``client.GiteaForge``; ``ports.access.ForgeAccess`` documents the contract.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ground.errors import AccessError, InvalidInputError, NotFoundError, RefusedError
from orderkit.adapters.forges.calls import (
    INVALID,
    MISSING,
    Found,
    checked,
    done,
    number_in,
    object_in,
    text_in,
)
from orderkit.adapters.forges.retries import settle
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.gitea.calls import Calls
from orderkit.ports.forge import ForgeUser, TeamRight

UNITS = (
    "repo.code", "repo.issues", "repo.pulls", "repo.releases",
    "repo.wiki", "repo.projects", "repo.packages", "repo.actions",
)  # fmt: skip
"""The units of a repository in Gitea; a team gets its right on all of them."""
_OWNERS = "owners"


@dataclass(frozen=True, slots=True)
class _Team:
    """The state a team should have. Names are lower case: Gitea ignores their case."""

    org: str
    name: str
    right: TeamRight
    members: frozenset[str]
    repositories: frozenset[str] | None

    @property
    def body(self) -> dict[str, object]:
        level = self.right.value
        return {
            "name": self.name,
            "permission": level,
            "includes_all_repositories": self.repositories is None,
            "units_map": dict.fromkeys(UNITS, level),
        }

    def is_like(self, team: Found) -> bool:
        units = team.get("units_map") or {}
        return bool(team.get("includes_all_repositories")) is (self.repositories is None) and all(
            units.get(unit) == self.right.value for unit in UNITS
        )


class GiteaAccess(Calls):
    """The part of the port about teams."""

    def ensure_access(
        self,
        org: str,
        team: str,
        *,
        right: TeamRight,
        members: Sequence[str],
        repositories: Sequence[str] | None = None,
    ) -> None:
        """
        Make sure the team has exactly this right, members and repositories. See the port.

        Raises:
            NotFoundError: No such organisation, user or repository.
            InvalidInputError: The forge refuses the team's name.
            RefusedError: `team` is the owners team, which is never changed.
        """
        if team.lower() == _OWNERS:
            raise RefusedError(f"{org}: the team of owners is not changed", hint="name another")
        target = _Team(
            org,
            team,
            right,
            frozenset(name.lower() for name in members),
            None if repositories is None else frozenset(name.lower() for name in repositories),
        )
        doing = f"set up team {team} of {org}"
        existing = settle(
            lambda _: self._team(target), lambda: self._new_team(target, doing), doing
        )
        path = path_of("teams", str(number_in(existing, "id")))
        self._members(path, target, remove=True)
        if not target.is_like(existing):
            settle(lambda _: None, lambda: self._edit_team(path, target, doing), doing)
        if target.repositories is not None:
            self._repositories(path, target, target.repositories)
        self._members(path, target, remove=False)

    def members(self, org: str, team: str = "") -> tuple[ForgeUser, ...]:
        """Return the members of an organisation's team, or of all its teams; see the port."""
        doing = f"list the members of {org}"
        users: dict[int, ForgeUser] = {}
        try:
            for entry in list(self._pages(path_of("orgs", org, "teams"), {}, doing)):
                if team.lower() not in ("", str(entry.get("name")).lower()):
                    continue
                path = f"{path_of('teams', str(number_in(entry, 'id')))}/members"
                # Gitea shows a team's members to its own members and to owners only.
                with suppress(*(() if team else (AccessError,))):
                    for member in self._pages(path, {}, doing):
                        user = ForgeUser(number_in(member, "id"), text_in(member, "login"))
                        users[user.id] = user
        except NotFoundError:
            return ()
        return tuple(users.values())

    def _team(self, target: _Team) -> Found | None:
        doing = f"list the teams of {target.org}"
        try:
            teams = list(self._pages(path_of("orgs", target.org, "teams"), {}, doing))
        except NotFoundError as error:
            raise NotFoundError(f"there is no organisation {target.org}") from error
        matches = (
            entry for entry in teams if str(entry.get("name")).lower() == target.name.lower()
        )
        return next(matches, None)

    def _new_team(self, target: _Team, doing: str) -> Found:
        answer = self._http.send("POST", path_of("orgs", target.org, "teams"), body=target.body)
        if answer.status == INVALID and "already exists" not in answer.text:
            raise InvalidInputError("team", target.name, f"is refused: {answer.text}")
        return object_in(checked(answer, doing), doing)

    def _edit_team(self, path: str, target: _Team, doing: str) -> bool:
        return done(self._http.send("PATCH", path, body=target.body), doing)

    def _members(self, path: str, target: _Team, *, remove: bool) -> None:
        doing = f"list the members of team {target.name}"
        current = {text_in(x, "login").lower() for x in self._pages(f"{path}/members", {}, doing)}
        names = current - target.members if remove else target.members - current
        for name in sorted(names):
            self._member(f"{path}/members{path_of(name)}", name, target.name, remove=remove)

    def _member(self, path: str, name: str, team: str, *, remove: bool) -> None:
        missing = f"there is no user {name}"
        self._set(path, f"member {name} of team {team}", missing, remove=remove)

    def _repositories(self, path: str, target: _Team, names: Collection[str]) -> None:
        doing = f"list the repositories of team {target.name}"
        current = {text_in(x, "name").lower() for x in self._pages(f"{path}/repos", {}, doing)}
        for name in sorted(current ^ set(names)):
            missing = f"there is no repository {target.org}/{name}"
            repository_path = f"{path}/repos{path_of(target.org, name)}"
            self._set(repository_path, f"repository {name}", missing, remove=name in current)

    def _set(self, path: str, doing: str, missing: str, *, remove: bool) -> None:
        """Put or delete one entry; both are safe to repeat."""

        def act() -> bool:
            answer = self._http.send("DELETE" if remove else "PUT", path)
            if answer.status == MISSING and not remove:
                raise NotFoundError(missing)
            return answer.status == MISSING or done(answer, doing)

        settle(lambda _: None, act, doing)
