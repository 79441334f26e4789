"""
Organisations and repositories on Gitea: create, find, archive, delete.

Called through ``client.GiteaForge``; ``ports.forge.Forge`` documents the contract.
"""

from __future__ import annotations

from ground.errors import ConflictError, InvalidInputError, MovedError, NotFoundError
from ground.names import RepoId
from orderkit.adapters.forges.answers import missing_scope, refusal
from orderkit.adapters.forges.calls import (
    CREATED,
    FORBIDDEN,
    INVALID,
    MISSING,
    Found,
    checked,
    done,
    object_in,
)
from orderkit.adapters.forges.retries import settle
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.gitea.reading import DEFAULT_BRANCH, GiteaReading
from orderkit.ports.forge import Removal, Repository

_NO_SQUASH = {
    "allow_squash_merge": False,
    "allow_merge_commits": True,
    "default_merge_style": "merge",
}


class Repositories(GiteaReading):
    """The part of the port about organisations and repositories."""

    def ensure_org(self, name: str) -> bool:
        """
        Make sure the organisation exists. Idempotent. See the port.

        Raises:
            InvalidInputError: The forge refuses the name.
        """

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            return attempted if self.has_org(name) else None

        def create() -> bool:
            answer = self._http.send("POST", "/orgs", body={"username": name})
            if answer.status == INVALID:
                rule = f"is refused by the forge: {answer.text}"
                raise InvalidInputError("organisation", name, rule)
            return done(answer, f"create organisation {name}")

        return settle(look, create, f"create organisation {name}")

    def has_org(self, name: str) -> bool:
        """Say whether the organisation exists and is visible to us; see the port."""
        return self._optional(path_of("orgs", name), f"look for organisation {name}") is not None

    def ensure_repo(
        self,
        repo: RepoId,
        *,
        description: str,
        private: bool = False,
        may_squash: bool = True,  # noqa: ARG002  Gitea takes it in a change only
    ) -> Repository:
        """
        Make sure the repository exists. Idempotent. See the port.

        Raises:
            NotFoundError: The organisation does not exist.
            InvalidInputError: The forge refuses the name.
        """
        doing = f"create repository {repo}"
        body = {
            "name": repo.name,
            "description": description,
            "private": private,
            "default_branch": DEFAULT_BRANCH,
        }

        def create() -> Repository:
            answer = self._http.send("POST", path_of("orgs", repo.owner, "repos"), body=body)
            if answer.status == CREATED:
                return self._repository(object_in(answer, doing), repo)
            if answer.status == INVALID:
                raise InvalidInputError("repository", repo.name, f"is refused: {answer.text}")
            if answer.status == MISSING:
                raise NotFoundError(
                    f"{doing}: there is no organisation {repo.owner}",
                    hint=f"create it first: orderkit team add {repo.owner}",
                )
            raise refusal(answer, doing)

        return settle(lambda _: self.repo(repo), create, doing)

    def repo(self, repo: RepoId) -> Repository | None:
        """Return the repository, or None if missing or hidden; see the port."""
        entry = self._optional(self._path(repo), f"read repository {repo}")
        return self._repository(entry, repo) if entry is not None else None

    def missing_rights(self, repo: RepoId) -> tuple[str, ...]:
        """
        Return what we lack to change the repository. Writes nothing. See the port.

        Sends changes with an empty body. Gitea checks the token's scopes before the body, so a
        missing scope is a 403 and everything else a refusal that changes nothing.

        Raises:
            NotFoundError: No such repository, or hidden from us.
        """
        repository = self.repo(repo)
        if repository is None:
            raise NotFoundError(f"there is no repository {repo}, or it is hidden from us")
        missing = []
        for path in (self._path(repo, "contents"), self._path(repo, "issues"), "/orgs"):
            answer = self._http.send("POST", path, body={})
            if answer.status == FORBIDDEN and (scope := missing_scope(answer.text)):
                missing.append(f"scope {scope}")
        if not repository.can_write:
            missing.append(f"write access to {repo}")
        return tuple(missing)

    def archive(self, repo: RepoId, *, undo: bool = False) -> None:
        """
        Make the repository read-only, or writable again. Idempotent. See the port.

        Raises:
            NotFoundError: It does not exist.
        """
        doing = f"{'unarchive' if undo else 'archive'} {repo}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            repository = self.repo(repo) if attempted else None
            return True if repository and repository.archived != undo else None

        def patch() -> bool:
            answer = self._http.send("PATCH", self._path(repo), body={"archived": not undo})
            return done(answer, doing)

        settle(look, patch, doing)

    def forbid_squash(self, repo: RepoId) -> bool:
        """
        Switch off the style *squash*, and what would make it the default. See the port.

        Raises:
            NotFoundError: It does not exist.
        """
        doing = f"forbid squash merges in {repo}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            repository = self.repo(repo)
            if repository is None:
                raise NotFoundError(f"there is no repository {repo}, or it is hidden from us")
            return None if repository.may_squash else attempted

        def patch() -> bool:
            return done(self._http.send("PATCH", self._path(repo), body=_NO_SQUASH), doing)

        return settle(look, patch, doing)

    def set_default_branch(self, repo: RepoId, branch: str) -> None:
        """
        Make a branch the default. Idempotent. See the port.

        Gitea passes over a branch that does not exist (1.27, ``routers/api/v1/repo/repo.go``), so
        its answer decides.

        Raises:
            NotFoundError: Repository or branch do not exist.
        """
        doing = f"make {branch} the default branch of {repo}"

        def look(_: bool) -> bool | None:  # noqa: FBT001  settle's shape
            repository = self.repo(repo)
            return True if repository and repository.default_branch == branch else None

        def patch() -> bool:
            answer = self._http.send("PATCH", self._path(repo), body={"default_branch": branch})
            is_unknown = answer.status == INVALID
            if is_unknown or object_in(checked(answer, doing), doing)["default_branch"] != branch:
                raise NotFoundError(f"{doing}: there is no such branch")
            return True

        settle(look, patch, doing)

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
                old = self.repo(repo)
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
            return True if attempted and self.repo(repo) is None else None

        def delete() -> bool:
            answer = self._http.send("DELETE", self._path(repo))
            return answer.status != MISSING and done(answer, doing)

        return Removal(settle(look, delete, doing))

    def _repository(self, entry: Found, repo: RepoId) -> Repository:
        web_url = f"{self.base_url}{path_of(repo.owner, repo.name)}"
        rights = entry.get("permissions") or {}
        return Repository(
            id=repo,
            default_branch=str(entry.get("default_branch") or DEFAULT_BRANCH),
            empty=bool(entry.get("empty")),
            archived=bool(entry.get("archived")),
            private=bool(entry.get("private")),
            description=str(entry.get("description") or ""),
            web_url=web_url,
            clone_url=f"{web_url}.git",
            can_write=bool(rights.get("push")),
            can_admin=bool(rights.get("admin")),
            may_squash=bool(entry.get("allow_squash_merge")),
            number=int(entry.get("id") or 0),
        )
