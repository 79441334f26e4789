"""
Endpoints of repositories and of their collaborators.

Observed on Gitea 1.26.0: a collaborator's level is ``write`` unless given; unknown users are 422,
unknown levels 500; everybody may ask for the own level, admins of the repository for anybody's.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from ground.errors import ConflictError
from orderkit_standins.forge import git_read
from orderkit_standins.forge.accounts import Account, Actor
from orderkit_standins.forge.api.access import Access, Right
from orderkit_standins.forge.api.calls import (
    ApiError,
    Call,
    Fields,
    empty_answer,
    json_answer,
    paged,
)
from orderkit_standins.forge.api.routes import API, REPO, route
from orderkit_standins.forge.api.shapes import Shapes
from orderkit_standins.forge.repositories import (
    DESCRIPTION_MAX,
    NewRepository,
    Repositories,
    Repository,
)
from orderkit_standins.forge.teams import Teams

LEVELS = ("read", "write", "admin")
ONLY_ADMINS = (
    "Only admins can query all permissions, repo admins can query all repo permissions, "
    "collaborators can query only their own"
)
_PERSON = f"{REPO}/collaborators/{{name}}"


@dataclass(frozen=True, slots=True)
class RepositoryRoutes:
    """Endpoints of repositories and collaborators."""

    access: Access
    repositories: Repositories
    teams: Teams
    shapes: Shapes

    @route("POST", f"{API}/user/repos", "user repository")
    def create_for_user(self, call: Call) -> Response:
        return self._create(call, call.user)

    @route("POST", f"{API}/orgs/{{org}}/repos", "organization repository")
    def create_for_org(self, call: Call) -> Response:
        """Create a repository, for members whose team may; they administer it."""
        user, org = call.user, self.access.organisation(call)
        teams = self.teams.of_user(user.id, org.id)
        if not user.admin and not any(team.settings.may_create for team in teams):
            raise ApiError(403, "User is not allowed to create repositories in this organization.")
        return self._create(call, org)

    def _create(self, call: Call, owner: Account) -> Response:
        body = call.fields()
        name = body.required("name")
        if name in (".", ".."):  # Gitea answers 500 for these
            raise ApiError(500, f"name is invalid [{name}]")
        new = NewRepository(
            name=name,
            description=_description(body) or "",
            private=body.flag("private"),
            default_branch=body.text("default_branch") or "main",
        )
        if not git_read.is_branch_name(new.default_branch):
            raise ApiError(422, f"[DefaultBranch]: GitRefName [{new.default_branch}]")
        if body.text("object_format_name") not in ("", "sha1"):
            raise ApiError(422, "[ObjectFormatName]: this forge keeps sha1 repositories only")
        repo = self.repositories.create(owner, new)
        if self.access.right_on(call.actor, repo) < Right.ADMIN:
            self.teams.set_collaborator(repo.id, call.user.id, "admin")
        return self._repository_answer(call, repo, 201)

    def _repository_answer(self, call: Call, repo: Repository, status: int = 200) -> Response:
        right = self.access.right_on(call.actor, repo)
        return json_answer(self.shapes.repository(repo, right), status)

    @route("GET", f"{API}/repos/issues/search", "issue")
    def open_pulls(self, call: Call) -> Response:
        """Return a page of the open pull requests of an ``?owner=``, newest first."""
        owner = self.access.accounts.find(call.query("owner"))
        if owner is None:
            raise ApiError(400, "Owner not found")
        repos = self.access.readable(call, self.repositories.all(owner_id=owner.id))
        issues = ((repo, issue) for repo in repos for issue in self.shapes.issues.all(repo.id))
        pulls = [(repo, issue) for repo, issue in issues if issue.is_pull and not issue.closed]
        pulls.sort(key=lambda pull: -pull[1].id)
        return paged(call, pulls, lambda pull: self.shapes.issue(*pull))

    @route("GET", REPO, "repository")
    def show(self, call: Call) -> Response:
        return self._repository_answer(call, self.access.repository(call, unit=""))

    @route("PATCH", REPO, "repository")
    def change(self, call: Call) -> Response:
        """Change name, description, private, archived, default_branch, allow_squash_merge."""
        repo, body = self.access.administered(call), call.fields()
        branch = body.text("default_branch")
        if branch and branch not in git_read.heads(repo.path):
            raise ApiError(422, f"branch does not exist [name: {branch}]")
        description, name = _description(body), body.text("name")
        flags = ("private", "archived", "allow_squash_merge")
        changes = {flag: body.optional(flag, bool) for flag in flags}
        if name not in ("", repo.repo.name):
            try:
                repo = self.repositories.rename(repo, name)
            except ConflictError as error:
                raise ApiError(422, str(error)) from error
        changed = self.repositories.update(
            repo, description=description, default_branch=branch or None, **changes
        )
        return self._repository_answer(call, changed)

    @route("DELETE", REPO, "repository")
    def delete(self, call: Call) -> Response:
        self.repositories.delete(self.access.administered(call))
        return empty_answer()

    @route("GET", f"{API}/orgs/{{org}}/repos", "organization")
    def of_org(self, call: Call) -> Response:
        org = self.access.organisation(call)
        repos = self.access.readable(call, self.repositories.all(owner_id=org.id))
        right_on = self.access.right_on
        return paged(call, repos, lambda r: self.shapes.repository(r, right_on(call.actor, r)))

    # Collaborators

    @route("GET", f"{REPO}/collaborators", "repository")
    def list_collaborators(self, call: Call) -> Response:
        repo, _ = self.access.repository(call, unit=""), call.user
        return paged(call, self.teams.collaborators(repo.id), self.shapes.account_by_id)

    @route("GET", f"{_PERSON}/permission", "repository")
    def permission(self, call: Call) -> Response:
        repo, user = self.access.repository(call, unit=""), call.user
        account = self.access.user(call, missing=422)
        if user.id != account.id and self.access.right_on(call.actor, repo) < Right.ADMIN:
            raise ApiError(403, ONLY_ADMINS)
        owns = account.id == repo.owner_id or self.teams.is_owner(repo.owner_id, account.id)
        level = self.access.right_on(Actor(account), repo).name.lower()
        level = "owner" if account.admin or owns else level
        user_shape = self.shapes.account(account)
        return json_answer({"permission": level, "role_name": level, "user": user_shape})

    @route("PUT", _PERSON, "repository")
    def put_collaborator(self, call: Call) -> Response:
        repo, body = self.access.administered(call), call.fields()
        user, level = self.access.user(call, missing=422), body.text("permission") or "write"
        if level not in LEVELS:
            raise ApiError(500, "Invalid access mode")
        if user.id != repo.owner_id:
            self.teams.set_collaborator(repo.id, user.id, level)
        return empty_answer()

    @route("DELETE", _PERSON, "repository")
    def remove_collaborator(self, call: Call) -> Response:
        """End a collaboration; 204 also for who is not a collaborator."""
        repo, user = self.access.administered(call), self.access.user(call, missing=422)
        self.teams.remove_collaborator(repo.id, user.id)
        return empty_answer()


def _description(body: Fields) -> str | None:
    text = body.optional("description", str)
    if text is not None and len(text) > DESCRIPTION_MAX:
        raise ApiError(422, f"[Description]: MaxSize {DESCRIPTION_MAX}")
    return text
