"""
Who may do what: credentials of a request, token scopes, rights on a repository.

The order of refusals is Gitea's: bad credentials 401, missing scope 403, hidden repository
404, no write right 403, archived 423.

Called by ``api.calls`` for every request and by the endpoints that need a repository.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace
from enum import IntEnum

from starlette.requests import Request

from orderkit.adapters.embedded.forge.accounts import ANONYMOUS, Account, Accounts, Actor
from orderkit.adapters.embedded.forge.api import moved
from orderkit.adapters.embedded.forge.api.calls import ApiError, Call
from orderkit.adapters.embedded.forge.registry import RepoRow
from orderkit.adapters.embedded.forge.teams import LEVELS, UNITS, highest

CODE = "repo.code"
ISSUES = "repo.issues"
NO_PART = "user should have specific read permission or be a repo admin or a site admin"


class Right(IntEnum):
    """What somebody may do with a repository."""

    NONE = 0
    READ = 1
    WRITE = 2
    ADMIN = 3


def impersonated(call: Call) -> Actor:
    """
    Return whom a site admin acts for: ``?sudo=`` or the header ``Sudo`` names a user.

    Raises:
        ApiError: 403, somebody else tries; 404, there is no such user.
    """
    name = call.query("sudo") or call.request.headers.get("sudo", "")
    if not name:
        return call.actor
    if not call.is_admin:
        raise ApiError(403, "Only administrators allowed to sudo.")
    found = call.forge.accounts.find(name)
    if found is None or found.is_org:
        raise ApiError(404)
    return replace(call.actor, account=found)


def authenticate(accounts: Accounts, request: Request) -> Actor:
    """
    Return who calls; `ANONYMOUS` without credentials.

    Raises:
        ApiError: 401, credentials of nobody.
    """
    header = request.headers.get("authorization", "")
    if not header:
        return ANONYMOUS
    scheme, _, value = header.partition(" ")
    if scheme.lower() == "basic":
        actor = accounts.check_basic(*_basic(value))
    elif scheme == "token" or scheme.lower() == "bearer":
        actor = accounts.check_token(value.strip())
    else:
        return ANONYMOUS
    if actor is None:
        raise ApiError(401, "invalid username, password or token")
    return actor


def require_own_site(request: Request) -> None:
    """
    Refuse a write that a page of another site made a signed-in browser send.

    Browsers add Basic credentials to such requests too; programs do not send the header.

    Raises:
        ApiError: 403, another site.
    """
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise ApiError(403, "a page of another site may not write here")


def _basic(value: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ApiError(401, "invalid basic credentials") from error
    name, _, password = text.partition(":")
    return name, password


def require_scope(actor: Actor, resource: str, *, write: bool) -> None:
    """
    Check the scopes of a token.

    Raises:
        ApiError: 403, none of them is enough.
    """
    if actor.scopes is None or not resource or "all" in actor.scopes:
        return
    wanted = [f"{'write' if write else 'read'}:{each}" for each in resource.split()]
    if not all(_has(actor.scopes, scope) for scope in wanted):
        raise ApiError(
            403,
            "token does not have at least one of required scope(s), "
            f"required=[{' '.join(wanted)}], token scope={','.join(sorted(actor.scopes))}",
        )


def _has(scopes: frozenset[str], wanted: str) -> bool:
    return wanted in scopes or wanted.replace("read:", "write:") in scopes


def right_on(accounts: Accounts, actor: Actor, repo: RepoRow, unit: str = CODE) -> Right:
    """
    Return what the actor may do with a repository, archived or not.

    Args:
        unit: The part of the repository that it is about; empty: any, whichever right is highest.
    """
    account, owner = actor.account, accounts.by_id(repo.owner_id)
    floor = Right.NONE if repo.private or not sees(accounts, account, owner) else Right.READ
    if account is None:
        return floor
    if account.admin or account.id == owner.id:
        return Right.ADMIN
    levels = [accounts.teams.collaboration(repo.id, account.id)]
    for team in accounts.teams.of_user_on(account.id, owner.id, repo.id):
        units = (unit,) if unit else UNITS
        levels += [team.settings.level(each) for each in units]
    return max(floor, Right(min(Right.ADMIN, LEVELS.index(highest(levels)))))


def sees(accounts: Accounts, account: Account | None, owner: Account) -> bool:
    """Say whether somebody may know that an account exists."""
    if owner.visibility == "public" or (account and owner.visibility == "limited"):
        return True
    return account is not None and (
        account.admin or account.id == owner.id or accounts.is_member(owner.id, account.id)
    )


def repository(call: Call, *, suffix: str = "", unit: str = CODE) -> RepoRow:
    """
    Return the repository of the path if the caller may read it.

    Args:
        suffix: What may follow its name: pages answer at the clone address too, the API does not.
        unit: The part of it that is asked for; empty: any.

    Raises:
        ApiError: 404, missing or hidden; 403, a part the caller may not read, or a public-only
            token on a private repository.
    """
    owner, name = call.param("owner"), call.param("repo").removesuffix(suffix)
    repo = call.forge.registry.find(owner, name)
    accounts, actor = call.forge.accounts, call.actor
    if repo is None:
        refuse_old_names(call, owner, name)
        raise ApiError(404)
    if right_on(accounts, actor, repo, "") < Right.READ:
        raise ApiError(404)
    if actor.public_only and is_hidden(accounts, repo):
        raise ApiError(403, "token scope is limited to public repos")
    if unit and right_on(accounts, actor, repo, unit) < Right.READ:
        raise ApiError(403, NO_PART)
    return repo


def refuse_old_names(call: Call, owner: str, name: str) -> None:
    """
    Lead on from the former address of a repository that the caller may read.

    Raises:
        ApiError: 301, the repository has another name; 307, its owner has.
    """
    account = call.forge.accounts.find(owner)
    if account is None:
        moved.refuse_old_account(call, owner)
        return
    found = call.forge.renames.repository_now(account.id, name)
    if found is not None and right_on(call.forge.accounts, call.actor, found, "") >= Right.READ:
        raise moved.led_on(call.request, 301, f"{owner}/{name}", found.full_name)


def is_hidden(accounts: Accounts, repo: RepoRow) -> bool:
    """Say whether a repository is kept from some: private, or of a private owner."""
    return repo.private or accounts.by_id(repo.owner_id).visibility == "private"


def writable(call: Call, *, refusal: str = "is archived") -> RepoRow:
    """
    Return the repository of the path if the caller may write to it now.

    Raises:
        ApiError: 401, 403, 404 as for reading; 423, it is archived.
    """
    repo = maintained(call)
    refuse_archived(repo, refusal)
    return repo


def maintained(call: Call, unit: str = CODE) -> RepoRow:
    """
    Return the repository of the path if the caller may write to it, archived or not.

    Raises:
        ApiError: 401, 403, 404 as for reading.
    """
    refusal = "user should have a permission to write to a repo"
    return _with_right(call, Right.WRITE, refusal, unit)


def refuse_archived(repo: RepoRow, refusal: str = "is archived") -> None:
    """
    Say that an archived repository is not to be changed.

    Raises:
        ApiError: 423, it is archived.
    """
    if repo.archived:
        raise ApiError(423, f"{repo.full_name} {refusal}")


def administered(call: Call) -> RepoRow:
    """
    Return the repository of the path if the caller is its admin, archived or not.

    Raises:
        ApiError: 401, 403, 404 as for reading.
    """
    return _with_right(
        call,
        Right.ADMIN,
        "user should be an owner or a collaborator with admin write of a repository",
    )


def _with_right(call: Call, needed: Right, refusal: str, unit: str = CODE) -> RepoRow:
    repo = repository(call, unit="")
    if call.actor.account is None:
        raise ApiError(401, "token is required")
    if right_on(call.forge.accounts, call.actor, repo, unit) < needed:
        raise ApiError(403, refusal)
    return repo
