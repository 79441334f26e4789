"""
Endpoints that merge: merge a pull request, ask whether it is, bring base into head.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.responses import Response

from orderkit.adapters.embedded.forge import gitmerge, gitread, gitwrite, pullgit
from orderkit.adapters.embedded.forge.api import access, fields, guarding, merging
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.calls import ApiError, Call, empty_answer
from orderkit.adapters.embedded.forge.api.merging import MergeOrder
from orderkit.adapters.embedded.forge.api.pulls import of_call, told
from orderkit.adapters.embedded.forge.api.shapes import Json
from orderkit.adapters.embedded.forge.gitmerge import Landing, MergeError
from orderkit.adapters.embedded.forge.gitwrite import Person
from orderkit.adapters.embedded.forge.mergesettings import STYLES
from orderkit.adapters.embedded.forge.mergewords import default_message, with_coauthor
from orderkit.adapters.embedded.forge.pullgit import Landed, Pull
from orderkit.adapters.embedded.forge.registry import RepoRow
from orderkit.adapters.embedded.forge.store import timestamp
from orderkit.core.names import CommitSha

MANUAL = "manually-merged"


def is_merged(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/pulls/{number}/merge: 204 merged, 404 not."""
    _, pull = of_call(call)
    if not pull.merged:
        raise ApiError(404)
    return empty_answer()


def merge(call: Call) -> Response:
    """POST /repos/{owner}/{repo}/pulls/{number}/merge; success is 200 without a body."""
    user = call.user
    access.refuse_archived(access.repository(call))
    body = call.json()
    style = fields.text(body, "Do")
    if not style:
        raise ApiError(422, "[Do]: Required")
    if style not in STYLES:
        raise ApiError(422, "[Do]: In")
    repo, pull = _admitted(call)
    if style == MANUAL:
        _mark_merged(call, repo, pull, fields.text(body, "MergeCommitID"))
        return Response()
    merging.refuse_unmergeable(call.forge, repo, pull)
    order = MergeOrder(
        style=style,
        message=_message(call, pull, body, style),
        head=fields.text(body, "head_commit_id"),
        delete_branch=_deletes(call, repo, body),
        force=body.get("force_merge") is True,
    )
    if body.get("merge_when_checks_succeed") is True:
        merging.schedule(call.forge, repo, pull, user, order)
        return Response(status_code=201)
    merging.land(call.forge, repo, pull, user, order)
    return Response()


def _admitted(call: Call) -> tuple[RepoRow, Pull]:
    """Return what is to be merged if this caller may merge at all."""
    repo, pull = of_call(call)
    if pull.merged:
        raise ApiError(405, call.forge.behaviour.merged_again_says)
    if pull.closed:
        raise ApiError(404)
    if not guarding.may_merge(call.forge, repo, call.user, pull.base):
        raise ApiError(405, "User not allowed to merge PR")
    return repo, pull


def _deletes(call: Call, repo: RepoRow, body: Json) -> bool:
    wanted = body.get("delete_branch_after_merge")
    if isinstance(wanted, bool):
        return wanted
    return call.forge.merge_settings.of(repo.id)["default_delete_branch_after_merge"]


def _message(call: Call, pull: Pull, body: Json, style: str) -> str:
    title = fields.text(body, "MergeTitleField").strip()
    text = fields.text(body, "MergeMessageField").strip()
    message = title or default_message(pull, style)
    if text:
        message += f"\n\n{text}"
    if style == "squash" and pull.poster_id != call.user.id:
        poster = call.forge.accounts.by_id(pull.poster_id)
        message = with_coauthor(message, poster.name, poster.email)
    return message


def _mark_merged(call: Call, repo: RepoRow, pull: Pull, commit_id: str) -> None:
    """Take the caller's word that a commit of the base branch is the merge."""
    merging.refuse_style(call.forge, repo, MANUAL)
    git = gitread.open_repository(repo.path)
    base = pullgit.tips(repo.path, pull).base
    full = gitread.FULL_ID.match(commit_id) is not None
    if not full or not base or not gitmerge.is_ancestor(git, commit_id, base):
        raise ApiError(409, body={})
    with call.forge.pulls.lock(repo.id):
        landed = Landed(commit_id, call.user.id, timestamp())
        call.forge.pulls.note_merge_base(pull, pullgit.merge_base(repo.path, pull))
        call.forge.landings.finish(repo, pull, landed)
    told(call, repo, pull, "closed")


def update(call: Call) -> Response:
    """POST /repos/{owner}/{repo}/pulls/{number}/update?style=merge|rebase: base into head."""
    user = call.user
    repo, pull = of_call(call)
    if pull.merged or pull.closed:
        raise ApiError(422, "%!s(<nil>)")
    rebases = call.query("style") == "rebase"
    if not guarding.may_update(call.forge, repo, user, pull.head, rebases=rebases):
        raise ApiError(403)
    tips = pullgit.tips(repo.path, pull)
    git = gitread.open_repository(repo.path)
    if not tips.head_exists or not tips.base or gitmerge.is_ancestor(git, tips.base, tips.head):
        raise ApiError(500, f"HeadBranch of PR {pull.number} is up to date")
    person = Person(user.name, user.email, datetime.now(UTC))
    words = f"Merge branch '{pull.base}' into {pull.head}"
    # rebase replays head on base; a merge makes head the first parent
    joined = (
        Landing(tips.base, tips.head, "", person, person)
        if rebases
        else Landing(tips.head, tips.base, words, person, person)
    )
    try:
        new = gitmerge.build(git, "rebase" if rebases else "merge", joined)
        gitwrite.move_branch(repo.path, pull.head, tips.head, new)
    except MergeError as error:
        verb = "rebase" if rebases else "merge"
        raise ApiError(409, f"{verb} failed because of conflict") from error
    except gitwrite.WriteError as error:
        raise ApiError(500, str(error)) from error
    call.forge.pushed(repo.repo, pull.head, CommitSha(new), by=user, before=tips.head)
    return Response()


def cancel(call: Call) -> Response:
    """DELETE /repos/{owner}/{repo}/pulls/{number}/merge: forget a scheduled merge."""
    user = call.user
    repo, pull = of_call(call)
    access.refuse_archived(repo)
    order = call.forge.auto_merges.of(pull.id)
    if order is None:
        raise ApiError(404)
    right = access.right_on(call.forge.accounts, call.actor, repo)
    if order.doer_id != user.id and right < Right.WRITE:
        raise ApiError(403, "user has no permission to cancel the scheduled auto merge")
    call.forge.auto_merges.remove(pull.id)
    return empty_answer()
