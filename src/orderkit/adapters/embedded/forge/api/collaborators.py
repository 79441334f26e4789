"""
Endpoints of collaborators: users with a right of their own on one repository.

Observed on Gitea 1.26.0: the level is ``write`` unless said; unknown users are 422, unknown
levels 500; somebody may ask for the own level, admins of the repository for anybody's.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

from starlette.responses import Response

from orderkit.adapters.embedded.forge.accounts import Account, Actor
from orderkit.adapters.embedded.forge.api import access, fields
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    empty_answer,
    json_answer,
    paged,
)
from orderkit.adapters.embedded.forge.api.shapes import account_shape
from orderkit.adapters.embedded.forge.registry import RepoRow

LEVELS = ("read", "write", "admin")
ONLY_ADMINS = (
    "Only admins can query all permissions, repo admins can query all repo permissions, "
    "collaborators can query only their own"
)


def listed(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/collaborators."""
    repo, accounts = _repo(call), call.forge.accounts
    found = [accounts.by_id(each) for each in accounts.teams.collaborators(repo.id)]
    return paged(call, found, lambda account: account_shape(account, call.forge.base_url))


def show(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/collaborators/{name}: 204 or 404."""
    repo, account = _repo(call), _person(call)
    if call.forge.accounts.teams.collaboration(repo.id, account.id) == "none":
        raise ApiError(404)
    return empty_answer()


def permission(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/collaborators/{name}/permission."""
    repo, account, accounts = _repo(call), _person(call), call.forge.accounts
    asked_by = access.right_on(accounts, call.actor, repo)
    if call.user.id != account.id and asked_by < Right.ADMIN:
        raise ApiError(403, ONLY_ADMINS)
    level = _level(call, repo, account)
    return json_answer(
        {
            "permission": level,
            "role_name": level,
            "user": account_shape(account, call.forge.base_url),
        }
    )


def put(call: Call) -> Response:
    """PUT /repos/{owner}/{repo}/collaborators/{name}, for admins of the repository."""
    repo, body = access.administered(call), call.json()
    account, level = _person(call), fields.text(body, "permission") or "write"
    if level not in LEVELS:
        raise ApiError(500, "Invalid access mode")
    if account.id != repo.owner_id:
        call.forge.accounts.teams.set_collaborator(repo.id, account.id, level)
    return empty_answer()


def delete(call: Call) -> Response:
    """DELETE /repos/{owner}/{repo}/collaborators/{name}; 204 also for who is none."""
    repo, account = access.administered(call), _person(call)
    call.forge.accounts.teams.remove_collaborator(repo.id, account.id)
    return empty_answer()


def _repo(call: Call) -> RepoRow:
    repo, _ = access.repository(call, unit=""), call.user
    return repo


def _person(call: Call) -> Account:
    name = call.param("name")
    found = call.forge.accounts.find(name)
    if found is None or found.is_org:
        raise ApiError(422, f"user does not exist [uid: 0, name: {name}]")
    return found


def _level(call: Call, repo: RepoRow, account: Account) -> str:
    accounts = call.forge.accounts
    if account.admin or account.id == repo.owner_id or accounts.is_owner(repo.owner_id, account.id):
        return "owner"
    return access.right_on(accounts, Actor(account), repo).name.lower()
