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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ground.errors import AccessError, InvalidInputError, NotFoundError, RefusedError
from ground.names import RepoId
from orderkit.adapters.forges.answers import settle
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
        # removed first, added last: who leaves gets no wider right, and who joins not the old one
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


_RIGHTS: tuple[AccessRight, ...] = ("owner", "admin", "write", "listen")
"""The highest first."""
_LEVELS: Mapping[str, AccessRight] = {
    "admin": "admin", "maintain": "write", "write": "write", "push": "write",
}  # fmt: skip
_Holder = tuple[str, AccessRight]


class Grants(GitHubReading):
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
        me = self.user().lower()
        rights: dict[str, AccessRight] = {}
        for holder, right in holders:
            if holder.lower() != me:
                rights[holder] = min(right, rights.get(holder, right), key=_RIGHTS.index)
        return tuple(AccessGrant(str(target), *entry) for entry in sorted(rights.items()))

    def _of_organisation(self, org: str) -> Iterator[_Holder]:
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
        yield from self._machines(path)
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
            raise RefusedError(
                f"organisation {org} belongs to somebody else: our account {me} is no member of it",
                hint="choose another name, or have its owner remove it",
            )

    def _of(self, repo: RepoId) -> Iterator[_Holder]:
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
        for key in self._optional_list(f"{path}/keys"):
            right = "listen" if key.get("read_only") else "write"
            yield f"deploy-key:{key.get('title')}:{key.get('id')}", right
        yield from self._machines(path)

    def _machines(self, path: str) -> Iterator[_Holder]:
        """Yield runners and webhooks; a name can be given to another runner, its id cannot."""
        for runner in self._optional_list(f"{path}/actions/runners", "runners"):
            yield f"runner:{runner.get('name')}:{runner.get('id')}", "write"
        for hook in self._optional_list(f"{path}/hooks"):
            yield f"webhook:{(hook.get('config') or {}).get('url')}", "listen"

    def _optional_list(self, path: str, inside: str = "") -> list[Found]:
        """Return a list that only admins see, and that a forge without the feature lacks."""
        with suppress(AccessError, NotFoundError):
            return list(self._pages(path, {}, f"read {path}", inside=inside))
        return []


def _may(person: Found, level: str) -> bool:
    return bool((person.get("permissions") or {}).get(level))


def _app_right(app: Found) -> AccessRight | None:
    """Return what an installed App may do: write, or learn of pushes."""
    rights = app.get("permissions") or {}
    if "write" in (rights.get("contents"), rights.get("administration"), rights.get("workflows")):
        return "write"
    return "listen" if "push" in (app.get("events") or ()) else None
