"""
Read from a delivery of the forge's webhook which pull requests to plan again.

Takes only repository and number from a delivery; everything else is read from the forge again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ground.errors import InvalidInputError, shorten
from ground.names import MAIN, RepoId

_EVENTS = frozenset({"pull_request", "pull_request_approved", "pull_request_rejected", "push"})
_ACTIONS = frozenset({"opened", "reopened", "synchronized", "edited", "reviewed", "closed"})
_NUMBER_MAX = 10**9
GITEA_EVENT, GITHUB_EVENT, GITLAB_EVENT = "x-gitea-event", "x-github-event", "x-gitlab-event"
"""The header with which each forge names an event, in lower case."""
_GITHUB_ACTIONS = frozenset(
    {"opened", "reopened", "synchronize", "edited", "closed", "ready_for_review"}
    | {"submitted", "dismissed"}
)
_GITLAB_MERGE_ACTIONS = frozenset(
    {"open", "reopen", "update", "close", "merge"}
    | {"approval", "approved", "unapproval", "unapproved"}
)

Asked = tuple[RepoId, int | None]
"""A repository and the number of a pull request; None: all open ones."""


def read_delivery(event: str, body: bytes) -> Asked | str:
    """
    Return what to plan, or why there is nothing to plan.

    Args:
        event: As the forge names it in its header ``X-Gitea-Event``.

    Raises:
        InvalidInputError: The body is not what the forge sends with that event.
    """
    if event not in _EVENTS:
        return _no_plan("event", event)
    payload = _payload(body)
    if event == "push":
        if payload.get("ref") != f"refs/heads/{MAIN}":
            return _no_plan("push to", payload.get("ref"))
        return _repository(payload), None
    if payload.get("action") not in _ACTIONS:
        return _no_plan("action", payload.get("action"))
    return _repository(payload), _number(payload)


def read_github_delivery(event: str, body: bytes) -> Asked | str:
    """
    Return what to plan, or why there is nothing to plan, for a delivery of GitHub.

    Args:
        event: As GitHub names it in its header ``X-GitHub-Event``.

    Raises:
        InvalidInputError: The body is not what GitHub sends with that event.
    """
    if event == "push":
        return read_delivery(event, body)
    if event not in ("pull_request", "pull_request_review"):
        return _no_plan("event", event)
    payload = _payload(body)
    if payload.get("action") not in _GITHUB_ACTIONS:
        return _no_plan("action", payload.get("action"))
    pull = payload.get("pull_request")
    return _repository(payload), _number(pull if isinstance(pull, dict) else {})


def read_gitlab_delivery(
    event: str, body: bytes, named: Callable[[str], RepoId | None]
) -> Asked | str:
    """
    Return what to plan, or why there is nothing to plan, for a delivery of GitLab.

    Args:
        event: As GitLab names it in its header ``X-Gitlab-Event``.
        named: Returns the repository of a project's full path; None: it is none of ours.

    Raises:
        InvalidInputError: The body is not what GitLab sends with that event.
    """
    if event not in ("Push Hook", "Merge Request Hook"):
        return _no_plan("event", event)
    payload = _payload(body)
    project = payload.get("project")
    name = project.get("path_with_namespace") if isinstance(project, dict) else None
    repo = named(name) if isinstance(name, str) else None
    if repo is None:
        raise InvalidInputError("project.path_with_namespace", name, "is no repository of ours")
    if event == "Push Hook":
        if payload.get("ref") != f"refs/heads/{MAIN}":
            return _no_plan("push to", payload.get("ref"))
        return repo, None
    attributes = payload.get("object_attributes")
    fields = attributes if isinstance(attributes, dict) else {}
    if fields.get("action") not in _GITLAB_MERGE_ACTIONS:
        return _no_plan("action", fields.get("action"))
    return repo, _number({"number": fields.get("iid")})


def _no_plan(subject: str, value: object) -> str:
    return f"{subject} '{shorten(str(value), limit=40)}' changes no plan"


def _payload(data: bytes) -> dict[str, Any]:
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError("body", data[:80], f"is not JSON: {error}") from error
    if not isinstance(payload, dict):
        raise InvalidInputError("body", data[:80], "is not an object")
    return payload


def _repository(payload: dict[str, Any]) -> RepoId:
    repository = payload.get("repository")
    name = repository.get("full_name") if isinstance(repository, dict) else None
    repo = RepoId.parse(name) if isinstance(name, str) else None
    if repo is None:
        raise InvalidInputError("repository.full_name", name, "names no repository")
    return repo


def _number(payload: dict[str, Any]) -> int:
    number = payload.get("number")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < _NUMBER_MAX:
        raise InvalidInputError("number", number, "is not a number of a pull request")
    return number
