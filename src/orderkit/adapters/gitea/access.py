"""
Teams and access tokens on Gitea.

Called through ``client.GiteaForge``; the docstrings of ``ports.access.ForgeAccess`` hold.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from orderkit.adapters.gitea.answers import GarbledError, refusal
from orderkit.adapters.gitea.calls import (
    BAD,
    CREATED,
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
from orderkit.adapters.gitea.turns import ROUNDS, UNCLEAR, pauses, settle
from orderkit.core.errors import (
    AccessError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    RemoteError,
)
from orderkit.core.secrets import register
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
    """The part of the port about teams and tokens."""

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

    def ensure_token(
        self, user: str, name: str, scopes: Sequence[str], *, replace: bool = False
    ) -> str | None:
        """
        Make sure the user has an access token of that name. Idempotent. See the port.

        Raises:
            RefusedError: One of that name exists with other scopes, and not `replace`.
            InvalidInputError: The forge refuses name or scopes.
            AccessError: We have no user and password.
        """
        if not self._http.has_password:
            raise AccessError(
                f"make token {name}: needs user and password, a token makes no tokens",
                hint="connect with ORDERKIT_FORGE_USER and ORDERKIT_FORGE_PASSWORD",
            )
        return _Token(self, path_of("users", user, "tokens"), name, scopes, replace).run()


@dataclass(slots=True)
class _Token:
    """One token that is made sure of. A secret whose answer was lost is of no use to anybody."""

    calls: GiteaAccess
    path: str
    name: str
    scopes: Sequence[str]
    replace: bool
    begun: bool = False
    """Whether anything was sent that changes something."""
    lost: bool = False
    """Whether a token may have been made whose secret nobody knows."""

    def run(self) -> str | None:
        waits = pauses()
        problem: Exception = RemoteError(f"make token {self.name}: another process makes it too")
        for _ in range(ROUNDS):
            try:
                found = self._named()
                if found is not None and not self.replace and not self.lost:
                    self._accept(found)
                    return None
                self.begun = True
                if found is not None:
                    self._delete(found)
                if secret := self._make():
                    return secret
            except UNCLEAR as error:
                if not self.begun:
                    raise
                problem = error
            time.sleep(next(waits))
        raise problem

    def _make(self) -> str:
        """Return the secret, or "" if another process was faster."""
        try:
            return self._create()
        except UNCLEAR:
            self.lost = True
            raise
        except OrderkitError as error:
            if self._named() is None:
                raise
            self.lost = True
            raise GarbledError(f"make token {self.name}: refused and made") from error

    def _named(self) -> Found | None:
        found = self.calls._pages(self.path, {}, "list access tokens")  # noqa: SLF001  one module
        return next((each for each in found if each.get("name") == self.name), None)

    def _accept(self, found: Found) -> None:
        has = _normal(found.get("scopes") or ())
        if has != _normal(self.scopes):
            raise RefusedError(
                f"token {self.name} exists with scopes {', '.join(sorted(has))}",
                hint="replace it, or choose another name",
            )

    def _delete(self, found: Found) -> None:
        path = f"{self.path}/{number_in(found, 'id')}"
        answer = self.calls._http.send("DELETE", path)  # noqa: SLF001
        if answer.status != MISSING:
            done(answer, f"remove token {self.name}")

    def _create(self) -> str:
        """Return the secret, or "" if another process was faster."""
        body = {"name": self.name, "scopes": list(self.scopes)}
        answer = self.calls._http.send("POST", self.path, body=body)  # noqa: SLF001
        if answer.status == CREATED:
            secret = text_in(object_in(answer, "make a token"), "sha1")
            register(secret)
            return secret
        if answer.status == BAD and "used already" in answer.text:
            return ""
        if answer.status in (BAD, INVALID):
            shown = f"{self.name}: {', '.join(self.scopes)}"
            raise InvalidInputError("token", shown, f"is refused: {answer.text}")
        raise refusal(answer, f"make token {self.name}")


def _normal(scopes: Collection[str]) -> frozenset[str]:
    """Return the scopes without those that others include, as Gitea stores them."""
    if "all" in scopes:
        return frozenset({"all"})
    written = {scope.removeprefix("write:") for scope in scopes if scope.startswith("write:")}
    return frozenset(scope for scope in scopes if scope.removeprefix("read:") not in written)
