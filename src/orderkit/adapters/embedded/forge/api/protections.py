"""
Endpoints of branch protection: list, show, add, change, remove, put in order.

Only admins of the repository see them. Approvals are counted by no one here, as there are
no reviews: a rule that requires one lets nothing be merged but by force.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from orderkit.adapters.embedded.forge.api import access, fields
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    empty_answer,
    json_answer,
)
from orderkit.adapters.embedded.forge.api.shapes import Json
from orderkit.adapters.embedded.forge.protections import Rule, RuleSettings
from orderkit.adapters.embedded.forge.registry import RepoRow

_USERS = frozenset(
    {
        "push_whitelist_usernames",
        "force_push_allowlist_usernames",
        "merge_whitelist_usernames",
        "approvals_whitelist_username",
    }
)
_TEAMS = frozenset(
    {
        "push_whitelist_teams",
        "force_push_allowlist_teams",
        "merge_whitelist_teams",
        "approvals_whitelist_teams",
    }
)
_INT64 = 2**63


def index(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/branch_protections: all of them."""
    repo = access.administered(call)
    return json_answer([_shape(call, rule) for rule in call.forge.protections.of(repo.id)])


def show(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/branch_protections/{name}."""
    return json_answer(_shape(call, _found(call, access.administered(call))))


def create(call: Call) -> Response:
    """POST /repos/{owner}/{repo}/branch_protections; one of that name is a 403."""
    repo, body = _changeable(call), call.json()
    name = fields.text(body, "rule_name") or fields.text(body, "branch_name")
    if not name:
        raise ApiError(400, "both rule_name and branch_name are empty")
    if call.forge.protections.find(repo.id, name) is not None:
        raise ApiError(403, "Branch protection already exist")
    settings = dataclasses.replace(RuleSettings(), **_given(call, repo, body))
    rule = call.forge.protections.add(repo.id, name, settings, priority=_priority(body, 0))
    return json_answer(_shape(call, rule), 201)


def change(call: Call) -> Response:
    """PATCH /repos/{owner}/{repo}/branch_protections/{name}: what is given."""
    repo = _changeable(call)
    rule, body = _found(call, repo), call.json()
    settings = dataclasses.replace(rule.settings, **_given(call, repo, body))
    changed = call.forge.protections.change(rule, settings, priority=_priority(body, rule.priority))
    call.forge.pulls.check_matching(repo, changed.matches)
    return json_answer(_shape(call, changed))


def delete(call: Call) -> Response:
    """DELETE /repos/{owner}/{repo}/branch_protections/{name}."""
    call.forge.protections.remove(_found(call, _changeable(call)))
    return empty_answer()


def _changeable(call: Call) -> RepoRow:
    repo = access.administered(call)
    access.refuse_archived(repo)
    return repo


def _found(call: Call, repo: RepoRow) -> Rule:
    found = call.forge.protections.find(repo.id, call.param("name"))
    if found is None:
        raise ApiError(404)
    return found


def _priority(body: Json, default: int) -> int:
    return _number(body, "priority", default)


def _number(body: Mapping[str, Any], key: str, default: int) -> int:
    value = body.get(key)
    if value is None:
        return default
    if type(value) is not int or abs(value) >= _INT64:
        raise ApiError(422, f"[]: json: cannot unmarshal into field {key} of type int64")
    return value


def _given(call: Call, repo: RepoRow, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings that a request names, checked and with ids for names."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(RuleSettings):
        key = field.name
        if body.get(key) is None:
            continue
        if key in _USERS:
            found[key] = tuple(_user_id(call, name) for name in fields.texts(body, key))
        elif key in _TEAMS:
            found[key] = tuple(_team_id(call, repo, name) for name in fields.texts(body, key))
        elif key == "status_check_contexts":
            found[key] = fields.texts(body, key)
        elif field.type == "str":
            found[key] = fields.text(body, key)
        elif field.type == "bool":
            found[key] = fields.optional_flag(body, key)
        else:
            found[key] = _number(body, key, 0)
    return found


def _user_id(call: Call, name: str) -> int:
    found = call.forge.accounts.find(name)
    if found is None or found.is_org:
        raise ApiError(422, f"user does not exist [uid: 0, name: {name}]")
    return found.id


def _team_id(call: Call, repo: RepoRow, name: str) -> int:
    found = call.forge.accounts.teams.named(repo.owner_id, name)
    if found is None:
        raise ApiError(
            422, f"team does not exist [org_id {repo.owner_id}, team_id 0, name: {name}]"
        )
    return found.id


def _shape(call: Call, rule: Rule) -> Json:
    said: Json = {}
    for key, value in dataclasses.asdict(rule.settings).items():
        if key in _USERS:
            said[key] = [call.forge.accounts.by_id(each).name for each in value]
        elif key in _TEAMS:
            found = [call.forge.accounts.teams.find(each) for each in value]
            said[key] = [team.settings.name for team in found if team is not None]
        else:
            said[key] = list(value) if isinstance(value, tuple) else value
    return {
        "branch_name": rule.name if rule.plain else "",
        "rule_name": rule.name,
        "priority": rule.priority,
        **said,
        "created_at": rule.created,
        "updated_at": rule.updated,
    }
