"""
HTTP to one GitLab: limits, moved projects, paths below our group, lists, refusals.

`GitLabTransport` finds moved projects.

`GitLabPacer` keeps within the limits of speed that GitLab's answers name; GitLab counts by minutes.
Source: doc/administration/settings/user_and_ip_rate_limits.md (`RateLimit-*`, `Retry-After`).

`GitLabCalls` is shared by all parts of the GitLab client. Everything Orderkit knows lies in one
group of GitLab (``forge.group``): the repository ``ae86/x`` is the project ``GROUP/ae86/x``. So no
flow needs to know how deep the group is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from ground.errors import MovedError
from ground.names import RepoId
from orderkit.adapters.forges.answers import ForgeResponse, GarbledError
from orderkit.adapters.forges.calls import ForgeCalls, Found, list_in, number_in, text_in
from orderkit.adapters.forges.pacing import ForgePacer, pacer_of
from orderkit.adapters.forges.transport import GIT, Credentials, ForgeTransport, Query, path_of
from orderkit.ports.forge import ForgeUser


class GitLabPacer(ForgePacer):
    """The limits of one credential of GitLab."""

    title: ClassVar[str] = "GitLab"
    prefix: ClassVar[str] = "ratelimit-"
    unnamed_s: ClassVar[float] = 1.0
    longest_s: ClassVar[float] = 60.0


_MISSING, _NOT_ALLOWED = 404, 405
_PROJECT = re.compile(r"/projects/[^/]+")
_BY_NUMBER = re.compile(r"/projects/([0-9]+)\b")


@dataclass(frozen=True, slots=True, repr=False)
class GitLabToken(Credentials):
    """An access token of a user, group or project, or of OAuth: GitLab takes all as bearers."""

    @property
    def header(self) -> str:
        """The Authorization header's value."""
        return f"Bearer {self.token}"


class GitLabTransport(ForgeTransport):
    """Sends requests to one GitLab. Safe to use from several threads."""

    def __init__(
        self,
        base_url: str,
        credentials: GitLabToken,
        *,
        api_url: str,
        group: str = "",
        pacer: GitLabPacer | None = None,
        **how: Any,
    ) -> None:
        """
        Prepare; nothing is sent.

        Args:
            group: The path of the group below which repositories are named.
            pacer: Keeps within the limits; None: that of the credential in this process.
            how: As `ForgeTransport` takes it.
        """
        super().__init__(base_url, credentials, api_url=api_url, **how)
        self._group = group
        key = (self.api_url, hashlib.sha256(credentials.token.encode()).hexdigest())
        self.pacer = pacer or pacer_of(key, GitLabPacer)

    def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Query | None = None,
        as_: Credentials | None = None,
    ) -> ForgeResponse:
        """
        Send one request; again if GitLab refuses it for its speed.

        Raises:
            MovedError: The project has another path now; nothing was written.
            TooFastError: The limits do not allow it for long; nothing was carried out.
            OrderkitError: As the shared transport.
        """
        resource = "git" if path.startswith(GIT) else "api"
        once = partial(super().send, method, path, body=body, query=query, as_=as_)
        try:
            answer = self.pacer.send(resource, once, creates=False)
        except MovedError as error:
            return self._elsewhere(path, error)
        project = _PROJECT.match(path)
        # of a former path GitLab redirects a GET only (lib/api/helpers.rb, find_project!)
        if answer.status == _NOT_ALLOWED and method != "GET" and project:
            self.send("GET", project[0])  # raises MovedError if the project has moved
        return answer

    def _authorization(self, credentials: Credentials, path: str) -> str:
        if path.startswith(GIT):
            return self._basic("oauth2", credentials.token)
        return super()._authorization(credentials, path)

    def follow(self, path: str, doing: str) -> Mapping[str, object] | None:
        """
        Return the project that an address leads to, also a former one; None if to none.

        Raises:
            OrderkitError: As the shared transport.
        """
        try:
            answer = super().send("GET", path)
        except MovedError as error:
            # the redirect leads to the project's number
            number = _BY_NUMBER.search(str(error))
            answer = super().send("GET", f"/projects/{number[1]}" if number else path)
        document = answer.json() if answer.ok else None
        if document is not None and not isinstance(document, dict):
            raise GarbledError(f"{doing}: the forge answered no object")
        return document

    def _elsewhere(self, path: str, error: MovedError) -> ForgeResponse:
        """
        Answer 404 for a project that is scheduled for deletion, which gives it another path.

        Raises:
            MovedError: It was renamed or moved; names the new path below our group.
        """
        number = _BY_NUMBER.search(str(error))
        if number is None:
            raise error
        answer = super().send("GET", f"/projects/{number[1]}")
        project = answer.json() if answer.ok else {}
        if not answer.ok or project.get("marked_for_deletion_on"):
            return ForgeResponse(_MISSING, {}, b'{"message": "404 Project Not Found"}')
        full_path = str(project.get("path_with_namespace") or "")
        place = full_path.removeprefix(f"{self._group}/") if self._group else full_path
        raise MovedError(
            f"{path} has moved to {full_path}",
            hint=f"it is {place} now: give it its old path back in GitLab ('orderkit repair ORDER'"
            " does that for an order), or, if platform.yaml names it, write the new path there",
            place=place,
        ) from error


PAGE = 100
"""The most that GitLab gives."""
GUEST, READS, WRITES, ADMINISTERS, OWNS = 10, 20, 30, 40, 50
"""GitLab's access levels: Guest, Reporter, Developer, Maintainer, Owner (doc/api/members.md)."""
BOT = re.compile(r"(group|project)_\d+_bot")
"""How the logins of the users begin whom GitLab makes for access tokens of groups and projects."""


class GitLabCalls(ForgeCalls):
    """The shared part: addresses below our group, and lists of GitLab's API."""

    _http: GitLabTransport  # pyrefly: ignore[bad-override-mutable-attribute]  set once, when made
    _group: str
    total_header: ClassVar[str] = "x-total"
    edit_verb: ClassVar[str] = "PUT"

    @property
    def base_url(self) -> str:
        """The address of our group, or of GitLab if we use all of it."""
        return f"{self._http.base_url}/{self._group}" if self._group else self._http.base_url

    def git_address(self, repo: RepoId) -> str:
        """Return the path of a project for git."""
        return f"{GIT}/{self._full(repo.owner)}/{repo.name}.git"

    def _full(self, org: str) -> str:
        return f"{self._group}/{org}" if self._group else org

    def _org(self, org: str, *segments: str) -> str:
        return path_of("groups", self._full(org), *segments)

    def _path(self, repo: RepoId, *segments: str) -> str:
        return path_of("projects", f"{self._full(repo.owner)}/{repo.name}", *segments)

    def repository_named(self, full_name: str) -> RepoId | None:
        """Return the repository of a project's full path; None if it is outside of our group."""
        prefix = f"{self._group}/" if self._group else ""
        if not full_name.startswith(prefix):
            return None
        return RepoId.parse(full_name.removeprefix(prefix))

    @property
    def _page_size(self) -> int:
        return PAGE

    def _items(self, answer: ForgeResponse, _inside: str, _doing: str, /) -> list[Found]:
        return list_in(answer.json() or [])

    def _page_after(self, answer: ForgeResponse, _page: int, _missing: int, /) -> int:
        after = answer.headers.get("x-next-page", "")
        return int(after) if after.isdecimal() else 0


def person(user: Any) -> ForgeUser:
    """
    Return a user of GitLab.

    Raises:
        GarbledError: It has no id or name.
    """
    return ForgeUser(number_in(user, "id"), text_in(user, "username"))


def level_of(member: Found) -> int:
    """Return a member's access level; 0 if the membership is not in force."""
    is_active = member.get("state", "active") == "active"
    level = member.get("access_level")
    return level if is_active and isinstance(level, int) else 0
