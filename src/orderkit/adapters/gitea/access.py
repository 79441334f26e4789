"""
Teams on Gitea.

Called through ``client.GiteaForge``; the docstrings of ``ports.access.ForgeAccess`` hold.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from orderkit.adapters.gitea.calls import (
    INVALID,
    MISSING,
    Calls,
    Found,
    checked,
    done,
    number_in,
    object_in,
    text_in,
)
from orderkit.adapters.gitea.transport import path_of
from orderkit.adapters.gitea.turns import settle
from orderkit.core.errors import InvalidInputError, NotFoundError, RefusedError
from orderkit.ports.forge import TeamRight

UNITS = (
    "repo.code", "repo.issues", "repo.pulls", "repo.releases",
    "repo.wiki", "repo.projects", "repo.packages", "repo.actions",
)  # fmt: skip
"""What a repository consists of; a team has its right on all of them."""
_OWNERS = "owners"


@dataclass(frozen=True, slots=True)
class _Team:
    """A team as it is wanted. Names are lower case: Gitea does not tell them apart."""

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

    def is_like(self, found: Found) -> bool:
        units = found.get("units_map") or {}
        return bool(found.get("includes_all_repositories")) is (self.repositories is None) and all(
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
            RefusedError: The team of owners is not ours to change.
        """
        if team.lower() == _OWNERS:
            raise RefusedError(f"{org}: the team of owners is not changed", hint="name another")
        wanted = _Team(
            org,
            team,
            right,
            frozenset(name.lower() for name in members),
            None if repositories is None else frozenset(name.lower() for name in repositories),
        )
        doing = f"set up team {team} of {org}"
        found = settle(lambda _: self._team(wanted), lambda: self._new_team(wanted, doing), doing)
        path = path_of("teams", str(number_in(found, "id")))
        self._members(path, wanted, remove=True)
        if not wanted.is_like(found):
            settle(lambda _: None, lambda: self._edit_team(path, wanted, doing), doing)
        if wanted.repositories is not None:
            self._repositories(path, wanted, wanted.repositories)
        self._members(path, wanted, remove=False)

    def _team(self, wanted: _Team) -> Found | None:
        doing = f"list the teams of {wanted.org}"
        try:
            teams = list(self._pages(path_of("orgs", wanted.org, "teams"), {}, doing))
        except NotFoundError as error:
            raise NotFoundError(f"there is no organisation {wanted.org}") from error
        named = (each for each in teams if str(each.get("name")).lower() == wanted.name.lower())
        return next(named, None)

    def _new_team(self, wanted: _Team, doing: str) -> Found:
        answer = self._http.send("POST", path_of("orgs", wanted.org, "teams"), body=wanted.body)
        if answer.status == INVALID and "already exists" not in answer.text:
            raise InvalidInputError("team", wanted.name, f"is refused: {answer.text}")
        return object_in(checked(answer, doing), doing)

    def _edit_team(self, path: str, wanted: _Team, doing: str) -> bool:
        return done(self._http.send("PATCH", path, body=wanted.body), doing)

    def _members(self, path: str, wanted: _Team, *, remove: bool) -> None:
        doing = f"list the members of team {wanted.name}"
        here = {text_in(x, "login").lower() for x in self._pages(f"{path}/members", {}, doing)}
        names = here - wanted.members if remove else wanted.members - here
        for name in sorted(names):
            self._member(f"{path}/members{path_of(name)}", name, wanted.name, remove=remove)

    def _member(self, path: str, name: str, team: str, *, remove: bool) -> None:
        missing = f"there is no user {name}"
        self._set(path, f"member {name} of team {team}", missing, remove=remove)

    def _repositories(self, path: str, wanted: _Team, names: Collection[str]) -> None:
        doing = f"list the repositories of team {wanted.name}"
        here = {text_in(x, "name").lower() for x in self._pages(f"{path}/repos", {}, doing)}
        for name in sorted(here ^ set(names)):
            missing = f"there is no repository {wanted.org}/{name}"
            where = f"{path}/repos{path_of(wanted.org, name)}"
            self._set(where, f"repository {name}", missing, remove=name in here)

    def _set(self, path: str, doing: str, missing: str, *, remove: bool) -> None:
        """Put or delete one entry; both may be repeated."""

        def act() -> bool:
            answer = self._http.send("DELETE" if remove else "PUT", path)
            if answer.status == MISSING and not remove:
                raise NotFoundError(missing)
            return answer.status == MISSING or done(answer, doing)

        settle(lambda _: None, act, doing)
