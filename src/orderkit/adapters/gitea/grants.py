"""
Who besides us can write to an organisation or repository on Gitea, or learns of pushes.

Called through ``client.GiteaForge``; ``ports.access.ForgeAccess`` documents the contract.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from ground.errors import AccessError, NotFoundError, RefusedError
from ground.names import RepoId
from orderkit.adapters.forges.calls import Found, checked, list_in, number_in, object_in, text_in
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.gitea.reading import GiteaReading
from orderkit.ports.access import AccessGrant, AccessRight

_RIGHTS: Mapping[str, AccessRight] = {"owner": "owner", "admin": "admin", "write": "write"}
"""Levels of Gitea that can write, the highest first."""


class Grants(GiteaReading):
    """The part of the port that lists who has access."""

    def foreign_access(self, target: str | RepoId) -> tuple[AccessGrant, ...]:
        """
        Return every way in besides our own account. See the port.

        Raises:
            RefusedError: We are not even a member of the organisation.
        """
        org = isinstance(target, str)
        holders = self._of_organisation(target) if isinstance(target, str) else self._of(target)
        path = path_of("orgs", target) if isinstance(target, str) else self._path(target)
        me = self.user().lower()
        rights: dict[str, AccessRight] = {}
        for holder, right in (*holders, *self._machines(path, org=org)):
            if holder.lower() != me:
                highest = (right, rights.get(holder, right))
                rights[holder] = min(highest, key=[*_RIGHTS, "listen"].index)
        return tuple(AccessGrant(str(target), *entry) for entry in sorted(rights.items()))

    def _of_organisation(self, org: str) -> Iterator[tuple[str, AccessRight]]:
        doing = f"list the teams of {org}"
        try:
            teams = list(self._pages(path_of("orgs", org, "teams"), {}, doing))
        except NotFoundError:
            return
        except AccessError as error:
            raise RefusedError(
                f"organisation {org} belongs to somebody else: our account {self.user()} is no"
                " member of it",
                hint="choose another name, or have its owner remove it",
            ) from error
        for team in teams:
            right = _team_right(team)
            if right is None:
                continue
            path = path_of("teams", str(number_in(team, "id")), "members")
            for member in self._pages(path, {}, doing):
                yield text_in(member, "login"), right

    def _of(self, repo: RepoId) -> Iterator[tuple[str, AccessRight]]:
        doing = f"list who has access to {repo}"
        entry = self._optional(self._path(repo), doing)
        if entry is None:
            return
        if self._optional(path_of("orgs", repo.owner), doing) is None:
            yield text_in(entry.get("owner"), "login"), "owner"
        if entry.get("mirror"):
            yield f"mirror:{entry.get('original_url') or 'of another repository'}", "write"
        for person in self._pages(self._path(repo, "collaborators"), {}, doing):
            login = text_in(person, "login")
            level = self._object(self._path(repo, "collaborators", login, "permission"), doing)
            right = _RIGHTS.get(str(level.get("permission")))
            if right:
                yield login, right

    def _machines(self, path: str, *, org: bool) -> Iterator[tuple[str, AccessRight]]:
        """
        Yield runners, webhooks, keys and mirrors; a feature that is switched off has none.

        Titles and names can be given to another key or runner; its fingerprint or id cannot.
        """
        for runner in self._optional_list(f"{path}/actions/runners", "runners"):
            yield f"runner:{runner.get('name')}:{runner.get('id')}", "write"
        for hook in self._optional_list(f"{path}/hooks"):
            yield f"webhook:{(hook.get('config') or {}).get('url')}", "listen"
        if org:
            return
        for key in self._optional_list(f"{path}/keys"):
            right: AccessRight = "listen" if key.get("read_only") else "write"
            yield f"deploy-key:{key.get('title')}:{key.get('fingerprint')}", right
        for mirror in self._optional_list(f"{path}/push_mirrors"):
            yield f"push-mirror:{mirror.get('remote_address')}", "listen"

    def _optional_list(self, path: str, key: str = "") -> list[Found]:
        """Return a list that only admins see, and that a forge without the feature lacks."""
        doing = f"read {path}"
        with suppress(AccessError, NotFoundError):
            if not key:
                return list(self._pages(path, {}, doing))
            page = object_in(checked(self._http.get(path), doing), doing)
            return list_in(page.get(key) or [])
        return []


def _team_right(team: Found) -> AccessRight | None:
    """Return what a team may do; who may create repositories administers them."""
    levels = {str(team.get("permission")), *map(str, (team.get("units_map") or {}).values())}
    if team.get("can_create_org_repo"):
        levels.add("write")
    return next((right for level, right in _RIGHTS.items() if level in levels), None)
