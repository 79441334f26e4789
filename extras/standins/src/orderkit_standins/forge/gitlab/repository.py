"""Endpoints of what a project's repository holds: trees, files, history, branches, statuses."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import pygit2
from starlette.responses import Response

from orderkit_standins.forge import git_merge, git_read, protections
from orderkit_standins.forge.api.access import Right
from orderkit_standins.forge.api.branch_updates import BranchRules
from orderkit_standins.forge.api.shapes import when
from orderkit_standins.forge.gitlab.face import Ask, GitLabError, Json, answer, at, paged, refused
from orderkit_standins.forge.gitlab.places import Places
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.statuses import Status, Statuses, combined

_TYPES = {"dir": "tree", "submodule": "commit"}
_STATES = {
    "pending": "pending",
    "running": "pending",
    "success": "success",
    "failed": "failure",
    "canceled": "error",
    "skipped": "warning",
}
_STATE_OF = {theirs: ours for ours, theirs in _STATES.items() if ours != "running"}
_CHANGED = "You are attempting to update a file that has changed since you started editing it."


@dataclass(frozen=True, slots=True)
class RepositoryEndpoints:
    """Endpoints below ``projects/:id/repository`` and ``projects/:id/statuses``."""

    places: Places
    rules: BranchRules
    kept_statuses: Statuses

    @at("GET", "projects/:id/repository/tree")
    def tree(self, ask: Ask) -> Response:
        repo = self.places.project(ask)
        git = git_read.open_repository(repo.path)
        commit = _commit(git, ask.query("ref") or repo.default_branch, "404 Tree Not Found")
        recursive = ask.query("recursive") == "true"
        path = ask.query("path").strip("/")
        found = git_read.entry_at(commit.tree, path)
        folder = git.get(found.id) if found else None
        if not isinstance(folder, pygit2.Tree):
            raise GitLabError(404, "404 Tree Not Found")
        items = git_read.walk_items(folder, f"{path}/" if path else "", recursive=recursive)
        entries = [git_read.entry_of(above, item) for above, item in items]
        return paged(
            ask,
            [
                {
                    "id": entry.id,
                    "name": entry.name,
                    "type": _TYPES.get(entry.type, "blob"),
                    "path": entry.path,
                    "mode": f"{entry.mode:06o}",
                }
                for entry in entries
            ],
        )

    @at("GET", "projects/:id/repository/files/:path")
    def file(self, ask: Ask) -> Response:
        repo, path = self.places.project(ask), ask.params["path"]
        git, ref = git_read.open_repository(repo.path), ask.query("ref") or repo.default_branch
        commit = _commit(git, ref, "404 File Not Found")
        entry = git_read.entry_at(commit.tree, path)
        blob = git_read.blob(git, entry.id) if entry and entry.type in ("file", "symlink") else None
        if entry is None or blob is None:
            raise GitLabError(404, "404 File Not Found")
        return answer(
            {
                "file_name": entry.name,
                "file_path": entry.path,
                "size": blob.size,
                "encoding": "base64",
                "content": base64.b64encode(blob.data).decode(),
                "ref": ref,
                "blob_id": entry.id,
                "commit_id": str(commit.id),
                "last_commit_id": _last(git, commit, entry),
            }
        )

    @at("GET", "projects/:id/repository/commits")
    def commits(self, ask: Ask) -> Response:
        repo = self.places.project(ask)
        git, path = git_read.open_repository(repo.path), ask.query("path")
        commit = _commit(git, ask.query("ref_name") or repo.default_branch, "404 Ref Not Found")
        return paged(ask, [commit_shape(c) for c in git_read.history(git, commit, path)])

    @at("GET", "projects/:id/repository/commits/:sha")
    def commit(self, ask: Ask) -> Response:
        git = git_read.open_repository(self.places.project(ask).path)
        return answer(commit_shape(_commit(git, ask.params["sha"], "404 Commit Not Found")))

    @at("POST", "projects/:id/repository/commits")
    def write(self, ask: Ask) -> Response:
        """Commit several files at once; a file that changed since ``last_commit_id`` is a 400."""
        repo = self.places.project(ask)
        branch, actions = str(ask.field("branch") or ""), ask.field("actions") or []
        self._refuse_writing(ask, repo, branch)
        git = git_read.open_repository(repo.path)
        head = git_read.branch_commit(git, branch)
        if head is None and git_read.branch_names(git):
            raise GitLabError(400, "You can only create or edit files when you are on a branch")
        body = {
            "branch": branch,
            "message": str(ask.field("commit_message") or ""),
            "files": [_operation(git, head, action) for action in actions],
        }
        done = ask.gitea("POST", f"/repos/{repo.full_name}/contents", body)
        if not done.ok:
            is_server = done.status >= 500 and "outside" not in done.text  # noqa: PLR2004
            raise (
                refused(done) if is_server or "scope" in done.text else GitLabError(400, done.text)
            )
        made = _commit(git_read.open_repository(repo.path), done.document["commit"]["sha"], "")
        return answer(commit_shape(made), 201)

    def _refuse_writing(self, ask: Ask, repo: Repository, branch: str) -> None:
        """Refuse as GitLab does: archived, no right, or a protected branch."""
        user = ask.user
        if self.places.access.right_on(ask.actor, repo) < Right.WRITE or repo.archived:
            raise GitLabError(403, "403 Forbidden")
        rule = self.rules.rule(repo, branch)
        if rule and not protections.may_push(rule, self.rules.doer(repo, user)):
            raise GitLabError(403, "You are not allowed to push into this branch")

    # Branches and tags

    @at("GET", "projects/:id/repository/branches")
    def branches(self, ask: Ask) -> Response:
        return self._named(ask, git_read.HEADS)

    @at("GET", "projects/:id/repository/tags")
    def tags(self, ask: Ask) -> Response:
        return self._named(ask, git_read.TAGS)

    def _named(self, ask: Ask, prefix: str) -> Response:
        git = git_read.open_repository(self.places.project(ask).path)
        refs = (ref for ref in sorted(git.listall_references()) if ref.startswith(prefix))
        names = (ref.removeprefix(prefix) for ref in refs)
        return paged(ask, [{"name": name} for name in names if ask.query("search") in name])

    @at("GET", "projects/:id/repository/branches/:branch")
    def branch(self, ask: Ask) -> Response:
        repo, name = self.places.project(ask), ask.params["branch"]
        tip = git_read.branch_commit(git_read.open_repository(repo.path), name)
        if tip is None:
            raise GitLabError(404, "404 Branch Not Found")
        rule, account = self.rules.rule(repo, name), ask.actor.account
        writes = self.places.access.right_on(ask.actor, repo) >= Right.WRITE
        if rule is not None and account is not None:
            writes = protections.may_push(rule, self.rules.doer(repo, account))
        shape = {"name": name, "commit": commit_shape(tip), "default": name == repo.default_branch}
        return answer(shape | {"protected": rule is not None, "can_push": writes})

    @at("POST", "projects/:id/repository/branches")
    def add_branch(self, ask: Ask) -> Response:
        repo, name = self.places.project(ask), str(ask.field("branch") or "")
        body = {"new_branch_name": name, "old_ref_name": ask.field("ref")}
        made = ask.gitea("POST", f"/repos/{repo.full_name}/branches", body)
        if repo.archived or made.status in (401, 403):
            raise refused(made) if not repo.archived else GitLabError(403, "403 Forbidden")
        if not made.ok:
            raise GitLabError(400, made.text or "Invalid reference name")
        tip = git_read.branch_commit(git_read.open_repository(repo.path), name)
        return answer({"name": name, "commit": commit_shape(tip) if tip else None}, 201)

    @at("DELETE", "projects/:id/repository/branches/:branch")
    def drop_branch(self, ask: Ask) -> Response:
        repo, name = self.places.project(ask), ask.params["branch"]
        gone = ask.gitea("DELETE", f"/repos/{repo.full_name}/branches/{name}")
        if gone.status == 404:  # noqa: PLR2004
            raise GitLabError(404, "404 Branch Not Found")
        if gone.status == 403 and name == repo.default_branch:  # noqa: PLR2004
            raise GitLabError(400, "Cannot remove HEAD branch")
        if not gone.ok:
            raise refused(gone)
        return Response(status_code=204)

    @at("GET", "projects/:id/repository/compare")
    def compare(self, ask: Ask) -> Response:
        git = git_read.open_repository(self.places.project(ask).path)
        base, head = (_commit(git, ask.query(key), "404 Ref Not Found") for key in ("from", "to"))
        commits = git_merge.commits_between(git, str(base.id), str(head.id))
        shapes = [commit_shape(commit) for commit in reversed(commits)]
        return answer({"commits": shapes, "compare_timeout": False, "compare_same_ref": False})

    # Statuses

    @at("GET", "projects/:id/repository/commits/:sha/statuses")
    def statuses(self, ask: Ask) -> Response:
        repo, sha = self.places.project(ask), ask.params["sha"]
        _commit(git_read.open_repository(repo.path), sha, "404 Commit Not Found")
        return paged(ask, [_status(s) for s in self.kept_statuses.latest(repo.id, sha)])

    @at("POST", "projects/:id/statuses/:sha")
    def set_status(self, ask: Ask) -> Response:
        """Add a status; the open state that it has already is refused, also with another text."""
        repo, sha = self.places.project(ask), ask.params["sha"]
        if self.places.access.right_on(ask.actor, repo) < Right.WRITE:
            raise GitLabError(403, "403 Forbidden")
        _commit(git_read.open_repository(repo.path), sha, "404 Commit Not Found")
        name = str(ask.field("name") or ask.field("context") or "default")
        state = _STATES.get(str(ask.field("state")))
        if state is None:
            raise GitLabError(400, "state does not have a valid value")
        latest = {s.context: s.state for s in self.kept_statuses.latest(repo.id, sha)}
        if state == "pending" and latest.get(name) == state:
            text = "Cannot transition status via :enqueue from :pending (Reason(s): ...)"
            raise GitLabError(400, text)
        texts = {"context": name, "state": state}
        texts |= {key: str(ask.field(key) or "") for key in ("description", "target_url")}
        made = self.kept_statuses.add(repo.id, sha, texts, creator_id=ask.user.id)
        return answer(_status(made), 201)

    def pipeline(self, repo: Repository, sha: str) -> str:
        """Return the state of a commit's pipeline; empty: it has none."""
        latest = self.kept_statuses.latest(repo.id, sha)
        return combined(s.state for s in latest if s.state != "warning") if latest else ""


def commit_shape(commit: pygit2.Commit) -> Json:
    """Return a commit."""
    author, committer = (git_read.name_and_email(p) for p in (commit.author, commit.committer))
    message = git_read.message(commit)
    return {
        "id": str(commit.id),
        "short_id": str(commit.id)[:8],
        "title": message.partition("\n")[0],
        "message": message,
        "parent_ids": [str(parent) for parent in commit.parent_ids],
        "author_name": author[0],
        "author_email": author[1],
        "authored_date": when(commit.author.time, commit.author.offset),
        "committer_name": committer[0],
        "committer_email": committer[1],
        "committed_date": when(commit.commit_time, commit.commit_time_offset),
    }


def _status(status: Status) -> Json:
    return {
        "id": status.id,
        "sha": status.sha,
        "name": status.context,
        "status": _STATE_OF.get(status.state, "failed"),
        "description": status.description or None,
        "target_url": status.target_url or None,
        "created_at": status.created,
    }


def _commit(git: pygit2.Repository, ref: str, missing: str) -> pygit2.Commit:
    """
    Return the commit of a branch, a tag or an id.

    Raises:
        GitLabError: 404, there is none.
    """
    commit = git_read.resolve_as_git(git, ref)
    if commit is None:
        raise GitLabError(404, missing)
    return commit


def _last(git: pygit2.Repository, commit: pygit2.Commit, entry: git_read.Entry) -> str:
    return str(git_read.last_commits(git, commit, {entry.path: entry.id})[entry.path].id)


def _operation(git: pygit2.Repository, head: pygit2.Commit | None, action: Json) -> Json:
    """Return an action as an operation of the forge, with the blob id that it replaces."""
    verb, path = str(action.get("action")), str(action.get("file_path"))
    entry = git_read.entry_at(head.tree, path) if head else None
    operation: Json = {"operation": verb, "path": path}
    operation |= {"executable": True} if action.get("execute_filemode") is True else {}
    if verb != "delete":
        content = str(action.get("content") or "")
        is_base64 = action.get("encoding") == "base64"
        operation["content"] = content if is_base64 else base64.b64encode(content.encode()).decode()
    if verb == "create":
        if entry is not None:
            raise GitLabError(400, "A file with this name already exists")
        return operation
    if entry is None or head is None:
        raise GitLabError(400, "A file with this name doesn't exist")
    known = action.get("last_commit_id")
    if known is not None and known != _last(git, head, entry):
        raise GitLabError(400, _CHANGED)
    return operation | {"sha": entry.id}
