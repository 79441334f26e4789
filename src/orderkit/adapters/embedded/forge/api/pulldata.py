"""
Endpoints of what a pull request changes: its commits, its files, its diff and patch.

Called through the route table in ``api.app``.
"""

from __future__ import annotations

from email.utils import format_datetime
from urllib.parse import quote

import pygit2
from pygit2.enums import DeltaStatus, DiffStatsFormat
from starlette.responses import Response

from orderkit.adapters.embedded.forge import gitmerge, gitread, pullgit
from orderkit.adapters.embedded.forge.api.calls import (
    ApiError,
    Call,
    json_answer,
    page_headers,
    window,
)
from orderkit.adapters.embedded.forge.api.pulls import of_call
from orderkit.adapters.embedded.forge.api.shapes import Json, commit_shape, signed_at
from orderkit.adapters.embedded.forge.pullgit import Pull
from orderkit.adapters.embedded.forge.registry import RepoRow

_STATUS = {
    DeltaStatus.ADDED: "added",
    DeltaStatus.DELETED: "deleted",
    DeltaStatus.MODIFIED: "changed",
    DeltaStatus.RENAMED: "renamed",
}
_MBOX_DATE = "Mon Sep 17 00:00:00 2001"
"""What ``git format-patch`` writes after the commit id, so that tools know it."""
_STAT_WIDTH = 72


def _range(repo: RepoRow, pull: Pull) -> tuple[pygit2.Repository, str, str]:
    """Return the repository and where the changes of a pull request begin and end."""
    git = gitread.open_repository(repo.path)
    head = pullgit.last_head(repo.path, pull)
    tips = pullgit.tips(repo.path, pull)
    if not head or (not pull.merged and not tips.base):
        raise ApiError(404, "invalid base branch or revision")
    if not pull.merged and not gitmerge.merge_base_of(git, tips.base, head):
        raise ApiError(500, f"MergeBase: get merge-base of {tips.base} and {head} failed")
    return git, pullgit.merge_base(repo.path, pull), head


def _page(call: Call, total: int) -> tuple[slice, dict[str, str]]:
    wanted = window(call)
    more = {
        "X-Page": str(wanted.page),
        "X-PerPage": str(wanted.limit),
        "X-PageCount": str(wanted.pages(total)),
        "X-HasMore": str(wanted.page < wanted.pages(total)).lower(),
    }
    return wanted.part, page_headers(call, wanted, total) | more


def commits(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/pulls/{number}/commits, newest first."""
    repo, pull = of_call(call)
    git, base, head = _range(repo, pull)
    if not pull.merged:
        base = pullgit.tips(repo.path, pull).base
    found = gitmerge.commits_between(git, base, head)
    part, headers = _page(call, len(found))
    shapes = [commit_shape(repo, each, call.forge.base_url) for each in found[part]]
    return json_answer(shapes, headers=headers)


def files(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/pulls/{number}/files."""
    repo, pull = of_call(call)
    git, base, head = _range(repo, pull)
    diff = _diff(git, base, head)
    part, headers = _page(call, len(diff))
    patches = [each for each in diff if each is not None]
    shapes = [_file(call, repo, each, head) for each in patches[part]]
    return json_answer(shapes, headers=headers)


def _diff(git: pygit2.Repository, base: str, head: str) -> pygit2.Diff:
    diff = git.diff(base, head)
    diff.find_similar()
    return diff


def _file(call: Call, repo: RepoRow, patch: pygit2.Patch, head: str) -> Json:
    delta = patch.delta
    path = delta.new_file.path or delta.old_file.path
    _, added, removed = patch.line_stats
    address, name = f"{call.forge.base_url}/{repo.full_name}", quote(path)
    api = f"{call.forge.base_url}/api/v1/repos/{repo.full_name}"
    shape: Json = {
        "filename": path,
        "status": _STATUS.get(delta.status, "changed"),
        "additions": added,
        "deletions": removed,
        "changes": added + removed,
        "html_url": f"{address}/src/commit/{head}/{name}",
        "contents_url": f"{api}/contents/{name}?ref={head}",
        "raw_url": f"{address}/raw/commit/{head}/{name}",
    }
    if delta.status == DeltaStatus.RENAMED:
        shape["previous_filename"] = delta.old_file.path
    return shape


def diff(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/pulls/{number}.diff: what ``git apply`` reads."""
    repo, pull = of_call(call)
    git, base, head = _range(repo, pull)
    return _text(git.diff(base, head).patch or "")


def patch(call: Call) -> Response:
    """GET /repos/{owner}/{repo}/pulls/{number}.patch: what ``git am`` reads."""
    repo, pull = of_call(call)
    git, base, head = _range(repo, pull)
    found = [each for each in gitmerge.commits_between(git, base, head) if len(each.parents) == 1]
    total = len(found)
    return _text(
        "".join(
            _mail(git, commit, f"{number}/{total}" if total > 1 else "")
            for number, commit in enumerate(reversed(found), 1)
        )
    )


def _mail(git: pygit2.Repository, commit: pygit2.Commit, place: str) -> str:
    subject, _, body = gitread.message(commit).partition("\n")
    changed = git.diff(commit.parents[0], commit)
    stats = changed.stats.format(
        DiffStatsFormat.FULL | DiffStatsFormat.INCLUDE_SUMMARY, _STAT_WIDTH
    )
    name, email = gitread.name_and_email(commit.author)
    note = f"{body.strip()}\n" if body.strip() else ""
    return (
        f"From {commit.id} {_MBOX_DATE}\n"
        f"From: {name} <{email}>\n"
        f"Date: {format_datetime(signed_at(commit.author))}\n"
        f"Subject: [PATCH{' ' + place if place else ''}] {subject}\n\n"
        f"{note}---\n{stats}\n{changed.patch or ''}-- \nlibgit2 {pygit2.LIBGIT2_VERSION}\n\n"
    )


def _text(text: str) -> Response:
    headers = {"X-Content-Type-Options": "nosniff"}
    return Response(text, headers=headers, media_type="text/plain; charset=utf-8")
