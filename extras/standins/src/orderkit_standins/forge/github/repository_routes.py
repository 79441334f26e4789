"""GitHub's endpoints of repositories and collaborators."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from orderkit_standins.forge.accounts import Actor
from orderkit_standins.forge.api.access import Access, Right
from orderkit_standins.forge.api.calls import ApiError, Call
from orderkit_standins.forge.api.repository_routes import RepositoryRoutes
from orderkit_standins.forge.api.routes import route
from orderkit_standins.forge.github.answers import ORG, REPO, answer, paged, rewritten
from orderkit_standins.forge.github.shapes import GitHubShapes
from orderkit_standins.forge.repositories import Repositories, Repository
from orderkit_standins.forge.teams import Teams

_LEVELS = {Right.NONE: "none", Right.READ: "read", Right.WRITE: "write", Right.ADMIN: "admin"}


@dataclass(frozen=True, slots=True)
class GitHubRepositories:
    """Endpoints of repositories."""

    access: Access
    repositories: Repositories
    teams: Teams
    own: RepositoryRoutes
    shapes: GitHubShapes

    def _shape(self, call: Call, repo: Repository) -> object:
        return self.shapes.repository(repo, self.access.right_on(call.actor, repo, ""))

    @route("POST", f"{ORG}/repos", "organization repository")
    def create(self, call: Call) -> Response:
        body = call.fields()
        name, org = body.required("name"), self.access.organisation(call)
        if self.repositories.find(org.name, name) is not None:
            raise ApiError(422, "Repository creation failed.")
        kept = {key: body[key] for key in ("name", "description", "private") if key in body}
        self.own.create_for_org(rewritten(call, kept))
        repo = self.repositories.find(org.name, name)
        if repo is None:
            raise ApiError(404)
        if body.get("allow_squash_merge") is False:
            repo = self.repositories.update(repo, allow_squash_merge=False)
        team = self.teams.find(body.optional("team_id", int) or 0)
        if team is not None and team.org_id == org.id:
            self.teams.add_repository(team, repo.id)
        return answer(self._shape(call, repo), 201)

    @route("GET", f"{ORG}/repos", "organization")
    def of_org(self, call: Call) -> Response:
        org = self.access.organisation(call)
        repos = self.access.readable(call, self.repositories.all(owner_id=org.id))
        return paged(call, repos, lambda repo: self._shape(call, repo))

    @route("GET", REPO, "repository")
    def show(self, call: Call) -> Response:
        return answer(self._shape(call, self.access.repository(call, unit="")))

    @route("PATCH", REPO, "repository")
    def change(self, call: Call) -> Response:
        repo, body = self.access.administered(call), call.fields()
        known = ("name", "description", "private", "archived", "default_branch")
        kept = {key: body[key] for key in (*known, "allow_squash_merge") if key in body}
        self.own.change(rewritten(call, kept))
        changed = self.repositories.find(repo.repo.owner, body.text("name") or repo.repo.name)
        if changed is None:
            raise ApiError(404)
        return answer(self._shape(call, changed))

    @route("DELETE", REPO, "repository")
    def delete(self, call: Call) -> Response:
        return self.own.delete(call)

    # Collaborators

    @route("GET", f"{REPO}/collaborators", "repository")
    def collaborators(self, call: Call) -> Response:
        """Return who was let in themselves (``affiliation=direct``)."""
        repo, _ = self.access.repository(call, unit=""), call.user

        def shape(account_id: int) -> object:
            level = self.teams.collaboration(repo.id, account_id)
            rights = {
                "pull": True,
                "triage": level in ("write", "admin"),
                "push": level in ("write", "admin"),
                "maintain": level == "admin",
                "admin": level == "admin",
            }
            person = self.shapes.user_by_id(account_id)
            return {**person, "permissions": rights, "role_name": level}

        return paged(call, self.teams.collaborators(repo.id), shape)

    @route("GET", f"{REPO}/collaborators/{{name}}/permission", "repository")
    def permission(self, call: Call) -> Response:
        repo, _ = self.access.repository(call, unit=""), call.user
        account = self.access.user(call)
        level = _LEVELS[self.access.right_on(Actor(account), repo)]
        user = {**self.shapes.user(account), "role_name": level}
        return answer({"permission": level, "role_name": level, "user": user})
