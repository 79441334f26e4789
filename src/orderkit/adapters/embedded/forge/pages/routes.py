"""
The pages by address, in the order in which they are tried.

Called by ``api.app``.
"""

from __future__ import annotations

from starlette.responses import Response

from orderkit.adapters.embedded.forge.api.calls import ApiError, Call, Endpoint
from orderkit.adapters.embedded.forge.pages import history, overview, pulls, site, tree

_REPO = "/{owner}/{repo}"
_READ = "repository"
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def nothing(_call: Call) -> Response:
    """
    Answer every other address.

    Raises:
        ApiError: 404, always.
    """
    raise ApiError(404)


_PAGES: list[tuple[str, Endpoint]] = [
    ("/user/login", overview.login),
    ("/{owner}", overview.owner),
    (_REPO, tree.repository),
    (f"{_REPO}/src", tree.top),
    (f"{_REPO}/src/{{kind}}", tree.source),
    (f"{_REPO}/commits/{{kind}}", history.commits),
    (f"{_REPO}/branches", history.branches),
    (f"{_REPO}/tags", history.tags),
    (f"{_REPO}/commit/{{sha}}", history.commit),
    (f"{_REPO}/pulls", pulls.index),
    (f"{_REPO}/pulls/{{number}}", pulls.conversation),
    (f"{_REPO}/pulls/{{number}}/commits", pulls.conversation),
    (f"{_REPO}/pulls/{{number}}/files", pulls.files),
    (f"{_REPO}/issues/{{number}}", pulls.of_issue),
]
_SUBTREES: list[tuple[str, Endpoint]] = [
    (f"{_REPO}/src/{{kind}}/{{rest:path}}", tree.source),
    (f"{_REPO}/raw/{{kind}}/{{rest:path}}", tree.raw),
    (f"{_REPO}/commits/{{kind}}/{{rest:path}}", history.commits),
]

PAGE_ROUTES: list[tuple[str, str, str, Endpoint]] = [
    ("GET", "/", _READ, overview.start),
    ("GET", "/assets/{name}", "", site.asset),
    *(("GET", f"{path}{end}", _READ, page) for path, page in _PAGES for end in ("", "/")),
    *(("GET", path, _READ, page) for path, page in _SUBTREES),
    *((method, "/{rest:path}", "", nothing) for method in _METHODS),
]
"""Method, address, token scope, page; an address may end in a slash, as in Gitea."""
