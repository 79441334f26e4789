"""Who besides us can write to an organisation or repository on GitHub, or learns of pushes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from ground.errors import AccessError, NotFoundError, RefusedError
from ground.names import RepoId
from orderkit.adapters.forges.calls import Found, text_in
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.github.reading import GitHubReading
from orderkit.ports.access import AccessGrant, AccessRight

_RIGHTS: tuple[AccessRight, ...] = ("owner", "admin", "write", "listen")
"""The highest first."""
_LEVELS: Mapping[str, AccessRight] = {
    "admin": "admin", "maintain": "write", "write": "write", "push": "write",
}  # fmt: skip
_Holder = tuple[str, AccessRight]


class Grants(GitHubReading):
    """The part of the port that lists who has access."""

    def foreign_access(self, target: str | RepoId) -> tuple[AccessGrant, ...]:
        """
        Return every way in besides our own account. See the port.

        GitHub Apps that may write are holders, too: ``app:NAME:ID``.

        Raises:
            RefusedError: We are not even a member of the organisation.
        """
        holders = self._of_organisation(target) if isinstance(target, str) else self._of(target)
        me = self.user().lower()
        rights: dict[str, AccessRight] = {}
        for holder, right in holders:
            if holder.lower() != me:
                rights[holder] = min(right, rights.get(holder, right), key=_RIGHTS.index)
        return tuple(AccessGrant(str(target), *entry) for entry in sorted(rights.items()))

    def _of_organisation(self, org: str) -> Iterator[_Holder]:
        path, doing = path_of("orgs", org), f"list who has access to {org}"
        entry = self._optional(path, doing)
        if entry is None:
            return
        self._refuse_strangers(org)
        for person in self._pages(f"{path}/members", {"role": "admin"}, doing):
            yield text_in(person, "login"), "owner"
        base = _LEVELS.get(str(entry.get("default_repository_permission")))
        if base:
            for person in self._pages(f"{path}/members", {}, doing):
                yield text_in(person, "login"), base
        for team in self._pages(f"{path}/teams", {}, doing):
            right = _LEVELS.get(str(team.get("permission")))
            if right:
                members = f"{path}/teams{path_of(text_in(team, 'slug'))}/members"
                for person in self._pages(members, {}, doing):
                    yield text_in(person, "login"), right
        yield from self._machines(path)
        for app in self._optional_list(f"{path}/installations", "installations"):
            right = _app_right(app)
            is_ours = self._http.app is not None and app.get("app_id") == self._http.app.app_id
            if right and not is_ours:
                yield f"app:{app.get('app_slug')}:{app.get('app_id')}", right

    def _refuse_strangers(self, org: str) -> None:
        """
        Refuse an organisation that we do not belong to.

        Raises:
            RefusedError: We do not.
        """
        if self._http.app is not None:
            self._http.app.token(org, self._http.as_app)  # raises if the App is not installed there
            return
        me = self.user()
        answer = self._http.get(path_of("orgs", org, "memberships", me))
        if not answer.ok:
            raise RefusedError(
                f"organisation {org} belongs to somebody else: our account {me} is no member of it",
                hint="choose another name, or have its owner remove it",
            )

    def _of(self, repo: RepoId) -> Iterator[_Holder]:
        path, doing = self._path(repo), f"list who has access to {repo}"
        entry = self._optional(path, doing)
        if entry is None:
            return
        owner = entry.get("owner") or {}
        if owner.get("type") == "User":
            yield text_in(owner, "login"), "owner"
        if entry.get("mirror_url"):
            yield f"mirror:{entry.get('mirror_url')}", "write"
        direct = {"affiliation": "direct"}
        for person in self._pages(f"{path}/collaborators", direct, doing):
            right = next((r for k, r in _LEVELS.items() if _may(person, k)), None)
            if right:
                yield text_in(person, "login"), right
        for key in self._optional_list(f"{path}/keys"):
            right = "listen" if key.get("read_only") else "write"
            yield f"deploy-key:{key.get('title')}:{key.get('id')}", right
        yield from self._machines(path)

    def _machines(self, path: str) -> Iterator[_Holder]:
        """Yield runners and webhooks; a name can be given to another runner, its id cannot."""
        for runner in self._optional_list(f"{path}/actions/runners", "runners"):
            yield f"runner:{runner.get('name')}:{runner.get('id')}", "write"
        for hook in self._optional_list(f"{path}/hooks"):
            yield f"webhook:{(hook.get('config') or {}).get('url')}", "listen"

    def _optional_list(self, path: str, inside: str = "") -> list[Found]:
        """Return a list that only admins see, and that a forge without the feature lacks."""
        with suppress(AccessError, NotFoundError):
            return list(self._pages(path, {}, f"read {path}", inside=inside))
        return []


def _may(person: Found, level: str) -> bool:
    return bool((person.get("permissions") or {}).get(level))


def _app_right(app: Found) -> AccessRight | None:
    """Return what an installed App may do: write, or learn of pushes."""
    rights = app.get("permissions") or {}
    if "write" in (rights.get("contents"), rights.get("administration"), rights.get("workflows")):
        return "write"
    return "listen" if "push" in (app.get("events") or ()) else None
