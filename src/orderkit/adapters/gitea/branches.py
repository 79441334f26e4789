"""
Branches of a Gitea repository: create, remove and compare.

Called through ``client.GiteaForge``; ``ports.pulls.ForgePulls`` documents the contract.
"""

from __future__ import annotations

from ground.errors import InvalidInputError, NotFoundError, RefusedError, TooManyCommitsError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import refusal
from orderkit.adapters.forges.branches import SharedBranches
from orderkit.adapters.forges.calls import FORBIDDEN, INVALID, MISSING, done, list_in, object_in
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.gitea.reading import GiteaReading, commit_of, is_commit_id, refused_name
from orderkit.ports.forge import Commit


class Branches(GiteaReading, SharedBranches):
    """The part of the port about branches."""

    def _new_branch(self, repo: RepoId, branch: str, at: CommitSha, doing: str) -> bool:
        body = {"new_branch_name": branch, "old_ref_name": at}
        answer = self._http.send("POST", self._path(repo, "branches"), body=body)
        if answer.status == INVALID:
            raise InvalidInputError("branch", branch, f"is refused: {answer.text}")
        if answer.status >= 500 and not self._has_commit(repo, at):  # noqa: PLR2004
            raise NotFoundError(f"{repo} has no commit {at}")
        return done(answer, doing)

    def _drop_branch(self, repo: RepoId, branch: str, doing: str) -> bool:
        path = self._path(repo, "branches") + path_of(branch)
        answer = self._http.send("DELETE", path)
        if answer.status == FORBIDDEN and "branch" in answer.text:
            raise RefusedError(f"{doing}: {answer.text}")
        return answer.status != MISSING and done(answer, doing)

    def compare(self, repo: RepoId, base: str, head: str) -> tuple[Commit, ...]:
        """
        Return the commits in `head` that are not in `base`, newest first. See the port.

        Raises:
            NotFoundError: No such repository, branch or commit.
            TooManyCommitsError: The forge does not show all of them.
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
            raise TooManyCommitsError(f"{doing}: the forge shows {len(commits)} commits only")
        if is_commit_id(head) and commits and head not in {commit.id for commit in commits}:
            raise refused_name(repo, head)
        return commits

    def _has_commit(self, repo: RepoId, commit: CommitSha) -> bool:
        path = self._path(repo, "git", "commits", commit)
        return self._optional(path, f"look for commit {commit}") is not None
