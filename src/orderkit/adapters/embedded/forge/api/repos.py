"""
Endpoints of repositories: create, show, change, delete, list.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from orderkit.adapters.embedded.forge import gitread
from orderkit.adapters.embedded.forge.accounts import Account
from orderkit.adapters.embedded.forge.api import access, events, fields, users
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    empty_answer,
    json_answer,
    paged,
)
from orderkit.adapters.embedded.forge.api.contents import make_first_commit
from orderkit.adapters.embedded.forge.api.orgs import organisation
from orderkit.adapters.embedded.forge.api.shapes import Json, repo_shape
from orderkit.adapters.embedded.forge.registry import DESCRIPTION_MAX, NewRepo, RepoRow
from orderkit.core.errors import ConflictError

DOTS = (".", "..")
"""Gitea answers 500 for these names."""


def shape(call: Call, repo: RepoRow) -> Json:
    """Return a repository as this caller sees it."""
    accounts = call.forge.accounts
    right = access.right_on(accounts, call.actor, repo)
    shown = repo_shape(repo, accounts.by_id(repo.owner_id), right, call.forge.base_url)
    return shown | call.forge.merge_settings.of(repo.id) | {"default_merge_style": "merge"}


def create_for_user(call: Call) -> Response:
    """POST /user/repos."""
    return _create(call, call.user)


def create_for_org(call: Call) -> Response:
    """POST /orgs/{org}/repos, for members whose team may create them; they administer it."""
    user, org = call.user, organisation(call)
    teams = call.forge.accounts.teams.of_user(user.id, org_id=org.id)
    if not user.admin and not any(team.settings.may_create for team in teams):
        raise ApiError(403, "User is not allowed to create repositories in this organization.")
    return _create(call, org)


def create_for_other(call: Call) -> Response:
    """POST /admin/users/{name}/repos, for site admins."""
    if not call.user.admin:
        raise ApiError(403, "user should be the site admin")
    owner = call.forge.accounts.find(call.param("name"))
    if owner is None:
        raise ApiError(404, "user redirect does not exist")
    return _create(call, owner)


def _create(call: Call, owner: Account) -> Response:
    body = call.json()
    name = fields.optional_text(body, "name")
    if not name:
        raise ApiError(422, "[Name]: Required")
    if name in DOTS:
        raise ApiError(500, f"name is invalid [{name}]")
    new = NewRepo(
        name=name,
        description=_description(body) or "",
        private=bool(fields.optional_flag(body, "private")),
        default_branch=fields.optional_text(body, "default_branch") or "main",
    )
    if not gitread.is_branch_name(new.default_branch):
        raise ApiError(422, f"[DefaultBranch]: GitRefName [{new.default_branch}]")
    if fields.optional_text(body, "object_format_name") not in (None, "", "sha1"):
        raise ApiError(422, "[ObjectFormatName]: this forge keeps sha1 repositories only")
    repo = call.forge.registry.create(owner, new)
    accounts = call.forge.accounts
    if access.right_on(accounts, call.actor, repo) < Right.ADMIN:
        accounts.teams.set_collaborator(repo.id, call.user.id, "admin")
    if fields.optional_flag(body, "auto_init"):
        make_first_commit(call, repo)
    events.repository_changed(call.forge, repo, "created", by=call.user)
    return json_answer(shape(call, repo), 201)


def show(call: Call) -> Response:
    """GET /repos/{owner}/{repo}."""
    return json_answer(shape(call, access.repository(call, unit="")))


def change(call: Call) -> Response:
    """PATCH /repos/{owner}/{repo}: name, description, private, archived, default_branch, …."""
    repo, body = access.administered(call), call.json()
    branch = fields.optional_text(body, "default_branch")
    if branch and branch not in gitread.heads(repo.path):
        raise ApiError(422, f"branch does not exist [name: {branch}]")
    description, name = _description(body), fields.optional_text(body, "name") or repo.repo.name
    private, archived = (fields.optional_flag(body, key) for key in ("private", "archived"))
    changed = call.forge.registry.update(
        _renamed(call, repo, name),
        description=description,
        private=private,
        archived=archived,
        default_branch=branch or None,
    )
    call.forge.merge_settings.change(repo.id, body)
    return json_answer(shape(call, changed))


def _renamed(call: Call, repo: RepoRow, name: str) -> RepoRow:
    if name == repo.repo.name:
        return repo
    try:
        return call.forge.renames.repository(repo, name)
    except ConflictError as error:
        raise ApiError(422, str(error)) from error


def delete(call: Call) -> Response:
    """DELETE /repos/{owner}/{repo}."""
    repo = access.administered(call)
    events.repository_changed(call.forge, repo, "deleted", by=call.user)
    call.forge.registry.delete(repo)
    return empty_answer()


def of_org(call: Call) -> Response:
    """GET /orgs/{org}/repos."""
    return _list(call, organisation(call))


def of_user(call: Call) -> Response:
    """GET /users/{name}/repos."""
    return _list(call, users.named(call))


def of_current(call: Call) -> Response:
    """GET /user/repos: what the caller owns or has a part in."""
    user = call.user
    found = [repo for repo in call.forge.registry.all() if used_by(call, repo, user.id)]
    return paged(call, visible(call, found), lambda repo: shape(call, repo))


def _list(call: Call, owner: Account) -> Response:
    seen = visible(call, call.forge.registry.all(owner_id=owner.id))
    return paged(call, seen, lambda repo: shape(call, repo))


def used_by(call: Call, repo: RepoRow, account_id: int) -> bool:
    """Say whether somebody owns a repository, collaborates on it, or is in a team that has it."""
    teams = call.forge.accounts.teams
    return (
        repo.owner_id == account_id
        or teams.collaboration(repo.id, account_id) != "none"
        or bool(teams.of_user_on(account_id, repo.owner_id, repo.id))
    )


def visible(call: Call, repos: list[RepoRow]) -> list[RepoRow]:
    """
    Return those that the caller may read.

    Also with a public-only token the private ones, as Gitea's lists do; its search does not.
    """
    accounts, actor = call.forge.accounts, call.actor
    return [repo for repo in repos if access.right_on(accounts, actor, repo, "") >= Right.READ]


def _description(body: dict[str, Any]) -> str | None:
    text: str | None = fields.optional_text(body, "description")
    if text is not None and len(text) > DESCRIPTION_MAX:
        raise ApiError(422, f"[Description]: MaxSize {DESCRIPTION_MAX}")
    return text
