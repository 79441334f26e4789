"""
Access on Gitea: teams, who besides us can write or learns of pushes, accounts that only read.

`GiteaAccess` has teams. `Grants` says who besides us can write to an organisation or repository, or
learns of pushes.

`GiteaReaders` makes accounts that may read one organisation and nothing else, for Argo CD. Gitea
has no token for one organisation: a token may do what its account may. So each organisation gets an
account of its own, restricted (it sees nothing public either) and a member of one team that may
read. Only a site admin can make accounts.

`ports.access.ForgeAccess` documents the contract.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ground.errors import AccessError, InvalidInputError, NotFoundError, RefusedError
from ground.names import RepoId
from ground.secrets import register
from orderkit.adapters.forges.answers import settle
from orderkit.adapters.forges.calls import (
    FORBIDDEN,
    INVALID,
    MISSING,
    Found,
    checked,
    done,
    list_in,
    number_in,
    object_in,
    text_in,
)
from orderkit.adapters.forges.transport import Credentials, path_of
from orderkit.adapters.gitea.calls import Calls
from orderkit.adapters.gitea.reading import GiteaReading
from orderkit.ports.access import AccessGrant, AccessRight
from orderkit.ports.forge import ForgeUser, ReaderAccount, Repository, TeamRight

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
        # removed first, added last: who leaves gets no wider right, and who joins not the old one
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


_RIGHTS: Mapping[str, AccessRight] = {"owner": "owner", "admin": "admin", "write": "write"}
"""Levels of Gitea that can write, the highest first."""


class Grants(GiteaReading):
    """The part of the port that lists who has access."""

    def foreign_access(
        self, target: str | RepoId, seen: Repository | None = None
    ) -> tuple[AccessGrant, ...]:
        """
        Return every way in besides our own account. See the port.

        Raises:
            RefusedError: We are not even a member of the organisation.
        """
        org = isinstance(target, str)
        own = self._of_organisation(target) if isinstance(target, str) else self._of(target, seen)
        path = path_of("orgs", target) if isinstance(target, str) else self._path(target)
        me = self.user().lower()
        rights: dict[str, AccessRight] = {}
        for holder, right in (*own, *self._machines(path, org=org)):
            if holder.lower() != me:
                highest = (right, rights.get(holder, right))
                rights[holder] = min(highest, key=[*_RIGHTS, "listen"].index)
        return tuple(AccessGrant(str(target), *entry) for entry in sorted(rights.items()))

    def _of_organisation(self, org: str) -> Iterator[tuple[str, AccessRight]]:
        doing = f"list the teams of {org}"
        try:
            teams = list(self._pages(path_of("orgs", org, "teams"), {}, doing))
        except NotFoundError:
            return
        except AccessError as error:
            raise RefusedError(
                f"organisation {org} belongs to somebody else: our account {self.user()} is no"
                " member of it",
                hint="choose another name, or have its owner remove it",
            ) from error
        for team in teams:
            right = _team_right(team)
            if right is None:
                continue
            path = path_of("teams", str(number_in(team, "id")), "members")
            for member in self._pages(path, {}, doing):
                yield text_in(member, "login"), right

    def _of(self, repo: RepoId, seen: Repository | None) -> Iterator[tuple[str, AccessRight]]:
        doing = f"list who has access to {repo}"
        repository = seen or self.repo(repo)
        if repository is None:
            return
        if self._optional(path_of("orgs", repo.owner), doing) is None:
            yield repository.owner, "owner"
        if repository.mirror_of:
            yield f"mirror:{repository.mirror_of}", "write"
        for person in self._pages(self._path(repo, "collaborators"), {}, doing):
            login = text_in(person, "login")
            level = self._object(self._path(repo, "collaborators", login, "permission"), doing)
            right = _RIGHTS.get(str(level.get("permission")))
            if right:
                yield login, right

    def _machines(self, path: str, *, org: bool) -> Iterator[tuple[str, AccessRight]]:
        """Yield runners, webhooks, keys and mirrors; a feature that is switched off has none."""
        for runner in self._optional_list(f"{path}/actions/runners", "runners"):
            # another runner or key can have its name or title, but not its id or fingerprint
            yield f"runner:{runner.get('name')}:{runner.get('id')}", "write"
        for hook in self._optional_list(f"{path}/hooks"):
            yield f"webhook:{(hook.get('config') or {}).get('url')}", "listen"
        if org:
            return
        for key in self._optional_list(f"{path}/keys"):
            right: AccessRight = "listen" if key.get("read_only") else "write"
            yield f"deploy-key:{key.get('title')}:{key.get('fingerprint')}", right
        for mirror in self._optional_list(f"{path}/push_mirrors"):
            yield f"push-mirror:{mirror.get('remote_address')}", "listen"

    def _optional_list(self, path: str, key: str = "") -> list[Found]:
        """Return a list that only admins see, and that a forge without the feature lacks."""
        doing = f"read {path}"
        with suppress(AccessError, NotFoundError):
            if not key:
                return list(self._pages(path, {}, doing))
            page = object_in(checked(self._http.get(path), doing), doing)
            return list_in(page.get(key) or [])
        return []


def _team_right(team: Found) -> AccessRight | None:
    """Return what a team may do; who may create repositories administers them."""
    levels = {str(team.get("permission")), *map(str, (team.get("units_map") or {}).values())}
    if team.get("can_create_org_repo"):
        levels.add("write")
    return next((right for level, right in _RIGHTS.items() if level in levels), None)


READERS = "argocd"
"""The organisation's team that the account is in."""
_ORG_MAX = 20
"""How much of the organisation's name the account's shows: Gitea allows 40 characters."""


class GiteaReaders(GiteaAccess):
    """The part of the port about accounts that read one organisation."""

    def add_reader(self, org: str) -> ReaderAccount:
        """
        Make an account that may read this organisation only, with a token. See the port.

        Raises:
            NotFoundError: No such organisation.
            AccessError: Our credentials may not make accounts.
        """
        doing = f"add an account that reads {org}"
        name = f"argocd-{org[:_ORG_MAX].rstrip('-_.')}-{secrets.token_hex(5)}"
        password = f"{secrets.token_urlsafe(32)}aA1!"
        register(password)
        body = {
            "username": name,
            "password": password,
            "email": f"{name}@noreply.invalid",
            "must_change_password": False,
            # it sees nothing public either, only what its team may
            "restricted": True,
            "visibility": "private",
        }
        answer = self._http.send("POST", "/admin/users", body=body)
        if answer.status == FORBIDDEN:
            raise AccessError(
                f"{doing}: {answer.text}",
                hint="use credentials of a forge admin (scope write:admin) for this command, or "
                "name a folder with a token for each team: forge.teamTokenFolder in platform.yaml",
            )
        checked(answer, doing)
        self.ensure_access(org, READERS, right=TeamRight.READ, members=[name])
        token = {"name": "argocd", "scopes": ["read:repository"]}
        own = Credentials(user=name, password=password)
        made = self._http.send("POST", path_of("users", name, "tokens"), body=token, as_=own)
        secret = text_in(object_in(checked(made, doing), doing), "sha1")
        register(secret)
        return ReaderAccount(name, secret)

    def remove_reader(self, org: str, name: str) -> None:
        """
        Remove the account and its token. Idempotent. See the port.

        Raises:
            AccessError: Our credentials may not remove accounts.
        """
        with suppress(NotFoundError):  # the organisation went before it
            self.ensure_access(org, READERS, right=TeamRight.READ, members=[])
        answer = self._http.send("DELETE", path_of("admin", "users", name))
        if answer.status != MISSING:
            done(answer, f"remove the account {name}")
