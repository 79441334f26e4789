"""Branches of a GitHub repository: create, remove and compare."""

from __future__ import annotations

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges import calls
from orderkit.adapters.forges.branches import SharedBranches
from orderkit.adapters.forges.calls import (
    CONFLICT,
    FORBIDDEN,
    INVALID,
    MISSING,
    checked,
    done,
    list_in,
    object_in,
)
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.github.reading import GitHubReading, commit_of
from orderkit.ports.forge import Commit


class Branches(GitHubReading, SharedBranches):
    """The part of the port about branches."""

    def _new_branch(self, repo: RepoId, branch: str, at: CommitSha, doing: str) -> bool:
        body = {"ref": f"refs/heads/{branch}", "sha": at}
        answer = self._http.send("POST", self._path(repo, "git", "refs"), body=body)
        if answer.status in (INVALID, CONFLICT):
            if not self._has_commit(repo, at):
                raise NotFoundError(f"{repo} has no commit {at}")
            raise InvalidInputError("branch", branch, f"is refused: {answer.text}")
        if answer.status == FORBIDDEN:
            self._refuse_archived(repo, doing)
        return done(answer, doing)

    def _refuse_archived(self, repo: RepoId, doing: str) -> None:
        """
        Name the reason of a 403 that GitHub gives in words only.

        Raises:
            RefusedError: The repository is archived.
        """
        entry = self._optional(self._path(repo), doing) or {}
        if entry.get("archived"):
            raise RefusedError(
                f"{doing}: archived, hence read-only", hint="unarchive it in the forge"
            )

    def _drop_branch(self, repo: RepoId, branch: str, doing: str) -> bool:
        entry = self._optional(self._path(repo), doing) or {}
        if entry.get("default_branch") == branch:
            raise RefusedError(f"{doing}: it is the default branch")
        answer = self._http.send("DELETE", self._path(repo, "git", "refs", f"heads/{branch}"))
        if answer.status == INVALID and self.head(repo, branch) is None:
            return False
        if answer.status in (INVALID, FORBIDDEN):
            raise RefusedError(f"{doing}: {answer.text}")
        return answer.status != MISSING and done(answer, doing)

    def compare(self, repo: RepoId, base: str, head: str) -> tuple[Commit, ...]:
        """
        Return the commits in `head` that are not in `base`, newest first. See the port.

        Raises:
            NotFoundError: No such repository, branch or commit.
        """
        doing = f"compare {base} with {head} in {repo}"
        path = self._path(repo, "compare") + path_of(f"{base}...{head}")
        commits: list[Commit] = []
        page = 1
        while True:
            answer = self._http.get(path, {"per_page": calls.PAGE, "page": page})
            if answer.status == MISSING:
                raise NotFoundError(f"{doing}: one of them does not exist")
            comparison = object_in(checked(answer, doing), doing)
            found = list_in(comparison.get("commits") or [])
            commits += [commit_of(commit) for commit in found]
            if not found or len(commits) >= int(comparison.get("total_commits") or 0):
                return tuple(reversed(commits))
            page += 1

    def _merge_base(self, repo: RepoId, base: str, head: str) -> CommitSha:
        doing = f"compare {base} with {head} in {repo}"
        path = self._path(repo, "compare") + path_of(f"{base}...{head}")
        found = object_in(checked(self._http.get(path, {"per_page": 1}), doing), doing)
        return CommitSha(str((found.get("merge_base_commit") or {}).get("sha") or ""))

    def _has_commit(self, repo: RepoId, commit: CommitSha) -> bool:
        answer = self._http.get(self._path(repo, "git", "commits", commit))
        return answer.status not in (MISSING, CONFLICT, INVALID) and answer.ok
