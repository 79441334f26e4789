"""
GitHub's endpoints of repositories, collaborators, protected branches, and workflow runs.

Workflow runs begin and do nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pygit2
import yaml
from starlette.responses import Response

from orderkit_standins.forge import git_read
from orderkit_standins.forge.accounts import Actor
from orderkit_standins.forge.api.access import Access, Right
from orderkit_standins.forge.api.calls import ApiError, Call, empty_answer
from orderkit_standins.forge.api.repository_routes import RepositoryRoutes
from orderkit_standins.forge.api.routes import route
from orderkit_standins.forge.api.shapes import Json
from orderkit_standins.forge.github.answers import ORG, REPO, answer, paged, rewritten
from orderkit_standins.forge.github.shapes import GitHubShapes
from orderkit_standins.forge.protections import Protections, Rule, RuleSettings
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


_PROTECTION = f"{REPO}/branches/{{branch}}/protection"
_WORKFLOW = f"{REPO}/actions/workflows/{{workflow}}"
_FOLDER = ".github/workflows"
_BY_HAND = "workflow_dispatch"


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run that somebody asked for."""

    repo_id: int
    workflow: str
    branch: str
    commit: str
    inputs: Json


@dataclass(frozen=True, slots=True)
class GitHubWorkflows:
    """Endpoints of required reviews and of runs; `runs` is what was asked for, oldest first."""

    access: Access
    protections: Protections
    shapes: GitHubShapes
    runs: list[StartedRun] = field(default_factory=list)
    _bodies: dict[int, Json] = field(default_factory=dict)
    """What a protection was made with, by its number: not all of it is kept elsewhere."""

    @route("GET", _PROTECTION, "repository")
    def protection(self, call: Call) -> Response:
        repo = self.access.administered(call)
        rule = self._rule(repo, call.param("branch"))
        if rule is None:
            raise ApiError(404, "Branch not protected")
        return answer(self._shape(repo, rule))

    @route("PUT", _PROTECTION, "repository")
    def protect(self, call: Call) -> Response:
        """Let nobody push to a branch; pull requests need approvals and statuses."""
        repo, body, branch = self.access.administered(call), call.fields(), call.param("branch")
        if git_read.branch_commit(git_read.open_repository(repo.path), branch) is None:
            raise ApiError(404, "Branch not found")
        checks = body.mapping("required_status_checks").texts("contexts")
        reviews = body.mapping("required_pull_request_reviews")
        settings = RuleSettings(
            enable_status_check=bool(checks),
            status_check_contexts=tuple(checks),
            required_approvals=reviews.optional("required_approving_review_count", int) or 0,
            block_admin_merge_override=body.get("enforce_admins") is True,
        )
        rule = self._rule(repo, branch)
        if rule is None:
            if self.protections.find(repo.id, branch) is not None:
                raise ApiError(422, "the embedded forge keeps one rule of a branch")
            rule = self.protections.add(repo.id, branch, settings)
        else:
            rule = self.protections.change(rule, settings)
        self._bodies[rule.id] = dict(body)
        return answer(self._shape(repo, rule))

    def _rule(self, repo: Repository, branch: str) -> Rule | None:
        rule = self.protections.find(repo.id, branch)
        return rule if rule is not None and not rule.settings.enable_push else None

    def _shape(self, repo: Repository, rule: Rule) -> Json:
        url = f"{self.shapes.api(repo)}/branches/{rule.name}/protection"
        body = self._bodies.get(rule.id, {})
        reviews = body.get("required_pull_request_reviews") or {}
        checks = list(rule.settings.status_check_contexts or ())
        count = {"required_approving_review_count": rule.settings.required_approvals}
        names = ("dismiss_stale_reviews", "require_code_owner_reviews")
        return {
            "url": url,
            "required_status_checks": {
                "url": f"{url}/required_status_checks",
                "strict": bool((body.get("required_status_checks") or {}).get("strict")),
                "contexts": checks,
                "contexts_url": f"{url}/required_status_checks/contexts",
                "checks": [{"context": name, "app_id": None} for name in checks],
            },
            "required_pull_request_reviews": {
                "url": f"{url}/required_pull_request_reviews",
                **{name: bool(reviews.get(name)) for name in names},
                **count,
            },
            "enforce_admins": {
                "url": f"{url}/enforce_admins",
                "enabled": rule.settings.block_admin_merge_override,
            },
        }

    @route("POST", f"{_WORKFLOW}/dispatches", "repository")
    def dispatch(self, call: Call) -> Response:
        repo, body, name = self.access.writable(call), call.fields(), call.param("workflow")
        ref, git = body.required("ref"), git_read.open_repository(repo.path)
        commit = git_read.resolve_as_git(git, ref)
        main = git_read.branch_commit(git, repo.default_branch)
        if _workflow(git, main, name) is None:
            raise ApiError(404)
        if commit is None:
            raise ApiError(422, f"No ref found for: {ref}")
        known = _inputs(_workflow(git, commit, name))
        if known is None:
            raise ApiError(422, f"Workflow does not have '{_BY_HAND}' trigger")
        given = body.mapping("inputs")
        if unknown := sorted(given.keys() - known.keys()):
            raise ApiError(422, f"Unexpected inputs provided: {unknown}")
        self.runs.append(StartedRun(repo.id, name, ref, str(commit.id), dict(given)))
        return empty_answer()

    @route("GET", f"{_WORKFLOW}/runs", "repository")
    def list_runs(self, call: Call) -> Response:
        repo, name = self.access.repository(call), call.param("workflow")
        git = git_read.open_repository(repo.path)
        main = git_read.branch_commit(git, repo.default_branch)
        if _workflow(git, main, name) is None:
            raise ApiError(404)
        query = call.request.query_params
        shown = [
            self._run(repo, number, run)
            for number, run in enumerate(self.runs, start=1)
            if (run.repo_id, run.workflow) == (repo.id, name)
            and query.get("head_sha", run.commit) == run.commit
            and query.get("event", _BY_HAND) == _BY_HAND
        ]
        return answer({"total_count": len(shown), "workflow_runs": shown[::-1]})

    def _run(self, repo: Repository, number: int, run: StartedRun) -> Json:
        url = f"{self.shapes.api(repo)}/actions/runs/{number}"
        when = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        commit = git_read.commit_by_id(git_read.open_repository(repo.path), run.commit)
        if commit is None:
            raise ApiError(404)
        person = {"name": commit.author.name, "email": commit.author.email}
        parts = ("jobs", "logs", "cancel", "rerun", "artifacts")
        return {
            "id": number,
            "node_id": f"WFR_{number}",
            "head_branch": run.branch,
            "run_number": number,
            "display_title": run.workflow,
            "event": _BY_HAND,
            "status": "queued",
            "conclusion": None,
            "head_sha": run.commit,
            "path": f"{_FOLDER}/{run.workflow}",
            "workflow_id": 1,
            "url": url,
            "html_url": f"{self.shapes.page(repo)}/actions/runs/{number}",
            "created_at": when,
            "updated_at": when,
            "head_commit": {
                "id": run.commit,
                "tree_id": str(commit.tree.id),
                "message": commit.message,
                "timestamp": when,
                "author": person,
                "committer": person,
            },
            "repository": self._small(repo),
            "head_repository": self._small(repo),
            "pull_requests": [],
            "check_suite_url": f"{self.shapes.api(repo)}/check-suites/{number}",
            "workflow_url": f"{self.shapes.api(repo)}/actions/workflows/1",
            **{f"{part}_url": f"{url}/{part}" for part in parts},
        }

    def _small(self, repo: Repository) -> Json:
        return self.shapes.repository(repo, Right.READ)


def _workflow(git: pygit2.Repository, commit: pygit2.Commit | None, name: str) -> bytes | None:
    entry = git_read.entry_at(commit.tree, f"{_FOLDER}/{name}") if commit is not None else None
    blob = git_read.blob(git, entry.id) if entry is not None else None
    return blob.data if blob is not None else None


def _inputs(data: bytes | None) -> Json | None:
    """Return the inputs of a workflow that people may start; None: they may not."""
    try:
        document = yaml.safe_load(data or b"")
    except yaml.YAMLError:
        return None
    # YAML 1.1 reads the key `on` as true.
    events = document.get("on", document.get(True)) if isinstance(document, dict) else None
    if not isinstance(events, dict):
        named = events if isinstance(events, list) else [events]
        return {} if _BY_HAND in named else None
    if _BY_HAND not in events:
        return None
    return (events[_BY_HAND] or {}).get("inputs") or {}
