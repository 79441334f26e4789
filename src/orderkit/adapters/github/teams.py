"""
Access on GitHub: teams with their right on each repository, and who besides us can write.

`GitHubAccess` has the members of teams, and their right on each repository.

`TeamDefaults` has teams that have every repository of their organisation, also those made later.
GitHub has no such teams. Ours carry a mark in their description, and each repository that we make
is given to them: one of them by the request that makes it.

`Grants` says who besides us can write to an organisation or repository, or learns of pushes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from ground.errors import AccessError, InvalidInputError, NotFoundError
from ground.names import RepoId
from orderkit.adapters.forges.access import (
    AccessCalls,
    Holder,
    SharedTeams,
    Team,
    grants,
    stranger,
)
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
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.github.reading import GitHubReading
from orderkit.adapters.github.transport import GitHubCalls
from orderkit.ports.access import AccessGrant, AccessRight
from orderkit.ports.forge import ForgeUser, Repository, TeamRight

ALL = "Has every repository of this organisation (kept by Orderkit)"
"""The description of such a team."""


class TeamDefaults(GitHubCalls):
    """What making a repository has to know of teams."""

    def _teams_of_all(self, org: str) -> list[Found]:
        doing = f"list the teams of {org}"
        try:
            teams = list(self._pages(path_of("orgs", org, "teams"), {}, doing))
        except (AccessError, NotFoundError):  # making the repository says so
            return []
        return [team for team in teams if team.get("description") == ALL]

    def _add_repository(self, team: Found, repo: RepoId, right: str, doing: str) -> bool:
        """Give a team a right on a repository: ``pull``, ``push`` or ``admin``."""
        parts = ("orgs", repo.owner, "teams", str(team["slug"]), "repos", repo.owner, repo.name)
        answer = self._http.send("PUT", path_of(*parts), body={"permission": right})
        return done(answer, doing)


_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,98}\Z")
"""Names of teams that GitHub keeps as they are."""
_PERMISSIONS = {TeamRight.READ: "pull", TeamRight.WRITE: "push", TeamRight.ADMIN: "admin"}


class GitHubAccess(TeamDefaults, SharedTeams):
    """The part of the port about teams."""

    memberships: ClassVar[str] = "memberships"
    membership: ClassVar[Found | None] = {}

    def _team_name(self, team: str) -> str:
        if not _SLUG.match(team.lower()):
            raise InvalidInputError("team", team, "is refused: letters, digits and dashes only")
        return team.lower()

    def members(self, org: str, team: str = "") -> tuple[ForgeUser, ...]:
        """Return the members of an organisation's team, or of all of it; see the port."""
        team_parts = ("teams", team.lower()) if team else ()
        parts = ("orgs", org, *team_parts, "members")
        try:
            found = list(self._pages(path_of(*parts), {}, f"list the members of {org}"))
        except NotFoundError:
            return ()
        return tuple(ForgeUser(number_in(x, "id"), text_in(x, "login")) for x in found)

    def _team(self, target: Team) -> Found | None:
        doing = f"read team {target.name} of {target.org}"
        found = self._optional(self._team_path(target, {}), doing)
        if found is None and self._optional(path_of("orgs", target.org), doing) is None:
            raise NotFoundError(f"there is no organisation {target.org}")
        return found

    def _new_team(self, target: Team, doing: str) -> Found:
        description = self._wanted(target)["description"]
        body = {"name": target.name, "description": description, "privacy": "closed"}
        answer = self._http.send("POST", path_of("orgs", target.org, "teams"), body=body)
        path = self._team_path(target, {})
        if answer.status == INVALID and self._optional(path, doing) is None:
            raise InvalidInputError("team", target.name, f"is refused: {answer.text}")
        if answer.status in (MISSING, FORBIDDEN):
            raise AccessError(
                f"no right: {doing}: {answer.text}", hint="ask an owner of the organisation"
            )
        return object_in(checked(answer, doing), doing)

    def _team_path(self, target: Team, _: Found, /) -> str:
        return path_of("orgs", target.org, "teams", target.name)

    def _wanted(self, target: Team) -> Found:
        description = ALL if target.repositories is None else ""
        return {"description": description, "permission": _PERMISSIONS[target.right]}

    def _is_like(self, target: Team, found: Found) -> bool:
        now = {"description": found.get("description") or "", "permission": found.get("permission")}
        return now == self._wanted(target)

    def _set_repositories(self, path: str, target: Team, doing: str) -> None:
        current = {
            text_in(entry, "name").lower(): _right_in(entry)
            for entry in self._pages(f"{path}/repos", {}, doing)
        }
        names, body = target.repositories, {"permission": _PERMISSIONS[target.right]}
        if names is None:
            repos = self._pages(path_of("orgs", target.org, "repos"), {}, doing)
            names = frozenset(text_in(entry, "name").lower() for entry in repos)
        changed = {name for name in names if current.get(name) != body["permission"]}
        for name in (*sorted(current.keys() - names), *sorted(changed)):
            place = f"{path}/repos{path_of(target.org, name)}"
            missing = f"there is no repository {target.org}/{name}"
            self._set(place, f"repository {name}", missing, body, remove=name not in names)


def _right_in(entry: Found) -> str:
    rights = entry.get("permissions") or {}
    return next((name for name in ("admin", "push", "pull") if rights.get(name)), "")


_LEVELS: Mapping[str, AccessRight] = {
    "admin": "admin", "maintain": "write", "write": "write", "push": "write",
}  # fmt: skip


class Grants(GitHubReading, AccessCalls):
    """The part of the port that lists who has access."""

    def foreign_access(
        self,
        target: str | RepoId,
        seen: Repository | None = None,  # noqa: ARG002  it has not all that counts here
    ) -> tuple[AccessGrant, ...]:
        """
        Return every way in besides our own account. See the port.

        GitHub Apps that may write are holders, too: ``app:NAME:ID``.

        Raises:
            RefusedError: We are not even a member of the organisation.
        """
        holders = self._of_organisation(target) if isinstance(target, str) else self._of(target)
        return grants(target, holders, self.user())

    def _of_organisation(self, org: str) -> Iterator[Holder]:
        path, doing = path_of("orgs", org), f"list who has access to {org}"
        entry = self._optional(path, doing)
        if entry is None:
            return
        self._refuse_strangers(org)
        for person in self._pages(f"{path}/members", {"role": "admin"}, doing):
            yield text_in(person, "login"), "owner"
        base = _LEVELS.get(str(entry.get("default_repository_permission")))
        if base:
            for person in self._pages(f"{path}/members", {}, doing):
                yield text_in(person, "login"), base
        for team in self._pages(f"{path}/teams", {}, doing):
            right = _LEVELS.get(str(team.get("permission")))
            if right:
                members = f"{path}/teams{path_of(text_in(team, 'slug'))}/members"
                for person in self._pages(members, {}, doing):
                    yield text_in(person, "login"), right
        yield from self._listeners(path)
        for app in self._optional_list(f"{path}/installations", "installations"):
            right = _app_right(app)
            is_ours = self._http.app is not None and app.get("app_id") == self._http.app.app_id
            if right and not is_ours:
                yield f"app:{app.get('app_slug')}:{app.get('app_id')}", right

    def _refuse_strangers(self, org: str) -> None:
        """
        Refuse an organisation that we do not belong to.

        Raises:
            RefusedError: We do not.
        """
        if self._http.app is not None:
            self._http.app.token(org, self._http.as_app)  # raises if the App is not installed there
            return
        me = self.user()
        answer = self._http.get(path_of("orgs", org, "memberships", me))
        if not answer.ok:
            raise stranger(org, me)

    def _of(self, repo: RepoId) -> Iterator[Holder]:
        path, doing = self._path(repo), f"list who has access to {repo}"
        entry = self._optional(path, doing)
        if entry is None:
            return
        owner = entry.get("owner") or {}
        if owner.get("type") == "User":
            yield text_in(owner, "login"), "owner"
        if entry.get("mirror_url"):
            yield f"mirror:{entry.get('mirror_url')}", "write"
        direct = {"affiliation": "direct"}
        for person in self._pages(f"{path}/collaborators", direct, doing):
            right = next((r for k, r in _LEVELS.items() if _may(person, k)), None)
            if right:
                yield text_in(person, "login"), right
        yield from self._keys(path, "id")
        yield from self._listeners(path)


def _may(person: Found, level: str) -> bool:
    return bool((person.get("permissions") or {}).get(level))


def _app_right(app: Found) -> AccessRight | None:
    """Return what an installed App may do: write, or learn of pushes."""
    rights = app.get("permissions") or {}
    if "write" in (rights.get("contents"), rights.get("administration"), rights.get("workflows")):
        return "write"
    return "listen" if "push" in (app.get("events") or ()) else None
