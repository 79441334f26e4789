"""
Endpoints of topics, and the search for repositories that finds them.

Observed on Gitea 1.26.0: a search by topic finds equal words only, any of several; another
search looks into names and topics, with `includeDesc` into descriptions; a repository that has
25 topics refuses even one that it has already.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from starlette.responses import Response

from orderkit.adapters.embedded.forge.api import access, fields
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    empty_answer,
    json_answer,
    page_headers,
    window,
)
from orderkit.adapters.embedded.forge.api.repos import shape, used_by, visible
from orderkit.adapters.embedded.forge.registry import RepoRow

TOPIC = re.compile(r"[a-z0-9][-.a-z0-9]{0,34}\Z")
TOPICS_MAX = 25
_Key = Callable[[RepoRow], tuple[str, int]]
SORTS: Mapping[str, _Key] = {
    "": lambda repo: (repo.repo.name.lower(), repo.id),
    "alpha": lambda repo: (repo.repo.name.lower(), repo.id),
    "id": lambda repo: ("", repo.id),
    "created": lambda repo: (repo.created, repo.id),
    "updated": lambda repo: (repo.updated, repo.id),
    "size": lambda repo: ("", repo.id),
    "git_size": lambda repo: ("", repo.id),
    "lfs_size": lambda repo: ("", repo.id),
    "stars": lambda repo: ("", repo.id),
    "forks": lambda repo: ("", repo.id),
}
"""Sizes, stars and forks are not kept: all repositories have as many."""
MODES = ("", "source", "fork", "mirror", "collaborative")


def listed(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/topics, sorted; one page of them."""
    found = sorted(access.repository(call, unit="").topics)
    shown = found[window(call).part]
    return json_answer({"topics": shown}, headers={"X-Total-Count": str(len(found))})


def replace(call: Call) -> Response:
    """PUT /repos/{owner}/{repo}/topics."""
    repo = access.administered(call)
    wanted = fields.texts(call.json(), "topics")
    cleaned = tuple(dict.fromkeys(name for topic in wanted if (name := topic.strip().lower())))
    invalid = [topic for topic in cleaned if not TOPIC.match(topic)]
    if len(cleaned) > TOPICS_MAX:
        return _refused("Exceeding maximum number of topics per repo", invalidTopics=None)
    if invalid:
        return _refused("Topic names are invalid", invalidTopics=invalid)
    call.forge.registry.set_topics(repo, cleaned)
    return empty_answer()


def add(call: Call) -> Response:
    """PUT /repos/{owner}/{repo}/topics/{topic}."""
    repo, topic = access.administered(call), _topic(call)
    if not TOPIC.match(topic):
        return _refused("Topic name is invalid", invalidTopics=topic)
    if len(repo.topics) >= TOPICS_MAX:
        return _refused("Exceeding maximum allowed topics per repo.")
    if topic not in repo.topics:
        call.forge.registry.set_topics(repo, (*repo.topics, topic))
    return empty_answer()


def remove(call: Call) -> Response:
    """DELETE /repos/{owner}/{repo}/topics/{topic}."""
    repo, topic = access.administered(call), _topic(call)
    if not TOPIC.match(topic):
        return _refused("Topic name is invalid", invalidTopics=topic)
    if topic not in repo.topics:
        raise ApiError(404)
    call.forge.registry.set_topics(repo, tuple(each for each in repo.topics if each != topic))
    return empty_answer()


def _topic(call: Call) -> str:
    return call.param("topic").strip().lower()


def _refused(message: str, **more: object) -> Response:
    return json_answer({**more, "message": message}, 422)


def search(call: Call) -> Response:
    """GET /repos/search?q=&topic=&uid=&private=&is_private=&archived=&mode=&sort=&order=."""
    sort, order, mode = call.query("sort"), call.query("order"), call.query("mode")
    if mode not in MODES:
        raise ApiError(422, f'Invalid search mode: "{mode}"')
    if sort not in SORTS:
        raise ApiError(422, f'Invalid sort mode: "{sort}"')
    if sort and order not in ("", "asc", "desc"):
        raise ApiError(422, f'Invalid sort order: "{order}"')
    seen = [] if mode in ("fork", "mirror") else visible(call, call.forge.registry.all())
    found = [repo for repo in seen if _wanted(call, repo)]
    found.sort(key=SORTS[sort], reverse=bool(sort) and order == "desc")
    wanted = window(call)
    data = [shape(call, repo) for repo in found[wanted.part]]
    return json_answer({"ok": True, "data": data}, headers=page_headers(call, wanted, len(found)))


def _wanted(call: Call, repo: RepoRow) -> bool:
    if call.actor.public_only and access.is_hidden(call.forge.accounts, repo):
        return False
    if call.query("archived") and call.flag("archived", default=False) != repo.archived:
        return False
    if call.query("is_private") and call.flag("is_private", default=False) != repo.private:
        return False
    if not call.flag("private", default=True) and repo.private:
        return False
    return _concerns(call, repo) and _named(call, repo)


def _concerns(call: Call, repo: RepoRow) -> bool:
    """Say whether a repository is the `uid`'s: owned, or used by it unless `exclusive`."""
    uid = call.number("uid", 0)
    if not uid or repo.owner_id == uid:
        return True
    return not call.flag("exclusive", default=False) and used_by(call, repo, uid)


def _named(call: Call, repo: RepoRow) -> bool:
    asked = call.query("q").strip().lower()
    if not asked:
        return True
    words = asked.split(",")
    if call.flag("topic", default=False):
        return any(word in repo.topics for word in words)
    texts = [repo.repo.name.lower(), *repo.topics]
    if call.flag("includeDesc", default=False):
        texts.append(repo.description.lower())
    return any(word in text or word == repo.full_name.lower() for word in words for text in texts)
