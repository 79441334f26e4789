"""
Endpoints of labels: those of a repository, and which of them an issue or pull request has.

Observed on Gitea 1.26.0: names may repeat, unknown ids and names are ignored when labels are
put on an issue, and an archived repository still takes labels. Labels of organisations are
not kept.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from orderkit.adapters.embedded.forge.api import access, fields, told
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    empty_answer,
    json_answer,
    paged,
)
from orderkit.adapters.embedded.forge.api.issueshapes import label_shape
from orderkit.adapters.embedded.forge.issues import Issue, Label
from orderkit.adapters.embedded.forge.registry import RepoRow


def listed(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/labels, by name."""
    repo = access.repository(call, unit="")
    found = call.forge.issues.labels(repo.id)
    return paged(call, found, lambda label: label_shape(repo, label, call.forge.base_url))


def show(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/labels/{id}."""
    repo = access.repository(call, unit="")
    return json_answer(label_shape(repo, _label(call, repo), call.forge.base_url))


def create(call: Call) -> Response:
    """POST /repos/{owner}/{repo}/labels."""
    repo, body = access.maintained(call, access.ISSUES), call.json()
    label = call.forge.labels.create(
        repo.id,
        fields.required_text(body, "name", "Name"),
        fields.required_text(body, "color", "Color"),
        description=fields.text(body, "description"),
        exclusive=bool(fields.optional_flag(body, "exclusive")),
    )
    return json_answer(label_shape(repo, label, call.forge.base_url), 201)


def edit(call: Call) -> Response:
    """PATCH /repos/{owner}/{repo}/labels/{id}: what is given."""
    repo, body = access.maintained(call, access.ISSUES), call.json()
    label = call.forge.labels.edit(
        _label(call, repo),
        name=fields.optional_text(body, "name"),
        color=fields.optional_text(body, "color"),
        description=fields.optional_text(body, "description"),
        exclusive=fields.optional_flag(body, "exclusive"),
        archived=fields.optional_flag(body, "is_archived"),
    )
    return json_answer(label_shape(repo, label, call.forge.base_url))


def delete(call: Call) -> Response:
    """DELETE /repos/{owner}/{repo}/labels/{id}; 204 also if there is none."""
    repo = access.maintained(call, access.ISSUES)
    call.forge.labels.delete(repo.id, call.path_number("id"))
    return empty_answer()


def _label(call: Call, repo: RepoRow) -> Label:
    found = call.forge.labels.find(repo.id, call.path_number("id"))
    if found is None:
        raise ApiError(404)
    return found


def on_issue(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/issues/{index}/labels."""
    repo = access.repository(call, unit="")
    return _shown(call, repo, _issue(call, repo))


def add(call: Call) -> Response:
    """POST /repos/{owner}/{repo}/issues/{index}/labels."""
    repo, issue = _labelled(call)
    wanted = _wanted(call, repo)
    return _set(call, repo, issue, [*call.forge.issues.labels_on(issue.id), *wanted])


def replace(call: Call) -> Response:
    """PUT /repos/{owner}/{repo}/issues/{index}/labels."""
    repo, issue = _labelled(call)
    return _set(call, repo, issue, _wanted(call, repo))


def clear(call: Call) -> Response:
    """DELETE /repos/{owner}/{repo}/issues/{index}/labels."""
    repo, issue = _labelled(call)
    _set(call, repo, issue, [])
    return empty_answer()


def remove(call: Call) -> Response:
    """DELETE /repos/{owner}/{repo}/issues/{index}/labels/{id}; 422 if there is no such label."""
    repo, issue = _labelled(call)
    label = call.forge.labels.find(repo.id, call.path_number("id"))
    if label is None:
        raise ApiError(422, "label does not exist [label_id: 0]")
    kept = [each for each in call.forge.issues.labels_on(issue.id) if each.id != label.id]
    _set(call, repo, issue, kept)
    return empty_answer()


def _issue(call: Call, repo: RepoRow) -> Issue:
    found = call.forge.issues.find(repo.id, call.path_number("index"))
    if found is None:
        raise ApiError(404)
    return found


def _labelled(call: Call) -> tuple[RepoRow, Issue]:
    repo, _ = access.repository(call, unit=""), call.user
    issue = _issue(call, repo)
    if access.right_on(call.forge.accounts, call.actor, repo, access.ISSUES) < Right.WRITE:
        raise ApiError(403, "write permission is required")
    return repo, issue


def _wanted(call: Call, repo: RepoRow) -> list[Label]:
    """Return the labels that the body names; what the repository does not have is ignored."""
    named = _named(call.json())
    return [
        label
        for label in call.forge.issues.labels(repo.id)
        if label.id in named or label.name in named
    ]


def _named(body: Mapping[str, Any]) -> frozenset[int | str]:
    found = body.get("labels") or []
    if not isinstance(found, list):
        raise ApiError(422, "[]: json: cannot unmarshal into field labels of type []interface {}")
    texts = [each for each in found if isinstance(each, str)]
    numbers = [each for each in found if isinstance(each, int) and not isinstance(each, bool)]
    if len(texts) not in (0, len(found)) or len(texts) + len(numbers) != len(found):
        raise ApiError(400, "labels should be an array of strings or integers")
    return frozenset((*texts, *numbers))


def _set(call: Call, repo: RepoRow, issue: Issue, labels: list[Label]) -> Response:
    before = {label.id for label in call.forge.issues.labels_on(issue.id)}
    after = {label.id: label for label in labels}
    if before != set(after):
        call.forge.issues.set_labels(issue.id, after.values())
        call.forge.issues.touch(issue.id)
        told.labelled(call, repo, issue)
    return _shown(call, repo, issue)


def _shown(call: Call, repo: RepoRow, issue: Issue) -> Response:
    found = call.forge.issues.labels_on(issue.id)
    return json_answer([label_shape(repo, label, call.forge.base_url) for label in found])
