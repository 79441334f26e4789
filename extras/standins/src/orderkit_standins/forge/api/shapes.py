"""
The JSON shapes of Gitea's API: what an account, repository, commit, issue, pull request looks like.

Rows and git objects in, dicts out. Links begin with ROOT_URL. Fields that Gitea has and nobody
reads here (avatars, milestones, counters of stars) are left out.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pygit2

from orderkit_standins.forge import git_read, pull_requests
from orderkit_standins.forge.accounts import Account, Accounts
from orderkit_standins.forge.api.access import Right
from orderkit_standins.forge.api.calls import UNSHOWN, ApiError, RootUrl
from orderkit_standins.forge.issues import Comment, Issue, Issues
from orderkit_standins.forge.pull_requests import PULL_REF, Pull, Pulls
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.statuses import Status

Json = dict[str, Any]
MERGE_STYLES = ("merge", "squash")
"""The styles in which this forge merges; it answers as a Gitea that has the others switched off."""
_MERGEABLE = ("mergeable", "empty", "ancestor")
"""States in which the API says ``mergeable``; only the first two can be merged."""
_FIRST_STAMP, _LAST_STAMP = -62_135_510_400, 253_402_214_400
"""A day after the calendar of Python begins, and a day before it ends."""
BLOB_MAX_BYTES = 10 * 1024 * 1024
"""Gitea's, as it is installed (`default_max_blob_size`)."""


def organisation_shape(org: Account) -> Json:
    """Return an organisation."""
    return {
        "id": org.id,
        "name": org.name,
        "username": org.name,
        "description": org.description,
        "visibility": org.visibility,
    }


@dataclass(frozen=True, slots=True)
class Shapes:
    """Makes the shapes whose links or names need the address or the stores of the forge."""

    root_url: RootUrl
    accounts: Accounts
    issues: Issues
    pulls: Pulls

    def account(self, account: Account) -> Json:
        """Return a user."""
        return {
            "id": account.id,
            "login": account.name,
            "username": account.name,
            "email": account.email,
            "html_url": f"{self.root_url}/{account.name}",
            "active": not account.is_org,
            "description": account.description,
            "visibility": account.visibility,
        }

    def account_by_id(self, account_id: int) -> Json:
        """Return a user."""
        return self.account(self.accounts.by_id(account_id))

    def api(self, repo: Repository) -> str:
        """Return the address of a repository in the API."""
        return f"{self.root_url}/api/v1/repos/{repo.full_name}"

    def page(self, repo: Repository) -> str:
        """Return the address of a repository's page."""
        return f"{self.root_url}/{repo.full_name}"

    def repository(self, repo: Repository, right: Right) -> Json:
        """Return a repository as somebody with this right sees it."""
        html_url = self.page(repo)
        return {
            "id": repo.id,
            "owner": self.account_by_id(repo.owner_id),
            "name": repo.repo.name,
            "full_name": repo.full_name,
            "description": repo.description,
            "empty": not git_read.branch_names(git_read.open_repository(repo.path)),
            "private": repo.private,
            "archived": repo.archived,
            "url": self.api(repo),
            "html_url": html_url,
            "clone_url": f"{html_url}.git",
            "default_branch": repo.default_branch,
            "allow_squash_merge": repo.allow_squash_merge,
            "permissions": {
                "admin": right >= Right.ADMIN,
                "push": right >= Right.WRITE,
                "pull": right >= Right.READ,
            },
        }

    # Git

    def commit(self, repo: Repository, commit: pygit2.Commit) -> Json:
        """Return a commit as ``/commits`` and ``/git/commits`` show it."""
        api = self.api(repo)
        return {
            "url": f"{api}/git/commits/{commit.id}",
            "sha": str(commit.id),
            "created": when(commit.commit_time, commit.commit_time_offset),
            "html_url": f"{self.page(repo)}/commit/{commit.id}",
            "commit": {
                "author": _dated(commit.author),
                "committer": _dated(commit.committer),
                "message": git_read.message(commit),
                "tree": {"sha": str(commit.tree_id)},
            },
            "parents": [
                {"url": f"{api}/git/commits/{parent}", "sha": str(parent)}
                for parent in commit.parent_ids
            ],
        }

    def file_commit(self, repo: Repository, commit: pygit2.Commit) -> Json:
        """Return a commit as the answers of contents writes show it."""
        shape = self.commit(repo, commit)
        inner = shape.pop("commit")
        kept = {key: inner[key] for key in ("author", "committer", "message", "tree")}
        return {**shape, **kept}

    def pushed_commit(self, repo: Repository, commit: pygit2.Commit) -> Json:
        """Return a commit as branches and webhooks show it."""
        return {
            "id": str(commit.id),
            "message": git_read.message(commit, UNSHOWN),
            "url": f"{self.page(repo)}/commit/{commit.id}",
            "author": self._person(commit.author),
            "committer": self._person(commit.committer),
            "timestamp": when(commit.commit_time, commit.commit_time_offset),
        }

    def _person(self, person: pygit2.Signature) -> Json:
        name, email = git_read.name_and_email(person, UNSHOWN)
        return {"name": name, "email": email, "username": self.accounts.name_by_email(email)}

    def branch(self, repo: Repository, name: str, commit: pygit2.Commit, right: Right) -> Json:
        """Return a branch that no rule protects."""
        may_write = right >= Right.WRITE and not repo.archived
        return {
            "name": name,
            "commit": self.pushed_commit(repo, commit),
            "protected": False,
            "required_approvals": 0,
            "enable_status_check": False,
            "status_check_contexts": [],
            "user_can_push": may_write,
            "user_can_merge": may_write,
            "effective_branch_protection_name": "",
        }

    def content(
        self,
        entry: git_read.Entry,
        last: pygit2.Commit,
        *,
        blob: pygit2.Blob | None,
        with_content: bool = True,
    ) -> Json:
        """Return a file, folder, link or submodule as ``/contents`` shows it."""
        data = blob.data if blob is not None and entry.type in ("file", "symlink") else b""
        includes_data = with_content and blob is not None and len(data) <= BLOB_MAX_BYTES
        is_file = includes_data and entry.type == "file"
        return {
            "name": entry.name,
            "path": entry.path,
            "sha": entry.id,
            "last_commit_sha": str(last.id),
            "type": entry.type,
            "size": blob.size if blob is not None else 0,
            "encoding": "base64" if is_file else None,
            "content": base64.b64encode(data).decode() if is_file else None,
            "target": data.decode(errors="replace")
            if includes_data and entry.type == "symlink"
            else None,
        }

    def status(self, repo: Repository, status: Status) -> Json:
        """Return a commit status: what is sent as ``state`` comes back as ``status``."""
        return {
            "id": status.index,
            "status": status.state,
            "target_url": status.target_url,
            "description": status.description,
            "url": f"{self.api(repo)}/statuses/{status.sha}",
            "context": status.context,
            "creator": self.account_by_id(status.creator_id),
        }

    # Issues and pull requests

    def issue_url(self, repo: Repository, issue: Issue) -> str:
        """Return the page of an issue or pull request."""
        return f"{self.page(repo)}/{'pulls' if issue.is_pull else 'issues'}/{issue.number}"

    def _common(self, repo: Repository, issue: Issue) -> Json:
        """Return what issues and pull requests have in common."""
        return {
            "id": issue.id,
            "html_url": self.issue_url(repo, issue),
            "number": issue.number,
            "user": self.account_by_id(issue.poster_id),
            "title": issue.title,
            "body": issue.body,
            "state": "closed" if issue.closed else "open",
            "comments": len(self.issues.comments(issue.id)),
            "created_at": issue.created,
            "updated_at": issue.updated,
            "closed_at": issue.closed or None,
        }

    def issue(self, repo: Repository, issue: Issue) -> Json:
        """Return an issue, or the issue half of a pull request."""
        pull = self.pulls.by_id(issue.id) if issue.is_pull else None
        half = pull and {
            "draft": pull.draft,
            "merged": pull.merged is not None,
            "merged_at": pull.merged.at if pull.merged else None,
            "html_url": self.issue_url(repo, issue),
        }
        return {
            **self._common(repo, issue),
            "url": f"{self.api(repo)}/issues/{issue.number}",
            "pull_request": half,
            "repository": {"name": repo.repo.name, "full_name": repo.full_name},
        }

    def comment(self, repo: Repository, comment: Comment) -> Json:
        """Return a comment."""
        issue = self.issues.by_id(comment.issue_id)
        page = self.issue_url(repo, issue)
        return {
            "id": comment.id,
            "html_url": f"{page}#issuecomment-{comment.id}",
            "user": self.account_by_id(comment.poster_id),
            "body": comment.body,
        }

    def pull(self, repo: Repository, pull_id: int, right: Right) -> Json:
        """
        Return a pull request as somebody with this right sees it.

        Raises:
            ApiError: 404, it was deleted meanwhile.
        """
        pull = self.pulls.by_id(pull_id)
        issue = self.issues.find(repo.id, pull.number)
        if issue is None:
            raise ApiError(404)
        page, merged = self.issue_url(repo, issue), pull.merged
        state = pull_requests.state(repo.path, pull, self.pulls.checks)
        return {
            **self._common(repo, issue),
            "url": page,
            "draft": pull.draft,
            **self._branches(repo, pull, right),
            "mergeable": state in _MERGEABLE and not pull.draft,
            "merged": merged is not None,
            "merged_at": merged.at if merged else None,
            "merge_commit_sha": merged.commit if merged else None,
            "merged_by": self.account_by_id(merged.by) if merged else None,
        }

    def _branches(self, repo: Repository, pull: Pull, right: Right) -> Json:
        """Return base, head and merge base."""
        tips = pull_requests.tips(repo.path, pull)
        head_ref = pull.head if tips.head_exists else PULL_REF.format(pull.number)
        common = {"repo_id": repo.id, "repo": self.repository(repo, right)}
        return {
            "base": {"label": pull.base, "ref": pull.base, "sha": tips.base, **common},
            "head": {"label": pull.head, "ref": head_ref, "sha": tips.head, **common},
            "merge_base": pull_requests.merge_base(repo.path, pull),
        }


def when(stamp: int, offset_minutes: int = 0) -> str:
    """Return a git time stamp as RFC 3339; one that no calendar has becomes the nearest it has."""
    zone = timezone(timedelta(minutes=offset_minutes)) if offset_minutes else UTC
    moment = datetime.fromtimestamp(min(max(stamp, _FIRST_STAMP), _LAST_STAMP), zone)
    return moment.isoformat().replace("+00:00", "Z")


def _dated(person: pygit2.Signature) -> Json:
    name, email = git_read.name_and_email(person, UNSHOWN)
    return {"name": name, "email": email, "date": when(person.time, person.offset)}
