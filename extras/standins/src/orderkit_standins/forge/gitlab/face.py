"""
The address ``/api/v4``: a request in GitLab's dialect, its endpoint, and the answer.

GitLab names projects and files by one encoded segment (``acme%2Fshop``), so addresses are split
before they are decoded. What the forge can do already is asked of its endpoints in process, with
the caller's credentials: rights, limits and locks are those of the forge.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from orderkit.web.serving import BodyTooLargeError, read_body
from orderkit_standins.forge.accounts import Account, Actor
from orderkit_standins.forge.api.access import Access, require_scope
from orderkit_standins.forge.api.calls import ApiError
from orderkit_standins.forge.api.routes import BODY_MAX_BYTES, Dispatcher

Json = dict[str, Any]
PAGE_DEFAULT, PAGE_MAX = 20, 100
"""GitLab's."""
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


log = logging.getLogger(__name__)
API = "/api/v4"
_METHODS = ("GET", "POST", "PUT", "DELETE")
_PERIOD_S = 60
_COMMIT_FILES = re.compile(r"/-/(?:blob|tree)/([0-9a-f]{40})(?=/|$)")
_PAGES = (
    ("/-/blob/", "/src/branch/"),
    ("/-/tree/", "/src/branch/"),
    ("/-/commit/", "/commit/"),
    ("/-/merge_requests/", "/pulls/"),
)
"""Addresses of GitLab's pages, and of the same pages of the forge."""


@dataclass(frozen=True, slots=True)
class FaceSettings:
    """What a GitLab may be set to; by default one without limits, whose owners have Premium."""

    group: str = ""
    """The full path of the group that all organisations are in."""
    premium: bool = True
    """Whether rules of branches may name users, and groups have webhooks."""
    removes_at_once: bool = True
    """Whether a project that waits for its deletion may be removed permanently."""
    requests_a_minute: int = 0
    """0: any number."""


class Limits:
    """Counts requests of each caller by minutes."""

    def __init__(self, requests_a_minute: int) -> None:
        self._limit, self._lock = requests_a_minute, threading.Lock()
        self._counts: dict[tuple[str, int], int] = {}

    def headers(self, caller: str) -> dict[str, str]:
        """
        Count a request; return GitLab's headers about it.

        Raises:
            GitLabError: 429, too many this minute.
        """
        if not self._limit:
            return {}
        now = int(time.time())
        reset = (now // _PERIOD_S + 1) * _PERIOD_S
        with self._lock:
            count = self._counts.get((caller, reset), 0) + 1
            self._counts = {(caller, reset): count}
        rest = {"RateLimit-Limit": str(self._limit), "RateLimit-Reset": str(reset)}
        rest["RateLimit-Remaining"] = str(max(self._limit - count, 0))
        if count > self._limit:
            headers = {**rest, "Retry-After": str(reset - now)}
            raise GitLabError(429, headers=headers, document={"message": "Retry later"})
        return rest


class GitLabFace:
    """Serves the endpoints of the face."""

    def __init__(
        self, access: Access, inner: Dispatcher, endpoints: list[object], settings: FaceSettings
    ) -> None:
        self._access, self._inner = access, inner
        self._limits = Limits(settings.requests_a_minute)
        self._table: list[tuple[Address, Callable[[Ask], Response]]] = [
            (address, getattr(group, name))
            for group in endpoints
            for name, function in vars(type(group)).items()
            for address in getattr(function, "addresses", ())
        ]

    def routes(self) -> list[Route]:
        """Return the one route of all addresses."""
        return [Route(f"{API}/{{rest:path}}", self._serve, methods=list(_METHODS))]

    async def _serve(self, request: Request) -> Response:
        try:
            body = b"" if request.method == "GET" else await read_body(request, BODY_MAX_BYTES)
        except BodyTooLargeError as error:
            return answer({"message": str(error)}, 413)
        except ClientDisconnect:
            return Response(status_code=400)
        return await run_in_threadpool(self._answer, request, body)

    def _answer(self, request: Request, body: bytes) -> Response:
        try:
            caller = request.headers.get("authorization", "")
            headers = self._limits.headers(caller)
            response = self._call(request, body)
            response.headers.update(headers)
        except GitLabError as error:
            return answer(error.document, error.status, error.headers)
        except ApiError as error:
            refusal = translated(error)
            return answer(refusal.document, refusal.status)
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return answer({"message": "500 Internal Server Error"}, 500)
        return response

    def _call(self, request: Request, body: bytes) -> Response:
        raw = request.scope["raw_path"].decode().partition("?")[0]
        segments = raw.removeprefix(f"{API}/").rstrip("/").split("/")
        for address, endpoint in self._table:
            params = address.match(request.method, segments)
            if params is not None:
                actor = self._access.authenticate(request)
                ask = Ask(request, params, _fields(body), actor, self._inner)
                writes = request.method != "GET"
                require_scope(actor, "repository" if writes else "", write=writes)
                return endpoint(ask)
        raise GitLabError(404, document={"error": "404 Not Found"})


def _fields(body: bytes) -> Json:
    try:
        fields = json.loads(body or b"{}")
    except ValueError as error:
        raise GitLabError(400, document={"error": "Invalid json"}) from error
    if not isinstance(fields, dict):
        raise GitLabError(400, document={"error": "Invalid json"})
    return fields


class BelowGroup:
    """Serves pages and git below the path of a group, and pages at GitLab's addresses."""

    def __init__(self, app: ASGIApp, group: str) -> None:
        self._app, self._prefix = app, f"/{group}" if group else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        path = str(scope.get("path", ""))
        if scope["type"] == "http" and self._prefix and path.startswith(f"{self._prefix}/"):
            scope = {**scope, "path": path.removeprefix(self._prefix)}
            scope["raw_path"] = scope["raw_path"].removeprefix(self._prefix.encode())
        if scope["type"] == "http" and "/-/" in path and not path.startswith(API):
            scope = {**scope, "path": _page(scope["path"])}
        await self._app(scope, receive, send)


def _page(path: str) -> str:
    """Return where the forge has the page of an address of GitLab."""
    path = _COMMIT_FILES.sub(r"/src/commit/\1", path)
    for theirs, ours in _PAGES:
        path = path.replace(theirs, ours, 1)
    return path
