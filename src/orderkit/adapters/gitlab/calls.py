"""
Shared by all parts of the GitLab client: paths below our group, lists, refusals.

Everything Orderkit knows lies in one group of GitLab (``forge.group``): the repository ``ae86/x``
is the project ``GROUP/ae86/x``. So no flow needs to know how deep the group is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ground.errors import AccessError, RemoteError
from ground.names import RepoId
from orderkit.adapters.forges.answers import ForgeResponse
from orderkit.adapters.forges.calls import FORBIDDEN, MISSING, ForgeCalls, Found, list_in, object_in
from orderkit.adapters.forges.calls import checked as shared_checked
from orderkit.adapters.forges.calls import number_in as number_of
from orderkit.adapters.forges.calls import text_in as text_of
from orderkit.adapters.forges.transport import GIT, Query, path_of
from orderkit.adapters.gitlab.transport import GitLabTransport
from orderkit.ports.forge import ForgeUser

PAGE = 100
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
        """
        Yield every item of a list once.

        If the total changes between two pages, the list is read again from its start: an item may
        have moved to a page that was read already.
        """
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
