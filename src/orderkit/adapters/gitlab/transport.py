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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

from ground.errors import AccessError, MovedError, RemoteError
from ground.names import RepoId
from orderkit.adapters.forges.answers import ForgeResponse, GarbledError
from orderkit.adapters.forges.calls import FORBIDDEN, MISSING, ForgeCalls, Found, list_in, object_in
from orderkit.adapters.forges.calls import checked as shared_checked
from orderkit.adapters.forges.calls import number_in as number_of
from orderkit.adapters.forges.calls import text_in as text_of
from orderkit.adapters.forges.pacing import ForgePacer, pacer_of
from orderkit.adapters.forges.transport import GIT, Credentials, ForgeTransport, Query, path_of
from orderkit.adapters.http import READ_TIMEOUT_S
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
        headers: Mapping[str, str] = MappingProxyType({}),
        ca_bundle: str | None = None,
        allow_http: bool = False,
        read_timeout_s: float = READ_TIMEOUT_S,
        renew: Callable[[], Credentials] | None = None,
        pacer: GitLabPacer | None = None,
    ) -> None:
        """
        Prepare; nothing is sent.

        Args:
            group: The path of the group below which repositories are named.
            pacer: Keeps within the limits; None: that of the credential in this process.
        """
        super().__init__(
            base_url,
            credentials,
            api_url=api_url,
            headers=headers,
            ca_bundle=ca_bundle,
            allow_http=allow_http,
            read_timeout_s=read_timeout_s,
            renew=renew,
        )
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
PASSES = 3
"""How many times a list is read if it changes between its pages."""
GUEST, READS, WRITES, ADMINISTERS, OWNS = 10, 20, 30, 40, 50
"""GitLab's access levels: Guest, Reporter, Developer, Maintainer, Owner (doc/api/members.md)."""
BOT = re.compile(r"(group|project)_\d+_bot")
"""How the logins of the users begin whom GitLab makes for access tokens of groups and projects."""


class GitLabCalls(ForgeCalls):
    """The shared part: addresses below our group, and lists of GitLab's API."""

    _http: GitLabTransport  # pyrefly: ignore[bad-override-mutable-attribute]  set once, when made
    _group: str

    @property
    def base_url(self) -> str:
        """The address of our group, or of GitLab if we use all of it."""
        return f"{self._http.base_url}/{self._group}" if self._group else self._http.base_url

    @property
    def http(self) -> GitLabTransport:
        """What sends our requests."""
        return self._http

    def git_address(self, repo: RepoId) -> str:
        """Return the path of a project for git."""
        return f"{GIT}/{self._full(repo.owner)}/{repo.name}.git"

    def _full(self, org: str) -> str:
        return f"{self._group}/{org}" if self._group else org

    def _org(self, org: str, *segments: str) -> str:
        return path_of("groups", self._full(org), *segments)

    def _project(self, repo: RepoId, *segments: str) -> str:
        return path_of("projects", f"{self._full(repo.owner)}/{repo.name}", *segments)

    def repository_named(self, full_name: str) -> RepoId | None:
        """Return the repository of a project's full path; None if it is outside of our group."""
        prefix = f"{self._group}/" if self._group else ""
        if not full_name.startswith(prefix):
            return None
        return RepoId.parse(full_name.removeprefix(prefix))

    def _optional(self, path: str, doing: str, query: Query | None = None) -> Found | None:
        answer = self._http.get(path, query)
        if answer.status == MISSING:
            return None
        return object_in(checked(answer, doing), doing)

    def _pages(self, path: str, query: Query, doing: str, *, key: str = "id") -> Iterator[Found]:
        """Yield every item of a list once."""
        yielded: set[Any] = set()
        for _ in range(PASSES):
            totals: set[str] = set()
            page = "1"
            while page:
                query_of_page = {**query, "page": page, "per_page": PAGE}
                answer = checked(self._http.get(path, query_of_page), doing)
                totals.add(answer.headers.get("x-total", ""))
                fresh = [i for i in list_in(answer.json() or []) if i.get(key) not in yielded]
                yielded.update(item.get(key) for item in fresh)
                yield from fresh
                page = answer.headers.get("x-next-page", "")
            # else the list is read again: an item may have moved to a page that was read already
            if len(totals) == 1:
                return


def checked(answer: ForgeResponse, doing: str) -> ForgeResponse:
    """
    Return the answer if it is a success.

    Raises:
        AccessError: The token lacks a scope.
        OrderkitError: As the shared `checked`.
    """
    if answer.status == FORBIDDEN and (scope := missing_scope(answer)):
        raise AccessError(
            f"missing scope: {doing}: {answer.text}", hint=f"make a token with scope {scope}"
        )
    return shared_checked(answer, doing)


def done(answer: ForgeResponse, doing: str) -> bool:
    """
    Return True if the answer is a success.

    Raises:
        OrderkitError: The forge refused the request; the class says why.
    """
    return checked(answer, doing).ok


def missing_scope(answer: ForgeResponse) -> str:
    """Return the scopes of which a refused token needs one, or ""."""
    try:
        document = answer.json()
    except RemoteError:
        return ""
    is_scope = isinstance(document, dict) and document.get("error") == "insufficient_scope"
    return str(document.get("scope") or "api") if is_scope else ""


def person(user: Any) -> ForgeUser:
    """
    Return a user of GitLab.

    Raises:
        GarbledError: It has no id or name.
    """
    return ForgeUser(number_of(user, "id"), text_of(user, "username"))


def level_of(member: Found) -> int:
    """Return a member's access level; 0 if the membership is not in force."""
    is_active = member.get("state", "active") == "active"
    level = member.get("access_level")
    return level if is_active and isinstance(level, int) else 0
