"""
Branches of a Gitea repository: create, remove and compare.

Called through ``client.GiteaForge``; ``ports.pulls.ForgePulls`` documents the contract.
"""

from __future__ import annotations

from ground.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError, RemoteError
from ground.names import CommitSha, RepoId
from orderkit.adapters.gitea.answers import refusal
from orderkit.adapters.gitea.calls import FORBIDDEN, INVALID, MISSING, done, list_in, object_in
from orderkit.adapters.gitea.reading import GiteaReading, commit_of, is_commit_id, refused_name
from orderkit.adapters.gitea.retries import settle
from orderkit.adapters.gitea.transport import path_of
from orderkit.ports.forge import Commit


class Branches(GiteaReading):
    """The part of the port about branches."""

    def ensure_branch(self, repo: RepoId, branch: str, at: CommitSha) -> bool:
        """
        Make sure a branch exists that contains `at`. Idempotent. See the port.

        Raises:
            ConflictError: A branch of that name exists and does not contain `at`.
            InvalidInputError: The forge refuses the name.
            NotFoundError: No such repository or commit.
        """
        doing = f"create branch {branch} of {repo}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            head = self.head(repo, branch)
            if head is None:
                return None
            if head != at and self.compare(repo, head, at):
                raise ConflictError(f"{repo} has a branch {branch} without commit {at[:8]}")
            return attempted and head == at

        def create() -> bool:
            body = {"new_branch_name": branch, "old_ref_name": at}
            answer = self._http.send("POST", self._path(repo, "branches"), body=body)
            if answer.status == INVALID:
                raise InvalidInputError("branch", branch, f"is refused: {answer.text}")
            if answer.status >= 500 and not self._has_commit(repo, at):  # noqa: PLR2004
                raise NotFoundError(f"{repo} has no commit {at}")
            return done(answer, doing)

        return settle(look, create, doing)

    def delete_branch(self, repo: RepoId, branch: str) -> bool:
        """
        Remove a branch. Idempotent. See the port.

        Raises:
            RefusedError: It is the default branch, protected, or the base of a pull request.
        """
        doing = f"delete branch {branch} of {repo}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            return True if attempted and self.head(repo, branch) is None else None

        def delete() -> bool:
            path = self._path(repo, "branches") + path_of(branch)
            answer = self._http.send("DELETE", path)
            if answer.status == FORBIDDEN and "branch" in answer.text:
                raise RefusedError(f"{doing}: {answer.text}")
            return answer.status != MISSING and done(answer, doing)

        return settle(look, delete, doing)

    def compare(self, repo: RepoId, base: str, head: str) -> tuple[Commit, ...]:
        """
        Return the commits in `head` that are not in `base`, newest first. See the port.

        Raises:
            NotFoundError: No such repository, branch or commit.
        """
        doing = f"compare {base} with {head} in {repo}"
        path = self._path(repo, "compare") + path_of(f"{base}...{head}")
        answer = self._http.get(path, {"verification": "false", "files": "false"})
        if answer.status == MISSING:
            raise NotFoundError(f"{doing}: one of them does not exist")
        if not answer.ok:
            raise refusal(answer, doing)
        comparison = object_in(answer, doing)
        commits = tuple(commit_of(commit) for commit in list_in(comparison.get("commits") or []))
        if len(commits) < int(comparison.get("total_commits") or 0):
            raise RemoteError(f"{doing}: the forge shows {len(commits)} commits only")
        if is_commit_id(head) and commits and head not in {commit.id for commit in commits}:
            raise refused_name(repo, head)
        return commits

    def _has_commit(self, repo: RepoId, commit: CommitSha) -> bool:
        path = self._path(repo, "git", "commits", commit)
        return self._optional(path, f"look for commit {commit}") is not None
