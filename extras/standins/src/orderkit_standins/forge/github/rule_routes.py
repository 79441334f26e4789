"""GitHub's endpoints of rulesets, webhooks and deploy keys, and of runners, which are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from starlette.responses import Response

from orderkit_standins.forge import git_read, protections
from orderkit_standins.forge.api.access import Access
from orderkit_standins.forge.api.branch_updates import BranchRules
from orderkit_standins.forge.api.calls import ApiError, Call, Fields, empty_answer
from orderkit_standins.forge.api.merging import MergeQueues
from orderkit_standins.forge.api.routes import route
from orderkit_standins.forge.api.shapes import Json
from orderkit_standins.forge.api.webhook_events import WebhookRoutes
from orderkit_standins.forge.deploy_keys import DeployKey
from orderkit_standins.forge.github.answers import API, ORG, REPO, answer, paged, rewritten
from orderkit_standins.forge.github.payloads import CONTENT_TYPE
from orderkit_standins.forge.github.shapes import GitHubShapes
from orderkit_standins.forge.protections import Protections, Rule, RuleSettings
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.teams import Teams
from orderkit_standins.forge.webhooks import Webhook, WebhookOwner

_CHECKS = "required_status_checks"
_SIGNED = "required_signatures"
_QUEUE: Json = {
    "type": "merge_queue",
    "parameters": {
        "check_response_timeout_minutes": 60,
        "grouping_strategy": "ALLGREEN",
        "max_entries_to_build": 5,
        "max_entries_to_merge": 5,
        "merge_method": "MERGE",
        "min_entries_to_merge": 1,
        "min_entries_to_merge_wait_minutes": 5,
    },
}
_RULESET = f"{REPO}/rulesets/{{id:number}}"
_OF_REPO, _OF_ORG = f"{REPO}/hooks", f"{ORG}/hooks"


@dataclass(frozen=True, slots=True)
class GitHubRules:
    """Endpoints of rulesets: each is kept as the rule of one branch."""

    access: Access
    teams: Teams
    rules: BranchRules
    protections: Protections
    deploy_keys: Mapping[str, Sequence[DeployKey]]
    shapes: GitHubShapes
    queues: MergeQueues

    @route("GET", f"{REPO}/rulesets", "repository")
    def list_rulesets(self, call: Call) -> Response:
        repo = self.access.repository(call)
        rules = self._rulesets(repo)
        return answer([self._shape(call, repo, rule, whole=False) for rule in rules])

    @route("POST", f"{REPO}/rulesets", "repository")
    def create(self, call: Call) -> Response:
        repo, body = self.access.administered(call), call.fields()
        rule = self.protections.add(repo.id, _branch(body), self._settings(repo, body))
        return answer(self._shape(call, repo, rule, whole=True), 201)

    @route("GET", _RULESET, "repository")
    def show(self, call: Call) -> Response:
        repo = self.access.repository(call)
        return answer(self._shape(call, repo, self._rule(call, repo), whole=True))

    @route("PUT", _RULESET, "repository")
    def change(self, call: Call) -> Response:
        repo, body = self.access.administered(call), call.fields()
        rule = self.protections.change(self._rule(call, repo), self._settings(repo, body))
        return answer(self._shape(call, repo, rule, whole=True))

    @route("DELETE", _RULESET, "repository")
    def remove(self, call: Call) -> Response:
        repo = self.access.administered(call)
        self.protections.remove(self._rule(call, repo))
        return empty_answer()

    @route("GET", f"{REPO}/rules/branches/{{branch:path}}", "repository")
    def of_branch(self, call: Call) -> Response:
        """Return the rules that apply to a branch, each with its ruleset."""
        repo, branch = self.access.repository(call), call.param("branch")
        rule = self.protections.for_branch(repo.id, branch)
        source = {"ruleset_source_type": "Repository", "ruleset_source": repo.full_name}
        found = [{**_QUEUE, **source, "ruleset_id": 0}] if self.queues.covers(repo, branch) else []
        if rule is not None and rule in self._rulesets(repo):
            rules = self._shape(call, repo, rule, whole=True)["rules"]
            found += [{**each, **source, "ruleset_id": rule.id} for each in rules]
        return answer(found)

    def _rulesets(self, repo: Repository) -> list[Rule]:
        """Return the rules that are no protected branches."""
        return [
            rule for rule in self.protections.of_repository(repo.id) if rule.settings.enable_push
        ]

    def _rule(self, call: Call, repo: Repository) -> Rule:
        number = call.path_number("id")
        found = (r for r in self._rulesets(repo) if r.id == number)
        rule = next(found, None)
        if rule is None:
            raise ApiError(404)
        return rule

    def _settings(self, repo: Repository, body: Fields) -> RuleSettings:
        """Return the rule of a branch: only who bypasses a ruleset may push or merge."""
        actors = body.get("bypass_actors") or ()
        users = tuple(
            account.id
            for actor in actors
            if actor.get("actor_type") == "Integration"
            and (app := self.shapes.apps.known.get(actor.get("actor_id"))) is not None
            and (account := self.access.accounts.find_user(app.slug)) is not None
        )
        is_owners = any(actor.get("actor_type") == "OrganizationAdmin" for actor in actors)
        owners = [team for team in self.teams.of_org(repo.owner_id) if team.owns]
        teams = tuple(team.id for team in owners) if is_owners else ()
        rules = {rule["type"]: rule.get("parameters") or {} for rule in body.get("rules") or ()}
        is_closed = body.text("enforcement") == "active" and "update" in rules
        checks = tuple(check["context"] for check in rules.get(_CHECKS, {}).get(_CHECKS, ()))
        return RuleSettings(
            enable_push=True,
            enable_push_whitelist=is_closed,
            push_whitelist_usernames=users,
            push_whitelist_teams=teams,
            enable_merge_whitelist=is_closed,
            merge_whitelist_usernames=users,
            merge_whitelist_teams=teams,
            enable_status_check=_CHECKS in rules,
            status_check_contexts=checks,
            block_admin_merge_override=True,
            require_signed_commits=_SIGNED in rules,
        )

    def _shape(self, call: Call, repo: Repository, rule: Rule, *, whole: bool) -> Json:
        shape: Json = {
            "id": rule.id,
            "name": rule.name,
            "target": "branch",
            "source_type": "Repository",
            "source": repo.full_name,
            "enforcement": "active",
            "node_id": f"RRS_{rule.id}",
            "_links": {"self": {"href": f"{self.shapes.api(repo)}/rulesets/{rule.id}"}},
        }
        return {**shape, **self._rest(call, repo, rule)} if whole else shape

    def _rest(self, call: Call, repo: Repository, rule: Rule) -> Json:
        settings, account = rule.settings, call.actor.account
        owners = [team.id for team in self.teams.of_org(repo.owner_id) if team.owns]
        actors = [
            {"actor_id": 1, "actor_type": "OrganizationAdmin", "bypass_mode": "always"}
            for team_id in settings.push_whitelist_teams
            if team_id in owners
        ]
        actors += [
            {"actor_id": app.id, "actor_type": "Integration", "bypass_mode": "always"}
            for app in self.shapes.apps.known.values()
            if (user := self.access.accounts.find_user(app.slug)) is not None
            and user.id in settings.push_whitelist_usernames
        ]
        rules: list[Json] = []
        if settings.enable_push_whitelist:
            rules += [{"type": kind} for kind in ("update", "deletion", "non_fast_forward")]
        if settings.require_signed_commits:
            rules.append({"type": _SIGNED})
        if settings.enable_status_check:
            checks = [{"context": name} for name in settings.status_check_contexts or ()]
            required = {"strict_required_status_checks_policy": False, _CHECKS: checks}
            rules.append({"type": _CHECKS, "parameters": required})
        doer = self.rules.doer(repo, account) if account is not None else None
        may_push = doer is not None and protections.may_push(rule, doer)
        include = [git_read.HEADS + rule.name]
        return {
            "bypass_actors": actors,
            "current_user_can_bypass": "always" if may_push else "never",
            "conditions": {"ref_name": {"include": include, "exclude": []}},
            "rules": rules,
        }

    @route("GET", f"{REPO}/keys", "repository")
    def keys(self, call: Call) -> Response:
        repo = self.access.administered(call)
        keys = self.deploy_keys.get(repo.full_name, ())
        return answer([key.on_github(self.shapes.api(repo)) for key in keys])

    @route("GET", f"{REPO}/actions/runners", "repository")
    def runners(self, call: Call) -> Response:
        self.access.administered(call)
        return answer({"total_count": 0, "runners": []})


def _branch(body: Fields) -> str:
    included = body.mapping("conditions").mapping("ref_name").texts("include")
    if len(included) != 1 or not included[0].startswith(git_read.HEADS):
        raise ApiError(422, "the embedded forge keeps rulesets of one branch")
    return included[0].removeprefix(git_read.HEADS)


@dataclass(frozen=True, slots=True)
class GitHubHookRoutes:
    """Endpoints of webhooks."""

    own: WebhookRoutes
    shapes: GitHubShapes

    @route("GET", _OF_REPO, "repository")
    @route("GET", _OF_ORG, "organization")
    def list_webhooks(self, call: Call) -> Response:
        owner = self._owner(call)
        return paged(call, self.own.webhooks.of_owner(owner), lambda h: self._shape(call, h))

    @route("POST", _OF_REPO, "repository")
    @route("POST", _OF_ORG, "organization")
    def create(self, call: Call) -> Response:
        owner, body = self._owner(call), call.fields()
        sent = {"type": "gitea", "active": True, "config": body.get("config")}
        self.own.create(rewritten(call, {**sent, "events": list(body.texts("events"))}))
        made = self.own.webhooks.of_owner(owner)[-1]
        self.own.webhooks.change(made, replace(made.settings, content_type=CONTENT_TYPE))
        return answer(self._shape(call, made), 201)

    @route("PATCH", f"{_OF_REPO}/{{id}}", "repository")
    @route("PATCH", f"{_OF_ORG}/{{id}}", "organization")
    def edit(self, call: Call) -> Response:
        """Change a webhook, its secret too."""
        owner, body, number = self._owner(call), call.fields(), call.path_number("id")
        config = body.mapping("config")
        sent = {"active": body.get("active", True), "events": list(body.texts("events"))}
        self.own.edit(rewritten(call, {**sent, "config": {**config, "content_type": "json"}}))
        hook = self.own.webhooks.find(owner, number)
        if hook is None:
            raise ApiError(404)
        secret = config.text("secret") or hook.settings.secret
        settings = replace(hook.settings, secret=secret, content_type=CONTENT_TYPE)
        self.own.webhooks.change(hook, settings)
        return answer(self._shape(call, hook))

    @route("DELETE", f"{_OF_REPO}/{{id}}", "repository")
    @route("DELETE", f"{_OF_ORG}/{{id}}", "organization")
    def delete(self, call: Call) -> Response:
        return self.own.delete(call)

    def _owner(self, call: Call) -> WebhookOwner:
        access = self.own.access
        if "repo" in call.request.path_params:
            return WebhookOwner(repo_id=access.administered(call).id)
        return WebhookOwner(owner_id=access.own_organisation(call, role="owner").id)

    def _shape(self, call: Call, hook: Webhook) -> Json:
        path = call.request.url.path.partition("/hooks")[0].removeprefix(API)
        api = f"{self.shapes.root_url}{API}{path}"
        return self.shapes.hook(hook, api, of_repository=bool(hook.repo_id))
