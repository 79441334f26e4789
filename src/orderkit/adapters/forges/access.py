"""
Access as Gitea and GitHub have it: teams, who besides us can write, webhooks.

There is exactly one webhook per URL, active, with the given secret. `highest` is for every forge.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from ground.errors import (
    AccessError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RefusedError,
)
from ground.names import RepoId
from ground.secrets import register
from orderkit.adapters.forges.answers import UNCLEAR, GarbledError, settle
from orderkit.adapters.forges.calls import (
    INVALID,
    MISSING,
    ForgeCalls,
    Found,
    checked,
    done,
    number_in,
    object_in,
    text_in,
)
from orderkit.adapters.forges.transport import path_of
from orderkit.ports.access import AccessGrant, AccessRight
from orderkit.ports.forge import TeamRight, Webhook

Holder = tuple[str, AccessRight]
_ORDER: tuple[AccessRight, ...] = ("owner", "admin", "write", "listen")
"""The highest first."""


def highest(holders: Iterable[Holder]) -> dict[str, AccessRight]:
    """Return the highest right of each holder."""
    rights: dict[str, AccessRight] = {}
    for holder, right in holders:
        rights[holder] = min(right, rights.get(holder, right), key=_ORDER.index)
    return rights


def grants(target: str | RepoId, rights: Iterable[Holder], me: str) -> tuple[AccessGrant, ...]:
    """Return the highest right of each holder but us, in order."""
    found = highest(rights)
    others = sorted(entry for entry in found.items() if entry[0].lower() != me.lower())
    return tuple(AccessGrant(str(target), *entry) for entry in others)


def stranger(org: str, me: str) -> RefusedError:
    """Return the error for an organisation that we do not belong to."""
    return RefusedError(
        f"organisation {org} belongs to somebody else: our account {me} is no member of it",
        hint="choose another name, or have its owner remove it",
    )


class AccessCalls(ForgeCalls):
    """What teams, grants and webhooks share."""

    def _place(self, target: str | RepoId) -> str:
        return path_of("orgs", target) if isinstance(target, str) else self._path(target)

    def _optional_list(self, path: str, inside: str = "") -> list[Found]:
        """Return a list that only admins see, and that a forge without the feature lacks."""
        with suppress(AccessError, NotFoundError):
            return list(self._pages(path, {}, f"read {path}", inside=inside))
        return []

    def _listeners(self, path: str) -> Iterator[Holder]:
        """Yield runners and webhooks; a name can be given to another runner, its id cannot."""
        for runner in self._optional_list(f"{path}/actions/runners", "runners"):
            yield f"runner:{runner.get('name')}:{runner.get('id')}", "write"
        for hook in self._optional_list(f"{path}/hooks"):
            yield f"webhook:{(hook.get('config') or {}).get('url')}", "listen"

    def _keys(self, path: str, name: str) -> Iterator[Holder]:
        """Yield deploy keys with what no other key has, of this name."""
        for key in self._optional_list(f"{path}/keys"):
            right: AccessRight = "listen" if key.get("read_only") else "write"
            yield f"deploy-key:{key.get('title')}:{key.get(name)}", right


_OWNERS = "owners"


@dataclass(frozen=True, slots=True)
class Team:
    """The state a team should have. Logins and repositories are lower case: forges ignore it."""

    org: str
    name: str
    right: TeamRight
    members: frozenset[str]
    repositories: frozenset[str] | None


class SharedTeams(AccessCalls):
    """The part of the port about teams."""

    memberships: ClassVar[str] = "members"
    """Where a single member is, below a team."""
    membership: ClassVar[Found | None] = None
    """What makes somebody a member."""

    def _team_name(self, team: str) -> str:
        """
        Return a team's name as the forge keeps it.

        Raises:
            InvalidInputError: The forge would change it.
        """
        return team

    @abstractmethod
    def _team(self, target: Team) -> Found | None:
        """
        Return a team.

        Raises:
            NotFoundError: No such organisation.
        """

    @abstractmethod
    def _new_team(self, target: Team, doing: str) -> Found: ...

    @abstractmethod
    def _team_path(self, target: Team, found: Found, /) -> str: ...

    @abstractmethod
    def _wanted(self, target: Team) -> Found:
        """Return the change that gives a team what it should have."""

    @abstractmethod
    def _is_like(self, target: Team, found: Found) -> bool: ...

    @abstractmethod
    def _set_repositories(self, path: str, target: Team, doing: str) -> None: ...

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
        Make sure the team has exactly this right, members and repositories. See the port.

        Raises:
            NotFoundError: No such organisation, user or repository.
            InvalidInputError: The forge refuses the team's name, or would change it.
            RefusedError: `team` is the owners team, which is never changed.
        """
        refuse_owners(org, team)
        names = None if repositories is None else frozenset(name.lower() for name in repositories)
        logins = frozenset(name.lower() for name in members)
        target = Team(org, self._team_name(team), right, logins, names)
        doing = f"set up team {team} of {org}"
        found = settle(lambda _: self._team(target), lambda: self._new_team(target, doing), doing)
        path = self._team_path(target, found)
        # removed first, added last: who leaves gets no wider right, and who joins not the old one
        self._set_members(path, target, remove=True)
        if not self._is_like(target, found):
            change = self._wanted(target)
            settle(
                lambda _: None,
                lambda: done(self._http.send("PATCH", path, body=change), doing),
                doing,
            )
        self._set_repositories(path, target, doing)
        self._set_members(path, target, remove=False)

    def _set_members(self, path: str, target: Team, *, remove: bool) -> None:
        doing = f"list the members of team {target.name}"
        current = {text_in(x, "login").lower() for x in self._pages(f"{path}/members", {}, doing)}
        for name in sorted(current - target.members if remove else target.members - current):
            place, doing = f"{path}/{self.memberships}", f"member {name} of team {target.name}"
            missing = f"there is no user {name}"
            self._set(place + path_of(name), doing, missing, self.membership, remove=remove)

    def _set(
        self, path: str, doing: str, missing: str, body: Found | None, *, remove: bool
    ) -> None:
        """Put or delete one entry; both are safe to repeat."""

        def act() -> bool:
            method, sent = ("DELETE", None) if remove else ("PUT", body)
            answer = self._http.send(method, path, body=sent)
            if answer.status == MISSING and not remove:
                raise NotFoundError(missing)
            return answer.status == MISSING or done(answer, doing)

        settle(lambda _: None, act, doing)


def refuse_owners(org: str, team: str) -> None:
    """
    Refuse to change the team of the owners.

    Raises:
        RefusedError: It is.
    """
    if team.lower() == _OWNERS:
        raise RefusedError(f"{org}: the team of owners is not changed", hint="name another")


class ForgeHooks(AccessCalls):
    """The part of the port about webhooks."""

    keeps_old_secret: ClassVar[bool] = False
    """An update leaves the secret as it was, so that a webhook with one is made anew."""

    @abstractmethod
    def _events(self, webhook: Webhook) -> Collection[str]:
        """Return the forge's names of the events that have to be delivered."""

    @abstractmethod
    def _body(self, webhook: Webhook, *, is_new: bool) -> dict[str, Any]:
        """Return what the forge wants besides the address and the secret."""

    def ensure_webhook(self, target: str | RepoId, webhook: Webhook) -> None:
        """
        Make sure there is exactly one active webhook for that URL. Idempotent. See the port.

        Raises:
            NotFoundError: No such organisation or repository.
            InvalidInputError: The forge refuses the URL.
        """
        register(webhook.secret)
        path, doing = self._hooks_path(target), f"set up a webhook of {target}"

        def act() -> bool:
            kept = self._ensure_one(path, webhook, doing)
            # Gitea allows duplicates: a request whose answer was lost may have made one, too
            for hook in self._hooks(path, webhook, doing):
                if number_in(hook, "id") != kept:
                    answer = self._http.send("DELETE", f"{path}/{number_in(hook, 'id')}")
                    if answer.status != MISSING:
                        done(answer, doing)
            return True

        settle(lambda _: None, act, doing)

    def has_webhook(self, target: str | RepoId, webhook: Webhook) -> bool:
        """
        Say whether there is an active webhook for that URL and those events. See the port.

        Raises:
            NotFoundError: No such organisation or repository.
            AccessError: Our account does not own it.
        """
        hooks = self._hooks(self._hooks_path(target), webhook, f"list the webhooks of {target}")
        events = {*self._events(webhook)}
        return any(hook.get("active") and events <= {*hook.get("events", ())} for hook in hooks)

    def _hooks_path(self, target: str | RepoId) -> str:
        return f"{self._place(target)}/hooks"

    def _ensure_one(self, path: str, webhook: Webhook, doing: str) -> int:
        """Return the id of the webhook to keep: the oldest one after an update, or a new one."""
        hooks = self._hooks(path, webhook, doing)
        if hooks and not (webhook.secret and self.keeps_old_secret):
            return self._send("PATCH", f"{path}/{number_in(hooks[0], 'id')}", webhook, doing)
        try:
            return self._send("POST", path, webhook, doing)
        except UNCLEAR:
            raise
        except OrderkitError as error:
            if len(self._hooks(path, webhook, doing)) <= len(hooks):
                raise
            raise GarbledError(f"{doing}: refused and made") from error  # a proxy refused it

    def _hooks(self, path: str, webhook: Webhook, doing: str) -> list[Found]:
        """Return the webhooks for the URL, oldest first."""
        hooks = [
            hook
            for hook in self._pages(path, {}, doing)
            if (hook.get("config") or {}).get("url") == webhook.url
        ]
        return sorted(hooks, key=lambda hook: number_in(hook, "id"))

    def _send(self, method: str, path: str, webhook: Webhook, doing: str) -> int:
        config = {"url": webhook.url, "content_type": "json"}
        if webhook.secret:
            config["secret"] = webhook.secret
        body = {**self._body(webhook, is_new=method == "POST"), "config": config, "active": True}
        answer = self._http.send(method, path, body=body)
        if answer.status == INVALID:
            raise InvalidInputError("webhook", webhook.url, f"is refused: {answer.text}")
        return number_in(object_in(checked(answer, doing), doing), "id")
