"""Shared by all parts of the client: paths and paged lists of Gitea."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ground.names import RepoId
from orderkit.adapters.forges import calls
from orderkit.adapters.forges.answers import ForgeResponse
from orderkit.adapters.forges.calls import ForgeCalls, Found, checked, list_in
from orderkit.adapters.forges.transport import Query, path_of


class Calls(ForgeCalls):
    """The shared part: paths and lists of Gitea's API."""

    def _path(self, repo: RepoId, *segments: str) -> str:
        return path_of("repos", repo.owner, repo.name, *segments)

    def _pages(self, path: str, query: Query, doing: str, *, key: str = "id") -> Iterator[Found]:
        """
        Yield every item of a list once.

        If the total count changes between two pages, the list is read again from its start:
        an item may have moved to a page that was read already.
        """
        yielded: set[Any] = set()
        for _ in range(calls.PASSES):
            counts: set[str] = set()
            page, has_next = 1, True
            while has_next:
                answer = checked(
                    self._http.get(path, {**query, "page": page, "limit": calls.PAGE}), doing
                )
                counts.add(answer.headers.get("x-total-count", ""))
                items = _items(answer)
                fresh = [item for item in items if item.get(key) not in yielded]
                yielded.update(item.get(key) for item in fresh)
                yield from fresh
                page, has_next = page + 1, len(items) >= calls.PAGE
            if len(counts) == 1:
                return


def _items(answer: ForgeResponse) -> list[Found]:
    """Return the items of a page; some endpoints wrap the list in an object."""
    document = answer.json()
    if isinstance(document, dict):
        document = next(
            (document[key] for key in ("data", "statuses") if key in document), document
        )
    return list_in(document or [])
