"""GitHub's endpoints of git: branches, references, trees, blobs, commits, comparisons."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pygit2
from pygit2.enums import FileMode
from starlette.responses import Response

from orderkit_standins.forge import git_merge, git_read, git_write
from orderkit_standins.forge.accounts import Account
from orderkit_standins.forge.api.access import Access
from orderkit_standins.forge.api.branch_updates import BranchRules, BranchUpdates
from orderkit_standins.forge.api.calls import ApiError, Call, empty_answer
from orderkit_standins.forge.api.routes import route
from orderkit_standins.forge.git_write import EditedTree, Person
from orderkit_standins.forge.github.answers import REPO, Limits, answer, paged
from orderkit_standins.forge.github.shapes import GitHubShapes
from orderkit_standins.forge.repositories import Repositories, Repository

_EMPTY = "Git Repository is empty."
_KINDS = {int(FileMode.TREE): "tree", int(FileMode.COMMIT): "commit"}


@dataclass(frozen=True, slots=True)
class GitHubGit:
    """Endpoints of git."""

    access: Access
    repositories: Repositories
    rules: BranchRules
    updates: BranchUpdates
    shapes: GitHubShapes
    limits: Limits

    def _filled(self, call: Call) -> tuple[Repository, pygit2.Repository]:
        repo = self.access.repository(call)
        git = git_read.open_repository(repo.path)
        if not git_read.branch_names(git):
            raise ApiError(409, _EMPTY)
        return repo, git

    @route("GET", f"{REPO}/branches", "repository")
    def branches(self, call: Call) -> Response:
        repo = self.access.repository(call)
        heads = git_read.heads(repo.path)

        def shape(name: str) -> object:
            url = f"{self.shapes.api(repo)}/commits/{heads[name]}"
            is_protected = self.rules.rule(repo, name) is not None
            commit = {"sha": heads[name], "url": url}
            return {"name": name, "commit": commit, "protected": is_protected}

        return paged(call, list(heads), shape)

    @route("GET", f"{REPO}/branches/{{branch:path}}", "repository")
    def branch(self, call: Call) -> Response:
        repo = self.access.repository(call)
        name = call.param("branch")
        tip = git_read.branch_commit(git_read.open_repository(repo.path), name)
        if tip is None:
            raise ApiError(404, "Branch not found")
        api = f"{self.shapes.api(repo)}/branches/{name}"
        body = {
            "name": name,
            "commit": self.shapes.commit(repo, tip),
            "_links": {"self": api, "html": f"{self.shapes.page(repo)}/tree/{name}"},
            "protected": self.rules.rule(repo, name) is not None,
            "protection": {"enabled": False},
            "protection_url": f"{api}/protection",
        }
        return answer(body)

    @route("GET", f"{REPO}/git/ref/{{ref:path}}", "repository")
    def ref(self, call: Call) -> Response:
        repo, git = self._filled(call)
        name = f"refs/{call.param('ref')}"
        reference = git.references.get(name)
        if reference is None:
            raise ApiError(404)
        head = str(reference.resolve().target)
        branch = name.removeprefix(git_read.HEADS)
        return answer(self.shapes.ref(repo, name, self.limits.shown(repo.id, branch, head)))

    @route("GET", f"{REPO}/git/matching-refs/{{ref:path}}", "repository")
    def matching(self, call: Call) -> Response:
        repo, git = self._filled(call)
        prefix = f"refs/{call.param('ref')}"
        names = sorted(name for name in git.listall_references() if name.startswith(prefix))
        targets = {name: str(git.references[name].resolve().target) for name in names}
        return answer([self.shapes.ref(repo, name, sha) for name, sha in targets.items()])

    @route("POST", f"{REPO}/git/refs", "repository")
    def create_ref(self, call: Call) -> Response:
        repo, body = self.access.writable(call), call.fields()
        name, sha = body.required("ref"), body.required("sha")
        git = git_read.open_repository(repo.path)
        if not git_read.branch_names(git):
            raise ApiError(409, _EMPTY)
        branch = name.removeprefix(git_read.HEADS)
        if branch == name or not git_read.is_branch_name(branch):
            raise ApiError(422, f"{name} is not a valid ref name.")
        if git_read.commit_by_id(git, sha) is None:
            raise ApiError(422, "Object does not exist")
        self.rules.refuse_new_branch(repo, call.user, branch)
        try:
            git_write.create_branch(repo.path, branch, sha)
        except git_write.WriteError as error:
            raise ApiError(422, "Reference already exists") from error
        self.updates.branch_moved(repo, branch, sha, by=call.user)
        return answer(self.shapes.ref(repo, name, sha), 201)

    @route("PATCH", f"{REPO}/git/refs/heads/{{branch:path}}", "repository")
    def move(self, call: Call) -> Response:
        """Move a branch to a descendant; anything else needs force, which nobody has."""
        repo, body, branch = self.access.writable(call), call.fields(), call.param("branch")
        sha, git = body.required("sha"), git_read.open_repository(repo.path)
        tip = git_read.branch_commit(git, branch)
        if tip is None:
            raise ApiError(422, "Reference does not exist")
        if not git_merge.is_ancestor(git, str(tip.id), sha):
            raise ApiError(422, "Update is not a fast forward")
        self.move_branch(repo, branch, str(tip.id), sha, by=call.user)
        return answer(self.shapes.ref(repo, f"{git_read.HEADS}{branch}", sha))

    def move_branch(
        self, repo: Repository, branch: str, before: str, after: str, *, by: Account
    ) -> None:
        """
        Move a branch for somebody, if its rules let them.

        Raises:
            ApiError: 403, a rule; 409, somebody else moved it.
        """
        self.rules.refuse_commit(repo, by, branch)
        try:
            git_write.move_branch(repo.path, branch, before, after)
        except git_write.WriteError as error:
            raise ApiError(409, "Reference cannot be updated") from error
        self.limits.note_move(repo.id, branch, before)
        self.updates.branch_moved(repo, branch, after, by=by, before=before)

    @route("DELETE", f"{REPO}/git/refs/heads/{{branch:path}}", "repository")
    def delete_ref(self, call: Call) -> Response:
        repo, branch = self.access.writable(call), call.param("branch")
        before = git_read.heads(repo.path).get(branch, "")
        if not before:
            raise ApiError(422, "Reference does not exist")
        if branch == repo.default_branch or self.rules.rule(repo, branch) is not None:
            raise ApiError(422, "Cannot delete this branch")
        git_write.delete_branch(repo.path, branch)
        self.updates.branch_moved(repo, branch, "", by=call.user, before=before)
        return empty_answer()

    @route("GET", f"{REPO}/git/trees/{{sha}}", "repository")
    def tree(self, call: Call) -> Response:
        repo, git = self._filled(call)
        sha = call.param("sha")
        found: Any = git.get(sha) if git_read.FULL_ID.match(sha) else None
        tree = found.tree if isinstance(found, pygit2.Commit) else found
        if not isinstance(tree, pygit2.Tree):
            raise ApiError(404)
        items = git_read.walk_items(tree, recursive=bool(call.query("recursive")))
        entries = [git_read.entry_of(folder, item) for folder, item in items]
        api = f"{self.shapes.api(repo)}/git"

        def shape(entry: git_read.Entry) -> Mapping[str, object]:
            kind = _KINDS.get(entry.mode, "blob")
            mode = f"{entry.mode:06o}"
            named = {"path": entry.path, "mode": mode, "type": kind, "sha": entry.id}
            return named | ({"url": f"{api}/{kind}s/{entry.id}"} if kind != "commit" else {})

        most = self.limits.tree_entries_max
        shown = {
            "tree": [shape(entry) for entry in entries[:most]],
            "truncated": len(entries) > most,
        }
        return answer({"sha": str(tree.id), "url": f"{api}/trees/{tree.id}", **shown})

    @route("GET", f"{REPO}/git/blobs/{{sha}}", "repository")
    def blob(self, call: Call) -> Response:
        repo, git = self._filled(call)
        sha = call.param("sha")
        blob = git_read.blob(git, sha)
        if blob is None:
            raise ApiError(404)
        body = {
            "sha": sha,
            "node_id": f"B_{sha}",
            "size": blob.size,
            "url": f"{self.shapes.api(repo)}/git/blobs/{sha}",
            "content": base64.b64encode(blob.data).decode(),
            "encoding": "base64",
        }
        return answer(body)

    @route("GET", f"{REPO}/git/commits/{{sha}}", "repository")
    def git_commit(self, call: Call) -> Response:
        repo, git = self._filled(call)
        commit = git_read.commit_by_id(git, call.param("sha"))
        if commit is None:
            raise ApiError(404)
        return answer(self.shapes.git_commit(repo, commit))

    # Making a commit of objects

    @route("POST", f"{REPO}/git/blobs", "repository")
    def create_blob(self, call: Call) -> Response:
        repo, body = self.access.writable(call), call.fields()
        data = base64.b64decode(body.text("content"))
        sha = str(git_read.open_repository(repo.path).create_blob(data))
        return answer({"sha": sha, "url": f"{self.shapes.api(repo)}/git/blobs/{sha}"}, 201)

    @route("POST", f"{REPO}/git/trees", "repository")
    def create_tree(self, call: Call) -> Response:
        repo, body = self.access.writable(call), call.fields()
        git = git_read.open_repository(repo.path)
        base = git.get(body.text("base_tree")) if body.text("base_tree") else None
        if base is not None and not isinstance(base, pygit2.Tree):
            raise ApiError(404)
        edited = EditedTree(git, base)
        for item in body.get("tree") or ():
            path, sha = str(item["path"]), item.get("sha")
            if sha is None:
                edited.remove(path)
            else:
                edited.put(path, pygit2.Oid(hex=sha), FileMode(int(item["mode"], 8)))
        tree = str(edited.write())
        url = f"{self.shapes.api(repo)}/git/trees/{tree}"
        return answer({"sha": tree, "url": url, "tree": [], "truncated": False}, 201)

    @route("POST", f"{REPO}/git/commits", "repository")
    def create_commit(self, call: Call) -> Response:
        repo, body = self.access.writable(call), call.fields()
        git, user = git_read.open_repository(repo.path), call.user
        person = Person(user.name, user.email, datetime.now(UTC)).signature()
        parents = [pygit2.Oid(hex=parent) for parent in body.texts("parents")]
        tree = pygit2.Oid(hex=body.required("tree"))
        new = git.create_commit(None, person, person, body.required("message"), tree, parents)
        made = git[new].peel(pygit2.Commit)
        return answer(self.shapes.git_commit(repo, made), 201)

    # Histories

    @route("GET", f"{REPO}/commits", "repository")
    def commits(self, call: Call) -> Response:
        repo, git = self._filled(call)
        start = git_read.resolve_as_git(git, call.query("sha") or repo.default_branch)
        if start is None:
            raise ApiError(404)
        ids = git_read.commits_of(repo.path, git, start, call.query("path").strip("/"))
        return paged(call, ids, lambda id_: self.shapes.commit(repo, git[id_].peel(pygit2.Commit)))

    @route("GET", f"{REPO}/compare/{{spec:path}}", "repository")
    def compare(self, call: Call) -> Response:
        """Return what a head has more than its base, oldest first."""
        repo, git = self._filled(call)
        spec = call.param("spec")
        base_name, dots, head_name = spec.partition("...")
        base, head = (git_read.resolve_as_git(git, name) for name in (base_name, head_name))
        if not dots or base is None or head is None:
            raise ApiError(404)
        common = git_merge.merge_base_of(git, str(base.id), str(head.id))
        if not common:
            raise ApiError(404, "No common ancestor")
        ahead = git_merge.commits_between(git, str(base.id), str(head.id))[::-1]
        behind = len(git_merge.commits_between(git, str(head.id), str(base.id)))
        size = min(call.query_number("per_page", 250) or 250, 250)
        page = max(call.query_number("page", 1), 1)
        api, html = f"{self.shapes.api(repo)}/compare/{spec}", f"{self.shapes.page(repo)}/compare"
        states = {(True, True): "diverged", (True, False): "ahead", (False, True): "behind"}
        state = states.get((bool(ahead), bool(behind)), "identical")
        merge_base = git[common].peel(pygit2.Commit)
        body = {
            "url": api,
            **dict.fromkeys(("html_url", "permalink_url"), f"{html}/{spec}"),
            "diff_url": f"{html}/{spec}.diff",
            "patch_url": f"{html}/{spec}.patch",
            "base_commit": self.shapes.commit(repo, base),
            "merge_base_commit": self.shapes.commit(repo, merge_base),
            "status": state,
            "ahead_by": len(ahead),
            "behind_by": behind,
            "total_commits": len(ahead),
            "commits": [
                self.shapes.commit(repo, commit) for commit in ahead[(page - 1) * size :][:size]
            ],
        }
        return answer(body)
