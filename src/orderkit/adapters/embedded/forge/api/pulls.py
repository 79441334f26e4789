"""
Endpoints of pull requests: open, list, show, change, close.

Reviews, reviewers, assignees, milestones, due dates and forks are not kept. Merging is
``api.merges``, what a pull request changes is ``api.pulldata``.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

from starlette.responses import Response

from orderkit.adapters.embedded.forge import gitread
from orderkit.adapters.embedded.forge.accounts import Account
from orderkit.adapters.embedded.forge.api import access, events, fields
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    json_answer,
    paged,
)
from orderkit.adapters.embedded.forge.api.pullshapes import shown_to
from orderkit.adapters.embedded.forge.api.shapes import Json
from orderkit.adapters.embedded.forge.issues import Issue, NewIssue
from orderkit.adapters.embedded.forge.pullgit import Pull
from orderkit.adapters.embedded.forge.pulls import PullFilter
from orderkit.adapters.embedded.forge.registry import RepoRow

NO_CHANGES = "Invalid PullRequest: There are no changes between the head and the base"
NOT_BRANCHES = "Invalid PullRequest: base and head must be branches"
MERGED = "cannot change state of this pull request, it was already merged"


def of_call(call: Call) -> tuple[RepoRow, Pull]:
    """
    Return the repository and pull request of the path; an interrupted merge is finished.

    Raises:
        ApiError: 404, one of them is not there.
    """
    repo = access.repository(call)
    pull = call.forge.pulls.find(repo.id, call.path_number("number"))
    if pull is None:
        raise ApiError(404)
    return repo, call.forge.landings.settle(repo, pull)


def index(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/pulls?state=&base_branch=&poster=&labels=&sort=: a page."""
    repo = access.repository(call)
    wanted = PullFilter(
        state=call.query("state"),
        base=call.query("base_branch"),
        poster_id=_poster(call),
        label_ids=_label_ids(call),
        oldest_first=call.query("sort") == "oldest",
    )
    found = call.forge.pulls.index(repo.id, wanted)
    settle = call.forge.landings.settle
    return paged(call, found, lambda pull: shown_to(call, repo, settle(repo, pull)))


def _poster(call: Call) -> int:
    name = call.query("poster")
    found = call.forge.accounts.find(name) if name else None
    if name and found is None:
        raise ApiError(400, f"user does not exist [uid: 0, name: {name}]")
    return found.id if found else 0


def _label_ids(call: Call) -> tuple[int, ...]:
    given = [
        each
        for text in call.request.query_params.getlist("labels")
        for each in text.split(",")
        if each
    ]
    try:
        return tuple(int(each) for each in given)
    except ValueError as error:
        raise ApiError(500, f"labels: {error}") from error


def show(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/pulls/{number}."""
    repo, pull = of_call(call)
    return json_answer(shown_to(call, repo, pull))


def by_branches(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/pulls/{base}/{head}: the *first* one ever, open or not."""
    repo = access.repository(call)
    head = _own_branch(repo, call.param("head"))
    found = call.forge.pulls.first_between(repo.id, head=head, base=call.param("base"))
    if found is None:
        raise ApiError(404)
    return json_answer(shown_to(call, repo, call.forge.landings.settle(repo, found)))


def _own_branch(repo: RepoRow, name: str) -> str:
    where, _, branch = name.rpartition(":")
    if where and where.lower() not in (repo.repo.owner.lower(), repo.full_name.lower()):
        raise ApiError(404)
    return branch


def create(call: Call) -> Response:
    """POST /repos/{owner}/{repo}/pulls; Gitea does not ask whether there is a difference."""
    repo, user = access.repository(call), call.user
    access.refuse_archived(repo)
    body = call.json()
    head, base, title = (
        fields.required_text(body, key, key.capitalize()) for key in ("head", "base", "title")
    )
    if head == base:
        raise ApiError(422, NO_CHANGES)
    head = _own_branch(repo, head)
    _check_ends(repo, head, base)
    if access.right_on(call.forge.accounts, call.actor, repo) < Right.WRITE:
        raise ApiError(403, "user is not a collaborator")
    ids = fields.numbers(body, "labels")
    _refuse_unknown_people(call, body)
    new = NewIssue(user.id, title, fields.text(body, "body"), is_pull=True, label_ids=ids)
    pull = call.forge.pulls.create(repo, new, head=head, base=base)
    shape = shown_to(call, repo, pull)
    call.forge.pulls.checks.start(pull.id)
    events.pull_changed(call.forge, repo, lambda: shape, "opened", by=user)
    return json_answer(shape, 201)


def _refuse_unknown_people(call: Call, body: Json) -> None:
    """Assignees and reviewers have to exist, though nothing is kept of them here."""
    assignees = [*fields.texts(body, "assignees"), fields.text(body, "assignee")]
    for name in filter(None, assignees):
        if call.forge.accounts.find(name) is None:
            unknown = f"user does not exist [uid: 0, name: {name}]"
            raise ApiError(422, f"Assignee does not exist: [name: {unknown}]")
    for name in fields.texts(body, "reviewers"):
        if call.forge.accounts.find(name) is None:
            raise ApiError(404, f"User '{name}' not exist")
    if body.get("milestone"):
        raise ApiError(404)


def _check_ends(repo: RepoRow, head: str, base: str) -> None:
    git = gitread.open_repository(repo.path)
    if any(
        gitread.resolve(git, name) is None and gitread.by_short_id(git, name) is None
        for name in (head, base)
    ):
        raise ApiError(404)
    if any(gitread.branch_commit(git, name) is None for name in (head, base)):
        raise ApiError(422, NOT_BRANCHES)


def change(call: Call) -> Response:
    """PATCH /repos/{owner}/{repo}/pulls/{number}: title, body, labels, state, base."""
    repo, pull = of_call(call)
    writes = access.right_on(call.forge.accounts, call.actor, repo) >= Right.WRITE
    _admit_editor(call.user, pull, writes=writes)
    body = call.json()
    issue = call.forge.issues.find(repo.id, pull.number)
    if issue is None:
        raise ApiError(404)
    seen = body.get("content_version")
    if isinstance(seen, int) and seen != issue.version:
        raise ApiError(409, "the issue is already changed")
    _refuse_unknown_people(call, body)
    _change_words(call, repo, issue, body)
    if writes and body.get("labels") is not None:
        ids = fields.numbers(body, "labels")
        call.forge.issues.set_labels(pull.id, call.forge.issues.labels(repo.id, ids))
        told(call, repo, pull, "label_updated", event_type="pull_request_label")
    pull = change_state(call, repo, pull, fields.optional_text(body, "state"))
    pull = _change_base(call, repo, pull, fields.optional_text(body, "base"))
    return json_answer(shown_to(call, repo, call.forge.pulls.by_id(pull.id)), 201)


def told(
    call: Call,
    repo: RepoRow,
    pull: Pull,
    action: str,
    *,
    event_type: str = "pull_request",
    changes: Json | None = None,
) -> None:
    """Tell webhooks what happened to a pull request."""
    events.pull_changed(
        call.forge,
        repo,
        lambda: shown_to(call, repo, call.forge.pulls.by_id(pull.id)),
        action,
        by=call.user,
        event_type=event_type,
        changes=changes,
    )


def _change_words(call: Call, repo: RepoRow, issue: Issue, body: Json) -> None:
    title, text = fields.text(body, "title") or None, fields.optional_text(body, "body")
    call.forge.issues.edit(issue, title=title, body=text)
    for key, old, new in (("title", issue.title, title), ("body", issue.body, text)):
        if new is not None and new != old:
            changes = {key: {"from": old}, "added_labels": None, "removed_labels": None}
            told(call, repo, call.forge.pulls.by_id(issue.id), "edited", changes=changes)


def _admit_editor(user: Account, pull: Pull, *, writes: bool) -> None:
    if user.id != pull.poster_id and not writes:
        raise ApiError(403)


def change_state(call: Call, repo: RepoRow, pull: Pull, state: str | None) -> Pull:
    """
    Close or reopen a pull request, if its state is not wanted already; tell webhooks.

    Raises:
        ApiError: 412, it is merged, or there is no such state.
    """
    if state is None:
        return pull
    if pull.merged:
        raise ApiError(412, MERGED)
    if state not in ("open", "closed"):
        raise ApiError(412, f"unknown state: {state}")
    if (state == "closed") == pull.closed:
        return pull
    changed = call.forge.pulls.set_closed(repo, pull, closed=state == "closed")
    told(call, repo, changed, "closed" if changed.closed else "reopened")
    return changed


def _change_base(call: Call, repo: RepoRow, pull: Pull, base: str | None) -> Pull:
    if not base or pull.merged or base == pull.base:
        return pull
    if gitread.branch_commit(gitread.open_repository(repo.path), base) is None:
        raise ApiError(404, f"new base '{base}' not exist")
    if pull.closed:
        raise ApiError(422, f"issue is closed [id: {pull.id}, repo_id: {repo.id}]")
    changed = call.forge.pulls.retarget(repo, pull, base)
    told(call, repo, changed, "edited", changes={"ref": {"from": pull.base}})
    return changed
