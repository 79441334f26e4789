"""
Endpoints of commit statuses: say one, list all, combine the last of each context.

As in Gitea the state is called ``state`` when it is sent and ``status`` in what is answered,
an unknown commit is a 500 when written to and an empty list when asked for by ``/statuses``.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

import pygit2
from starlette.responses import Response

from orderkit.adapters.embedded.forge import gitread
from orderkit.adapters.embedded.forge.api import access, events, fields, merging
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    json_answer,
    page_headers,
    paged,
    window,
)
from orderkit.adapters.embedded.forge.api.shapes import Json, account_shape, repo_shape
from orderkit.adapters.embedded.forge.registry import RepoRow
from orderkit.adapters.embedded.forge.statuses import NewStatus, Status, combined


def create(call: Call) -> Response:
    """POST /repos/{owner}/{repo}/statuses/{sha}, also in an archive."""
    user = call.user
    repo = access.repository(call)
    if access.right_on(call.forge.accounts, call.actor, repo) < Right.WRITE:
        raise ApiError(403, "user should have a permission to write to a repo")
    body = call.json()
    said = NewStatus(
        *(fields.text(body, key) for key in ("context", "state", "description", "target_url"))
    )
    sha = call.param("sha")
    commit = _commit(repo, sha)
    if commit is None:
        raise ApiError(500, f"GetCommit[{sha}]: object does not exist [id: {sha}, rel_path: ]")
    made = call.forge.statuses.add(repo.id, str(commit.id), said, by=user.id)
    shape = _shape(call, repo, made)
    events.status_set(call.forge, repo, commit, shape, by=user)
    if said.state == "success":
        merging.land_scheduled(call.forge, repo, head=str(commit.id))
    return json_answer(shape, 201)


def index(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/statuses/{sha}: full commit ids only, unknown ones have none."""
    return _listed(call, access.repository(call), call.param("sha"))


def of_ref(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/commits/{ref}/statuses."""
    repo = access.repository(call)
    return _listed(call, repo, str(_known(call, repo).id))


def _listed(call: Call, repo: RepoRow, sha: str) -> Response:
    found = call.forge.statuses.of(repo.id, sha)
    state, sort = call.query("state"), call.query("sort")
    if state:
        found = [each for each in found if each.said.state == state]
    if sort == "highestindex":
        found.reverse()
    elif sort not in ("oldest", "leastindex"):
        found.sort(key=lambda each: each.created, reverse=True)
    return paged(call, found, lambda each: _shape(call, repo, each))


def combine(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/commits/{ref}/status: one page; its state is that of the page."""
    repo = access.repository(call)
    sha = str(_known(call, repo).id)
    latest = call.forge.statuses.latest(repo.id, sha)
    wanted = window(call)
    shown = sorted(latest[wanted.part], key=lambda each: each.index)
    accounts, base = call.forge.accounts, call.forge.base_url
    right = access.right_on(accounts, call.actor, repo)
    address = f"{base}/api/v1/repos/{repo.full_name}/commits/{sha}"
    return json_answer(
        {
            "state": combined(each.said.state for each in shown)
            if latest
            else call.forge.behaviour.unreported_state,
            "sha": sha,
            "total_count": len(shown),
            "statuses": [_shape(call, repo, each) for each in shown] or None,
            "repository": repo_shape(repo, accounts.by_id(repo.owner_id), right, base),
            "commit_url": address,
            "url": f"{address}/status",
        },
        headers=page_headers(call, wanted, len(latest)),
    )


def _known(call: Call, repo: RepoRow) -> pygit2.Commit:
    ref = call.param("ref")
    found = _commit(repo, ref)
    if found is None:
        raise ApiError(404, errors=[f"object does not exist [id: {ref}, rel_path: ]"])
    return found


def _commit(repo: RepoRow, ref: str) -> pygit2.Commit | None:
    git = gitread.open_repository(repo.path)
    return gitread.resolve(git, ref) or gitread.by_short_id(git, ref)


def _shape(call: Call, repo: RepoRow, status: Status) -> Json:
    base = call.forge.base_url
    creator = call.forge.accounts.by_id(status.creator_id)
    return {
        "id": status.index,
        "status": status.said.state,
        "target_url": status.said.target_url,
        "description": status.said.description,
        "url": f"{base}/api/v1/repos/{repo.full_name}/statuses/{status.sha}",
        "context": status.said.context,
        "creator": account_shape(creator, base),
        "created_at": status.created,
        "updated_at": status.created,
    }
