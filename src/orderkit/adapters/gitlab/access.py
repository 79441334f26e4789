"""
Who has access on GitLab: members of groups and projects, machines, a token that only reads.

A team of Orderkit is the direct members of its group below Owner; GitLab has one such set for each
group, which all projects and subgroups inherit. Members with the role Owner and the users of access
tokens belong to no team and are never removed.

Source: doc/api/members.md, group_access_tokens.md (bot users), deploy_tokens.md, deploy_keys.md,
runners.md, remote_mirrors.md.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from ground.errors import AccessError, InvalidInputError, NotFoundError
from ground.names import RepoId
from ground.secrets import register
from orderkit.adapters.forges.access import Holder, grants, refuse_owners, stranger
from orderkit.adapters.forges.answers import settle
from orderkit.adapters.forges.calls import (
    CONFLICT,
    FORBIDDEN,
    MISSING,
    UNAUTHORIZED,
    Found,
    checked,
    done,
    number_in,
    object_in,
    text_in,
)
from orderkit.adapters.gitlab.reviews import GitLabReviews
from orderkit.adapters.gitlab.transport import (
    ADMINISTERS,
    BOT,
    GUEST,
    OWNS,
    READS,
    WRITES,
    level_of,
    person,
)
from orderkit.ports.access import AccessGrant, AccessRight
from orderkit.ports.forge import ForgeUser, ReaderAccount, Repository, TeamRight

_LEVELS = {TeamRight.READ: READS, TeamRight.WRITE: WRITES, TeamRight.ADMIN: ADMINISTERS}
_RIGHTS: Mapping[int, AccessRight] = {OWNS: "owner", ADMINISTERS: "admin", WRITES: "write"}
_TEAM = re.compile(r"[A-Za-z0-9_.-]+")
_READER = "argocd-"


class GitLabAccess(GitLabReviews):
    """The part of the port about who has access."""

    def foreign_access(
        self,
        target: str | RepoId,
        seen: Repository | None = None,  # noqa: ARG002  it has not all that counts here
    ) -> tuple[AccessGrant, ...]:
        """
        Return every way in besides our own account. See the port.

        Of an organisation with what its group inherits from those above it.

        Raises:
            RefusedError: We are not even a member of the group.
        """
        doing = f"list who has access to {target}"
        path = self._org(target) if isinstance(target, str) else self._path(target)
        entry = self._optional(path, doing)
        if entry is None:
            return ()
        holders, me = [*self._people(path, entry, doing), *self._machines(path)], self.user()
        is_mine = any(holder.lower() == me.lower() for holder, _ in holders)
        if isinstance(target, str) and not is_mine and not self._is_administrator():
            raise stranger(target, me)
        return grants(target, holders, me)

    def _people(self, path: str, entry: Found, doing: str) -> Iterator[Holder]:
        is_project = "namespace" in entry
        members = f"{path}/members" if is_project else f"{path}/members/all"
        try:
            for member in self._pages(members, {}, doing):
                right = _right(level_of(member))
                if right:
                    yield text_in(member, "username"), right
        except (AccessError, NotFoundError):
            return  # strangers may not look: they are no members
        for share in entry.get("shared_with_groups") or ():
            right = _right(int(share.get("group_access_level") or 0))
            if right:
                yield f"group:{share.get('group_full_path')}", right
        namespace = entry.get("namespace") or {}
        if is_project and namespace.get("kind") == "user":
            yield str(namespace.get("path")), "owner"
        if entry.get("mirror"):
            yield f"mirror:{entry.get('import_url') or 'of another repository'}", "write"

    def _machines(self, path: str) -> Iterator[Holder]:
        """Yield runners, webhooks, keys and mirrors; a feature that is switched off has none."""
        own_type = "project_type" if path.startswith("/projects") else "group_type"
        for runner in self._optional_list(f"{path}/runners", type=own_type):
            yield f"runner:{runner.get('description')}:{runner.get('id')}", "write"
        for hook in self._optional_list(f"{path}/hooks"):
            yield f"webhook:{hook.get('url')}", "listen"
        if own_type == "group_type":
            return
        for key in self._optional_list(f"{path}/deploy_keys"):
            right: AccessRight = "write" if key.get("can_push") else "listen"
            name = key.get("fingerprint_sha256") or key.get("fingerprint")
            yield f"deploy-key:{key.get('title')}:{name}", right
        for mirror in self._optional_list(f"{path}/remote_mirrors"):
            yield f"push-mirror:{mirror.get('url')}", "listen"

    def _optional_list(self, path: str, **query: str) -> list[Found]:
        """Return a list that only maintainers see, and that a GitLab without the feature lacks."""
        with suppress(AccessError, NotFoundError):
            return list(self._pages(path, query, f"read {path}"))
        return []

    def ensure_access(
        self,
        org: str,
        team: str,
        *,
        right: TeamRight,
        members: Sequence[str],
        repositories: Sequence[str] | None = None,
    ) -> None:
        """
        Make sure the group, or these projects of it, have exactly these members. See the port.

        Raises:
            NotFoundError: No such organisation, user or repository.
            InvalidInputError: The forge refuses the team's name.
            RefusedError: `team` is the owners team, which is never changed.
        """
        self._check_team(org, team)
        users = self._users(members)
        level, names = _LEVELS[right], self._names(org)
        for name in repositories or ():
            if name.lower() not in names:
                raise NotFoundError(f"there is no repository {org}/{name}")
        given = {name.lower() for name in repositories or ()}
        # who gets some repositories only is a guest of the group, and reads no code of the others
        places, group_level = {self._org(org): users}, level if repositories is None else GUEST
        if repositories is not None or self._narrowed(org, names):
            places |= {
                self._path(RepoId(org, name)): users if low in given else frozenset()
                for low, name in names.items()
            }
        for path, wanted in places.items():  # removed everywhere before any is added
            self._set_members(path, wanted, level, remove=True)
        for path, wanted in places.items():
            its_level = group_level if path == self._org(org) else level
            self._set_members(path, wanted, its_level, remove=False)

    def _check_team(self, org: str, team: str) -> None:
        refuse_owners(org, team)
        if not _TEAM.fullmatch(team):
            raise InvalidInputError("team", team, "is refused: letters, digits, '-', '_' and '.'")
        if not self.has_org(org):
            raise NotFoundError(f"there is no organisation {org}")

    def _users(self, logins: Sequence[str]) -> frozenset[int]:
        """Return the ids of users, without us."""
        ids = set()
        for login in logins:
            user = self._user_named(login)
            if user is None:
                raise NotFoundError(f"there is no user {login}")
            ids.add(user.id)
        # we are an owner, and no member of a team
        return frozenset(ids - {self._own_id()})

    def _names(self, org: str) -> dict[str, str]:
        """Return the names of a group's own projects, by their lower case."""
        doing, query = f"list the repositories of {org}", {"simple": "true"}
        projects = self._pages(self._org(org, "projects"), query, doing)
        names = (text_in(project, "path") for project in projects)
        return {name.lower(): name for name in names}

    def _narrowed(self, org: str, names: Mapping[str, str]) -> bool:
        """Say whether a project has members of its own, of a team that had some projects only."""
        paths = (self._path(RepoId(org, name)) for name in names.values())
        return any(self._team_members(path, "list members") for path in paths)

    def _own_id(self) -> int:
        return number_in(self._object("/user", "read our account"), "id")

    def _team_members(self, path: str, doing: str) -> dict[int, Found]:
        """Return direct members below Owner by id, without us and the users of access tokens."""
        me = self._own_id()
        return {
            number_in(member, "id"): member
            for member in self._pages(f"{path}/members", {}, doing)
            if int(member.get("access_level") or 0) < OWNS
            and not BOT.match(text_in(member, "username"))
            and member.get("id") != me
        }

    def _set_members(self, path: str, wanted: Collection[int], level: int, *, remove: bool) -> None:
        doing = f"set the members of {path}"
        current = self._team_members(path, doing)
        for user_id in sorted(set(current) - set(wanted) if remove else wanted):
            now = current.get(user_id)
            if remove:
                self._send_member("DELETE", f"{path}/members/{user_id}", {}, doing)
            elif now is None:
                body = {"user_id": user_id, "access_level": level}
                self._send_member("POST", f"{path}/members", body, doing)
            elif now.get("access_level") != level:
                body = {"access_level": level}
                self._send_member("PUT", f"{path}/members/{user_id}", body, doing)

    def _send_member(self, method: str, path: str, body: dict[str, int], doing: str) -> None:
        def act() -> bool:
            answer = self._http.send(method, path, body=body or None)
            is_so = (method, answer.status) in (("DELETE", MISSING), ("POST", CONFLICT))
            return is_so or done(answer, doing)

        settle(lambda _: None, act, doing)

    def members(self, org: str, team: str = "") -> tuple[ForgeUser, ...]:
        """Return the direct members of a group, for a team those below Owner; see the port."""
        path, doing = self._org(org), f"list the members of {org}"
        try:
            if team:
                entries = list(self._team_members(path, doing).values())
            else:
                # not those of its projects, whom a Maintainer of a project can add
                entries = list(self._pages(f"{path}/members", {}, doing))
        except NotFoundError:
            return ()
        return tuple(person(entry) for entry in entries if level_of(entry))

    def add_reader(self, org: str) -> ReaderAccount:
        """
        Make a deploy token that reads the group's repositories and nothing else. See the port.

        Raises:
            NotFoundError: No such organisation.
            AccessError: Our credentials may not make deploy tokens there: an owner of it may.
        """
        doing, path = f"add a token that reads {org}", self._org(org, "deploy_tokens")
        name = f"{_READER}{org.replace('/', '-')[:20]}-{secrets.token_hex(5)}"
        before = self._readers(org)
        body = {"name": name, "username": name, "scopes": ["read_repository"]}
        answer = self._http.send("POST", path, body=body)
        if answer.status in (UNAUTHORIZED, FORBIDDEN):
            raise AccessError(
                f"{doing}: {answer.text}",
                hint="use the token of an owner of the group for this command, or name a folder"
                " with a token for each team: forge.teamTokenFolder in platform.yaml",
            )
        made = object_in(checked(answer, doing), doing)
        secret = text_in(made, "token")
        register(secret)
        for token in before:
            self._drop_reader(org, token)
        return ReaderAccount(text_in(made, "username"), secret)

    def remove_reader(self, org: str, name: str) -> None:
        """
        Remove a deploy token. Idempotent. See the port.

        Raises:
            AccessError: Our credentials may not.
        """
        with suppress(NotFoundError):  # the organisation went before it
            for token in self._readers(org):
                if token.get("username") == name:
                    self._drop_reader(org, token)

    def _readers(self, org: str) -> list[Found]:
        """Return the deploy tokens that we made for Argo CD."""
        path, doing = self._org(org, "deploy_tokens"), f"list the deploy tokens of {org}"
        tokens = self._pages(path, {"active": "true"}, doing)
        return [token for token in tokens if str(token.get("username")).startswith(_READER)]

    def _drop_reader(self, org: str, token: Found) -> None:
        path = self._org(org, "deploy_tokens", str(number_in(token, "id")))
        answer = self._http.send("DELETE", path)
        if answer.status != MISSING:
            done(answer, f"remove a deploy token of {org}")


def _right(level: int) -> AccessRight | None:
    return next((right for floor, right in _RIGHTS.items() if level >= floor), None)
