"""
Groups and projects of GitLab: create, find, archive, delete.

Source: doc/api/groups.md, projects.md, project_level settings; deletion: projects.md,
"Delete a project" (`permanently_remove` with `full_path`, for a project that is marked already).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

from ground.errors import ConflictError, InvalidInputError, MovedError, NotFoundError
from ground.names import MAIN, RepoId
from orderkit.adapters.forges.answers import settle
from orderkit.adapters.forges.calls import (
    BAD,
    MISSING,
    Found,
    checked,
    done,
    hidden,
    number_in,
    object_in,
)
from orderkit.adapters.forges.repositories import SharedRepositories, no_organisation
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.gitlab.reading import GitLabReading
from orderkit.adapters.gitlab.transport import ADMINISTERS, OWNS, WRITES
from orderkit.ports.forge import Removal, Repository

_NEVER = "never"


class GitLabRepositories(GitLabReading, SharedRepositories):
    """The part of the port about organisations and repositories."""

    no_squash: ClassVar[Found] = {"squash_option": _NEVER}

    def ensure_org(self, name: str) -> bool:
        """
        Make sure the group of an organisation exists. Idempotent. See the port.

        Raises:
            InvalidInputError: The forge refuses the name.
            AccessError: Our credentials may not make a group there.
        """
        doing = f"create group {self._full(name)}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            return attempted if self.has_org(name) else None

        def create() -> bool:
            parent_path, _, path = self._full(name).rpartition("/")
            body: dict[str, Any] = {"name": path, "path": path, "visibility": "public"}
            if parent_path:
                parent = self._optional(path_of("groups", parent_path), doing)
                if parent is None:
                    raise NotFoundError(
                        f"{doing}: there is no group {parent_path}",
                        hint="make it in GitLab: forge.group in platform.yaml names it",
                    )
                body |= {"parent_id": number_in(parent, "id")}
                body["visibility"] = str(parent.get("visibility") or "private")
            answer = self._http.send("POST", "/groups", body=body)
            if answer.status == BAD:
                rule = f"is refused by the forge: {answer.text}"
                raise InvalidInputError("organisation", name, rule)
            return done(answer, doing)

        return settle(look, create, doing)

    def has_org(self, name: str) -> bool:
        """Say whether the group exists and is visible to us; see the port."""
        return self._group_object(name, f"look for group {name}") is not None

    def _group_object(self, org: str, doing: str) -> Found | None:
        return self._optional(self._org(org), doing, {"with_projects": "false"})

    def _new_repo(
        self,
        repo: RepoId,
        description: str,
        doing: str,
        *,
        private: bool,
        may_squash: bool,  # noqa: ARG002  `forbid_squash` says so
    ) -> Repository:
        group = self._group_object(repo.owner, doing)
        if group is None:
            raise no_organisation(repo, doing)
        visibility = str(group.get("visibility") or "private")  # at most that of its group
        body = {
            "name": repo.name,
            "path": repo.name,
            "namespace_id": number_in(group, "id"),
            "description": description,
            "visibility": "private" if private else visibility,
            "default_branch": MAIN,
            "merge_method": "merge",
        }
        answer = self._http.send("POST", "/projects", body=body)
        if answer.status == BAD:
            raise InvalidInputError("repository", repo.name, f"is refused: {answer.text}")
        return self._repository(object_in(checked(answer, doing), doing), repo)

    def repo(self, repo: RepoId) -> Repository | None:
        """Return the repository, or None if missing, hidden or scheduled for deletion."""
        entry = self._project_object(repo, f"read repository {repo}")
        return self._repository(entry, repo) if entry is not None else None

    def missing_rights(self, repo: RepoId) -> tuple[str, ...]:
        """
        Return what we lack to change the repository. Writes nothing. See the port.

        Raises:
            NotFoundError: No such repository, or hidden from us.
        """
        entry = self._project_object(repo, f"read our role in {repo}")
        if entry is None:
            raise hidden(repo)
        missing, level = [], self._own_level(entry)
        token = self._optional("/personal_access_tokens/self", "read the scopes of our token")
        if token is not None and "api" not in (token.get("scopes") or ()):
            missing.append("scope api (for order, change)")
        if level < WRITES:
            missing.append(f"write access to {repo}")
        elif level < ADMINISTERS:
            missing.append(f"role Maintainer of {repo} (for bootstrap, platform webhook)")
        elif level < OWNS:
            missing.append(f"role Owner of {self._full(repo.owner)} (for team add, destroy)")
        return tuple(missing)

    def _set_archived(self, repo: RepoId, doing: str, *, undo: bool) -> bool:
        path = self._path(repo, "unarchive" if undo else "archive")
        return done(self._http.send("POST", path), doing)

    def _make_default(self, repo: RepoId, branch: str, doing: str) -> bool:
        if self.head(repo, branch) is None:
            raise NotFoundError(f"{doing}: there is no such branch")
        return self._change(repo, {"default_branch": branch}, doing)

    def rename_repo(self, repo: RepoId, name: str) -> None:
        """
        Give the repository another name. Idempotent. See the port.

        Raises:
            NotFoundError: It does not exist.
            ConflictError: Another repository has that name.
        """
        doing, new = f"rename {repo} to {name}", RepoId(repo.owner, name)
        numbers: list[int] = []

        def look(_: bool) -> bool | None:  # noqa: FBT001  settle's shape
            target = self._occupant(new, doing)
            if target is not None and self._is_same(repo, target, numbers, doing):
                return True
            return None

        def change() -> bool:
            entry = self._project_object(repo, doing)
            if entry is None:
                raise NotFoundError(f"{doing}: there is no such repository")
            numbers.append(number_in(entry, "id"))
            if self._occupant(new, doing) is not None:
                raise ConflictError(f"{doing}: another repository has that name")
            return self._change(repo, {"path": name, "name": name}, doing)

        settle(look, change, doing)

    def _occupant(self, repo: RepoId, doing: str) -> Found | None:
        """Return the project at a path; one that left it occupies it no more."""
        with suppress(MovedError):
            return self._project_object(repo, doing)
        return None

    def _is_same(self, repo: RepoId, target: Found, numbers: list[int], doing: str) -> bool:
        """Say whether the project at the new path is ours: by its number, or by the redirect."""
        if numbers:
            return target.get("id") == numbers[-1]
        redirected = self._http.follow(self._path(repo), doing)
        return redirected is not None and redirected.get("id") == target.get("id")

    def delete_repo(self, repo: RepoId) -> Removal:
        """Remove the repository: at once where GitLab lets us, else it is scheduled. Idempotent."""
        doing = f"delete {repo}"
        entry = self._http.follow(self._path(repo), doing)
        was_marked = bool(entry and entry.get("marked_for_deletion_on"))
        if entry is not None and not was_marked:
            entry = self._optional(self._path(repo), doing)  # raises MovedError for another path
        if entry is None:
            return Removal(existed=False)
        # by its number, because marking it for deletion changes its path
        path = path_of("projects", str(number_in(entry, "id")))

        def look(attempted: bool) -> Removal | None:  # noqa: FBT001  settle's shape
            now = self._optional(path, doing) if attempted else entry
            if now is None:
                return Removal(existed=not was_marked)
            marked = str(now.get("marked_for_deletion_on") or "")
            is_done = marked and attempted
            return Removal(existed=not was_marked, scheduled_on=marked) if is_done else None

        def act() -> Removal | None:
            now = self._optional(path, doing)
            if now is not None and not now.get("marked_for_deletion_on"):
                answer = self._http.send("DELETE", path)
                if answer.status != MISSING:
                    done(answer, doing)
                now = self._optional(path, doing)
            if now is not None and now.get("marked_for_deletion_on"):
                full_path = str(now.get("path_with_namespace"))
                # GitLab asks for the path that marking gave it (projects.md, "Delete a project")
                query = {"permanently_remove": "true", "full_path": full_path}
                self._http.send("DELETE", path, query=query)  # refused where it may not
            return None

        return settle(look, act, doing)

    def _repository(self, entry: Found, repo: RepoId) -> Repository:
        web_url = f"{self.base_url}{path_of(*repo.owner.split('/'), repo.name)}"
        level = self._own_level(entry)
        return Repository(
            id=repo,
            default_branch=str(entry.get("default_branch") or MAIN),
            empty=bool(entry.get("empty_repo")),
            archived=bool(entry.get("archived")),
            private=entry.get("visibility") != "public",
            description=str(entry.get("description") or ""),
            web_url=web_url,
            clone_url=f"{web_url}.git",
            can_write=level >= WRITES,
            can_admin=level >= ADMINISTERS,
            may_squash=entry.get("squash_option") != _NEVER,
            number=int(entry.get("id") or 0),
        )

    def _own_level(self, entry: Found) -> int:
        """Return our access level: the highest of project and group; an administrator's is all."""
        permissions = entry.get("permissions") or {}
        levels = [0]
        for kind in ("project_access", "group_access"):
            access = permissions.get(kind)
            if isinstance(access, dict):
                levels.append(int(access.get("access_level") or 0))
        if max(levels) < OWNS and self._is_administrator():
            return OWNS
        return max(levels)

    def _is_administrator(self) -> bool:
        if self._administrates is None:
            user = self._object("/user", "read who we are")
            self._administrates = bool(user.get("is_admin"))
        return self._administrates

    _administrates: bool | None = None
