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
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain

from ground.errors import AccessError, InvalidInputError, NotFoundError
from ground.names import RepoId
from ground.secrets import register
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


class GiteaAccess(Calls, SharedTeams):
    """The part of the port about teams."""

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

    def _team(self, target: Team) -> Found | None:
        doing = f"list the teams of {target.org}"
        try:
            teams = list(self._pages(path_of("orgs", target.org, "teams"), {}, doing))
        except NotFoundError as error:
            raise NotFoundError(f"there is no organisation {target.org}") from error
        named = (team for team in teams if str(team.get("name")).lower() == target.name.lower())
        return next(named, None)

    def _new_team(self, target: Team, doing: str) -> Found:
        path = path_of("orgs", target.org, "teams")
        answer = self._http.send("POST", path, body=self._wanted(target))
        if answer.status == INVALID and "already exists" not in answer.text:
            raise InvalidInputError("team", target.name, f"is refused: {answer.text}")
        return object_in(checked(answer, doing), doing)

    def _team_path(self, _: Team, found: Found, /) -> str:
        return path_of("teams", str(number_in(found, "id")))

    def _wanted(self, target: Team) -> Found:
        level = target.right.value
        return {
            "name": target.name,
            "permission": level,
            "includes_all_repositories": target.repositories is None,
            "units_map": dict.fromkeys(UNITS, level),
        }

    def _is_like(self, target: Team, found: Found) -> bool:
        has_all, units = bool(found.get("includes_all_repositories")), found.get("units_map") or {}
        return has_all is (target.repositories is None) and all(
            units.get(unit) == target.right.value for unit in UNITS
        )

    def _set_repositories(self, path: str, target: Team, doing: str) -> None:
        if target.repositories is None:
            return
        doing = f"list the repositories of team {target.name}"
        current = {text_in(x, "name").lower() for x in self._pages(f"{path}/repos", {}, doing)}
        for name in sorted(current ^ target.repositories):
            missing = f"there is no repository {target.org}/{name}"
            place = f"{path}/repos{path_of(target.org, name)}"
            self._set(place, f"repository {name}", missing, None, remove=name in current)


_RIGHTS: Mapping[str, AccessRight] = {"owner": "owner", "admin": "admin", "write": "write"}
"""Levels of Gitea that can write, the highest first."""


class Grants(GiteaReading, AccessCalls):
    """The part of the port that lists who has access."""

    def foreign_access(
        self, target: str | RepoId, seen: Repository | None = None
    ) -> tuple[AccessGrant, ...]:
        """
        Return every way in besides our own account. See the port.

        Raises:
            RefusedError: We are not even a member of the organisation.
        """
        is_org, path = isinstance(target, str), self._place(target)
        own = self._of_organisation(target) if isinstance(target, str) else self._of(target, seen)
        machines = self._machines(path, org=is_org)
        return grants(target, chain(own, machines), self.user())

    def _of_organisation(self, org: str) -> Iterator[Holder]:
        doing = f"list the teams of {org}"
        try:
            teams = list(self._pages(path_of("orgs", org, "teams"), {}, doing))
        except NotFoundError:
            return
        except AccessError as error:
            raise stranger(org, self.user()) from error
        for team in teams:
            right = _team_right(team)
            if right is None:
                continue
            path = path_of("teams", str(number_in(team, "id")), "members")
            for member in self._pages(path, {}, doing):
                yield text_in(member, "login"), right

    def _of(self, repo: RepoId, seen: Repository | None) -> Iterator[Holder]:
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

    def _machines(self, path: str, *, org: bool) -> Iterator[Holder]:
        """Yield runners, webhooks, keys and mirrors; a feature that is switched off has none."""
        yield from self._listeners(path)
        if org:
            return
        # another key can have its title, but not its fingerprint
        yield from self._keys(path, "fingerprint")
        for mirror in self._optional_list(f"{path}/push_mirrors"):
            yield f"push-mirror:{mirror.get('remote_address')}", "listen"


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
