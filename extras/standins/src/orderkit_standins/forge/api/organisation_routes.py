"""
Endpoints of organisations and their teams, of users and their tokens, and of the forge itself.

`OrganisationRoutes` has organisations and teams: who is in them, and what they may use.

Membership is never public here: outsiders are shown no members.

`UserRoutes` has the forge itself, users, and their access tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from starlette.responses import Response

from ground.errors import ConflictError, InvalidInputError, RefusedError
from orderkit_standins.forge.accounts import Account, Accounts
from orderkit_standins.forge.api.access import Access, Right
from orderkit_standins.forge.api.calls import (
    VERSION,
    ApiError,
    Call,
    Fields,
    empty_answer,
    json_answer,
    paged,
)
from orderkit_standins.forge.api.routes import API, route
from orderkit_standins.forge.api.shapes import Json, Shapes, organisation_shape
from orderkit_standins.forge.repositories import Repositories, Repository
from orderkit_standins.forge.teams import UNITS, Team, Teams, TeamSettings, known_units

VISIBILITIES = ("", "public", "limited", "private")
TEAM_NAME = re.compile(r"[A-Za-z0-9_.-]+\Z")
TEAM_NAME_MAX = 255
_ORG, _TEAM, _SCOPE = f"{API}/orgs/{{org}}", f"{API}/teams/{{team}}", "organization"


@dataclass(frozen=True, slots=True)
class OrganisationRoutes:
    """Endpoints of organisations and teams."""

    access: Access
    accounts: Accounts
    teams: Teams
    repositories: Repositories
    shapes: Shapes

    @route("POST", f"{API}/orgs", _SCOPE)
    def create(self, call: Call) -> Response:
        """Create an organisation; the caller becomes an owner. 422 if the name is taken."""
        body = call.fields()
        name, description = body.required("username", "UserName"), body.text("description")
        visibility = body.text("visibility")
        if visibility not in VISIBILITIES:
            raise ApiError(422, "[Visibility]: In")
        try:
            org = self.accounts.create_org(
                name, call.user, description=description, visibility=visibility or "public"
            )
        except ConflictError as error:
            raise ApiError(422, str(error)) from error
        return json_answer(organisation_shape(org), 201)

    @route("GET", _ORG, _SCOPE)
    def show(self, call: Call) -> Response:
        return json_answer(organisation_shape(self.access.organisation(call)))

    # Teams

    @route("GET", f"{_ORG}/teams", _SCOPE)
    def list_teams(self, call: Call) -> Response:
        org = self.access.own_organisation(call, role="member")
        return paged(call, self.teams.of_org(org.id), team_shape)

    @route("POST", f"{_ORG}/teams", _SCOPE)
    def create_team(self, call: Call) -> Response:
        org, body = self.access.own_organisation(call, role="owner"), call.fields()
        units = _units(body)
        # observed on Gitea 1.26.0: with units, the answer says none
        permission = "admin" if body.text("permission") == "admin" else "none"
        settings = TeamSettings(
            name=_team_name(body.required("name")),
            description=body.text("description"),
            permission=permission,
            units=units or {},
            all_repositories=body.flag("includes_all_repositories"),
            may_create=body.flag("can_create_org_repo"),
        )
        # observed on Gitea 1.26.0: below admin a team needs units
        if permission == "none" and units is None:
            raise ApiError(500, "units permission should not be empty")
        try:
            team = self.teams.create(org.id, settings)
        except ConflictError as error:
            raise ApiError(422, str(error)) from error
        return json_answer(team_shape(team, org), 201)

    @route("GET", _TEAM, _SCOPE)
    def show_team(self, call: Call) -> Response:
        team = self._team(call)
        return json_answer(team_shape(team, self.accounts.by_id(team.org_id)))

    @route("PATCH", _TEAM, _SCOPE)
    def edit_team(self, call: Call) -> Response:
        """Change what is given. The owners' rights stay."""
        team, body = self._team(call, to_change=True), call.fields()
        settings = team.settings
        changes: Json = {
            "name": _team_name(body.text("name") or settings.name),
            "description": body.optional("description", str),
        }
        permission = body.text("permission")
        if not team.owns:
            changes |= {"may_create": body.optional("can_create_org_repo", bool)}
            changes |= {"units": _units(body)}
        if permission and not team.owns:
            changes |= {"permission": "admin" if permission == "admin" else "none"}
            changes |= {"all_repositories": body.optional("includes_all_repositories", bool)}
        set_fields = {key: value for key, value in changes.items() if value is not None}
        try:
            changed = self.teams.change(team, replace(settings, **set_fields))
        except ConflictError as error:
            # observed on Gitea 1.26.0: a name that is taken is a 422 when made, a 500 here
            raise ApiError(500, str(error)) from error
        return json_answer(team_shape(changed))

    def _team(self, call: Call, *, to_change: bool = False) -> Team:
        """Return the team of the path for an owner or site admin; to look at, for its members."""
        team, user = self.teams.find(call.path_number("team")), call.user
        if team is None:
            raise ApiError(404)
        if user.admin or self.teams.is_owner(team.org_id, user.id):
            return team
        if to_change:
            raise ApiError(403, "Must be an organization owner")
        if user.id in self.teams.members(team):
            return team
        if self.teams.is_member(team.org_id, user.id):
            raise ApiError(403, "Must be a team member")
        raise ApiError(404)

    # Members of a team

    @route("GET", f"{_TEAM}/members", _SCOPE)
    def team_members(self, call: Call) -> Response:
        return paged(call, self.teams.members(self._team(call)), self.shapes.account_by_id)

    @route("PUT", f"{_TEAM}/members/{{name}}", _SCOPE)
    def add_member(self, call: Call) -> Response:
        team, user = self._team(call, to_change=True), self.access.user(call)
        self.teams.add_member(team, user.id)
        return empty_answer()

    @route("DELETE", f"{_TEAM}/members/{{name}}", _SCOPE)
    def remove_member(self, call: Call) -> Response:
        """Take somebody out of a team; 204 also for who is not in it."""
        team, user = self._team(call, to_change=True), self.access.user(call)
        try:
            self.teams.remove_member(team, user.id)
        except RefusedError as error:
            # observed on Gitea 1.26.0: the last owner cannot leave
            raise ApiError(500, str(error)) from error
        return empty_answer()

    # Repositories of a team

    @route("GET", f"{_TEAM}/repos", _SCOPE)
    def team_repositories(self, call: Call) -> Response:
        ids = set(self.teams.repositories(self._team(call)))
        repos = [repo for repo in self.repositories.all() if repo.id in ids]
        return paged(call, repos, lambda repo: self._repository_shape(call, repo))

    def _repository_shape(self, call: Call, repo: Repository) -> Json:
        return self.shapes.repository(repo, self.access.right_on(call.actor, repo))

    @route("PUT", f"{_TEAM}/repos/{{owner}}/{{repo}}", _SCOPE)
    def add_repository(self, call: Call) -> Response:
        team = self._team(call)
        self.teams.add_repository(team, self._administered(call, team).id)
        return empty_answer()

    @route("DELETE", f"{_TEAM}/repos/{{owner}}/{{repo}}", _SCOPE)
    def remove_repository(self, call: Call) -> Response:
        """Take a repository from a team; 204 also for one it does not have."""
        team = self._team(call)
        self.teams.remove_repository(team, self._administered(call, team).id)
        return empty_answer()

    def _administered(self, call: Call, team: Team) -> Repository:
        repo = self.repositories.find(call.param("owner"), call.param("repo"))
        if repo is None or repo.owner_id != team.org_id:
            raise ApiError(404)
        if self.access.right_on(call.actor, repo) < Right.ADMIN:
            raise ApiError(403, "Must have admin-level access to the repository")
        return repo


def team_shape(team: Team, org: Account | None = None) -> Json:
    """Return a team, with its organisation if given."""
    settings = team.settings
    permission = settings.permission
    levels = settings.units if permission == "none" else dict.fromkeys(UNITS, permission)
    return {
        "id": team.id,
        "name": settings.name,
        "description": settings.description,
        "organization": organisation_shape(org) if org else None,
        "includes_all_repositories": settings.all_repositories,
        "permission": permission,
        "units": list(levels) or None,
        "units_map": dict(levels),
        "can_create_org_repo": settings.may_create,
    }


def _team_name(name: str) -> str:
    if len(name) > TEAM_NAME_MAX:
        raise ApiError(422, "[Name]: MaxSize")
    if not TEAM_NAME.match(name):
        raise ApiError(422, "[Name]: AlphaDashDot")
    if name.lower() == "new":
        raise ApiError(500, f"name is reserved [name: {name}]")
    return name


def _units(body: Fields) -> dict[str, str] | None:
    """Return the levels per unit that a body asks for; None if it says nothing about units."""
    by_unit, names = body.text_mapping("units_map"), body.texts("units")
    levels = by_unit or dict.fromkeys(names, body.text("permission"))
    return known_units(levels) if levels else None


_TOKENS = f"{API}/users/{{name}}/tokens"


@dataclass(frozen=True, slots=True)
class UserRoutes:
    """Endpoints of users and tokens."""

    access: Access
    accounts: Accounts
    shapes: Shapes

    @route("GET", f"{API}/version")
    def version(self, _call: Call) -> Response:
        return json_answer({"version": VERSION})

    @route("GET", f"{API}/user", "user")
    def current(self, call: Call) -> Response:
        return json_answer(self.shapes.account(call.user))

    @route("POST", f"{API}/admin/users", "admin")
    def create_user(self, call: Call) -> Response:
        """Create a user, for site admins."""
        _require_admin(call)
        body = call.fields()
        name, password = body.required("username"), body.required("password")
        try:
            user = self.accounts.create_user(name, password)
        except ConflictError as error:
            raise ApiError(422, str(error)) from error
        return json_answer(self.shapes.account(user), 201)

    @route("DELETE", f"{API}/admin/users/{{name}}", "admin")
    def delete_user(self, call: Call) -> Response:
        """Remove a user who owns nothing and is in no organisation, for site admins."""
        _require_admin(call)
        try:
            self.accounts.delete_user(self.access.user(call))
        except ConflictError as error:
            raise ApiError(422, str(error)) from error
        return empty_answer()

    @route("POST", _TOKENS)
    def create_token(self, call: Call) -> Response:
        """Create a token; its secret is shown once."""
        user, body = self._token_owner(call), call.fields()
        name, scopes = body.required("name"), body.texts("scopes")
        try:
            token, secret = self.accounts.create_token(user, name, scopes)
        except (InvalidInputError, ConflictError) as error:
            raise ApiError(400, str(error)) from error
        shape = {
            "id": token.id,
            "name": token.name,
            "sha1": secret,
            "token_last_eight": token.last_eight,
            "scopes": list(token.scopes),
        }
        return json_answer(shape, 201)

    def _token_owner(self, call: Call) -> Account:
        """Return the user of the path for that user or a site admin, with a password only."""
        user, account = self.access.account(call), call.actor.account
        if account is None or (user.id != account.id and not account.admin):
            raise ApiError(403, "doer should be the site admin or be same as the contextUser")
        if call.actor.by_token:
            raise ApiError(401, "auth required")
        return user


def _require_admin(call: Call) -> None:
    if not call.user.admin:
        raise ApiError(403, "user should be the site admin")
