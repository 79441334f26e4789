"""
Repositories and branches, each step safe to repeat: what forges share.

Where the three differ, `SharedRepositories` does as Gitea and GitHub do.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from ground.errors import ConflictError, InvalidInputError, MovedError, NotFoundError
from ground.names import CommitSha, RepoId
from orderkit.adapters.forges.answers import refusal, settle
from orderkit.adapters.forges.calls import (
    CREATED,
    INVALID,
    MISSING,
    ForgeCalls,
    Found,
    done,
    hidden,
    object_in,
)
from orderkit.adapters.forges.transport import path_of
from orderkit.ports.forge import Commit, Removal, Repository


class SharedRepositories(ForgeCalls):
    """The part of the port about organisations and repositories."""

    no_squash: ClassVar[Found]
    """The change that switches off the style *squash*."""

    @abstractmethod
    def repo(self, repo: RepoId) -> Repository | None: ...

    @abstractmethod
    def _new_repo(
        self, repo: RepoId, description: str, doing: str, *, private: bool, may_squash: bool
    ) -> Repository:
        """Make the repository, once; see `ensure_repo`."""

    def _seen(self, repo: RepoId, _doing: str, /) -> Repository | None:
        """Return the repository; whether it is empty may be left open."""
        return self.repo(repo)

    def _change(self, repo: RepoId, change: Found, doing: str) -> bool:
        return done(self._http.send(self.edit_verb, self._path(repo), body=change), doing)

    def has_org(self, name: str) -> bool:
        """Say whether the organisation exists and is visible to us; see the port."""
        return self._optional(path_of("orgs", name), f"look for organisation {name}") is not None

    def ensure_repo(
        self, repo: RepoId, *, description: str, private: bool = False, may_squash: bool = True
    ) -> Repository:
        """
        Make sure the repository exists. Idempotent. See the port.

        Raises:
            NotFoundError: The organisation does not exist.
            InvalidInputError: The forge refuses the name.
        """
        self._check_name(repo)
        doing = f"create repository {repo}"

        def create() -> Repository:
            how = {"private": private, "may_squash": may_squash}
            return self._new_repo(repo, description, doing, **how)

        return settle(lambda _: self.repo(repo), create, doing)

    def _check_name(self, repo: RepoId) -> None:
        """
        Check a name that the forge would change instead of refusing it.

        Raises:
            InvalidInputError: It would.
        """

    def _post_repo(self, repo: RepoId, body: Found, doing: str) -> Found:
        answer = self._http.send("POST", path_of("orgs", repo.owner, "repos"), body=body)
        if answer.status == INVALID:
            raise InvalidInputError("repository", repo.name, f"is refused: {answer.text}")
        if answer.status == MISSING:
            raise no_organisation(repo, doing)
        if answer.status != CREATED:
            raise refusal(answer, doing)
        return object_in(answer, doing)

    def archive(self, repo: RepoId, *, undo: bool = False) -> None:
        """
        Make the repository read-only, or writable again. Idempotent. See the port.

        Raises:
            NotFoundError: It does not exist.
        """
        doing = f"{'unarchive' if undo else 'archive'} {repo}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            now = self._seen(repo, doing) if attempted else None
            return True if now and now.archived != undo else None

        settle(look, lambda: self._set_archived(repo, doing, undo=undo), doing)

    def _set_archived(self, repo: RepoId, doing: str, *, undo: bool) -> bool:
        return self._change(repo, {"archived": not undo}, doing)

    def forbid_squash(self, repo: RepoId, seen: Repository | None = None) -> bool:
        """
        Switch off the style *squash*. Idempotent. See the port.

        Raises:
            NotFoundError: It does not exist.
        """
        doing, known = f"forbid squash merges in {repo}", [seen] if seen else []

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            repository = known.pop() if known else self.repo(repo)
            if repository is None:
                raise hidden(repo)
            return None if repository.may_squash else attempted

        return settle(look, lambda: self._change(repo, self.no_squash, doing), doing)

    def set_default_branch(self, repo: RepoId, branch: str) -> None:
        """
        Make a branch the default. Idempotent. See the port.

        Raises:
            NotFoundError: Repository or branch do not exist.
        """
        doing = f"make {branch} the default branch of {repo}"

        def look(_: bool) -> bool | None:  # noqa: FBT001  settle's shape
            now = self._seen(repo, doing)
            return True if now and now.default_branch == branch else None

        settle(look, lambda: self._make_default(repo, branch, doing), doing)

    @abstractmethod
    def _make_default(self, repo: RepoId, branch: str, doing: str) -> bool:
        """
        Make a branch the default, once.

        Raises:
            NotFoundError: It does not exist.
        """

    def rename_repo(self, repo: RepoId, name: str) -> None:
        """
        Give the repository another name. Idempotent. See the port.

        Raises:
            NotFoundError: It does not exist.
            ConflictError: Another repository has that name.
        """
        doing, new = f"rename {repo} to {name}", RepoId(repo.owner, name)

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            try:
                old = self._seen(repo, doing)
            except MovedError as error:
                return True if error.place == str(new) else None
            return True if attempted and old is None and self.repo(new) else None

        def patch() -> bool:
            answer = self._http.send("PATCH", self._path(repo), body={"name": name})
            if answer.status == INVALID:
                raise ConflictError(f"{doing}: {answer.text}")
            return done(answer, doing)

        settle(look, patch, doing)

    def delete_repo(self, repo: RepoId) -> Removal:
        """Remove the repository for good. Idempotent. See the port."""
        doing = f"delete {repo}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            return True if attempted and self._seen(repo, doing) is None else None

        return Removal(settle(look, lambda: self._drop_repo(repo, doing), doing))

    def _drop_repo(self, repo: RepoId, doing: str) -> bool:
        """Remove the repository, once; False if there is none."""
        answer = self._http.send("DELETE", self._path(repo))
        return answer.status != MISSING and done(answer, doing)


def no_organisation(repo: RepoId, doing: str) -> NotFoundError:
    """Return the error for a repository that is to be made where no organisation is."""
    return NotFoundError(
        f"{doing}: there is no organisation {repo.owner}",
        hint=f"create it first: orderkit team add {repo.owner}",
    )


class SharedBranches(ForgeCalls):
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
