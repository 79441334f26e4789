"""Organisations and repositories on GitHub: create, find, archive, delete."""

from __future__ import annotations

from ground.errors import (
    AccessError,
    ConflictError,
    InvalidInputError,
    MovedError,
    NotFoundError,
    RefusedError,
)
from ground.names import RepoId
from orderkit.adapters.forges.answers import refusal, settle
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
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.github.reading import DEFAULT_BRANCH, GitHubReading
from orderkit.adapters.github.teams import TeamDefaults
from orderkit.adapters.github.transport import NAME
from orderkit.ports.forge import Removal, Repository

_NO_SQUASH = {"allow_squash_merge": False, "allow_merge_commit": True}
_CHANGES, _TEAMS = "order, change", "team add"
_NEEDED = {
    "contents": ("write", _CHANGES),
    "pull_requests": ("write", "change --pr, approve"),
    "statuses": ("write", "plans of pull requests"),
    "administration": ("write", f"{_CHANGES}, destroy"),
    "members": ("write", _TEAMS),
    "organization_hooks": ("write", "platform webhook"),
    "organization_administration": ("read", "doctor"),
}
"""Permissions of a GitHub App by their names in the API, and what needs each (docs/forge.md)."""
_CLASSIC = {
    "repo": _CHANGES,
    "admin:org": _TEAMS,
    "admin:org_hook": "platform webhook",
    "delete_repo": "destroy",
}
_PROBES = {
    "repos/{owner}/{name}/git/refs": "contents",
    "repos/{owner}/{name}/pulls": "pull_requests",
    "repos/{owner}/{name}/statuses/{commit}": "statuses",
    "repos/{owner}/{name}/rulesets": "administration",
    "orgs/{owner}/teams": "members",
    "orgs/{owner}/hooks": "organization_hooks",
}
"""What is refused for its empty body, by the permission that is asked for before the body is."""


class Repositories(GitHubReading, TeamDefaults):
    """The part of the port about organisations and repositories."""

    def ensure_org(self, name: str) -> bool:
        """
        Make sure the organisation exists. Idempotent. See the port.

        Raises:
            InvalidInputError: The forge refuses the name.
            RefusedError: It does not exist, and our credentials cannot make it.
        """
        doing = f"create organisation {name}"
        if not NAME.match(name):
            rule = "is refused by the forge: letters, digits and dashes only"
            raise InvalidInputError("organisation", name, rule)

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            return attempted if self.has_org(name) else None

        def create() -> bool:
            body = {"login": name, "admin": self.user()}
            # only a site admin of an Enterprise Server can make one
            is_possible = not self._http.is_cloud and self._http.app is None
            answer = (
                self._http.send("POST", "/admin/organizations", body=body) if is_possible else None
            )
            if answer is None or answer.status in (MISSING, FORBIDDEN):
                raise RefusedError(
                    f"organisation {name} does not exist, and our credentials cannot make it",
                    hint=f"ask a forge admin to make it and to give {self._who()} the rights that"
                    " docs/forge.md lists",
                )
            if answer.status == INVALID:
                rule = f"is refused by the forge: {answer.text}"
                raise InvalidInputError("organisation", name, rule)
            return done(answer, doing)

        return settle(look, create, doing)

    def _who(self) -> str:
        app = self._http.app
        return f"GitHub App {app.app_id}" if app else self.user()

    def has_org(self, name: str) -> bool:
        """Say whether the organisation exists and is visible to us; see the port."""
        return self._optional(path_of("orgs", name), f"look for organisation {name}") is not None

    def ensure_repo(
        self,
        repo: RepoId,
        *,
        description: str,
        private: bool = False,
        may_squash: bool = True,
    ) -> Repository:
        """
        Make sure the repository exists. Idempotent. See the port.

        Teams that have all repositories of the organisation get this one, too.

        Raises:
            NotFoundError: The organisation does not exist.
            InvalidInputError: The forge refuses the name.
        """
        doing = f"create repository {repo}"
        if not NAME.match(repo.name):
            raise InvalidInputError("repository", repo.name, "is refused: letters, digits, ._-")

        def create() -> Repository:
            teams = self._teams_of_all(repo.owner)
            body: dict[str, object] = {
                "name": repo.name,
                "description": description,
                "private": private,
                "has_wiki": False,
                "has_projects": False,
                "allow_squash_merge": may_squash,
                **({"team_id": teams[0]["id"]} if teams else {}),
            }
            answer = self._http.send("POST", path_of("orgs", repo.owner, "repos"), body=body)
            if answer.status == CREATED:
                # the first one has it by the request that made it
                for team in teams[1:]:
                    self._add_repository(team, repo, str(team.get("permission")), doing)
                return self._repository(object_in(answer, doing), repo, empty=True)
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
        if entry is None:
            return None
        return self._repository(entry, repo, empty=not entry.get("size") and self._is_empty(repo))

    def _is_empty(self, repo: RepoId) -> bool:
        """Say whether there is no branch."""
        doing = f"read the branches of {repo}"
        # the repository's size tells nothing: GitHub counts it later
        answer = self._http.get(self._path(repo, "branches"), {"per_page": 1})
        return not checked(answer, doing).json()

    def missing_rights(self, repo: RepoId) -> tuple[str, ...]:
        """
        Return what we lack to change the repository. Writes nothing. See the port.

        An App's permissions are listed; a classic token's scopes are in every answer; of any other
        token it is tried with requests that are refused for their empty body.

        Raises:
            NotFoundError: No such repository, or hidden from us.
        """
        repository = self.repo(repo)
        if repository is None:
            raise NotFoundError(f"there is no repository {repo}, or it is hidden from us")
        if self._http.app is not None:
            found = self._http.as_app("GET", f"/orgs/{repo.owner}/installation") or {}
            granted = found.get("permissions") or {}
            missing = [
                _lacking(name)
                for name, (level, _) in _NEEDED.items()
                if granted.get(name) not in (level, "write")
            ]
        else:
            may_write = repository.can_write
            missing = self._missing_of_token(repo) if may_write else [f"write access to {repo}"]
        return tuple(missing)

    def _missing_of_token(self, repo: RepoId) -> list[str]:
        scopes = self._http.get("/user").headers.get("x-oauth-scopes")
        if scopes:
            granted = {scope.strip() for scope in scopes.split(",")}
            return [
                f"scope {scope} (for {verbs})"
                for scope, verbs in _CLASSIC.items()
                if scope not in granted
            ]
        # no such commit, and an empty body: what is not forbidden is refused, and changes nothing
        place = {"owner": repo.owner, "name": repo.name, "commit": "0" * 40}
        return [
            _lacking(permission)
            for path, permission in _PROBES.items()
            if self._http.send("POST", f"/{path.format(**place)}", body={}).status == FORBIDDEN
        ]

    def archive(self, repo: RepoId, *, undo: bool = False) -> None:
        """
        Make the repository read-only, or writable again. Idempotent. See the port.

        Raises:
            NotFoundError: It does not exist.
        """
        doing = f"{'unarchive' if undo else 'archive'} {repo}"

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            now = self._optional(self._path(repo), doing)
            if now is None and not attempted:
                raise NotFoundError(f"there is no repository {repo}, or it is hidden from us")
            return True if now is not None and bool(now.get("archived")) != undo else None

        settle(look, lambda: self._change(repo, {"archived": not undo}, doing), doing)

    def _change(self, repo: RepoId, change: Found, doing: str) -> bool:
        return done(self._http.send("PATCH", self._path(repo), body=change), doing)

    def forbid_squash(self, repo: RepoId, seen: Repository | None = None) -> bool:
        """
        Switch off the style *squash*. Idempotent. See the port.

        Raises:
            NotFoundError: It does not exist.
        """
        doing = f"forbid squash merges in {repo}"
        known = [seen] if seen else []

        def look(attempted: bool) -> bool | None:  # noqa: FBT001  settle's shape
            repository = known.pop() if known else self.repo(repo)
            if repository is None:
                raise NotFoundError(f"there is no repository {repo}, or it is hidden from us")
            return None if repository.may_squash else attempted

        return settle(look, lambda: self._change(repo, _NO_SQUASH, doing), doing)

    def set_default_branch(self, repo: RepoId, branch: str) -> None:
        """
        Make a branch the default. Idempotent. See the port.

        Raises:
            NotFoundError: Repository or branch do not exist.
        """
        doing = f"make {branch} the default branch of {repo}"

        def look(_: bool) -> bool | None:  # noqa: FBT001  settle's shape
            entry = self._optional(self._path(repo), doing)
            return True if entry and entry.get("default_branch") == branch else None

        def patch() -> bool:
            body = {"default_branch": branch}
            answer = self._http.send("PATCH", self._path(repo), body=body)
            if answer.status == INVALID:
                raise NotFoundError(f"{doing}: there is no such branch")
            return done(answer, doing)

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
                old = self._optional(self._path(repo), doing)
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
            is_gone = attempted and self._optional(self._path(repo), doing) is None
            return True if is_gone else None

        def delete() -> bool:
            answer = self._http.send("DELETE", self._path(repo))
            if answer.status == FORBIDDEN:
                raise AccessError(
                    f"{doing}: {answer.text}",
                    hint="let the organisation's owners allow its admins to delete repositories",
                )
            return answer.status != MISSING and done(answer, doing)

        return Removal(settle(look, delete, doing))

    def _repository(self, entry: Found, repo: RepoId, *, empty: bool) -> Repository:
        web_url = f"{self.base_url}{path_of(repo.owner, repo.name)}"
        rights = entry.get("permissions") or {}
        return Repository(
            id=repo,
            default_branch=str(entry.get("default_branch") or DEFAULT_BRANCH),
            empty=empty,
            archived=bool(entry.get("archived")),
            private=bool(entry.get("private")),
            description=str(entry.get("description") or ""),
            web_url=web_url,
            clone_url=f"{web_url}.git",
            can_write=bool(rights.get("push")) or self._http.app is not None,
            can_admin=bool(rights.get("admin")) or self._http.app is not None,
            may_squash=bool(entry.get("allow_squash_merge")),
            number=int(entry.get("id") or 0),
        )


def _lacking(permission: str) -> str:
    level, verbs = _NEEDED[permission]
    return f"{permission}: {level} (for {verbs})"
