"""
The JSON shapes of labels, issues and comments.

Pure: rows in, dicts out. Called by the endpoints of labels, issues and pull requests.
"""

from __future__ import annotations

from collections.abc import Sequence

from orderkit.adapters.embedded.forge.accounts import Account
from orderkit.adapters.embedded.forge.api.shapes import Json, account_shape
from orderkit.adapters.embedded.forge.comments import Comment
from orderkit.adapters.embedded.forge.issues import Issue, Label
from orderkit.adapters.embedded.forge.registry import RepoRow


def label_shape(repo: RepoRow, label: Label, base_url: str) -> Json:
    """Return a label; its color comes without ``#``."""
    return {
        "id": label.id,
        "name": label.name,
        "exclusive": label.exclusive,
        "is_archived": label.archived,
        "color": label.color,
        "description": label.description,
        "url": f"{base_url}/api/v1/repos/{repo.full_name}/labels/{label.id}",
    }


def issue_url(repo: RepoRow, issue: Issue, base_url: str) -> str:
    """Return the page of an issue or pull request."""
    kind = "pulls" if issue.is_pull else "issues"
    return f"{base_url}/{repo.full_name}/{kind}/{issue.number}"


def issue_shape(
    repo: RepoRow, issue: Issue, poster: Account, labels: Sequence[Label], base_url: str
) -> Json:
    """Return an issue; `comments` and `pull_request` are the caller's to add."""
    return {
        "id": issue.id,
        "url": f"{base_url}/api/v1/repos/{repo.full_name}/issues/{issue.number}",
        "html_url": issue_url(repo, issue, base_url),
        "number": issue.number,
        "user": account_shape(poster, base_url),
        "original_author": "",
        "original_author_id": 0,
        "title": issue.title,
        "body": issue.body,
        "ref": "",
        "assets": [],
        "labels": [label_shape(repo, label, base_url) for label in labels],
        "milestone": None,
        "assignee": None,
        "assignees": None,
        "state": "closed" if issue.closed else "open",
        "is_locked": False,
        "comments": 0,
        "created_at": issue.created,
        "updated_at": issue.updated,
        "closed_at": issue.closed or None,
        "due_date": None,
        "time_estimate": 0,
        "pull_request": None,
        "repository": {
            "id": repo.id,
            "name": repo.repo.name,
            "owner": repo.repo.owner,
            "full_name": repo.full_name,
        },
        "pin_order": 0,
        "content_version": issue.version,
    }


def comment_shape(
    repo: RepoRow, issue: Issue, comment: Comment, poster: Account, base_url: str
) -> Json:
    """Return a comment."""
    page = issue_url(repo, issue, base_url)
    return {
        "id": comment.id,
        "html_url": f"{page}#issuecomment-{comment.id}",
        "pull_request_url": page if issue.is_pull else "",
        "issue_url": "" if issue.is_pull else page,
        "user": account_shape(poster, base_url),
        "original_author": "",
        "original_author_id": 0,
        "body": comment.body,
        "assets": [],
        "created_at": comment.created,
        "updated_at": comment.updated,
    }
