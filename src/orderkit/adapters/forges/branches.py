"""Make and remove branches, each safe to repeat: what forges share."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ground.errors import ConflictError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.retries import settle
from orderkit.ports.forge import Commit


class SharedBranches(ABC):
    """The part of the port about branches that no forge differs in."""

    @abstractmethod
    def head(self, repo: RepoId, branch: str = "main") -> CommitSha | None: ...

    @abstractmethod
    def compare(self, repo: RepoId, base: str, head: str) -> tuple[Commit, ...]: ...

    @abstractmethod
    def _new_branch(self, repo: RepoId, branch: str, at: CommitSha, doing: str) -> bool:
        """
        Make the branch, once.

        Raises:
            InvalidInputError: The forge refuses the name.
            NotFoundError: No such commit.
        """

    @abstractmethod
    def _drop_branch(self, repo: RepoId, branch: str, doing: str) -> bool:
        """
        Remove the branch, once; False if there is none.

        Raises:
            RefusedError: It is the default branch, protected, or the base of a pull request.
        """

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

        return settle(look, lambda: self._new_branch(repo, branch, at, doing), doing)

    def delete_branch(self, repo: RepoId, branch: str) -> bool:
        """
        Remove a branch. Idempotent. See the port.

        Raises:
            RefusedError: It is the default branch, protected, or the base of a pull request.
        """
        doing = f"delete branch {branch} of {repo}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            return True if attempted and self.head(repo, branch) is None else None

        return settle(look, lambda: self._drop_branch(repo, branch, doing), doing)
