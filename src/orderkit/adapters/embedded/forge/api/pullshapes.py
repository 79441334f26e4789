"""
What pull requests look like in Gitea's API.

Called by the endpoints of pull requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orderkit.adapters.embedded.forge import gitmerge, pullgit
from orderkit.adapters.embedded.forge.api import access
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.api.calls import ApiError, Call
from orderkit.adapters.embedded.forge.api.issueshapes import issue_url, label_shape
from orderkit.adapters.embedded.forge.api.shapes import Json, account_shape, repo_shape
from orderkit.adapters.embedded.forge.pullgit import PULL_REF, Pull
from orderkit.adapters.embedded.forge.registry import RepoRow

if TYPE_CHECKING:
    from orderkit.adapters.embedded.forge.forge import EmbeddedForge

_MERGEABLE = ("mergeable", "empty", "ancestor")
"""States in which the API says ``mergeable``; only the first two can be merged."""


def shown_to(call: Call, repo: RepoRow, pull: Pull) -> Json:
    """Return a pull request as this caller sees it."""
    right = access.right_on(call.forge.accounts, call.actor, repo)
    return pull_shape(call.forge, repo, pull, right)


def pull_shape(forge: EmbeddedForge, repo: RepoRow, pull: Pull, right: Right) -> Json:
    """Return a pull request as somebody with this right sees it."""
    issue = forge.issues.find(repo.id, pull.number)
    if issue is None:
        raise ApiError(404)
    address = issue_url(repo, issue, forge.base_url)
    state = pullgit.state(repo.path, pull, forge.pulls.checks)
    return {
        "id": pull.id,
        "url": address,
        "number": pull.number,
        "user": account_shape(forge.accounts.by_id(pull.poster_id), forge.base_url),
        "title": issue.title,
        "body": issue.body,
        "labels": [
            label_shape(repo, label, forge.base_url) for label in forge.issues.labels_on(pull.id)
        ],
        "milestone": None,
        "assignee": None,
        "assignees": [],
        "requested_reviewers": [],
        "requested_reviewers_teams": [],
        "state": "open" if pull.open else "closed",
        "draft": pull.draft,
        "is_locked": False,
        "comments": len(forge.comments.on_issue(pull.id)),
        **_branches(forge, repo, pull, right),
        "html_url": address,
        "diff_url": f"{address}.diff",
        "patch_url": f"{address}.patch",
        "mergeable": state in _MERGEABLE and not pull.draft,
        **_merge(forge, pull),
        "allow_maintainer_edit": True,
        "due_date": None,
        "created_at": issue.created,
        "updated_at": issue.updated,
        "closed_at": issue.closed or None,
        "pin_order": 0,
        "content_version": issue.version,
    }


def _merge(forge: EmbeddedForge, pull: Pull) -> Json:
    done = pull.merged
    by = forge.accounts.by_id(done.by) if done else None
    return {
        "merged": done is not None,
        "merged_at": done.at if done else None,
        "merge_commit_sha": done.commit if done else None,
        "merged_by": account_shape(by, forge.base_url) if by else None,
    }


def _branches(forge: EmbeddedForge, repo: RepoRow, pull: Pull, right: Right) -> Json:
    """Return base, head, merge base and how much lies between."""
    tips = pullgit.tips(repo.path, pull)
    merge_base = pullgit.merge_base(repo.path, pull)
    counted = (
        gitmerge.extent(repo.path, merge_base, tips.head)
        if merge_base and tips.head
        else gitmerge.Extent(0, 0, 0)
    )
    shown = repo_shape(repo, forge.accounts.by_id(repo.owner_id), right, forge.base_url)
    ref = pull.head if tips.head_exists else PULL_REF.format(pull.number)
    return {
        "additions": counted.additions,
        "deletions": counted.deletions,
        "changed_files": counted.files,
        "base": _end(repo, shown, pull.base, pull.base, tips.base),
        "head": _end(repo, shown, pull.head, ref, tips.head),
        "merge_base": merge_base,
    }


def _end(repo: RepoRow, shown: Json, label: str, ref: str, sha: str) -> Json:
    return {"label": label, "ref": ref, "sha": sha, "repo_id": repo.id, "repo": shown}
