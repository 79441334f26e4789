"""GitHub's endpoints of accounts, organisations, teams, and of GitHub Apps."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from starlette.responses import Response

from ground.errors import ConflictError
from orderkit_standins.forge.accounts import Account, Accounts
from orderkit_standins.forge.api.access import Access, Right
from orderkit_standins.forge.api.calls import VERSION, ApiError, Call, empty_answer
from orderkit_standins.forge.api.routes import route
from orderkit_standins.forge.api.shapes import Json
from orderkit_standins.forge.github.answers import API, ORG, answer, paged
from orderkit_standins.forge.github.apps import BOT, Apps, InstalledApp
from orderkit_standins.forge.github.shapes import EPOCH, GitHubShapes
from orderkit_standins.forge.repositories import Repositories, Repository
from orderkit_standins.forge.teams import UNITS, Team, Teams, TeamSettings

SERVER_VERSION = f"3.19.0+{VERSION.partition('+')[2]}"
_TEAM, _SCOPE = f"{ORG}/teams/{{slug}}", "organization"
_LEVELS = {"pull": "read", "push": "write"}
_TOKEN_LIFE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class GitHubPeople:
    """Endpoints of accounts and organisations."""

    access: Access
    accounts: Accounts
    teams: Teams
    apps: Apps
    shapes: GitHubShapes

    @route("GET", f"{API}/meta")
    def meta(self, call: Call) -> Response:  # noqa: ARG002  an endpoint
        known = {"verifiable_password_authentication": True}
        return answer({**known, "installed_version": SERVER_VERSION})

    @route("GET", f"{API}/user", "user")
    def me(self, call: Call) -> Response:
        return answer(self.shapes.public_user(call.user))

    @route("GET", f"{API}/users/{{name}}", "user")
    def user(self, call: Call) -> Response:
        name = call.param("name")
        account = self.accounts.find_user(name.removesuffix(BOT))
        if account is None or self.shapes.login(account) != name:
            raise ApiError(404)
        return answer(self.shapes.public_user(account))

    @route("POST", f"{API}/admin/organizations", _SCOPE)
    def create_org(self, call: Call) -> Response:
        if not call.user.admin:
            raise ApiError(404)
        body = call.fields()
        name, admin = body.required("login"), self.accounts.find_user(body.required("admin"))
        if admin is None:
            raise ApiError(422, "admin does not exist")
        try:
            org = self.accounts.create_org(name, admin)
        except ConflictError as error:
            raise ApiError(422, str(error)) from error
        return answer(self.shapes.organisation(org), 201)

    @route("GET", ORG, _SCOPE)
    def org(self, call: Call) -> Response:
        return answer(self.shapes.whole_organisation(self.access.organisation(call)))

    def _members(self, org: Account) -> dict[int, Account]:
        ids = {id_ for team in self.teams.of_org(org.id) for id_ in self.teams.members(team)}
        return {id_: self.accounts.by_id(id_) for id_ in sorted(ids)}

    @route("GET", f"{ORG}/members", _SCOPE)
    def members(self, call: Call) -> Response:
        org = self.access.organisation(call)
        people = list(self._members(org).values())
        if call.query("role") == "admin":
            people = [user for user in people if self.teams.is_owner(org.id, user.id)]
        return paged(call, people, self.shapes.user)

    @route("GET", f"{ORG}/memberships/{{name}}", _SCOPE)
    def membership(self, call: Call) -> Response:
        org, user = self.access.organisation(call), self.access.user(call)
        caller = call.user
        is_known = caller.admin or self.teams.is_member(org.id, caller.id)
        if not is_known or not self.teams.is_member(org.id, user.id):
            raise ApiError(404 if is_known else 403, "Not a member")
        role = "admin" if self.teams.is_owner(org.id, user.id) else "member"
        body = {
            "url": f"{call.root_url}{API}/orgs/{org.name}/memberships/{user.name}",
            "state": "active",
            "role": role,
            "organization_url": f"{call.root_url}{API}/orgs/{org.name}",
            "organization": self.shapes.organisation(org),
            "user": self.shapes.user(user),
        }
        return answer(body)

    @route("GET", f"{ORG}/actions/runners", _SCOPE)
    def runners(self, call: Call) -> Response:
        self.access.own_organisation(call, role="owner")
        return answer({"total_count": 0, "runners": []})

    # Apps

    @route("GET", f"{ORG}/installations", _SCOPE)
    def installations(self, call: Call) -> Response:
        org = self.access.own_organisation(call, role="owner")
        apps = list(self.apps.known.values())
        return paged(call, apps, lambda app: self._installation(app, org), inside="installations")

    @route("GET", f"{ORG}/installation")
    def installation(self, call: Call) -> Response:
        app, org = self.apps.caller(call), self.accounts.find(call.param("org"))
        if org is None or not org.is_org:
            raise ApiError(404)
        return answer(self._installation(app, org))

    @route("POST", f"{API}/app/installations/{{id:number}}/access_tokens")
    def token(self, call: Call) -> Response:
        """Make a token of the App's account; its hour is told, not kept."""
        app = self.apps.caller(call)
        account = self.accounts.find_user(app.slug)
        if account is None:
            raise ApiError(404)
        name = f"installation-{secrets.token_hex(8)}"
        _, secret = self.accounts.create_token(account, name, ("all",))
        ends = (datetime.now(UTC) + _TOKEN_LIFE).isoformat(timespec="seconds")
        body = {"token": secret, "expires_at": ends.replace("+00:00", "Z")}
        return answer({**body, "repository_selection": "all"}, 201)

    @route("GET", f"{API}/app")
    def app(self, call: Call) -> Response:
        app = self.apps.caller(call)
        account = self.accounts.find_user(app.slug)
        page = f"{call.root_url}/apps/{app.slug}"
        body = {
            "id": app.id,
            "slug": app.slug,
            "node_id": f"A_{app.id}",
            "owner": self.shapes.user(account) if account else None,
            "name": app.slug,
            "description": None,
            "external_url": page,
            "html_url": page,
            "created_at": EPOCH,
            "updated_at": EPOCH,
            "permissions": {"metadata": "read"},
            "events": [],
        }
        return answer(body)

    def _installation(self, app: InstalledApp, org: Account) -> Json:
        api = f"{self.shapes.root_url}{API}"
        writes = (
            *("contents", "pull_requests", "statuses", "administration"),
            *("members", "organization_hooks"),
        )
        rights = {**dict.fromkeys(writes, "write"), "organization_administration": "read"}
        return {
            "id": app.id * 1_000_000 + org.id,
            "account": self.shapes.user(org),
            "app_id": app.id,
            "app_slug": app.slug,
            "target_id": org.id,
            "target_type": "Organization",
            "repository_selection": "all",
            "permissions": {k: v for k, v in rights.items() if k not in app.lacks},
            "events": [],
            "single_file_name": None,
            "access_tokens_url": f"{api}/app/installations/{app.id}/access_tokens",
            "repositories_url": f"{api}/installation/repositories",
            "html_url": f"{self.shapes.root_url}/organizations/{org.name}/settings/installations",
            "created_at": EPOCH,
            "updated_at": EPOCH,
            "suspended_by": None,
            "suspended_at": None,
        }


@dataclass(frozen=True, slots=True)
class GitHubTeams:
    """Endpoints of teams."""

    access: Access
    teams: Teams
    repositories: Repositories
    shapes: GitHubShapes

    def _team(self, call: Call, *, to_change: bool = False) -> Team:
        role = "owner" if to_change else "member"
        org = self.access.own_organisation(call, role=role)  # type: ignore[arg-type]  # of two
        team = self.teams.named(org.id, call.param("slug"))
        if team is None or team.owns:
            raise ApiError(404)
        return team

    @route("GET", f"{ORG}/teams", _SCOPE)
    def list_teams(self, call: Call) -> Response:
        """Return the teams; GitHub has none of owners."""
        org = self.access.own_organisation(call, role="member")
        teams = [team for team in self.teams.of_org(org.id) if not team.owns]
        return paged(call, teams, self.shapes.team)

    @route("POST", f"{ORG}/teams", _SCOPE)
    def create_team(self, call: Call) -> Response:
        org, body = self.access.own_organisation(call, role="owner"), call.fields()
        level = body.text("permission") or "pull"
        settings = _settings(body.required("name"), body.text("description"), level)
        try:
            team = self.teams.create(org.id, settings)
        except ConflictError as error:
            raise ApiError(422, "Validation Failed") from error
        return answer(self.shapes.made_team(team), 201)

    @route("GET", _TEAM, _SCOPE)
    def show_team(self, call: Call) -> Response:
        return answer(self.shapes.made_team(self._team(call)))

    @route("PATCH", _TEAM, _SCOPE)
    def edit_team(self, call: Call) -> Response:
        team, body = self._team(call, to_change=True), call.fields()
        settings = team.settings
        text = body.optional("description", str)
        level = body.text("permission") or str(self.shapes.team(team)["permission"])
        changed = _settings(settings.name, settings.description if text is None else text, level)
        return answer(self.shapes.made_team(self.teams.change(team, changed)))

    @route("GET", f"{_TEAM}/members", _SCOPE)
    def members(self, call: Call) -> Response:
        return paged(call, self.teams.members(self._team(call)), self.shapes.user_by_id)

    @route("PUT", f"{_TEAM}/memberships/{{name}}", _SCOPE)
    def add_member(self, call: Call) -> Response:
        team, user = self._team(call, to_change=True), self.access.user(call)
        self.teams.add_member(team, user.id)
        url = f"{call.root_url}{call.request.url.path}"
        return answer({"url": url, "role": "member", "state": "active"})

    @route("DELETE", f"{_TEAM}/memberships/{{name}}", _SCOPE)
    def remove_member(self, call: Call) -> Response:
        self.teams.remove_member(self._team(call, to_change=True), self.access.user(call).id)
        return empty_answer()

    @route("GET", f"{_TEAM}/repos", _SCOPE)
    def repos(self, call: Call) -> Response:
        team = self._team(call)
        ids = set(self.teams.repositories(team))
        level = {"read": Right.READ, "write": Right.WRITE, "admin": Right.ADMIN}
        right = level.get(team.settings.level("repo.code"), Right.NONE)
        found = [repo for repo in self.repositories.all() if repo.id in ids]
        return paged(call, found, lambda repo: self.shapes.repository(repo, right))

    @route("PUT", f"{_TEAM}/repos/{{owner}}/{{repo}}", _SCOPE)
    def add_repository(self, call: Call) -> Response:
        """Give a repository to a team; it has one right on all of them here."""
        team, level = self._team(call, to_change=True), call.fields().text("permission") or "pull"
        settings = team.settings
        if self.shapes.team(team)["permission"] != level:
            changed = _settings(settings.name, settings.description, level)
            team = self.teams.change(team, changed)
        self.teams.add_repository(team, self._repository(call, team).id)
        return empty_answer()

    @route("DELETE", f"{_TEAM}/repos/{{owner}}/{{repo}}", _SCOPE)
    def remove_repository(self, call: Call) -> Response:
        team = self._team(call, to_change=True)
        self.teams.remove_repository(team, self._repository(call, team).id)
        return empty_answer()

    def _repository(self, call: Call, team: Team) -> Repository:
        repo = self.repositories.find(call.param("owner"), call.param("repo"))
        if repo is None or repo.owner_id != team.org_id:
            raise ApiError(404)
        return repo


def _settings(name: str, description: str, level: str) -> TeamSettings:
    if level == "admin":
        return TeamSettings(name, description, permission="admin")
    units = dict.fromkeys(UNITS, _LEVELS.get(level, "read"))
    return TeamSettings(name, description, units=units)
