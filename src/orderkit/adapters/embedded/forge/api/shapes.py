"""
The JSON shapes of Gitea's API: what an account, repository, commit, file looks like.

Pure: rows and git objects in, dicts out. Links begin with ROOT_URL.

Called by the endpoints.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from urllib.parse import quote

import pygit2

from orderkit.adapters.embedded.forge import gitread
from orderkit.adapters.embedded.forge.accounts import Account, Token
from orderkit.adapters.embedded.forge.api.access import Right
from orderkit.adapters.embedded.forge.registry import RepoRow

Json = dict[str, Any]
_FIRST_STAMP, _LAST_STAMP = -62_135_510_400, 253_402_214_400
"""A day after the calendar of Python begins, and a day before it ends."""
BLOB_MAX_BYTES = 10 * 1024 * 1024
UNSIGNED: Json = {
    "verified": False,
    "reason": "gpg.error.not_signed_commit",
    "signature": "",
    "signer": None,
    "payload": "",
}


def account_shape(account: Account, base_url: str) -> Json:
    """Return a user."""
    return {
        "id": account.id,
        "login": account.name,
        "login_name": "",
        "source_id": 0,
        "full_name": "",
        "email": account.email,
        "avatar_url": "",
        "html_url": f"{base_url}/{account.name}",
        "is_admin": account.admin,
        "active": not account.is_org,
        "prohibit_login": False,
        "description": account.description,
        "visibility": account.visibility,
        "username": account.name,
    }


def org_shape(org: Account) -> Json:
    """Return an organisation."""
    return {
        "id": org.id,
        "name": org.name,
        "full_name": "",
        "email": "",
        "avatar_url": "",
        "description": org.description,
        "website": "",
        "location": "",
        "visibility": org.visibility,
        "repo_admin_change_team_access": False,
        "username": org.name,
    }


def token_shape(token: Token, secret: str = "") -> Json:
    """Return a token; the secret only at creation."""
    return {
        "id": token.id,
        "name": token.name,
        "sha1": secret,
        "token_last_eight": token.last_eight,
        "scopes": list(token.scopes),
    }


def repo_shape(repo: RepoRow, owner: Account, right: Right, base_url: str) -> Json:
    """Return a repository."""
    html_url = f"{base_url}/{repo.full_name}"
    return {
        "id": repo.id,
        "owner": account_shape(owner, base_url),
        "name": repo.repo.name,
        "full_name": repo.full_name,
        "description": repo.description,
        "empty": not gitread.branch_names(gitread.open_repository(repo.path)),
        "private": repo.private,
        "fork": False,
        "template": False,
        "mirror": False,
        "archived": repo.archived,
        "url": f"{base_url}/api/v1/repos/{repo.full_name}",
        "html_url": html_url,
        "clone_url": f"{html_url}.git",
        "ssh_url": "",
        "default_branch": repo.default_branch,
        "created_at": repo.created,
        "updated_at": repo.updated,
        "permissions": {
            "admin": right >= Right.ADMIN,
            "push": right >= Right.WRITE,
            "pull": right >= Right.READ,
        },
        "has_code": True,
        "has_issues": True,
        "has_pull_requests": True,
        "has_wiki": False,
        "has_projects": False,
        "has_releases": False,
        "has_packages": False,
        "has_actions": False,
        "internal": not repo.private and owner.visibility == "private",
        "object_format_name": "sha1",
        "topics": list(repo.topics),
    }


def when(stamp: int, offset_minutes: int = 0) -> str:
    """Return a git time stamp as RFC 3339."""
    return _moment(stamp, offset_minutes).isoformat().replace("+00:00", "Z")


def signed_at(person: pygit2.Signature) -> datetime:
    """Return when somebody wrote or committed, in their own time zone."""
    return _moment(person.time, person.offset)


def _moment(stamp: int, offset_minutes: int) -> datetime:
    """Return a time; git keeps stamps that no calendar has, they become the nearest one it has."""
    zone = timezone(timedelta(minutes=offset_minutes)) if offset_minutes else UTC
    return datetime.fromtimestamp(min(max(stamp, _FIRST_STAMP), _LAST_STAMP), zone)


def person_shape(person: pygit2.Signature) -> Json:
    """Return an author or committer."""
    name, email = gitread.name_and_email(person)
    return {
        "name": name,
        "email": email,
        "date": when(person.time, person.offset),
    }


def _who(person: pygit2.Signature) -> Json:
    name, email = gitread.name_and_email(person)
    return {"name": name, "email": email, "username": ""}


def _commit_links(repo: RepoRow, commit_id: str, base_url: str) -> Json:
    return {
        "url": f"{base_url}/api/v1/repos/{repo.full_name}/git/commits/{commit_id}",
        "sha": commit_id,
    }


def commit_shape(
    repo: RepoRow, commit: pygit2.Commit, base_url: str, *, files: list[Json] | None = None
) -> Json:
    """Return a commit as ``/commits`` and ``/git/commits`` show it."""
    api = f"{base_url}/api/v1/repos/{repo.full_name}"
    created = when(commit.commit_time, commit.commit_time_offset)
    return {
        **_commit_links(repo, str(commit.id), base_url),
        "created": created,
        "html_url": f"{base_url}/{repo.full_name}/commit/{commit.id}",
        "commit": {
            "url": f"{api}/git/commits/{commit.id}",
            "author": person_shape(commit.author),
            "committer": person_shape(commit.committer),
            "message": gitread.message(commit),
            "tree": {
                "url": f"{api}/git/trees/{commit.tree_id}",
                "sha": str(commit.tree_id),
                "created": created,
            },
            "verification": UNSIGNED,
        },
        "author": None,
        "committer": None,
        "parents": [
            {**_commit_links(repo, str(parent), base_url), "created": "0001-01-01T00:00:00Z"}
            for parent in commit.parent_ids
        ],
        "files": files,
        "stats": None,
    }


def file_commit_shape(repo: RepoRow, commit: pygit2.Commit, base_url: str) -> Json:
    """Return a commit as the answers of contents writes show it."""
    full = commit_shape(repo, commit, base_url)
    inner = full["commit"]
    return {
        **_commit_links(repo, str(commit.id), base_url),
        "created": full["created"],
        "html_url": full["html_url"],
        "author": inner["author"],
        "committer": inner["committer"],
        "parents": full["parents"],
        "message": inner["message"],
        "tree": inner["tree"],
    }


def branch_shape(
    repo: RepoRow, name: str, commit: pygit2.Commit, base_url: str, right: Right
) -> Json:
    """Return a branch."""
    may_write = right >= Right.WRITE and not repo.archived
    return {
        "name": name,
        "commit": {
            "id": str(commit.id),
            "message": gitread.message(commit),
            "url": f"{base_url}/{repo.full_name}/commit/{commit.id}",
            "author": _who(commit.author),
            "committer": _who(commit.committer),
            "verification": UNSIGNED,
            "timestamp": when(commit.commit_time, commit.commit_time_offset),
            "added": None,
            "removed": None,
            "modified": None,
        },
        "protected": False,
        "required_approvals": 0,
        "enable_status_check": False,
        "status_check_contexts": [],
        "user_can_push": may_write,
        "user_can_merge": may_write,
        "effective_branch_protection_name": "",
    }


def content_shape(
    repo: RepoRow,
    entry: gitread.Entry,
    last: pygit2.Commit,
    base_url: str,
    *,
    ref: str,
    blob: pygit2.Blob | None = None,
    with_content: bool = False,
) -> Json:
    """Return a file, folder, link or submodule as ``/contents`` shows it."""
    api = f"{base_url}/api/v1/repos/{repo.full_name}"
    path, kind = quote(entry.path), _ref_kind(ref)
    self_url = f"{api}/contents/{path}?ref={quote(ref, safe='')}"
    html_url = f"{base_url}/{repo.full_name}/src/{kind}/{quote(ref)}/{path}"
    is_folder = entry.type == "dir"
    git_url = f"{api}/git/{'trees' if is_folder else 'blobs'}/{entry.id}"
    data = blob.data if blob is not None and entry.type in ("file", "symlink") else b""
    show = with_content and blob is not None and len(data) <= BLOB_MAX_BYTES
    return {
        "name": entry.name,
        "path": entry.path,
        "sha": entry.id,
        "last_commit_sha": str(last.id),
        "last_committer_date": when(last.commit_time, last.commit_time_offset),
        "last_author_date": when(last.author.time, last.author.offset),
        "type": entry.type,
        "size": blob.size if blob is not None else 0,
        "encoding": "base64" if show and entry.type == "file" else None,
        "content": base64.b64encode(data).decode() if show and entry.type == "file" else None,
        "target": data.decode(errors="replace") if show and entry.type == "symlink" else None,
        "url": self_url,
        "html_url": html_url,
        "git_url": git_url,
        "download_url": None
        if is_folder
        else f"{base_url}/{repo.full_name}/raw/{kind}/{quote(ref)}/{path}",
        "submodule_git_url": None,
        "_links": {"self": self_url, "git": git_url, "html": html_url},
    }


def _ref_kind(ref: str) -> str:
    return "commit" if gitread.FULL_ID.match(ref) else "branch"
