"""Teams on GitHub: their members, and their right on each repository."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ground.errors import AccessError, InvalidInputError, NotFoundError, RefusedError
from ground.names import RepoId
from orderkit.adapters.forges.calls import (
    FORBIDDEN,
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
from orderkit.adapters.github.team_defaults import ALL, TeamDefaults
from orderkit.ports.forge import ForgeUser, TeamRight

_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,98}\Z")
"""Names of teams that GitHub keeps as they are."""
_OWNERS = "owners"
_PERMISSIONS = {TeamRight.READ: "pull", TeamRight.WRITE: "push", TeamRight.ADMIN: "admin"}


@dataclass(frozen=True, slots=True)
class _Team:
    """The state a team should have. Names are lower case: GitHub ignores their case."""

    org: str
    name: str
    right: TeamRight
    members: frozenset[str]
    repositories: frozenset[str] | None

    @property
    def path(self) -> str:
        return path_of("orgs", self.org, "teams", self.name)

    @property
    def description(self) -> str:
        return ALL if self.repositories is None else ""

    @property
    def permission(self) -> str:
        return _PERMISSIONS[self.right]


class GitHubAccess(TeamDefaults):
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
            InvalidInputError: The forge would change the team's name.
            RefusedError: `team` is called as if it were the owners.
        """
        if team.lower() == _OWNERS:
            raise RefusedError(f"{org}: the team of owners is not changed", hint="name another")
        if not _SLUG.match(team.lower()):
            raise InvalidInputError("team", team, "is refused: letters, digits and dashes only")
        names = None if repositories is None else frozenset(name.lower() for name in repositories)
        logins = frozenset(name.lower() for name in members)
        target = _Team(org, team.lower(), right, logins, names)
        doing = f"set up team {team} of {org}"
        existing = settle(
            lambda _: self._team(target), lambda: self._new_team(target, doing), doing
        )
        self._members(target, remove=True)
        kept = (existing.get("description") or "", existing.get("permission"))
        if kept != (target.description, target.permission):
            settle(lambda _: None, lambda: self._edit_team(target, doing), doing)
        self._repositories(target, doing)
        self._members(target, remove=False)

    def members(self, org: str, team: str = "") -> tuple[ForgeUser, ...]:
        """Return the members of an organisation's team, or of all of it; see the port."""
        team_parts = ("teams", team.lower()) if team else ()
        parts = ("orgs", org, *team_parts, "members")
        try:
            found = list(self._pages(path_of(*parts), {}, f"list the members of {org}"))
        except NotFoundError:
            return ()
        return tuple(ForgeUser(number_in(x, "id"), text_in(x, "login")) for x in found)

    def _team(self, target: _Team) -> Found | None:
        doing = f"read team {target.name} of {target.org}"
        found = self._optional(target.path, doing)
        if found is None and self._optional(path_of("orgs", target.org), doing) is None:
            raise NotFoundError(f"there is no organisation {target.org}")
        return found

    def _new_team(self, target: _Team, doing: str) -> Found:
        body = {
            "name": target.name,
            "description": target.description,
            "privacy": "closed",
        }
        answer = self._http.send("POST", path_of("orgs", target.org, "teams"), body=body)
        if answer.status == INVALID and self._optional(target.path, doing) is None:
            raise InvalidInputError("team", target.name, f"is refused: {answer.text}")
        if answer.status in (MISSING, FORBIDDEN):
            raise AccessError(
                f"no right: {doing}: {answer.text}", hint="ask an owner of the organisation"
            )
        return object_in(checked(answer, doing), doing)

    def _edit_team(self, target: _Team, doing: str) -> bool:
        body = {"description": target.description, "permission": target.permission}
        return done(self._http.send("PATCH", target.path, body=body), doing)

    def _members(self, target: _Team, *, remove: bool) -> None:
        doing = f"list the members of team {target.name}"
        current = {
            text_in(entry, "login").lower()
            for entry in self._pages(f"{target.path}/members", {}, doing)
        }
        names = current - target.members if remove else target.members - current
        for name in sorted(names):
            path = f"{target.path}/memberships{path_of(name)}"
            doing = f"member {name} of team {target.name}"
            self._set(path, doing, f"there is no user {name}", remove=remove, body={})

    def _repositories(self, target: _Team, doing: str) -> None:
        current = {
            text_in(entry, "name").lower(): _right_in(entry)
            for entry in self._pages(f"{target.path}/repos", {}, doing)
        }
        names = target.repositories
        if names is None:
            path = path_of("orgs", target.org, "repos")
            names = frozenset(text_in(x, "name").lower() for x in self._pages(path, {}, doing))
        for name in sorted(current.keys() - names):
            self._repository_of(target, name, remove=True)
        for name in sorted(names):
            if current.get(name) != target.permission:
                self._repository_of(target, name, remove=False)

    def _repository_of(self, target: _Team, name: str, *, remove: bool) -> None:
        repo = RepoId(target.org, name)
        path = f"{target.path}/repos{path_of(repo.owner, repo.name)}"
        body = {"permission": target.permission}
        missing = f"there is no repository {repo}"
        self._set(path, f"repository {name}", missing, remove=remove, body=body)

    def _set(
        self, path: str, doing: str, missing: str, *, remove: bool, body: dict[str, str]
    ) -> None:
        """Put or delete one entry; both are safe to repeat."""

        def act() -> bool:
            method, sent = ("DELETE", None) if remove else ("PUT", body)
            answer = self._http.send(method, path, body=sent)
            if answer.status == MISSING and not remove:
                raise NotFoundError(missing)
            return answer.status == MISSING or done(answer, doing)

        settle(lambda _: None, act, doing)


def _right_in(entry: Found) -> str:
    rights = entry.get("permissions") or {}
    return next((name for name in ("admin", "push", "pull") if rights.get(name)), "")
