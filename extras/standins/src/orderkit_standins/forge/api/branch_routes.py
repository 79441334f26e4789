"""
Endpoints of branches (show, create, rename, delete, compare two), and of their protection.

The rules of protection can be listed, added, changed and removed. Only admins of the repository see
them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pygit2
from starlette.responses import Response

from orderkit_standins.forge import git_merge, git_read, git_write
from orderkit_standins.forge import protections as branch_permissions
from orderkit_standins.forge.accounts import Accounts
from orderkit_standins.forge.api.access import Access, Right, refuse_archived
from orderkit_standins.forge.api.branch_updates import BranchRules, BranchUpdates
from orderkit_standins.forge.api.calls import ApiError, Call, Fields, empty_answer, json_answer
from orderkit_standins.forge.api.content_routes import commit_at
from orderkit_standins.forge.api.routes import REPO, route
from orderkit_standins.forge.api.shapes import Json, Shapes
from orderkit_standins.forge.protections import Protections, Rule, RuleSettings
from orderkit_standins.forge.pull_requests import Pulls
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.teams import Teams

_CLASHES = {
    "exists": "The branch already exists.",
    "prefix": "The branch with the same name already exists.",
}
_BRANCH = f"{REPO}/branches/{{branch:path}}"


@dataclass(frozen=True, slots=True)
class BranchRoutes:
    """Endpoints of branches."""

    access: Access
    rules: BranchRules
    updates: BranchUpdates
    shapes: Shapes

    @route("GET", _BRANCH, "repository")
    def show(self, call: Call) -> Response:
        repo = self.access.repository(call)
        git = git_read.open_repository(repo.path)
        return json_answer(self._shape(call, repo, git, call.param("branch")))

    def _shape(self, call: Call, repo: Repository, git: pygit2.Repository, name: str) -> Json:
        tip = git_read.branch_commit(git, name)
        if tip is None:
            raise ApiError(404)
        right = self.access.right_on(call.actor, repo)
        shape, rule = self.shapes.branch(repo, name, tip, right), self.rules.rule(repo, name)
        return shape | self._protection(call, repo, rule, right) if rule is not None else shape

    def _protection(self, call: Call, repo: Repository, rule: Rule, right: Right) -> Json:
        account, contexts = call.actor.account, rule.settings.status_check_contexts
        doer = self.rules.doer(repo, account) if account is not None else None
        return {
            "protected": True,
            "required_approvals": rule.settings.required_approvals,
            "enable_status_check": rule.settings.enable_status_check,
            "status_check_contexts": list(contexts) if contexts is not None else None,
            "user_can_push": doer is not None and branch_permissions.may_push(rule, doer),
            "user_can_merge": doer is not None and branch_permissions.may_merge(rule, doer),
            "effective_branch_protection_name": rule.name if right >= Right.ADMIN else "",
        }

    @route("POST", f"{REPO}/branches", "repository")
    def create(self, call: Call) -> Response:
        """Create a branch; an unknown ``old_ref_name`` is 500 in Gitea."""
        repo, body = self.access.writable(call), call.fields()
        name = body.required("new_branch_name", "BranchName")
        if not git_read.is_branch_name(name):
            raise ApiError(422, "[BranchName]: GitRefName")
        git = _filled(repo)
        if git.references.get(git_read.TAGS + name) is not None:
            raise ApiError(409, "The branch with the same tag already exists.")
        start = str(_start(git, repo, body).id)
        self.rules.refuse_new_branch(repo, call.user, name)
        try:
            git_write.create_branch(repo.path, name, start)
        except git_write.WriteError as error:
            raise ApiError(409, _CLASHES.get(error.kind, str(error))) from error
        self.updates.branch_moved(repo, name, start, by=call.user)
        return json_answer(self._shape(call, repo, git, name), 201)

    @route("PATCH", _BRANCH, "repository")
    def rename(self, call: Call) -> Response:
        """Rename a branch with its rule and all that points to it; the default one as an admin."""
        repo, old = self.access.writable(call), call.param("branch")
        new, heads = call.fields().required("name", "Name"), git_read.heads(repo.path)
        if not git_read.is_branch_name(new):
            raise ApiError(422, "[Name]: GitRefName")
        _filled(repo)
        if new in heads:
            text = "using the same name or rename to a branch that already exists."
            raise ApiError(422, f"Cannot rename a branch {text}")
        if old not in heads:
            raise ApiError(404, "Branch doesn't exist.")
        protections = self.rules.protections
        rule = protections.find(repo.id, old)
        is_admin = self.access.right_on(call.actor, repo) >= Right.ADMIN
        if not is_admin and (rule or old == repo.default_branch):
            text = "User must be a repo or site admin to rename default or protected branches."
            raise ApiError(403, text)
        if rule is None and self.rules.rule(repo, old) is not None:
            raise ApiError(403, "Failed to rename branch due to branch protection rules.")
        git_write.create_branch(repo.path, new, heads[old])
        if rule is not None:
            protections.rename(rule, new)
        if old == repo.default_branch:
            repo = self.access.repositories.update(repo, default_branch=new)
        self.updates.pulls.retarget_all(repo, old, new)
        git_write.delete_branch(repo.path, old)
        self.updates.branch_moved(repo, old, "", by=call.user, before=heads[old])
        self.updates.branch_moved(repo, new, heads[old], by=call.user)
        return empty_answer()

    @route("DELETE", _BRANCH, "repository")
    def delete(self, call: Call) -> Response:
        """Delete a branch; 403 for the default one."""
        repo, name = self.access.writable(call), call.param("branch")
        _filled(repo)
        if name == repo.default_branch:
            raise ApiError(403, "can not delete default or pull request target branch")
        if self.rules.rule(repo, name) is not None:
            raise ApiError(403, "branch protected")
        before = git_read.heads(repo.path).get(name, "")
        try:
            if not git_write.delete_branch(repo.path, name):
                raise ApiError(404, errors=[f"branch does not exist [name: {name}]"])
        except git_write.WriteError as error:
            raise ApiError(403, str(error)) from error
        self.updates.branch_moved(repo, name, "", by=call.user, before=before)
        return empty_answer()

    @route("GET", f"{REPO}/compare/{{spec:path}}", "repository")
    def compare(self, call: Call) -> Response:
        """Return the commits that the head of ``{base}...{head}`` has more."""
        repo = self.access.repository(call)
        git = git_read.open_repository(repo.path)
        base_name, dots, head_name = call.param("spec").partition("...")
        if not dots:
            raise ApiError(404)
        base, head = (
            str(commit_at(git, name or repo.default_branch, short_ids=True).id)
            for name in (base_name, own_branch(repo, head_name))
        )
        related = git_merge.merge_base_of(git, base, head)
        commits = git_merge.commits_between(git, base, head) if related else []
        shapes = [self.shapes.commit(repo, commit) for commit in commits]
        return json_answer({"total_commits": len(commits), "commits": shapes})


def _start(git: pygit2.Repository, repo: Repository, body: Fields) -> pygit2.Commit:
    ref = body.text("old_ref_name") or repo.default_branch
    commit = git_read.resolve(git, ref) or git_read.by_short_id(git, ref)
    if commit is None:
        raise ApiError(500, f"object does not exist [id: {ref}, rel_path: ]")
    return commit


def _filled(repo: Repository) -> pygit2.Repository:
    git = git_read.open_repository(repo.path)
    if not git_read.branch_names(git):
        raise ApiError(404, "Git Repository is empty.")
    return git


def own_branch(repo: Repository, name: str) -> str:
    """
    Return the branch of ``owner:branch`` or ``owner/name:branch``.

    Raises:
        ApiError: 404, it is a branch of another repository.
    """
    owner, _, branch = name.rpartition(":")
    if owner and owner.lower() not in (repo.repo.owner.lower(), repo.full_name.lower()):
        raise ApiError(404)
    return branch


_UNSUPPORTED = (
    *("enable_force_push", "push_whitelist_deploy_keys", "require_signed_commits", "priority"),
    *("enable_approvals_whitelist", "block_on_rejected_reviews", "dismiss_stale_approvals"),
    *("block_on_official_review_requests", "ignore_stale_approvals"),
    *("protected_file_patterns", "unprotected_file_patterns", "block_on_outdated_branch"),
)
_RULES = f"{REPO}/branch_protections"
_RULE = f"{_RULES}/{{name:path}}"


@dataclass(frozen=True, slots=True)
class ProtectionRoutes:
    """Endpoints of rules that protect branches."""

    access: Access
    accounts: Accounts
    teams: Teams
    protections: Protections
    pulls: Pulls

    @route("GET", _RULES, "repository")
    def list_rules(self, call: Call) -> Response:
        rules = self.protections.of_repository(self.access.administered(call).id)
        return json_answer([self._shape(rule) for rule in rules])

    @route("POST", _RULES, "repository")
    def create(self, call: Call) -> Response:
        """Add a rule; a second one of its name is a 403."""
        repo, body = self._changeable(call), call.fields()
        name = body.text("rule_name") or body.text("branch_name")
        if not name:
            raise ApiError(400, "both rule_name and branch_name are empty")
        if self.protections.find(repo.id, name) is not None:
            raise ApiError(403, "Branch protection already exist")
        settings = RuleSettings(**self._settings(repo, body))
        return json_answer(self._shape(self.protections.add(repo.id, name, settings)), 201)

    @route("PATCH", _RULE, "repository")
    def change(self, call: Call) -> Response:
        """Change what is given."""
        repo, body = self._changeable(call), call.fields()
        rule = self._rule(call, repo)
        settings = dataclasses.replace(rule.settings, **self._settings(repo, body))
        changed = self.protections.change(rule, settings)
        self.pulls.check_matching(repo, changed.matches)
        return json_answer(self._shape(changed))

    @route("DELETE", _RULE, "repository")
    def delete(self, call: Call) -> Response:
        self.protections.remove(self._rule(call, self._changeable(call)))
        return empty_answer()

    def _changeable(self, call: Call) -> Repository:
        repo = self.access.administered(call)
        refuse_archived(repo)
        return repo

    def _rule(self, call: Call, repo: Repository) -> Rule:
        rule = self.protections.find(repo.id, call.param("name"))
        if rule is None:
            raise ApiError(404)
        return rule

    def _settings(self, repo: Repository, body: Fields) -> dict[str, Any]:
        """Return those settings that a request names, checked and with ids for names."""
        body.refuse_unsupported(*_UNSUPPORTED)
        readers: dict[str, Callable[[str], Any]] = {
            "bool": lambda key: body.optional(key, bool),
            "int": lambda key: body.optional(key, int),
            "tuple[str, ...] | None": body.texts,
        }
        settings = {}
        for field in dataclasses.fields(RuleSettings):
            key = field.name
            if body.get(key) is None:
                continue
            if key.endswith("_usernames"):
                settings[key] = tuple(self._user_id(name) for name in body.texts(key))
            elif key.endswith("_teams"):
                settings[key] = tuple(self._team_id(repo, name) for name in body.texts(key))
            else:
                settings[key] = readers[str(field.type)](key)
        return settings

    def _user_id(self, name: str) -> int:
        user = self.accounts.find_user(name)
        if user is None:
            raise ApiError(422, f"user does not exist [uid: 0, name: {name}]")
        return user.id

    def _team_id(self, repo: Repository, name: str) -> int:
        team = self.teams.named(repo.owner_id, name)
        if team is None:
            text = f"team does not exist [org_id {repo.owner_id}, team_id 0, name: {name}]"
            raise ApiError(422, text)
        return team.id

    def _shape(self, rule: Rule) -> Json:
        settings: Json = dataclasses.asdict(rule.settings)
        for key, value in settings.items():
            if key.endswith("_usernames"):
                settings[key] = [self.accounts.by_id(user_id).name for user_id in value]
            elif key.endswith("_teams"):
                teams = [self.teams.find(team_id) for team_id in value]
                settings[key] = [team.settings.name for team in teams if team is not None]
            else:
                settings[key] = list(value) if isinstance(value, tuple) else value
        return {
            "branch_name": rule.name if rule.plain else "",
            "rule_name": rule.name,
            "priority": rule.priority,
            **settings,
        }
