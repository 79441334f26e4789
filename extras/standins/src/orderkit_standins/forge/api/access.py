"""
Who may do what: credentials of a request, token scopes, rights on a repository or organisation.

The order of refusals is Gitea's: bad credentials 401, missing scope 403, hidden repository 404, no
write right 403, archived 423.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal
from urllib.parse import quote

from starlette.requests import Request

from orderkit_standins.forge.accounts import ANONYMOUS, Account, Accounts, Actor
from orderkit_standins.forge.api.calls import ApiError, Call
from orderkit_standins.forge.repositories import Repositories, Repository
from orderkit_standins.forge.teams import LEVELS, UNITS, Teams, highest

CODE = "repo.code"
ISSUES = "repo.issues"
NO_PART = "user should have specific read permission or be a repo admin or a site admin"
_MISSING = {
    2: "user should have a permission to write to a repo",
    3: "user should be an owner or a collaborator with admin write of a repository",
}


class Right(IntEnum):
    """What somebody may do with a repository."""

    NONE = 0
    READ = 1
    WRITE = 2
    ADMIN = 3


@dataclass(frozen=True, slots=True)
class Access:
    """Decides from accounts, teams and repositories what a caller may see and do."""

    accounts: Accounts
    teams: Teams
    repositories: Repositories

    def authenticate(self, request: Request) -> Actor:
        """
        Return who calls; `ANONYMOUS` without credentials.

        Raises:
            ApiError: 401, credentials of nobody.
        """
        header = request.headers.get("authorization", "")
        scheme, _, value = header.partition(" ")
        if scheme.lower() == "basic":
            actor = self.accounts.check_basic(*_name_and_password(value))
        elif scheme == "token" or scheme.lower() == "bearer":
            actor = self.accounts.check_token(value.strip())
        else:
            return ANONYMOUS
        if actor is None:
            raise ApiError(401, "invalid username, password or token")
        return actor

    # Accounts

    def sees(self, account: Account | None, owner: Account) -> bool:
        """Say whether somebody may know that an account exists."""
        if owner.visibility == "public" or (account and owner.visibility == "limited"):
            return True
        return account is not None and (
            account.admin or account.id == owner.id or self.teams.is_member(owner.id, account.id)
        )

    def account(self, call: Call) -> Account:
        """
        Return the user or organisation that the path names.

        Raises:
            ApiError: 404, there is none.
        """
        name = call.param("name")
        account = self.accounts.find(name)
        if account is None:
            raise ApiError(404, f"user redirect does not exist [name: {name}]")
        return account

    def user(self, call: Call, *, missing: int = 404) -> Account:
        """
        Return the user that the path names.

        Raises:
            ApiError: `missing`, there is none.
        """
        name = call.param("name")
        user = self.accounts.find_user(name)
        if user is None:
            text = f"user does not exist [uid: 0, name: {name}]"
            raise ApiError(missing, "" if missing == 404 else text, errors=[text])  # noqa: PLR2004
        return user

    def organisation(self, call: Call) -> Account:
        """
        Return the organisation of the path if the caller may see it.

        Raises:
            ApiError: 404, missing or hidden.
        """
        org = self.accounts.find(call.param("org"))
        if org is None or not org.is_org or not self.sees(call.actor.account, org):
            raise ApiError(404)
        return org

    def own_organisation(self, call: Call, *, role: Literal["member", "owner"]) -> Account:
        """
        Return the organisation of the path if the caller has a role in it or is a site admin.

        Raises:
            ApiError: 401, 404 as for reading; 403, somebody else.
        """
        org, user = self.organisation(call), call.user
        has_role = {"member": self.teams.is_member, "owner": self.teams.is_owner}[role]
        if not user.admin and not has_role(org.id, user.id):
            raise ApiError(403, f"Must be an organization {role}")
        return org

    # Repositories

    def right_on(self, actor: Actor, repo: Repository, unit: str = CODE) -> Right:
        """
        Return what the actor may do with a repository, archived or not.

        Args:
            actor: Who wants to.
            repo: The repository.
            unit: The part of it; empty: any, whichever right is highest.
        """
        account, owner = actor.account, self.accounts.by_id(repo.owner_id)
        floor = Right.NONE if repo.private or not self.sees(account, owner) else Right.READ
        if account is None:
            return floor
        if account.admin or account.id == owner.id:
            return Right.ADMIN
        levels = [self.teams.collaboration(repo.id, account.id)]
        for team in self.teams.of_user_on(account.id, owner.id, repo.id):
            levels += [team.settings.level(part) for part in ((unit,) if unit else UNITS)]
        return max(floor, Right(min(Right.ADMIN, LEVELS.index(highest(levels)))))

    def readable(self, call: Call, repos: list[Repository]) -> list[Repository]:
        """Return those that the caller may read."""
        return [repo for repo in repos if self.right_on(call.actor, repo, "") >= Right.READ]

    def repository(self, call: Call, *, suffix: str = "", unit: str = CODE) -> Repository:
        """
        Return the repository of the path if the caller may read it.

        Args:
            call: The request.
            suffix: What may follow its name: pages answer at the clone address too.
            unit: The part of it that is asked for; empty: any.

        Raises:
            ApiError: 404, missing or hidden; 301, renamed; 403, a part the caller may not read.
        """
        owner, name = call.param("owner"), call.param("repo").removesuffix(suffix)
        repo = self.repositories.find(owner, name)
        if repo is None:
            self.redirect_if_renamed(call.request, call.actor, owner, name)
            raise ApiError(404)
        if self.right_on(call.actor, repo, "") < Right.READ:
            raise ApiError(404)
        if unit and self.right_on(call.actor, repo, unit) < Right.READ:
            raise ApiError(403, NO_PART)
        return repo

    def redirect_if_renamed(self, request: Request, actor: Actor, owner: str, name: str) -> None:
        """
        Lead from the former name of a repository that the caller may read to its present one.

        Raises:
            ApiError: 301, the repository has another name.
        """
        account = self.accounts.find(owner)
        repo = self.repositories.renamed(account.id, name) if account else None
        if repo is None or self.right_on(actor, repo, "") < Right.READ:
            return
        path = request.url.path.replace(f"/{owner}/{name}", f"/{repo.full_name}", 1)
        query = f"?{request.url.query}" if request.url.query else ""
        raise ApiError(301, headers={"Location": quote(path) + query})

    def writable(self, call: Call, *, refusal: str = "is archived") -> Repository:
        """
        Return the repository of the path if the caller may write to it now.

        Raises:
            ApiError: 401, 403, 404 as for reading; 423, it is archived.
        """
        repo = self._with_right(call, Right.WRITE)
        refuse_archived(repo, refusal)
        return repo

    def administered(self, call: Call) -> Repository:
        """
        Return the repository of the path if the caller is its admin, archived or not.

        Raises:
            ApiError: 401, 403, 404 as for reading.
        """
        return self._with_right(call, Right.ADMIN)

    def _with_right(self, call: Call, required: Right) -> Repository:
        repo = self.repository(call, unit="")
        if self.right_on(Actor(call.user), repo) < required:
            raise ApiError(403, _MISSING[required])
        return repo


def refuse_archived(repo: Repository, refusal: str = "is archived") -> None:
    """
    Refuse to change an archived repository.

    Raises:
        ApiError: 423, it is archived.
    """
    if repo.archived:
        raise ApiError(423, f"{repo.full_name} {refusal}")


def _name_and_password(value: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ApiError(401, "invalid basic credentials") from error
    name, _, password = text.partition(":")
    return name, password


def require_scope(actor: Actor, scope: str, *, write: bool) -> None:
    """
    Check the scopes of a token, and that a caller who may only read does not write.

    Raises:
        ApiError: 403, none of them is enough, or the caller may only read.
    """
    if write and actor.account is not None and not actor.may_write:
        raise ApiError(403, f"{actor.account.name} may only read")
    if actor.scopes is None or not scope or "all" in actor.scopes:
        return
    verb = "write" if write else "read"
    required = [f"{verb}:{resource}" for resource in scope.split()]
    granted = actor.scopes | {s.replace("write:", "read:") for s in actor.scopes}
    if not granted.issuperset(required):
        raise ApiError(
            403,
            "token does not have at least one of required scope(s), "
            f"required=[{' '.join(required)}], token scope={','.join(sorted(actor.scopes))}",
        )
