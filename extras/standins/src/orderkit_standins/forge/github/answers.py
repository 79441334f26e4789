"""How GitHub answers: errors, pages with links, tags of unchanged answers, limits of speed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

from starlette.responses import Response

from orderkit_standins.forge.api.calls import ApiError, Call, Endpoint
from orderkit_standins.forge.github.limits import Limits
from orderkit_standins.forge.repositories import Repositories

API = "/api/v3"
REPO = f"{API}/repos/{{owner}}/{{repo}}"
ORG = f"{API}/orgs/{{org}}"
DOCS = "https://docs.github.com/rest"
PAGE_DEFAULT, PAGE_MAX = 30, 100
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
