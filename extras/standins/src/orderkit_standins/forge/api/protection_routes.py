"""
Endpoints of branch protection: list, add, change, remove.

Only admins of the repository see them.

Called through their routes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from orderkit_standins.forge.accounts import Accounts
from orderkit_standins.forge.api.access import Access, refuse_archived
from orderkit_standins.forge.api.calls import ApiError, Call, Fields, empty_answer, json_answer
from orderkit_standins.forge.api.routes import REPO, route
from orderkit_standins.forge.api.shapes import Json
from orderkit_standins.forge.protections import Protections, Rule, RuleSettings
from orderkit_standins.forge.pulls import Pulls
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.teams import Teams

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
