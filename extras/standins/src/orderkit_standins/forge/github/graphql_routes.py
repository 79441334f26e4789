"""GitHub's GraphQL, for the documents that our client sends: by their first field."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from orderkit_standins.forge import git_read, git_write, pull_requests
from orderkit_standins.forge.api.access import Right
from orderkit_standins.forge.api.calls import ApiError, Call
from orderkit_standins.forge.api.merging import MergeQueues
from orderkit_standins.forge.api.routes import route
from orderkit_standins.forge.git_write import CommitRequest, FileOperation, Person
from orderkit_standins.forge.github.answers import answer, rewritten
from orderkit_standins.forge.github.git_routes import GitHubGit
from orderkit_standins.forge.issues import Issues
from orderkit_standins.forge.pull_requests import Pull, Pulls
from orderkit_standins.forge.repositories import Repository

_FIELD = re.compile(r"\{\s*(\w+)")
_PAGE = 50
Variables = Mapping[str, Any]


class _GraphqlError(Exception):
    """An error of a GraphQL answer, whose status is 200."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class GitHubGraphql:
    """The one endpoint of GraphQL."""

    git: GitHubGit
    issues: Issues
    pulls: Pulls
    queues: MergeQueues

    @route("POST", "/api/graphql", "repository")
    def serve(self, call: Call) -> Response:
        body = call.fields()
        match = _FIELD.search(body.required("query"))
        fields: dict[str, Callable[[Call, Variables], Any]] = {
            "createCommitOnBranch": self._commit,
            "repository": self._name,
            "organization": self._open_pulls,
            "node": self._waiting,
            "enqueuePullRequest": self._enqueue,
        }
        field = match[1] if match else ""
        if field not in fields:
            raise ApiError(400, f"the embedded forge knows no field '{field}'")
        if field == "createCommitOnBranch":
            self.git.limits.take(call)
        try:
            return answer({"data": {field: fields[field](call, body.mapping("variables"))}})
        except _GraphqlError as error:
            errors = [{"type": error.kind, "path": [field], "message": str(error)}]
            return answer({"data": {field: None}, "errors": errors})

    def _repository(self, call: Call, owner: str, name: str) -> Repository:
        """Return a repository that the caller may read, by its former name, too."""
        access = self.git.access
        repo = self.git.repositories.find(owner, name)
        if repo is None and (account := access.accounts.find(owner)) is not None:
            repo = self.git.repositories.renamed(account.id, name)
        if repo is None or access.right_on(call.actor, repo, "") < Right.READ:
            text = f"Could not resolve to a Repository with the name '{owner}/{name}'."
            raise _GraphqlError("NOT_FOUND", text)
        return repo

    def _name(self, call: Call, variables: Variables) -> Any:
        repo = self._repository(call, str(variables["owner"]), str(variables["name"]))
        return {"nameWithOwner": repo.full_name}

    def _open_pulls(self, call: Call, variables: Variables) -> Any:
        access, org = self.git.access, str(variables["org"])
        owner = access.accounts.find(org)
        if owner is None:
            raise _GraphqlError("NOT_FOUND", f"Could not resolve to an Organization '{org}'.")
        repos = access.readable(call, self.git.repositories.all(owner_id=owner.id))
        start = int(variables.get("after") or 0)
        nodes = []
        for repo in repos[start : start + _PAGE]:
            issues = [i for i in self.issues.all(repo.id) if i.is_pull and not i.closed]
            pulls = [{"number": i.number, "updatedAt": i.updated} for i in issues]
            nodes.append({"name": repo.repo.name, "pullRequests": {"nodes": pulls}})
        end = start + len(nodes)
        page = {"hasNextPage": end < len(repos), "endCursor": str(end)}
        return {"repositories": {"pageInfo": page, "nodes": nodes}}

    def _pull(self, call: Call, node: str) -> tuple[Repository, Pull]:
        """Return the pull request of a node that the caller may read."""
        try:
            found = self.pulls.by_id(int(node.removeprefix("PR_")))
            repo = next(r for r in self.git.repositories.all() if r.id == found.repo_id)
        except (LookupError, ValueError, StopIteration) as error:
            text = f"Could not resolve to a node with the id '{node}'"
            raise _GraphqlError("NOT_FOUND", text) from error
        return self._repository(call, repo.repo.owner, repo.repo.name), found

    def _waiting(self, call: Call, variables: Variables) -> Any:
        _, pull = self._pull(call, str(variables["id"]))
        return {"isInMergeQueue": self.queues.holds(pull)}

    def _enqueue(self, call: Call, variables: Variables) -> Any:
        sent: Variables = variables["input"]
        repo, pull = self._pull(call, str(sent["pullRequestId"]))
        if self.git.access.right_on(call.actor, repo, "") < Right.WRITE:
            raise _GraphqlError("FORBIDDEN", "must have write access to enqueue")
        head = pull_requests.tips(repo.path, pull).head
        if head != sent.get("expectedHeadOid", head):
            raise _GraphqlError("UNPROCESSABLE", f"Head sha does not match {head}")
        if not self.queues.covers(repo, pull.base):
            raise _GraphqlError("UNPROCESSABLE", "The base branch has no merge queue")
        try:
            number = self.queues.add(repo, pull, head, call.user)
        except ApiError as error:
            raise _GraphqlError("UNPROCESSABLE", str(error)) from error
        return {"mergeQueueEntry": {"id": f"MQE_{number}"}}

    def _commit(self, call: Call, variables: Variables) -> Any:
        sent: Variables = variables["input"]
        owner, _, name = str(sent["branch"]["repositoryNameWithOwner"]).partition("/")
        repo, branch = self._repository(call, owner, name), str(sent["branch"]["branchName"])
        try:
            place = {"owner": repo.repo.owner, "repo": repo.repo.name}
            self.git.access.writable(rewritten(call, {}, **place))
            self.git.rules.refuse_commit(repo, call.user, branch)
        except ApiError as error:
            raise _GraphqlError("FORBIDDEN", str(error)) from error
        git = git_read.open_repository(repo.path)
        tip = git_read.branch_commit(git, branch)
        if tip is None:
            raise _GraphqlError("NOT_FOUND", f"No branch {branch}")
        head = str(tip.id)
        if head != sent["expectedHeadOid"]:
            expected = sent["expectedHeadOid"]
            text = f'Expected branch to point to "{expected}" but it did not. Pull and try again.'
            raise _GraphqlError("STALE_DATA", text)
        request = self._request(call, branch, sent, tip)
        try:
            made = git_write.commit_files(repo.path, request)
        except git_write.WriteError as error:
            kind = "STALE_DATA" if error.kind == "race" else "UNPROCESSABLE"
            raise _GraphqlError(kind, str(error)) from error
        self.git.limits.note_move(repo.id, branch, head)
        self.git.updates.branch_moved(repo, branch, made.commit, by=call.user, before=head)
        return {"commit": {"oid": made.commit}}

    def _request(self, call: Call, branch: str, sent: Variables, tip: Any) -> CommitRequest:
        changes, message = sent["fileChanges"], sent["message"]
        operations = []
        for addition in changes.get("additions") or ():
            path = str(addition["path"])
            is_there = git_read.entry_at(tip.tree, path) is not None
            data = base64.b64decode(addition["contents"])
            operations.append(FileOperation("update" if is_there else "create", path, data))
        operations += [
            FileOperation("delete", str(deletion["path"]))
            for deletion in changes.get("deletions") or ()
        ]
        text = str(message["headline"])
        if body := str(message.get("body") or ""):
            text = f"{text}\n\n{body}"
        person = Person(call.user.name, call.user.email, datetime.now(UTC))
        return CommitRequest(branch, text, person, person, operations)
