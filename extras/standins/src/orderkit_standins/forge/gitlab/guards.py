"""
Endpoints of protected branches and of webhooks, and what GitLab sends to a webhook.

A payload is made from what the forge sends to one of Gitea's.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from starlette.responses import Response

from ground.errors import ConflictError
from orderkit_standins.forge import git_read
from orderkit_standins.forge.accounts import Account
from orderkit_standins.forge.api.access import Right
from orderkit_standins.forge.gitlab.face import Ask, GitLabError, Json, answer, at, paged
from orderkit_standins.forge.gitlab.places import Places
from orderkit_standins.forge.protections import Protections, Rule, RuleSettings
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.teams import OWNERS
from orderkit_standins.forge.webhooks import Webhook, WebhookOwner, Webhooks, WebhookSettings

_SWITCHES = (
    ("push_events", frozenset({"push"})),
    ("issues_events", frozenset({"issues"})),
    (
        "merge_requests_events",
        frozenset({"pull_request", "pull_request_sync", "pull_request_review"}),
    ),
)
"""Events of the forge by the switch of GitLab that stands for them."""


@dataclass(frozen=True, slots=True)
class GuardEndpoints:
    """Endpoints of protected branches and webhooks. `premium`: rules may name users."""

    places: Places
    protections: Protections
    hooks: Webhooks
    premium: bool

    # Protected branches

    @at("GET", "projects/:id/protected_branches")
    def rules(self, ask: Ask) -> Response:
        repo = self.places.project(ask, Right.ADMIN)
        return paged(ask, [self._shape(r) for r in self.protections.of_repository(repo.id)])

    @at("POST", "projects/:id/protected_branches")
    def protect(self, ask: Ask) -> Response:
        repo, name = self.places.project(ask, Right.ADMIN), str(ask.field("name"))
        if self.protections.find(repo.id, name) is not None:
            raise GitLabError(409, f"Protected branch '{name}' already exists")
        owners = self.places.teams.named(repo.owner_id, OWNERS)
        settings = RuleSettings(block_admin_merge_override=True)
        for kind in ("push", "merge"):
            level = int(ask.field(f"{kind}_access_level", 40))
            asked = ask.field(f"allowed_to_{kind}") if self.premium else None
            users = tuple(int(e["user_id"]) for e in asked or () if e.get("user_id"))
            teams = (owners.id,) if owners and not users and level == 40 else ()  # noqa: PLR2004
            narrow = level != 30 or bool(users)  # noqa: PLR2004
            changes: Json = {
                f"enable_{kind}_whitelist": narrow,
                f"{kind}_whitelist_usernames": users,
                f"{kind}_whitelist_teams": teams,
            }
            settings = replace(settings, **changes)
        settings = self.places.waiting(repo, replace(settings, enable_push=True))
        rule = self.protections.add(repo.id, name, settings)
        return answer(self._shape(rule), 201)

    @at("DELETE", "projects/:id/protected_branches/:name")
    def unprotect(self, ask: Ask) -> Response:
        repo = self.places.project(ask, Right.ADMIN)
        rule = self.protections.find(repo.id, ask.params["name"])
        if rule is None:
            raise GitLabError(404, "404 Not found")
        self.protections.remove(rule)
        return Response(status_code=204)

    def _shape(self, rule: Rule) -> Json:
        s = rule.settings
        push = (
            [{"access_level": 0}]
            if not s.enable_push
            else _levels(
                s.push_whitelist_usernames, s.push_whitelist_teams, narrow=s.enable_push_whitelist
            )
        )
        merge = _levels(
            s.merge_whitelist_usernames, s.merge_whitelist_teams, narrow=s.enable_merge_whitelist
        )
        return {
            "id": rule.id,
            "name": rule.name,
            "push_access_levels": push,
            "merge_access_levels": merge,
            "allow_force_push": False,
        }

    # Webhooks

    @at("GET", "projects/:id/hooks")
    def project_hooks(self, ask: Ask) -> Response:
        return self._list(ask, self._project(ask))

    @at("GET", "groups/:id/hooks")
    def group_hooks(self, ask: Ask) -> Response:
        return self._list(ask, self._group(ask))

    @at("POST", "projects/:id/hooks")
    def add_project_hook(self, ask: Ask) -> Response:
        return self._add(ask, self._project(ask))

    @at("POST", "groups/:id/hooks")
    def add_group_hook(self, ask: Ask) -> Response:
        return self._add(ask, self._group(ask))

    @at("PUT", "projects/:id/hooks/:hook")
    def change_project_hook(self, ask: Ask) -> Response:
        return self._change(ask, self._project(ask))

    @at("PUT", "groups/:id/hooks/:hook")
    def change_group_hook(self, ask: Ask) -> Response:
        return self._change(ask, self._group(ask))

    @at("DELETE", "projects/:id/hooks/:hook")
    def drop_project_hook(self, ask: Ask) -> Response:
        self.hooks.delete(self._hook(ask, self._project(ask)))
        return Response(status_code=204)

    @at("DELETE", "groups/:id/hooks/:hook")
    def drop_group_hook(self, ask: Ask) -> Response:
        self.hooks.delete(self._hook(ask, self._group(ask)))
        return Response(status_code=204)

    def _project(self, ask: Ask) -> WebhookOwner:
        repo: Repository = self.places.project(ask, Right.ADMIN)
        return WebhookOwner(repo_id=repo.id)

    def _group(self, ask: Ask) -> WebhookOwner:
        org: Account = self.places.owned_org(ask)
        if not self.premium:
            raise GitLabError(404, "404 Not found")
        return WebhookOwner(owner_id=org.id)

    def _list(self, ask: Ask, owner: WebhookOwner) -> Response:
        return paged(ask, [_hook_shape(hook) for hook in self.hooks.of_owner(owner)])

    def _add(self, ask: Ask, owner: WebhookOwner) -> Response:
        blank = WebhookSettings("", f"gitlab:{self.places.group}", active=True, events=frozenset())
        try:
            hook = self.hooks.create(owner, _settings(ask, blank))
        except ConflictError as error:
            raise GitLabError(422, str(error)) from error
        return answer(_hook_shape(hook), 201)

    def _change(self, ask: Ask, owner: WebhookOwner) -> Response:
        hook = self._hook(ask, owner)
        self.hooks.change(hook, _settings(ask, hook.settings))
        return answer(_hook_shape(self._hook(ask, owner)))

    def _hook(self, ask: Ask, owner: WebhookOwner) -> Webhook:
        hook = self.hooks.find(owner, int(ask.params["hook"]))
        if hook is None:
            raise GitLabError(404, "404 Not found")
        return hook


def _levels(users: Sequence[int], teams: Sequence[int], *, narrow: bool) -> list[Json]:
    if not narrow:
        return [{"access_level": 30}]
    levels: list[Json] = [{"access_level": 40, "user_id": user} for user in users]
    return levels + [{"access_level": 40} for _ in teams[:1]]


def _settings(ask: Ask, before: WebhookSettings) -> WebhookSettings:
    """
    Return the settings after a request.

    Raises:
        GitLabError: 422, no address.
    """
    url = str(ask.field("url", before.url))
    if not url.startswith(("http://", "https://")):
        raise GitLabError(422, {"url": ["is blocked: Only allowed schemes are http, https"]})
    events = set(before.events)
    for key, names in _SWITCHES:
        if key in ask.body:
            events = events | names if ask.body[key] else events - names
    secret = str(ask.field("signing_token") or before.secret)
    return replace(before, url=url, events=frozenset(events), secret=secret)


def _hook_shape(hook: Webhook) -> Json:
    settings = hook.settings
    return {
        "id": hook.id,
        "url": settings.url,
        **{key: names <= settings.events for key, names in _SWITCHES},
        "enable_ssl_verification": True,
        "signing_token_present": settings.secret.startswith("whsec_"),
        "token_present": False,
    }


Payload = dict[str, Any]

MARK = "gitlab:"
"""How the content type of such a webhook begins; the rest is the path of the group."""
_ACTIONS = {
    "opened": "open",
    "closed": "close",
    "reopened": "reopen",
    "edited": "update",
    "synchronized": "update",
}
_VERDICTS = {
    "pull_request_review_approved": "approved",
    "pull_request_review_rejected": "unapproved",
}


def headers_and_body(
    hook: Webhook, repo: Repository, event_type: str, payload: Payload
) -> tuple[dict[str, str], bytes] | None:
    """Return the headers and the body of a delivery, signed if the webhook has a token."""
    if event_type in ("pull_request_comment", "issue_comment"):
        return None  # notes have an event of their own, which nobody asks for
    group, secret = hook.settings.content_type.removeprefix(MARK), hook.settings.secret
    event = "Push Hook" if event_type == "push" else "Merge Request Hook"
    shape = _push(payload) if event_type == "push" else _merge_request(repo, event_type, payload)
    found, full = payload["repository"], payload["repository"]["full_name"]
    project = {
        "id": found["id"],
        "name": found["name"],
        "description": found["description"],
        "web_url": found["html_url"],
        "namespace": found["owner"]["login"],
        "path_with_namespace": f"{group}/{full}" if group else full,
        "default_branch": found["default_branch"],
    }
    body = json.dumps({**shape, "project": project}, ensure_ascii=False).encode()
    message, stamp = str(uuid.uuid4()), str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "GitLab/19.5.0",
        "X-Gitlab-Event": event,
        "X-Gitlab-Event-UUID": str(uuid.uuid4()),
        "Idempotency-Key": message,
    }
    if secret.startswith("whsec_"):
        key = base64.b64decode(secret.removeprefix("whsec_"))
        content = f"{message}.{stamp}.".encode() + body
        digest = hmac.new(key, content, hashlib.sha256).digest()
        headers |= {"webhook-id": message, "webhook-timestamp": stamp}
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return headers, body


def _push(payload: Payload) -> Payload:
    sender = payload["sender"]
    return {
        "object_kind": "push",
        "event_name": "push",
        "before": payload["before"],
        "after": payload["after"],
        "ref": payload["ref"],
        "checkout_sha": payload["after"],
        "user_id": sender["id"],
        "user_name": sender["login"],
        "user_username": sender["login"],
        "project_id": payload["repository"]["id"],
        "commits": [{"id": c["id"], "message": c["message"]} for c in payload["commits"]],
        "total_commits_count": payload["total_commits"],
    }


def _merge_request(repo: Repository, event_type: str, payload: Payload) -> Payload:
    pull, sender = payload["pull_request"], payload["sender"]
    action = _VERDICTS.get(event_type) or _ACTIONS.get(payload["action"], "update")
    state = "merged" if pull["merged"] else {"open": "opened"}.get(pull["state"], "closed")
    head, project = pull["head"]["sha"], payload["repository"]["id"]
    commit = git_read.commit_by_id(git_read.open_repository(repo.path), head)
    attributes = {
        "id": pull["id"],
        "iid": pull["number"],
        "source_project_id": project,
        "target_project_id": project,
        "url": pull["html_url"],
        "title": pull["title"],
        "description": pull["body"],
        "draft": pull["draft"],
        "state": state,
        "action": "merge" if pull["merged"] else action,
        "source_branch": pull["head"]["label"],
        "target_branch": pull["base"]["ref"],
        "last_commit": {"id": head, "message": git_read.message(commit) if commit else ""},
    }
    user = {"id": sender["id"], "username": sender["login"]}
    user["name"] = sender["login"]
    kind = {"object_kind": "merge_request", "event_type": "merge_request"}
    return {**kind, "user": user, "object_attributes": attributes, "changes": {}}
