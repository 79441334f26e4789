"""Organisations and repositories on GitHub: create, find, archive, delete."""

from __future__ import annotations

from typing import ClassVar

from ground.errors import AccessError, InvalidInputError, NotFoundError, RefusedError
from ground.names import RepoId
from orderkit.adapters.forges.answers import settle
from orderkit.adapters.forges.calls import (
    FORBIDDEN,
    INVALID,
    MISSING,
    Found,
    checked,
    done,
    hidden,
)
from orderkit.adapters.forges.repositories import SharedRepositories
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.github.reading import DEFAULT_BRANCH, GitHubReading
from orderkit.adapters.github.teams import TeamDefaults
from orderkit.adapters.github.transport import NAME
from orderkit.ports.forge import Repository

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


class Repositories(GitHubReading, TeamDefaults, SharedRepositories):
    """The part of the port about organisations and repositories."""

    no_squash: ClassVar[Found] = {"allow_squash_merge": False, "allow_merge_commit": True}

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

    def _new_repo(
        self, repo: RepoId, description: str, doing: str, *, private: bool, may_squash: bool
    ) -> Repository:
        """
        Make the repository; teams that have all of the organisation get this one, too.

        Raises:
            OrderkitError: As `ensure_repo` says.
        """
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
        made = self._post_repo(repo, body, doing)
        # the first one has it by the request that made it
        for team in teams[1:]:
            self._add_repository(team, repo, str(team.get("permission")), doing)
        return self._repository(made, repo, empty=True)

    def _check_name(self, repo: RepoId) -> None:
        if not NAME.match(repo.name):
            raise InvalidInputError("repository", repo.name, "is refused: letters, digits, ._-")

    def repo(self, repo: RepoId) -> Repository | None:
        """Return the repository, or None if missing or hidden; see the port."""
        entry = self._optional(self._path(repo), f"read repository {repo}")
        if entry is None:
            return None
        return self._repository(entry, repo, empty=not entry.get("size") and self._is_empty(repo))

    def _seen(self, repo: RepoId, doing: str, /) -> Repository | None:
        entry = self._optional(self._path(repo), doing)
        return self._repository(entry, repo, empty=False) if entry is not None else None

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
            raise hidden(repo)
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
        now = self._seen(repo, f"{'unarchive' if undo else 'archive'} {repo}")
        if now is None:
            raise hidden(repo)
        if now.archived == undo:
            super().archive(repo, undo=undo)

    def _make_default(self, repo: RepoId, branch: str, doing: str) -> bool:
        answer = self._http.send("PATCH", self._path(repo), body={"default_branch": branch})
        if answer.status == INVALID:
            raise NotFoundError(f"{doing}: there is no such branch")
        return done(answer, doing)

    def _drop_repo(self, repo: RepoId, doing: str) -> bool:
        answer = self._http.send("DELETE", self._path(repo))
        if answer.status == FORBIDDEN:
            raise AccessError(
                f"{doing}: {answer.text}",
                hint="let the organisation's owners allow its admins to delete repositories",
            )
        return answer.status != MISSING and done(answer, doing)

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
