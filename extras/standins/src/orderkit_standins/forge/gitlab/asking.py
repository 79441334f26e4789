"""
A request in GitLab's dialect, the address table, and requests to the forge's own endpoints.

GitLab names projects and files by one encoded segment (``acme%2Fshop``), so addresses are split
before they are decoded. What the forge can do already is asked of its endpoints in process, with
the caller's credentials: rights, limits and locks are those of the forge.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from orderkit_standins.forge.accounts import Account, Actor
from orderkit_standins.forge.api.calls import ApiError
from orderkit_standins.forge.api.routes import Dispatcher

Json = dict[str, Any]
PAGE_DEFAULT, PAGE_MAX = 20, 100
_Method = TypeVar("_Method", bound=Callable[..., Response])


class GitLabError(Exception):
    """An answer other than success; the body is GitLab's ``message``, or the whole document."""

    def __init__(
        self,
        status: int,
        message: object = "",
        *,
        headers: Mapping[str, str] | None = None,
        document: Json | None = None,
    ) -> None:
        super().__init__(str(message))
        self.status, self.headers = status, dict(headers or {})
        self.document = {"message": message} if document is None else document


@dataclass(frozen=True, slots=True)
class Answered:
    """What an endpoint of the forge answered."""

    status: int
    document: Any

    @property
    def ok(self) -> bool:
        return self.status < 400  # noqa: PLR2004  what 4xx means

    @property
    def text(self) -> str:
        """The message of a refusal."""
        document = self.document if isinstance(self.document, dict) else {}
        return str(document.get("message") or "")


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: its parameters by name, its fields, who sent it."""

    request: Request
    params: Mapping[str, str]
    body: Json
    actor: Actor
    inner: Dispatcher = field(repr=False)

    def query(self, name: str, default: str = "") -> str:
        """Return the first value of a query parameter."""
        return self.request.query_params.get(name, default)

    def field(self, name: str, default: Any = None) -> Any:
        """Return a field of the body, or a query parameter: GitLab takes both."""
        return self.body.get(name, self.request.query_params.get(name, default))

    @property
    def user(self) -> Account:
        """
        Who calls.

        Raises:
            GitLabError: 401, nobody.
        """
        if self.actor.account is None:
            raise GitLabError(401, "401 Unauthorized")
        return self.actor.account

    def require_user(self) -> None:
        """
        Refuse strangers.

        Raises:
            GitLabError: 401, nobody.
        """
        _ = self.user

    def gitea(
        self, method: str, path: str, body: object = None, query: Mapping[str, object] | None = None
    ) -> Answered:
        """Ask an endpoint of the forge, as the caller of this request."""
        scope = {
            "type": "http",
            "method": method,
            "path": f"/api/v1{path}",
            "headers": self.request.scope["headers"],
            "query_string": urlencode(query or {}).encode(),
        }
        for made, answer in self.inner.in_process:
            match, child = made.matches(scope)
            if match is Match.FULL:
                request = Request({**scope, **child})
                response = answer(request, b"" if body is None else json.dumps(body).encode())
                return Answered(response.status_code, _document(response))
        return Answered(404, {"message": "not found"})


@dataclass(frozen=True, slots=True)
class Address:
    """A method and the segments of an address; one that begins with a colon is a parameter."""

    method: str
    segments: tuple[str, ...]

    def match(self, method: str, segments: Sequence[str]) -> dict[str, str] | None:
        """Return the parameters of a request to this address, or None."""
        if method != self.method or len(segments) != len(self.segments):
            return None
        pairs = list(zip(self.segments, segments, strict=True))
        if any(mine != theirs for mine, theirs in pairs if not mine.startswith(":")):
            return None
        return {mine[1:]: unquote(theirs) for mine, theirs in pairs if mine.startswith(":")}


def at(method: str, path: str) -> Callable[[_Method], _Method]:
    """Mark a method as the endpoint of an address such as ``projects/:id/repository/tree``."""

    def mark(function: _Method) -> _Method:
        address = Address(method, tuple(path.split("/")))
        function.addresses = (address, *getattr(function, "addresses", ()))  # type: ignore[attr-defined]  # our mark
        return function

    return mark


def answer(
    document: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON answer."""
    body = json.dumps(document, ensure_ascii=False).encode(errors="replace")
    return Response(body, status, headers, media_type="application/json")


def paged(ask: Ask, items: Sequence[object]) -> Response:
    """Return one page of a list with GitLab's headers."""
    size = min(_number(ask.query("per_page"), PAGE_DEFAULT), PAGE_MAX)
    page = _number(ask.query("page"), 1)
    part = items[(page - 1) * size : page * size]
    after = str(page + 1) if page * size < len(items) else ""
    headers = {"X-Total": str(len(items)), "X-Page": str(page), "X-Next-Page": after}
    return answer(part, headers=headers)


def refused(answered: Answered, status: int = 0) -> GitLabError:
    """Return a refusal of the forge in GitLab's words."""
    if "required scope" in answered.text:
        scope = {"error": "insufficient_scope", "scope": "api"}
        return GitLabError(403, document={**scope, "error_description": answered.text})
    if answered.status in (401, 403, 404):
        names = {401: "401 Unauthorized", 403: "403 Forbidden", 404: "404 Not Found"}
        text = names[answered.status]
        return GitLabError(answered.status, f"{text} - {answered.text}" if status else text)
    return GitLabError(status or answered.status, answered.text or "refused")


def translated(error: ApiError) -> GitLabError:
    """Return a refusal of the forge's own code in GitLab's words."""
    return refused(Answered(error.status, {"message": error.message}))


def _number(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text) < 10**9 else default


def _document(response: Response) -> Any:
    try:
        return json.loads(bytes(response.body or b"null"))
    except ValueError:
        return None
