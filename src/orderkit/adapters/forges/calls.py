"""
What the parts of every forge's client share: its address, lists in pages, fields of an answer.

`object_in`, `text_in` and the like read an object or a field of an answer. `ForgeClient` says who
we are, and closes the client.
"""

from __future__ import annotations

import base64
import binascii
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, ClassVar, Self

from ground.errors import NotFoundError
from ground.names import RepoId
from orderkit.adapters.forges.answers import OTHER_FORGE, ForgeResponse, GarbledError, refusal
from orderkit.adapters.forges.transport import ForgeTransport, Query
from orderkit.core.platform.forge_kinds import ForgeCapabilities
from orderkit.ports.forge import ForgeUser
from orderkit.ports.signatures import Signatures
from orderkit.ports.workflows import ForgeWorkflows


class ForgeClient(ABC):
    """What every forge's client has. Safe to use from threads."""

    _http: ForgeTransport
    signatures: Signatures | None
    declined: set[tuple[RepoId, str]]
    """The branches that took no push of ours."""

    def _set_up(self, http: ForgeTransport, source: str, signatures: Signatures | None) -> None:
        self._http, self._source, self.signatures = http, source, signatures
        self.declined = set()

    @property
    def http(self) -> ForgeTransport:
        """What sends our requests."""
        return self._http

    @property
    @abstractmethod
    def capabilities(self) -> ForgeCapabilities:
        """What this forge can do; see the port."""

    @property
    def workflows(self) -> ForgeWorkflows | None:
        """None: this forge has none; see the port."""
        return None

    @property
    def credentials_source(self) -> str:
        """Where our credentials came from; see the port."""
        return self._source

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._http.base_url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def repository_named(self, full_name: str) -> RepoId | None:
        """Return the repository that the forge itself calls so; see the port."""
        return RepoId.parse(full_name)

    def remember(self) -> None:
        """Ask each thing once from now on; see the port."""
        self._http.remember()

    def close(self) -> None:
        """Close idle connections. Idempotent; the client stays usable."""
        self._http.close()


PAGE = 50
"""The most that Gitea gives as it is installed (`max_response_items`)."""
PASSES = 3
"""How many times a list is read if it changes between its pages."""
OK, CREATED, BAD, UNAUTHORIZED, FORBIDDEN, MISSING, NOT_NOW, CONFLICT, INVALID = (
    200, 201, 400, 401, 403, 404, 405, 409, 422,
)  # fmt: skip
Found = Mapping[str, Any]
"""A JSON object of the forge."""


class ForgeCalls(ForgeClient):
    """The shared part: addresses and lists, and conversion of answers to values or errors."""

    page_size_key: ClassVar[str] = "per_page"
    """The parameter that says how many items a page has."""
    total_header: ClassVar[str] = ""
    """The header that says how many items a list has; "": this forge has none."""
    edit_verb: ClassVar[str] = "PATCH"

    @property
    def base_url(self) -> str:
        """The address of the forge, without a final slash."""
        return self._http.base_url

    @abstractmethod
    def _path(self, repo: RepoId, *segments: str) -> str:
        """Return the path of something below a repository."""

    @property
    def _page_size(self) -> int:
        return PAGE

    def _pages(
        self, path: str, query: Query, doing: str, *, key: str = "id", inside: str = ""
    ) -> Iterator[Found]:
        """
        Yield every item of a list once.

        Args:
            key: The field that tells items apart.
            inside: The field of an object that holds the list; "": the answer is the list.
        """
        yielded: set[Any] = set()
        size = self._page_size
        for _ in range(PASSES):
            page, pages, is_new = 1, 0, False
            totals: set[str] = set()
            while page:
                sent = {**query, self.page_size_key: size, "page": page}
                answer = checked(self._http.get(path, sent), doing)
                totals.add(answer.headers.get(self.total_header, ""))
                items = self._items(answer, inside, doing)
                fresh = [item for item in items if item.get(key) not in yielded]
                yielded.update(item.get(key) for item in fresh)
                yield from fresh
                is_new = is_new or bool(fresh)
                page = self._page_after(answer, page, size - len(items))
                pages += 1
            # else the list is read again: an item may have moved to a page that was read already
            if len(totals) == 1 if self.total_header else pages == 1 or not is_new:
                return

    def _items(self, answer: ForgeResponse, inside: str, doing: str, /) -> list[Found]:
        """Return the items of a page."""
        return list_in(object_in(answer, doing).get(inside) if inside else answer.json())

    @abstractmethod
    def _page_after(self, answer: ForgeResponse, page: int, missing: int, /) -> int:
        """
        Return the number of the next page of a list; 0: there is none.

        Args:
            missing: How many items the page has less than it may have.
        """

    def _object(self, path: str, doing: str) -> Found:
        item = self._optional(path, doing)
        if item is None:
            raise NotFoundError(f"{doing}: 404", hint=OTHER_FORGE)
        return item

    def _optional(self, path: str, doing: str, query: Query | None = None) -> Found | None:
        answer = self._http.get(path, query)
        if answer.status == MISSING:
            return None
        return object_in(checked(answer, doing), doing)


def checked(answer: ForgeResponse, doing: str) -> ForgeResponse:
    """
    Return the answer if it is a success.

    Raises:
        GarbledError: An HTML page: something between us and the forge answered.
        OrderkitError: The forge refused the request; the class says why.
    """
    if not answer.ok:
        raise refusal(answer, doing)
    if answer.headers.get("content-type", "").startswith("text/html"):
        raise GarbledError(
            f"{doing}: a page came back without JSON: {answer.text}",
            hint=OTHER_FORGE,
        )
    return answer


def done(answer: ForgeResponse, doing: str) -> bool:
    """
    Return True if the answer is a success.

    Raises:
        OrderkitError: The forge refused the request; the class says why.
    """
    return checked(answer, doing).ok


def object_in(answer: ForgeResponse, doing: str) -> Found:
    """
    Return the JSON object of an answer.

    Raises:
        GarbledError: The answer is not an object.
    """
    document = answer.json()
    if not isinstance(document, dict):
        raise GarbledError(f"{doing}: the forge answered no object", hint=OTHER_FORGE)
    return document


def text_in(document: Any, key: str) -> str:
    """
    Return a text field that must exist.

    Raises:
        GarbledError: It is missing or empty.
    """
    value = document.get(key) if isinstance(document, dict) else None
    if not isinstance(value, str) or not value:
        raise GarbledError(f"the forge's answer has no {key}", hint=OTHER_FORGE)
    return value


def number_in(document: Any, key: str) -> int:
    """
    Return a number field that must exist.

    Raises:
        GarbledError: It is missing.
    """
    value = document.get(key) if isinstance(document, dict) else None
    if not isinstance(value, int) or isinstance(value, bool):
        raise GarbledError(f"the forge's answer has no {key}", hint=OTHER_FORGE)
    return value


def user_in(document: Found) -> ForgeUser:
    """
    Return the ``user`` of a document.

    GitHub names an App's account a bot; Gitea gives the account of its pipelines a negative id.

    Raises:
        GarbledError: It is missing.
    """
    user: Any = document.get("user")
    number, login = number_in(user, "id"), text_in(user, "login")
    return ForgeUser(number, login, is_machine=user.get("type") == "Bot" or number < 0)


def list_in(items: Any) -> list[Found]:
    """
    Return a list of objects.

    Raises:
        GarbledError: It is not a list.
    """
    if not isinstance(items, list):
        raise GarbledError("the forge's answer is not a list", hint=OTHER_FORGE)
    return [item for item in items if isinstance(item, dict)]


def bytes_in(document: Found) -> bytes:
    """
    Return the content of a file, which is base64.

    Raises:
        GarbledError: It is not.
    """
    try:
        return base64.b64decode(str(document.get("content") or ""))
    except binascii.Error as error:
        raise GarbledError("the forge's answer holds no base64") from error


_COMMIT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def is_commit_id(ref: str) -> bool:
    """Say whether a reference is a full commit id."""
    return _COMMIT_ID.fullmatch(ref) is not None


def hidden(repo: RepoId) -> NotFoundError:
    """Return the error for a repository that is not there for us."""
    return NotFoundError(f"there is no repository {repo}, or it is hidden from us")
