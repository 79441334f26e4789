"""Shared by all parts of the client: read an object, a paged list, or a field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ground.errors import NotFoundError
from ground.names import RepoId
from orderkit.adapters.gitea.answers import GarbledError, GiteaResponse
from orderkit.adapters.gitea.answers import refusal as refusal_of
from orderkit.adapters.gitea.transport import GiteaTransport, Query, path_of
from orderkit.ports.forge import ForgeUser

PAGE = 50
PASSES = 3
"""How many times a list is read if it changes between its pages."""
OK, CREATED, BAD, UNAUTHORIZED, FORBIDDEN, MISSING, NOT_NOW, CONFLICT, INVALID = (
    200, 201, 400, 401, 403, 404, 405, 409, 422,
)  # fmt: skip
Found = Mapping[str, Any]
"""A JSON object of the forge."""


class Calls:
    """The shared part: the forge's address, and conversion of answers to values or errors."""

    _http: GiteaTransport

    @property
    def base_url(self) -> str:
        """The address of the forge, without a final slash."""
        return self._http.base_url

    def _path(self, repo: RepoId, *segments: str) -> str:
        return path_of("repos", repo.owner, repo.name, *segments)

    def _object(self, path: str, doing: str) -> Found:
        item = self._optional(path, doing)
        if item is None:
            raise NotFoundError(f"{doing}: 404", hint="does the base URL point to Gitea?")
        return item

    def _optional(self, path: str, doing: str) -> Found | None:
        answer = self._http.get(path)
        if answer.status == MISSING:
            return None
        return object_in(checked(answer, doing), doing)

    def _pages(self, path: str, query: Query, doing: str, *, key: str = "id") -> Iterator[Found]:
        """
        Yield every item of a list once.

        If the total count changes between two pages, the list is read again from its start:
        an item may have moved to a page that was read already.
        """
        yielded: set[Any] = set()
        for _ in range(PASSES):
            counts: set[str] = set()
            page, has_next = 1, True
            while has_next:
                answer = checked(
                    self._http.get(path, {**query, "page": page, "limit": PAGE}), doing
                )
                counts.add(answer.headers.get("x-total-count", ""))
                items = _items(answer)
                fresh = [item for item in items if item.get(key) not in yielded]
                yielded.update(item.get(key) for item in fresh)
                yield from fresh
                page, has_next = page + 1, len(items) >= PAGE
            if len(counts) == 1:
                return


def checked(answer: GiteaResponse, doing: str) -> GiteaResponse:
    """
    Return the answer if it is a success.

    Raises:
        GarbledError: An HTML page: something between us and the forge answered.
        OrderkitError: The forge refused the request; the class says why.
    """
    if not answer.ok:
        raise refusal_of(answer, doing)
    if answer.headers.get("content-type", "").startswith("text/html"):
        raise GarbledError(
            f"{doing}: a page came back without JSON: {answer.text}",
            hint="does the base URL point to Gitea, and not to a proxy's page?",
        )
    return answer


def done(answer: GiteaResponse, doing: str) -> bool:
    """
    Return True if the answer is a success.

    Raises:
        OrderkitError: The forge refused the request; the class says why.
    """
    return checked(answer, doing).ok


def object_in(answer: GiteaResponse, doing: str) -> Found:
    """
    Return the JSON object of an answer.

    Raises:
        GarbledError: The answer is not an object.
    """
    document = answer.json()
    if not isinstance(document, dict):
        raise GarbledError(f"{doing}: the forge answered no object", hint="is this a Gitea?")
    return document


def text_in(document: Any, key: str) -> str:
    """
    Return a text field that must exist.

    Raises:
        GarbledError: It is missing or empty.
    """
    value = document.get(key) if isinstance(document, dict) else None
    if not isinstance(value, str) or not value:
        raise GarbledError(f"the forge's answer has no {key}", hint="is this a Gitea?")
    return value


def number_in(document: Any, key: str) -> int:
    """
    Return a number field that must exist.

    Raises:
        GarbledError: It is missing.
    """
    value = document.get(key) if isinstance(document, dict) else None
    if not isinstance(value, int) or isinstance(value, bool):
        raise GarbledError(f"the forge's answer has no {key}", hint="is this a Gitea?")
    return value


def user_in(document: Found) -> ForgeUser:
    """
    Return the ``user`` of a document.

    Raises:
        GarbledError: It is missing.
    """
    user = document.get("user")
    return ForgeUser(number_in(user, "id"), text_in(user, "login"))


def list_in(items: Any) -> list[Found]:
    """
    Return a list of objects.

    Raises:
        GarbledError: It is not a list.
    """
    if not isinstance(items, list):
        raise GarbledError("the forge's answer is not a list", hint="is this a Gitea?")
    return [item for item in items if isinstance(item, dict)]


def _items(answer: GiteaResponse) -> list[Found]:
    """Return the items of a page; some endpoints wrap the list in an object."""
    document = answer.json()
    if isinstance(document, dict):
        document = next(
            (document[key] for key in ("data", "statuses") if key in document), document
        )
    return list_in(document or [])
