"""
Who may do what: credentials of a request, token scopes, rights on a repository.

The order of refusals is Gitea's: bad credentials 401, missing scope 403, hidden repository
404, no write right 403, archived 423.

Called by ``api.calls`` for every request and by the endpoints that need a repository.
"""

from __future__ import annotations

import base64
import binascii
from enum import IntEnum

from starlette.requests import Request

from orderkit.adapters.embedded.forge.accounts import ANONYMOUS, Accounts, Actor
from orderkit.adapters.embedded.forge.api.calls import ApiError, Call
from orderkit.adapters.embedded.forge.registry import RepoRow


class Right(IntEnum):
    """What somebody may do with a repository."""

    NONE = 0
    READ = 1
    WRITE = 2
    ADMIN = 3


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
        problem = "invalid username, password or token"
    elif scheme == "token" or scheme.lower() == "bearer":
        actor = accounts.check_token(value.strip())
        problem = "user does not exist [uid: 0, name: ]"
    else:
        return ANONYMOUS
    if actor is None:
        raise ApiError(401, problem)
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


def right_on(accounts: Accounts, actor: Actor, repo: RepoRow) -> Right:
    """Return what the actor may do with a repository, archived or not."""
    account = actor.account
    if account is None:
        return Right.NONE if repo.private else Right.READ
    owns = repo.owner_id == account.id or accounts.is_owner(repo.owner_id, account.id)
    if account.admin or owns:
        return Right.ADMIN
    return Right.NONE if repo.private else Right.READ


def repository(call: Call, *, suffix: str = "") -> RepoRow:
    """
    Return the repository of the path if the caller may read it.

    Args:
        suffix: What may follow its name: pages answer at the clone address too, the API does not.

    Raises:
        ApiError: 404, missing or hidden; 403, a public-only token on a private one.
    """
    name = call.param("repo").removesuffix(suffix)
    repo = call.forge.registry.find(call.param("owner"), name)
    if repo is None or right_on(call.forge.accounts, call.actor, repo) < Right.READ:
        raise ApiError(404)
    if repo.private and call.actor.scopes and "public-only" in call.actor.scopes:
        raise ApiError(403, "token scope is limited to public repos")
    return repo


def writable(call: Call, *, refusal: str = "is archived") -> RepoRow:
    """
    Return the repository of the path if the caller may write to it now.

    Raises:
        ApiError: 401, 403, 404 as for reading; 423, it is archived.
    """
    repo = maintained(call)
    refuse_archived(repo, refusal)
    return repo


def maintained(call: Call) -> RepoRow:
    """
    Return the repository of the path if the caller may write to it, archived or not.

    Raises:
        ApiError: 401, 403, 404 as for reading.
    """
    return _with_right(call, Right.WRITE, "user should have a permission to write to a repo")


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


def _with_right(call: Call, needed: Right, refusal: str) -> RepoRow:
    repo = repository(call)
    if call.actor.account is None:
        raise ApiError(401, "token is required")
    if right_on(call.forge.accounts, call.actor, repo) < needed:
        raise ApiError(403, refusal)
    return repo
