"""
Endpoints of webhooks: of repositories, for their admins, and of organisations, for owners.

Observed on Gitea 1.26.0: `active` is false unless asked for; a change without a list of events
falls back to ``push``, without a filter or authorization header to none; two webhooks may have
one address. Types other than ``gitea`` and ``gogs`` are refused: they have payloads of their own.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response

from orderkit.adapters.embedded.forge import gitread
from orderkit.adapters.embedded.forge.api import access, events, fields, orgs
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    empty_answer,
    json_answer,
    paged,
)
from orderkit.adapters.embedded.forge.api.shapes import Json
from orderkit.adapters.embedded.forge.hooks import Hook, HookOwner, HookSettings, events_meant
from orderkit.adapters.embedded.globs import compile_glob
from orderkit.core.errors import InvalidInputError

TYPES = ("gitea", "gogs")
CONTENT_TYPES = ("json", "form")
NAME_MAX = 255


def hook_shape(hook: Hook) -> Json:
    """Return a webhook; its secret is never shown."""
    settings = hook.settings
    return {
        "id": hook.id,
        "name": settings.name,
        "type": "gitea",
        "branch_filter": settings.branch_filter,
        "config": {"content_type": settings.content_type, "url": settings.url},
        "events": sorted(settings.events),
        "authorization_header": settings.authorization,
        "active": settings.active,
        "updated_at": hook.updated,
        "created_at": hook.created,
    }


def listed(call: Call) -> Response:
    """GET …/hooks."""
    return paged(call, call.forge.hooks.of(_place(call)), hook_shape)


def show(call: Call) -> Response:
    """GET …/hooks/{id}."""
    return json_answer(hook_shape(_hook(call, _place(call))))


def create(call: Call) -> Response:
    """POST …/hooks."""
    place, body = _place(call), call.json()
    kind = fields.required_text(body, "type", "Type")
    if body.get("config") is None:
        raise ApiError(422, "[Config]: Required")
    if kind not in TYPES:
        raise ApiError(422, f"Invalid hook type: {kind}")
    config = fields.text_mapping(body, "config")
    for key in ("url", "content_type"):
        if key not in config:
            raise ApiError(422, f"Missing config option: {key}")
    settings = HookSettings(
        url=config["url"],
        content_type=config["content_type"],
        secret=config.get("secret", ""),
        active=bool(fields.optional_flag(body, "active")),
        **_common(body),
    )
    return json_answer(hook_shape(call.forge.hooks.create(place, _checked(settings))), 201)


def edit(call: Call) -> Response:
    """PATCH …/hooks/{id}; what Gitea does not keep when it is left out falls back."""
    place, body = _place(call), call.json()
    hook = _hook(call, place)
    config, active = fields.text_mapping(body, "config"), fields.optional_flag(body, "active")
    common = _common(body)
    if body.get("name") is None:
        common["name"] = hook.settings.name
    settings = replace(
        hook.settings,
        url=config.get("url", hook.settings.url),
        content_type=config.get("content_type", hook.settings.content_type),
        active=hook.settings.active if active is None else active,
        **common,
    )
    call.forge.hooks.change(hook, _checked(settings))
    return json_answer(hook_shape(_hook(call, place)))


def delete(call: Call) -> Response:
    """DELETE …/hooks/{id}."""
    call.forge.hooks.delete(_hook(call, _place(call)))
    return empty_answer()


def try_out(call: Call) -> Response:
    """POST /repos/{owner}/{repo}/hooks/{id}/tests: a push event about a commit that is there."""
    repo = access.administered(call)
    ref = call.query("ref") or gitread.HEADS + repo.default_branch
    commit = gitread.resolve(gitread.open_repository(repo.path), ref.removeprefix(gitread.HEADS))
    if commit is None:
        return empty_answer()
    hook = _hook(call, HookOwner(repo_id=repo.id))
    events.push_again(call.forge, hook, repo, ref, commit, by=call.user)
    return empty_answer()


def _place(call: Call) -> HookOwner:
    if "repo" in call.request.path_params:
        return HookOwner(repo_id=access.administered(call).id)
    return HookOwner(owner_id=orgs.owned(call).id)


def _hook(call: Call, place: HookOwner) -> Hook:
    found = call.forge.hooks.find(place, call.path_number("id"))
    if found is None:
        raise ApiError(404)
    return found


def _common(body: Mapping[str, Any]) -> dict[str, Any]:
    name, branches = fields.text(body, "name").strip(), fields.text(body, "branch_filter")
    if len(name) > NAME_MAX:
        raise ApiError(422, f"[Name]: MaxSize {NAME_MAX}")
    try:
        compile_glob(branches)
    except InvalidInputError as error:
        raise ApiError(422, f"[BranchFilter]: {error}") from error
    return {
        "name": name,
        "branch_filter": branches,
        "events": events_meant(fields.texts(body, "events")),
        "authorization": fields.text(body, "authorization_header"),
    }


def _checked(settings: HookSettings) -> HookSettings:
    if settings.content_type not in CONTENT_TYPES:
        raise ApiError(422, "Invalid content type")
    if not _is_url(settings.url):
        raise ApiError(422, "Invalid url")
    return settings


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.netloc) and parts.port != 0
    except ValueError:
        return False
