"""The address ``/api/v4``: from a request to an endpoint of the face and back."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from orderkit.web.serving import BodyTooLargeError, read_body
from orderkit_standins.forge.api.access import Access, require_scope
from orderkit_standins.forge.api.calls import ApiError
from orderkit_standins.forge.api.routes import BODY_MAX_BYTES, Dispatcher
from orderkit_standins.forge.gitlab.asking import (
    Address,
    Ask,
    GitLabError,
    Json,
    answer,
    translated,
)

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
