"""
How GitHub answers: errors, pages with links, tags of unchanged answers, and its limits.

Limited are how many requests, how many that create content, and how soon reads follow. Source:
GitHub's page "Rate limits for the REST API". A refusal creates nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

from starlette.responses import Response

from orderkit_standins.forge.api.calls import ApiError, Call, Endpoint
from orderkit_standins.forge.repositories import Repositories

_REMEMBERED = 10_000
_MINUTE_S, _HOUR_S = 60.0, 3600.0
_READ, _WRITE = 1, 5
"""Points of a request by GitHub's secondary limit."""


@dataclass(slots=True)
class Limits:
    """All callers count as one credential. 0: no limit; tests and benches set them low."""

    created_per_minute: int = 0
    created_per_hour: int = 0
    requests_per_hour: int = 0
    """Of each resource, the API and GraphQL; unchanged answers are free."""
    points_per_minute: dict[str, int] = field(default_factory=dict)
    """Of each resource: a read is 1 point, a write 5, an unchanged answer too."""
    retry_after_s: int = 1
    """What a refusal of content says; 0: as long as it takes."""
    statuses_max: int = 1_000
    """Of one context and commit."""
    tree_entries_max: int = 100_000
    """In one answer; whatever is beyond is left out, and the answer says ``truncated``."""
    stale_reads_s: float = 0.0
    """How long a branch that moved is still shown where it was."""
    now: Callable[[], float] = time.monotonic
    today: Callable[[], float] = time.time
    created: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    """The last requests that create content, by method and path: what a story costs."""
    refused: int = 0
    """Requests that were too fast."""
    refused_again: int = 0
    """Those of them that followed one of their kind, with none between that was not."""
    points_spent: Counter[str] = field(default_factory=Counter)
    """Of all minutes, by resource."""
    _spent: dict[str, deque[float]] = field(default_factory=dict)
    _were_refused: set[str] = field(default_factory=set)
    _times: deque[float] = field(default_factory=deque)
    _used: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By resource: the requests of this hour, and when it ends."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _before: dict[tuple[int, str], tuple[str, float]] = field(default_factory=dict)

    def take(self, call: Call) -> None:
        """
        Count a request that creates content.

        Raises:
            ApiError: 403, there were too many in the last minute or hour.
        """
        with self._lock:
            try:
                self.take_one()
            except ApiError:
                self._note_refusal("content")
                raise
            self._were_refused.discard("content")
            self.created.append(f"{call.request.method} {call.request.url.path}")

    def take_one(self) -> None:
        """
        Count something that creates content, also by another user of the same credential.

        Raises:
            ApiError: 403, as `take` says.
        """
        now = self.now()
        while self._times and self._times[0] <= now - _HOUR_S:
            self._times.popleft()
        bounds = ((self.created_per_minute, _MINUTE_S), (self.created_per_hour, _HOUR_S))
        for bound, window_s in bounds:
            if bound and len(self._times) >= bound and self._times[-bound] > now - window_s:
                due_s = math.ceil(self._times[-bound] + window_s - now)
                after = {"Retry-After": str(self.retry_after_s or due_s)}
                raise ApiError(403, "You have exceeded a secondary rate limit.", headers=after)
        self._times.append(now)

    def admit(self, resource: str, *, writes: bool = False) -> None:
        """
        Count a request.

        Raises:
            ApiError: 403, none is left in this hour, or too many points were spent this minute.
        """
        self._spend(resource, _WRITE if writes else _READ)
        if not self.requests_per_hour:
            return
        with self._lock:
            used, end = self._used.get(resource, (0, 0.0))
            if self.now() >= end:
                used, end = 0, self.now() + _HOUR_S
            self._used[resource] = used + 1, end
            is_refused = used >= self.requests_per_hour
            if is_refused:
                self._note_refusal(resource)
            else:
                self._were_refused.discard(resource)
        if is_refused:
            raise ApiError(403, "API rate limit exceeded", headers=self.headers(resource))

    def _spend(self, resource: str, points: int) -> None:
        bound = self.points_per_minute.get(resource)
        if not bound:
            return
        with self._lock:
            now, spent = self.now(), self._spent.setdefault(resource, deque())
            while spent and spent[0] <= now - _MINUTE_S:
                spent.popleft()
            if len(spent) + points > bound:
                self._note_refusal(f"{resource} points")
                due_s = math.ceil(spent[len(spent) + points - bound - 1] + _MINUTE_S - now)
                after = {"Retry-After": str(due_s)}
                raise ApiError(403, "You have exceeded a secondary rate limit.", headers=after)
            self._were_refused.discard(f"{resource} points")
            spent.extend([now] * points)
            self.points_spent[resource] += points

    def give_back(self, resource: str) -> None:
        """Count a request as free."""
        if not self.requests_per_hour:
            return
        with self._lock:
            used, end = self._used.get(resource, (1, 0.0))
            self._used[resource] = used - 1, end

    def headers(self, resource: str) -> dict[str, str]:
        """Return what an answer says of the limits."""
        limit = self.requests_per_hour or 15_000
        used, end = self._used.get(resource, (1, self.now() + _HOUR_S))
        return {
            "X-RateLimit-Limit": str(limit),
            "X-RateLimit-Remaining": str(max(limit - used, 0)),
            "X-RateLimit-Reset": str(math.ceil(self.today() + end - self.now())),
            "X-RateLimit-Resource": resource,
        }

    def _note_refusal(self, kind: str) -> None:
        self.refused += 1
        self.refused_again += kind in self._were_refused
        self._were_refused.add(kind)

    def note_move(self, repo_id: int, branch: str, before: str) -> None:
        """Remember where a branch was."""
        if self.stale_reads_s and before:
            self._before[repo_id, branch] = (before, time.monotonic() + self.stale_reads_s)

    def shown(self, repo_id: int, branch: str, head: str) -> str:
        """Return the commit that reads still show."""
        before, until = self._before.get((repo_id, branch), ("", 0.0))
        return before if time.monotonic() < until else head


API = "/api/v3"
REPO = f"{API}/repos/{{owner}}/{{repo}}"
ORG = f"{API}/orgs/{{org}}"
DOCS = "https://docs.github.com/rest"
PAGE_DEFAULT, PAGE_MAX = 30, 100
"""GitHub's."""
_STATUSES = {423: 403, 412: 422, 413: 422}
"""What Gitea answers otherwise: an archive, a merged pull request, too large a body."""
_WORDS = {
    401: "Bad credentials",
    404: "Not Found",
    423: "Repository was archived so is read-only.",
}
_MOVED, _KEPT = 301, 307
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Answers:
    """Makes the answers of one forge."""

    repositories: Repositories
    limits: Limits

    def refuse(self, call: Call, refusal: ApiError) -> Response:
        """Return GitHub's error body; a redirect names a repository by its id."""
        resource = "graphql" if call.request.url.path.endswith("/graphql") else "core"
        status, headers = refusal.status, {**self.limits.headers(resource), **refusal.headers}
        words = _WORDS.get(status, refusal.message or HTTPStatus(status).phrase)
        body: dict[str, Any] = {"message": words, "documentation_url": DOCS}
        status = _STATUSES.get(status, status)
        if status == _MOVED:
            body["url"] = headers["Location"] = self._moved_to(call, headers.get("Location", ""))
            status = _MOVED if call.request.method in ("GET", "HEAD") else _KEPT
        if "Retry-After" in headers:
            body["documentation_url"] = f"{DOCS}/overview/rate-limits-for-the-rest-api"
        body["status"] = str(status)
        return answer(body, status, headers)

    def _moved_to(self, call: Call, location: str) -> str:
        _, _, rest = urlsplit(location).path.partition("/repos/")
        owner, name, *more = [*rest.split("/"), ""]
        repo = self.repositories.find(owner, name)
        tail = "/".join(part for part in more if part)
        number = repo.id if repo else 0
        return f"{call.root_url}{API}/repositories/{number}{'/' if tail else ''}{tail}"

    def counted(self, endpoint: Endpoint) -> Endpoint:
        """Let an endpoint count and be limited as one that creates content."""

        def serve(call: Call) -> Response:
            self.limits.take(call)
            return endpoint(call)

        return serve

    def admitted(self, endpoint: Endpoint, resource: str) -> Endpoint:
        """Let an endpoint count as any does, and say what is left of the limit."""

        def serve(call: Call) -> Response:
            self.limits.admit(resource, writes=_writes(call, resource))
            response = endpoint(call)
            if response.status_code == HTTPStatus.NOT_MODIFIED:
                self.limits.give_back(resource)
            response.headers.update(self.limits.headers(resource))
            return response

        return serve


def _writes(call: Call, resource: str) -> bool:
    if resource == "graphql":
        return call.fields().text("query").lstrip().startswith("mutation")
    return call.request.method != "GET"


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON answer."""
    body = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    data = body.encode(errors="replace")
    return Response(data, status, headers, media_type="application/json; charset=utf-8")


def tagged(call: Call, response: Response) -> Response:
    """Return an answer with its tag; 304 without a body if the caller has it already."""
    if response.status_code != HTTPStatus.OK:
        return response
    tag = f'"{hashlib.sha256(bytes(response.body)).hexdigest()}"'
    if call.request.headers.get("if-none-match") == tag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
    response.headers["ETag"] = tag
    return response


def paged(
    call: Call, items: Sequence[_Item], shape: Callable[[_Item], object], *, inside: str = ""
) -> Response:
    """Return one page of a list with links to the next; `inside`: in an object with the total."""
    size = min(call.query_number("per_page", PAGE_DEFAULT) or PAGE_DEFAULT, PAGE_MAX)
    page = max(call.query_number("page", 1), 1)
    shapes = [shape(item) for item in items[(page - 1) * size : page * size]]
    headers = {}
    if page * size < len(items):
        query = urlencode({**dict(call.request.query_params), "page": str(page + 1)})
        headers["Link"] = f'<{call.root_url}{call.request.url.path}?{query}>; rel="next"'
    if inside:
        return answer({"total_count": len(items), inside: shapes}, headers=headers)
    return answer(shapes, headers=headers)


def rewritten(call: Call, body: Mapping[str, object], **path: str) -> Call:
    """Return the same call with another body, and other parameters of its path."""
    scope = dict(call.request.scope)
    scope["path_params"] = {**call.request.path_params, **path}
    request = type(call.request)(scope)
    return replace(call, request=request, body=json.dumps(body).encode())
