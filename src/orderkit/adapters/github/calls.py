"""Shared by all parts of the GitHub client: paths, lists by their links, GraphQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from ground.errors import AccessError, NotFoundError, RemoteError
from ground.names import RepoId
from orderkit.adapters.forges import calls
from orderkit.adapters.forges.answers import ForgeResponse
from orderkit.adapters.forges.calls import ForgeCalls, Found, checked, list_in, object_in
from orderkit.adapters.forges.pushing import StaleHeadError
from orderkit.adapters.forges.transport import GIT, Query, path_of
from orderkit.adapters.github.transport import GRAPHQL, GitHubTransport

NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,100}\Z")
"""Names that GitHub keeps as they are; it changes others instead of refusing them."""
_NEXT = re.compile(r'[?&]page=(\d+)[^>]*>; rel="next"')

_AFTER = re.compile(r'[?&]after=([^&>]+)[^>]*>; rel="next"')


class GitHubCalls(ForgeCalls):
    """The shared part: paths and lists of GitHub's API."""

    _http: GitHubTransport  # pyrefly: ignore[bad-override-mutable-attribute]  set once, when made

    @property
    def http(self) -> GitHubTransport:
        """What sends our requests."""
        return self._http

    def git_address(self, repo: RepoId) -> str:
        """Return the path of a repository for git."""
        return f"{GIT}/{repo.owner}/{repo.name}.git"

    def path(self, repo: RepoId, *segments: str) -> str:
        """Return the path of something below a repository."""
        return path_of("repos", repo.owner, repo.name, *segments)

    _path = path

    def _pages(
        self, path: str, query: Query, doing: str, *, key: str = "id", inside: str = ""
    ) -> Iterator[Found]:
        """
        Yield every item of a list once.

        A list of several pages is read until nothing is new: an item may have moved to a page that
        was read already. What did not change counts for no limit.

        Args:
            inside: The field of an object that holds the list; "": the answer is the list.
        """
        yielded: set[Any] = set()
        for _ in range(calls.PASSES):
            page, is_new, pages = 1, False, 0
            while page:
                sent = {**query, "per_page": calls.PAGE, "page": page}
                answer = checked(self._http.get(path, sent), doing)
                document = answer.json()
                items = list_in(object_in(answer, doing).get(inside) if inside else document)
                fresh = [item for item in items if item.get(key) not in yielded]
                yielded.update(item.get(key) for item in fresh)
                yield from fresh
                page, pages = _next_page(answer), pages + 1
                is_new = is_new or bool(fresh)
            if pages == 1 or not is_new:
                return

    def _cursor_pages(self, path: str, query: Query, doing: str) -> Iterator[Found]:
        """Yield every item of a list whose pages follow each other by a mark."""
        after = ""
        while True:
            sent = {**query, "per_page": calls.PAGE} | ({"after": after} if after else {})
            answer = checked(self._http.get(path, sent), doing)
            yield from list_in(answer.json())
            match = _AFTER.search(answer.headers.get("link", ""))
            if match is None:
                return
            after = unquote(match[1])

    def graphql(
        self, owner: str, document: str, variables: Mapping[str, object], doing: str
    ) -> Found:
        """
        Return the data of a GraphQL answer.

        Raises:
            StaleHeadError: ``STALE_DATA``.
            NotFoundError, AccessError, RemoteError: As the type of the first error says.
        """
        body = {"query": document, "variables": variables}
        answer = checked(self._http.send("POST", f"{GRAPHQL}{owner}", body=body), doing)
        found = object_in(answer, doing)
        errors = list_in(found.get("errors") or [])
        if errors:
            raise _graphql_error(errors[0], f"{doing}: {answer_text(errors)}")
        data = found.get("data")
        return data if isinstance(data, dict) else {}


def answer_text(errors: list[Found]) -> str:
    """Return the messages of GraphQL errors, for people."""
    return "; ".join(str(error.get("message")) for error in errors)[:300]


def _graphql_error(error: Found, message: str) -> Exception:
    kind = error.get("type")
    if kind == "STALE_DATA":
        return StaleHeadError(message, hint="repeat the command")
    if kind == "NOT_FOUND":
        return NotFoundError(message)
    if kind in ("FORBIDDEN", "INSUFFICIENT_SCOPES"):
        return AccessError(
            f"no right: {message}", hint="ask an owner of the organisation for write access"
        )
    return RemoteError(message)


def _next_page(answer: ForgeResponse) -> int:
    match = _NEXT.search(answer.headers.get("link", ""))
    return int(match[1]) if match else 0
