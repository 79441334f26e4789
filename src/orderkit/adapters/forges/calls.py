"""
Shared by the parts of every forge's client: read an object or a field of an answer.

The parts of every forge's client that say who we are, and close it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from ground.errors import NotFoundError
from ground.names import RepoId
from orderkit.adapters.forges.answers import OTHER_FORGE, ForgeResponse, GarbledError, refusal
from orderkit.adapters.forges.file_cache import Trees
from orderkit.adapters.forges.transport import ForgeTransport
from orderkit.ports.forge import ForgeUser
from orderkit.ports.signatures import Signatures
from orderkit.ports.workflows import ForgeWorkflows


class ForgeClient:
    """What every forge's client has. Safe to use from threads."""

    _http: ForgeTransport
    declined: set[tuple[RepoId, str]]
    """The branches that took no push of ours."""

    def _set_up(self, http: ForgeTransport, source: str, signatures: Signatures | None) -> None:
        self._http, self._source, self.signatures = http, source, signatures
        self._trees, self.declined = Trees(), set()

    @property
    def trees(self) -> Trees:
        """The cache of files."""
        return self._trees

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
PASSES = 3
"""How many times a list is read if it changes between its pages."""
OK, CREATED, BAD, UNAUTHORIZED, FORBIDDEN, MISSING, NOT_NOW, CONFLICT, INVALID = (
    200, 201, 400, 401, 403, 404, 405, 409, 422,
)  # fmt: skip
Found = Mapping[str, Any]
"""A JSON object of the forge."""


class ForgeCalls(ForgeClient):
    """The shared part: the forge's address, and conversion of answers to values or errors."""

    @property
    def base_url(self) -> str:
        """The address of the forge, without a final slash."""
        return self._http.base_url

    def _object(self, path: str, doing: str) -> Found:
        item = self._optional(path, doing)
        if item is None:
            raise NotFoundError(f"{doing}: 404", hint=OTHER_FORGE)
        return item

    def _optional(self, path: str, doing: str) -> Found | None:
        answer = self._http.get(path)
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
