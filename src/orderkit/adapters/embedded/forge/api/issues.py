"""
Endpoints of issues, and of the comments on issues and pull requests.

Observed on Gitea 1.26.0: a comment on a missing issue is a 500, the list of an issue's comments
is not paged. Not there: assignees, milestones, due dates, locks, reactions, attachments, the
filters ``since`` and ``before``, search across repositories.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

from starlette.responses import Response

from orderkit.adapters.embedded.forge.api import access, fields, pulls, told
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    empty_answer,
    json_answer,
    paged,
)
from orderkit.adapters.embedded.forge.comments import Comment
from orderkit.adapters.embedded.forge.issues import Issue, NewIssue
from orderkit.adapters.embedded.forge.registry import RepoRow


def listed(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/issues?state=&type=&labels=, newest first."""
    repo = access.repository(call, unit=access.ISSUES)
    found = [issue for issue in call.forge.issues.all(repo.id) if _wanted(call, issue)]
    return paged(call, found, lambda issue: told.issue_as_shown(call, repo, issue))


def _wanted(call: Call, issue: Issue) -> bool:
    state, kind = call.query("state") or "open", call.query("type")
    names = {name.strip() for name in call.query("labels").split(",") if name.strip()}
    return (
        (state == "all" or (state == "closed") == bool(issue.closed))
        and (not kind or (kind == "pulls") == issue.is_pull)
        and names <= {label.name for label in call.forge.issues.labels_on(issue.id)}
    )


def show(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/issues/{index}: an issue or a pull request."""
    repo = access.repository(call, unit=access.ISSUES)
    return json_answer(told.issue_as_shown(call, repo, _issue(call, repo)))


def create(call: Call) -> Response:
    """POST /repos/{owner}/{repo}/issues, for everybody who may read; unknown labels are ignored."""
    repo, user = access.repository(call, unit=access.ISSUES), call.user
    access.refuse_archived(repo)
    body = call.json()
    ids = tuple(each for each in body.get("labels") or () if isinstance(each, int))
    may_label = access.right_on(call.forge.accounts, call.actor, repo, access.ISSUES) >= Right.WRITE
    new = NewIssue(
        user.id,
        fields.required_text(body, "title", "Title"),
        fields.text(body, "body"),
        label_ids=ids if may_label else (),
    )
    issue = call.forge.issues.create(repo.id, new)
    told.issue(call, repo, issue, "opened")
    return json_answer(told.issue_as_shown(call, repo, issue), 201)


def edit(call: Call) -> Response:
    """PATCH /repos/{owner}/{repo}/issues/{index}: title, body, state; also of a pull request."""
    repo, user, body = access.repository(call, unit=access.ISSUES), call.user, call.json()
    issue = _issue(call, repo)
    right = access.right_on(call.forge.accounts, call.actor, repo, access.ISSUES)
    if issue.poster_id != user.id and right < Right.WRITE:
        raise ApiError(403)
    state = fields.text(body, "state")
    if state not in ("", "open", "closed"):
        raise ApiError(412, f"unknown state: {state}")
    title, text = fields.text(body, "title") or None, fields.optional_text(body, "body")
    if issue.is_pull:
        pulls.change_state(call, repo, call.forge.pulls.by_id(issue.id), state or None)
        changed = call.forge.issues.edit(issue, title=title, body=text)
    else:
        closed = state == "closed" if state else None
        changed = call.forge.issues.edit(issue, title=title, body=text, closed=closed)
        if changed.closed != issue.closed:
            told.issue(call, repo, changed, "closed" if changed.closed else "reopened")
    if (changed.title, changed.body) != (issue.title, issue.body):
        told.issue(call, repo, changed, "edited")
    return json_answer(told.issue_as_shown(call, repo, changed), 201)


def _issue(call: Call, repo: RepoRow) -> Issue:
    found = call.forge.issues.find(repo.id, call.path_number("index"))
    if found is None:
        raise ApiError(404)
    return found


def comments(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/issues/{index}/comments: all of them, whatever `limit` says."""
    repo = access.repository(call, unit=access.ISSUES)
    issue = _commented(call, repo)
    found = call.forge.comments.on_issue(issue.id)
    return json_answer(
        [told.comment_as_shown(call, repo, comment) for comment in found],
        headers={"X-Total-Count": str(len(found))},
    )


def all_comments(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/issues/comments, paged."""
    repo = access.repository(call, unit=access.ISSUES)
    found = call.forge.comments.in_repository(repo.id)
    return paged(call, found, lambda comment: told.comment_as_shown(call, repo, comment))


def comment(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/issues/comments/{id}."""
    repo = access.repository(call, unit=access.ISSUES)
    return json_answer(told.comment_as_shown(call, repo, _comment(call, repo)))


def create_comment(call: Call) -> Response:
    """POST /repos/{owner}/{repo}/issues/{index}/comments, for everybody who may read."""
    repo, user = access.repository(call, unit=access.ISSUES), call.user
    access.refuse_archived(repo)
    body = fields.required_text(call.json(), "body", "Body")
    made = call.forge.comments.create(_commented(call, repo), user.id, body)
    told.comment(call, repo, made, "created")
    return json_answer(told.comment_as_shown(call, repo, made), 201)


def edit_comment(call: Call) -> Response:
    """PATCH /repos/{owner}/{repo}/issues/comments/{id}, by its author or a writer."""
    repo = access.repository(call, unit=access.ISSUES)
    access.refuse_archived(repo)
    found = _own_comment(call, repo)
    call.forge.comments.edit(found, fields.required_text(call.json(), "body", "Body"))
    edited = _comment(call, repo)
    told.comment(call, repo, edited, "edited")
    return json_answer(told.comment_as_shown(call, repo, edited))


def delete_comment(call: Call) -> Response:
    """DELETE /repos/{owner}/{repo}/issues/comments/{id}, by its author or a writer."""
    repo = access.repository(call, unit=access.ISSUES)
    found = _own_comment(call, repo)
    told.comment(call, repo, found, "deleted")
    call.forge.comments.delete(found)
    return empty_answer()


def _commented(call: Call, repo: RepoRow) -> Issue:
    """Return the issue of the path; Gitea breaks when there is none."""
    number = call.path_number("index")
    found = call.forge.issues.find(repo.id, number)
    if found is None:
        raise ApiError(500, f"issue does not exist [id: 0, repo_id: {repo.id}, index: {number}]")
    return found


def _comment(call: Call, repo: RepoRow) -> Comment:
    number = call.path_number("id")
    found = call.forge.comments.find(repo.id, number)
    if found is None:
        raise ApiError(404, errors=[f"comment does not exist [id: {number}, issue_id: 0]"])
    return found


def _own_comment(call: Call, repo: RepoRow) -> Comment:
    user, found = call.user, _comment(call, repo)
    right = access.right_on(call.forge.accounts, call.actor, repo, access.ISSUES)
    if found.poster_id != user.id and right < Right.WRITE:
        raise ApiError(403)
    return found
