"""
Endpoints of teams: of an organisation, their members and repositories, teams of a repository.

Observed on Gitea 1.26.0: below ``admin`` a team needs units, the answer then says
``permission: none``; a second team of the same name is 422 when made and 500 when renamed to; the
last owner cannot leave (500). Units named ``repo.ext_*`` are kept and mean nothing here.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from orderkit.adapters.embedded.forge.accounts import Account
from orderkit.adapters.embedded.forge.api import access, fields, orgs
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    empty_answer,
    json_answer,
    paged,
)
from orderkit.adapters.embedded.forge.api.repos import shape as repo_as_seen
from orderkit.adapters.embedded.forge.api.shapes import Json, account_shape, org_shape
from orderkit.adapters.embedded.forge.registry import RepoRow
from orderkit.adapters.embedded.forge.teams import UNITS, Team, TeamSettings, units_of
from orderkit.core.errors import ConflictError, RefusedError

NAME = re.compile(r"[A-Za-z0-9_.-]+\Z")
NAME_MAX = 255
RESERVED = ("new",)


def team_shape(team: Team, org: Account | None = None) -> Json:
    """Return a team, with its organisation if given."""
    settings = team.settings
    levels = (
        dict(settings.units or {})
        if settings.permission == "none"
        else dict.fromkeys(UNITS, settings.permission)
    )
    return {
        "id": team.id,
        "name": settings.name,
        "description": settings.description,
        "organization": org_shape(org) if org else None,
        "includes_all_repositories": settings.all_repositories,
        "permission": settings.permission,
        "units": list(levels) or None,
        "units_map": levels,
        "can_create_org_repo": settings.may_create,
    }


# Teams of an organisation


def listed(call: Call) -> Response:
    """GET /orgs/{org}/teams, for members."""
    org = orgs.joined(call)
    return paged(call, call.forge.accounts.teams.of(org.id), team_shape)


def search(call: Call) -> Response:
    """GET /orgs/{org}/teams/search?q=, for members."""
    org, wanted = orgs.joined(call), call.query("q").lower()
    found = [
        team
        for team in call.forge.accounts.teams.of(org.id)
        if wanted in team.settings.name.lower()
    ]
    return json_answer(
        {"ok": True, "data": [team_shape(team) for team in found]},
        headers={"X-Total-Count": str(len(found))},
    )


def create(call: Call) -> Response:
    """POST /orgs/{org}/teams, for owners."""
    org = orgs.joined(call)
    orgs.owned(call)
    body = call.json()
    settings = TeamSettings(
        name=_name(fields.required_text(body, "name", "Name")),
        description=fields.text(body, "description"),
        all_repositories=bool(fields.optional_flag(body, "includes_all_repositories")),
        may_create=bool(fields.optional_flag(body, "can_create_org_repo")),
    )
    units = _units(body)
    if fields.text(body, "permission") == "admin":
        settings = replace(settings, permission="admin")
    elif units is None:
        raise ApiError(500, "units permission should not be empty")
    try:
        team = call.forge.accounts.teams.create(org.id, replace(settings, units=units))
    except ConflictError as error:
        raise ApiError(422, str(error)) from error
    return json_answer(team_shape(team, org), 201)


def of_current(call: Call) -> Response:
    """GET /user/teams."""
    accounts = call.forge.accounts
    found = accounts.teams.of_user(call.user.id)
    return paged(call, found, lambda team: team_shape(team, accounts.by_id(team.org_id)))


def show(call: Call) -> Response:
    """GET /teams/{id}, for its members and owners."""
    team = _team(call)
    return json_answer(team_shape(team, call.forge.accounts.by_id(team.org_id)))


def edit(call: Call) -> Response:
    """PATCH /teams/{id}, for owners: what is given. The owners' rights stay."""
    team, body = _led(call), call.json()
    settings = replace(
        team.settings,
        name=_name(fields.text(body, "name") or team.settings.name),
        description=_given(fields.optional_text(body, "description"), team.settings.description),
        may_create=team.owns
        or _given(fields.optional_flag(body, "can_create_org_repo"), team.settings.may_create),
    )
    permission, units = fields.text(body, "permission"), _units(body)
    if permission and not team.owns:
        everything = fields.optional_flag(body, "includes_all_repositories")
        settings = replace(
            settings,
            permission="admin" if permission == "admin" else "none",
            all_repositories=_given(everything, settings.all_repositories),
        )
    if units is not None and not team.owns:
        settings = replace(settings, units=units)
    try:
        changed = call.forge.accounts.teams.change(team, settings)
    except ConflictError as error:
        raise ApiError(500, str(error)) from error
    return json_answer(team_shape(changed))


def delete(call: Call) -> Response:
    """DELETE /teams/{id}, for owners. Gitea lets the owners' team go too; this forge does not."""
    team = _led(call)
    if team.owns:
        raise ApiError(403, "the team of owners is not to be deleted")
    call.forge.accounts.teams.delete(team)
    return empty_answer()


def _name(name: str) -> str:
    if len(name) > NAME_MAX:
        raise ApiError(422, "[Name]: MaxSize")
    if not NAME.match(name):
        raise ApiError(422, "[Name]: AlphaDashDot")
    if name.lower() in RESERVED:
        raise ApiError(500, f"name is reserved [name: {name}]")
    return name


def _units(body: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the levels per unit that a body asks for; None if it says nothing about units."""
    by_unit, names = fields.text_mapping(body, "units_map"), fields.texts(body, "units")
    if by_unit:
        return units_of(by_unit)
    if names:
        return units_of(dict.fromkeys(names, fields.text(body, "permission")))
    return None


def _given(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _team(call: Call) -> Team:
    """Return the team of the path for a member of it, an owner or a site admin."""
    user, accounts = call.user, call.forge.accounts
    team = accounts.teams.find(call.path_number("team"))
    if team is None:
        raise ApiError(404)
    if user.admin or accounts.is_owner(team.org_id, user.id):
        return team
    if user.id not in accounts.teams.members(team):
        member = accounts.is_member(team.org_id, user.id)
        raise ApiError(403, "Must be a team member") if member else ApiError(404)
    return team


def _led(call: Call) -> Team:
    """Return the team of the path for an owner or a site admin; others are told 404."""
    team = _team(call)
    if not call.user.admin and not call.forge.accounts.is_owner(team.org_id, call.user.id):
        raise ApiError(404)
    return team


# Members of a team


def members(call: Call) -> Response:
    """GET /teams/{id}/members."""
    accounts = call.forge.accounts
    found = [accounts.by_id(each) for each in accounts.teams.members(_team(call))]
    return paged(call, found, lambda account: account_shape(account, call.forge.base_url))


def member(call: Call) -> Response:
    """GET /teams/{id}/members/{name}."""
    team, account = _team(call), orgs.person(call)
    if account.id not in call.forge.accounts.teams.members(team):
        raise ApiError(404)
    return json_answer(account_shape(account, call.forge.base_url))


def add_member(call: Call) -> Response:
    """PUT /teams/{id}/members/{name}, for owners."""
    team, account = _led(call), orgs.person(call)
    call.forge.accounts.teams.add_member(team, account.id)
    return empty_answer()


def remove_member(call: Call) -> Response:
    """DELETE /teams/{id}/members/{name}, for owners; 204 also for who is none."""
    team, account = _led(call), orgs.person(call)
    try:
        call.forge.accounts.teams.remove_member(team, account.id)
    except RefusedError as error:
        raise ApiError(500, str(error)) from error
    return empty_answer()


# Repositories of a team


def repositories(call: Call) -> Response:
    """GET /teams/{id}/repos."""
    wanted = set(call.forge.accounts.teams.repositories(_team(call)))
    found = [repo for repo in call.forge.registry.all() if repo.id in wanted]
    return paged(call, found, lambda repo: repo_as_seen(call, repo))


def repository(call: Call) -> Response:
    """GET /teams/{id}/repos/{org}/{repo}."""
    team, repo = _team(call), _repo(call)
    if repo.id not in call.forge.accounts.teams.repositories(team):
        raise ApiError(404)
    return json_answer(repo_as_seen(call, repo))


def add_repository(call: Call) -> Response:
    """PUT /teams/{id}/repos/{org}/{repo}, for admins of the repository."""
    team, repo = _team(call), _given_away(call)
    call.forge.accounts.teams.add_repository(team, repo.id)
    return empty_answer()


def remove_repository(call: Call) -> Response:
    """DELETE /teams/{id}/repos/{org}/{repo}; 204 also for one it does not have."""
    team, repo = _team(call), _given_away(call)
    call.forge.accounts.teams.remove_repository(team, repo.id)
    return empty_answer()


def _repo(call: Call) -> RepoRow:
    team = _team(call)
    found = call.forge.registry.find(call.param("owner"), call.param("repo"))
    if found is None or found.owner_id != team.org_id:
        raise ApiError(404)
    return found


def _given_away(call: Call) -> RepoRow:
    repo = _repo(call)
    if access.right_on(call.forge.accounts, call.actor, repo) < Right.ADMIN:
        raise ApiError(403, "Must have admin-level access to the repository")
    return repo


# Teams of a repository


def of_repository(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/teams: not paged."""
    repo = _owned_by_org(call, access.repository(call, unit=""))
    found = call.forge.accounts.teams.on_repository(repo.owner_id, repo.id)
    return json_answer([team_shape(team) for team in found])


def on_repository(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/teams/{name}."""
    repo = _owned_by_org(call, access.repository(call, unit=""))
    team = _named(call, repo)
    if repo.id not in call.forge.accounts.teams.repositories(team):
        raise ApiError(404)
    return json_answer(team_shape(team))


def give_repository(call: Call) -> Response:
    """PUT /repos/{owner}/{repo}/teams/{name}, for admins of the repository."""
    repo = _owned_by_org(call, access.administered(call))
    team = _named(call, repo)
    if repo.id in call.forge.accounts.teams.repositories(team):
        raise ApiError(422, f"team '{team.settings.name}' is already added to repo")
    call.forge.accounts.teams.add_repository(team, repo.id)
    return empty_answer()


def take_repository(call: Call) -> Response:
    """DELETE /repos/{owner}/{repo}/teams/{name}; 422 if the team was not given it."""
    repo = _owned_by_org(call, access.administered(call))
    team = _named(call, repo)
    if not call.forge.accounts.teams.remove_repository(team, repo.id):
        raise ApiError(422, f"team '{team.settings.name}' was not added to repo")
    return empty_answer()


def _owned_by_org(call: Call, repo: RepoRow) -> RepoRow:
    if call.actor.account is None:
        raise ApiError(401, "token is required")
    if not repo.owner_is_org:
        raise ApiError(405, "repo is not owned by an organization")
    return repo


def _named(call: Call, repo: RepoRow) -> Team:
    name = call.param("team")
    found = call.forge.accounts.teams.named(repo.owner_id, name)
    if found is None:
        raise ApiError(
            404, f"team does not exist [org_id {repo.owner_id}, team_id 0, name: {name}]"
        )
    return found
