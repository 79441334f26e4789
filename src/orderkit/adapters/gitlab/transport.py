"""
HTTP to one GitLab: its limits are kept, and a moved project is an error that names the new path.

GitLab answers a GET of a project's old path with a redirect to its number, and any other method
with 405 (lib/api/helpers.rb, `find_project!`).

GitLab's limits of speed: whatever its answers say; it counts by minutes.

Source: doc/administration/settings/user_and_ip_rate_limits.md (`RateLimit-*`, `Retry-After`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import ClassVar

from ground.errors import MovedError
from orderkit.adapters.forges.answers import ForgeResponse, GarbledError
from orderkit.adapters.forges.pacing import ForgePacer, pacer_of
from orderkit.adapters.forges.transport import GIT, Credentials, ForgeTransport, Query
from orderkit.adapters.http import READ_TIMEOUT_S


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
