"""
Endpoints of repositories: create, show, change, delete, list, search, topics.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response

from orderkit.adapters.embedded.forge import gitread
from orderkit.adapters.embedded.forge.accounts import Account
from orderkit.adapters.embedded.forge.api import access, events
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    empty_answer,
    json_answer,
    page_headers,
    paged,
    window,
)
from orderkit.adapters.embedded.forge.api.contents import make_first_commit
from orderkit.adapters.embedded.forge.api.orgs import organisation
from orderkit.adapters.embedded.forge.api.shapes import Json, repo_shape
from orderkit.adapters.embedded.forge.registry import DESCRIPTION_MAX, NewRepo, RepoRow

TOPIC = re.compile(r"[a-z0-9][-.a-z0-9]{0,34}\Z")
TOPICS_MAX = 25
TOO_MANY_TOPICS = "Exceeding maximum number of topics per repo"
DOTS = (".", "..")
"""Gitea answers 500 for these names."""
SORTS: Mapping[str, Callable[[RepoRow], tuple[str, int]]] = {
    "": lambda repo: ("", repo.id),
    "id": lambda repo: ("", repo.id),
    "alpha": lambda repo: (repo.repo.name.lower(), repo.id),
    "created": lambda repo: (repo.created, repo.id),
    "updated": lambda repo: (repo.updated, repo.id),
}


def shape(call: Call, repo: RepoRow) -> Json:
    """Return a repository as this caller sees it."""
    accounts = call.forge.accounts
    right = access.right_on(accounts, call.actor, repo)
    shown = repo_shape(repo, accounts.by_id(repo.owner_id), right, call.forge.base_url)
    return shown | call.forge.merge_settings.of(repo.id) | {"default_merge_style": "merge"}


def create_for_user(call: Call) -> Response:
    """POST /user/repos."""
    return _create(call, call.user)


def create_for_org(call: Call) -> Response:
    """POST /orgs/{org}/repos, for members whose team may create them; they administer it."""
    user, org = call.user, organisation(call)
    teams = call.forge.accounts.teams.of_user(user.id, org_id=org.id)
    if not user.admin and not any(team.settings.may_create for team in teams):
        raise ApiError(403, "User is not allowed to create repositories in this organization.")
    return _create(call, org)


def create_for_other(call: Call) -> Response:
    """POST /admin/users/{name}/repos, for site admins."""
    if not call.user.admin:
        raise ApiError(403, "user should be the site admin")
    owner = call.forge.accounts.find(call.param("name"))
    if owner is None:
        raise ApiError(404, "user redirect does not exist")
    return _create(call, owner)


def _create(call: Call, owner: Account) -> Response:
    body = call.json()
    name = _optional(body, "name", str)
    if not name:
        raise ApiError(422, "[Name]: Required")
    if name in DOTS:
        raise ApiError(500, f"name is invalid [{name}]")
    new = NewRepo(
        name=name,
        description=_description(body) or "",
        private=bool(_optional(body, "private", bool)),
        default_branch=_optional(body, "default_branch", str) or "main",
    )
    if not gitread.is_branch_name(new.default_branch):
        raise ApiError(422, f"[DefaultBranch]: GitRefName [{new.default_branch}]")
    if _optional(body, "object_format_name", str) not in (None, "", "sha1"):
        raise ApiError(422, "[ObjectFormatName]: this forge keeps sha1 repositories only")
    repo = call.forge.registry.create(owner, new)
    accounts = call.forge.accounts
    if access.right_on(accounts, call.actor, repo) < Right.ADMIN:
        accounts.teams.set_collaborator(repo.id, call.user.id, "admin")
    if _optional(body, "auto_init", bool):
        make_first_commit(call, repo)
    events.repository_changed(call.forge, repo, "created", by=call.user)
    return json_answer(shape(call, repo), 201)


def show(call: Call) -> Response:
    """GET /repos/{owner}/{repo}."""
    return json_answer(shape(call, access.repository(call, unit="")))


def change(call: Call) -> Response:
    """PATCH /repos/{owner}/{repo}: description, private, archived, default_branch."""
    repo, body = access.administered(call), call.json()
    branch = _optional(body, "default_branch", str)
    if branch and branch not in gitread.heads(repo.path):
        raise ApiError(422, f"branch does not exist [name: {branch}]")
    if _optional(body, "name", str) not in (None, "", repo.repo.name):
        raise ApiError(422, "[Name]: this forge does not rename repositories")
    changed = call.forge.registry.update(
        repo,
        description=_description(body),
        private=_optional(body, "private", bool),
        archived=_optional(body, "archived", bool),
        default_branch=branch or None,
    )
    call.forge.merge_settings.change(repo.id, body)
    return json_answer(shape(call, changed))


def delete(call: Call) -> Response:
    """DELETE /repos/{owner}/{repo}."""
    repo = access.administered(call)
    events.repository_changed(call.forge, repo, "deleted", by=call.user)
    call.forge.registry.delete(repo)
    return empty_answer()


def of_org(call: Call) -> Response:
    """GET /orgs/{org}/repos."""
    return _list(call, organisation(call))


def of_user(call: Call) -> Response:
    """GET /users/{name}/repos."""
    owner = call.forge.accounts.find(call.param("name"))
    if owner is None:
        raise ApiError(404, "user redirect does not exist")
    return _list(call, owner)


def of_current(call: Call) -> Response:
    """GET /user/repos."""
    return _list(call, call.user)


def _list(call: Call, owner: Account) -> Response:
    seen = visible(call, call.forge.registry.all(owner_id=owner.id))
    return paged(call, seen, lambda repo: shape(call, repo))


def visible(call: Call, repos: list[RepoRow]) -> list[RepoRow]:
    """Return those that the caller may read."""
    accounts, actor = call.forge.accounts, call.actor
    return [
        repo
        for repo in repos
        if access.right_on(accounts, actor, repo, "") >= Right.READ
        and not (actor.public_only and access.is_hidden(accounts, repo))
    ]


def search(call: Call) -> Response:
    """GET /repos/search: q, topic, private, archived, uid, sort, order, paged."""
    sort, order = call.query("sort"), call.query("order", "asc")
    if sort not in SORTS or order not in ("asc", "desc"):
        raise ApiError(422, f'Invalid sort mode: "{sort if sort not in SORTS else order}"')
    owner_id = call.number("uid", 0) or None
    seen = visible(call, call.forge.registry.all(owner_id=owner_id))
    found = [repo for repo in seen if _matches(call, repo)]
    found.sort(key=SORTS[sort], reverse=order == "desc")
    wanted = window(call)
    data = [shape(call, repo) for repo in found[wanted.part]]
    return json_answer({"ok": True, "data": data}, headers=page_headers(call, wanted, len(found)))


def _matches(call: Call, repo: RepoRow) -> bool:
    if call.query("archived") and call.flag("archived", default=False) != repo.archived:
        return False
    if call.query("is_private") and call.flag("is_private", default=False) != repo.private:
        return False
    if not call.flag("private", default=True) and repo.private:
        return False
    words = [word.strip().lower() for word in call.query("q").split(",") if word.strip()]
    if not words:
        return True
    if call.flag("topic", default=False):
        return any(word in repo.topics for word in words)
    text = f"{repo.repo.name} {repo.description if call.flag('includeDesc', default=False) else ''}"
    return any(word in text.lower() for word in words)


def topics(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/topics."""
    return json_answer({"topics": list(access.repository(call, unit="").topics)})


def replace_topics(call: Call) -> Response:
    """PUT /repos/{owner}/{repo}/topics."""
    repo = access.administered(call)
    wanted = call.json().get("topics") or []
    if not isinstance(wanted, list) or not all(isinstance(topic, str) for topic in wanted):
        raise ApiError(422, "[Topics]: no list of texts")
    cleaned = tuple(dict.fromkeys(topic.strip().lower() for topic in wanted))
    invalid = [topic for topic in cleaned if not TOPIC.match(topic)]
    if len(cleaned) > TOPICS_MAX:
        return _bad_topics([], TOO_MANY_TOPICS)
    if invalid:
        return _bad_topics(invalid, "Topic names are invalid")
    call.forge.registry.set_topics(repo, cleaned)
    return empty_answer()


def add_topic(call: Call) -> Response:
    """PUT /repos/{owner}/{repo}/topics/{topic}."""
    repo, topic = access.administered(call), call.param("topic").strip().lower()
    if not TOPIC.match(topic):
        return _bad_topics([topic], "Topic name is invalid")
    if topic not in repo.topics:
        if len(repo.topics) >= TOPICS_MAX:
            return _bad_topics([], TOO_MANY_TOPICS)
        call.forge.registry.set_topics(repo, (*repo.topics, topic))
    return empty_answer()


def remove_topic(call: Call) -> Response:
    """DELETE /repos/{owner}/{repo}/topics/{topic}."""
    repo, topic = access.administered(call), call.param("topic").strip().lower()
    if topic not in repo.topics:
        raise ApiError(404, "topic does not exist")
    call.forge.registry.set_topics(repo, tuple(each for each in repo.topics if each != topic))
    return empty_answer()


def _bad_topics(invalid: list[str], message: str) -> Response:
    return json_answer({"invalidTopics": invalid or None, "message": message}, 422)


def _description(body: dict[str, Any]) -> str | None:
    text: str | None = _optional(body, "description", str)
    if text is not None and len(text) > DESCRIPTION_MAX:
        raise ApiError(422, f"[Description]: MaxSize {DESCRIPTION_MAX}")
    return text


def _optional(body: dict[str, Any], key: str, type_: type[Any]) -> Any:
    value = body.get(key)
    if value is not None and not isinstance(value, type_):
        raise ApiError(422, f"json: cannot unmarshal {key} into {type_.__name__}")
    return value
