"""
What every page shares: templates, headers, style sheet, who is looking, and what its address names.

The only module that knows Jinja and the files in ``templates/``. Links are relative to the host, so
pages work through a forwarded port too.

An address such as ``branch/feature/x/dir/file`` names a repository, a commit in it and a path; it
is split and made here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import pygit2
from jinja2 import Environment, FunctionLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from orderkit_standins.forge import git_read
from orderkit_standins.forge.api.access import Access
from orderkit_standins.forge.api.calls import VERSION, ApiError, Call, Window
from orderkit_standins.forge.api.routes import route
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.markdown_html import cut, path, plain, visible, words

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
PAGE = 50
"""Entries on one page of a list."""
_Item = TypeVar("_Item")
_Page = TypeVar("_Page", bound=Callable[..., Response])
_PACKAGE = "orderkit_standins.forge.pages"
_STYLE_FILE = "style.css"
_MARK_FILE = "mark.svg"
_MEDIA_TYPES = {_STYLE_FILE: "text/css;charset=utf-8", _MARK_FILE: "image/svg+xml"}


def page_route(path: str) -> Callable[[_Page], _Page]:
    """Mark a method as the page of an address, which may end in a slash, as in Gitea."""

    def mark(function: _Page) -> _Page:
        return route("GET", path, "repository")(route("GET", f"{path}/", "repository")(function))

    return mark


def page(
    call: Call,
    template: str,
    title: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **values: Any,
) -> Response:
    """
    Return a page.

    Args:
        call: The request; says who looks and where they are.
        template: File in ``templates/``.
        title: Begins the window's title.
        status: Of the answer.
        headers: More headers.
        values: What the template shows.
    """
    account = call.actor.account
    html = (
        _environment()
        .get_template(template)
        .render(
            title=title,
            root=root(call),
            style=f"{root(call)}/assets/{_STYLE_FILE}?{_digest(_STYLE_FILE)}",
            mark=f"{root(call)}/assets/{_MARK_FILE}?{_digest(_MARK_FILE)}",
            viewer=account.name if account else "",
            sign_in=sign_in_address(call),
            version=VERSION,
            **values,
        )
    )
    return HTMLResponse(html, status, {**HEADERS, **(headers or {})})


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a longer list; the addresses of its neighbours are empty where there is none."""

    number: int
    last: int
    total: int
    before: str
    after: str


def page_of(call: Call, items: Sequence[_Item]) -> tuple[Sequence[_Item], ListPage]:
    """Return the page of a list that ``?page=`` asks for."""
    last = Window(1, PAGE).pages(len(items))
    number = min(max(call.query_number("page", 1), 1), last)
    query = {key: value for key, value in call.request.query_params.items() if value}
    before, after = (f"?{urlencode({**query, 'page': n})}" for n in (number - 1, number + 1))
    page = ListPage(
        number,
        last,
        len(items),
        before if number > 1 else "",
        after if number < last else "",
    )
    return items[Window(number, PAGE).part], page


def root(call: Call) -> str:
    """Return the path below which the forge is reached: empty, or ``/prefix``."""
    return urlsplit(call.root_url).path.rstrip("/")


def sign_in_address(call: Call) -> str:
    """Return the address that asks for credentials and leads back here."""
    current_url = call.request.url
    back = quote(current_url.path) + (f"?{current_url.query}" if current_url.query else "")
    # the first page: browsers send credentials to everything below the address that asked for them
    return f"{root(call)}/?{urlencode({'sign_in': back})}"


def asset(name: str) -> Response:
    """
    Return the style sheet or the mark; their addresses change with the content.

    Raises:
        ApiError: 404, another name.
    """
    if name not in _MEDIA_TYPES:
        raise ApiError(404)
    headers = {"Cache-Control": "public, max-age=86400", "X-Content-Type-Options": "nosniff"}
    return Response(_file(name), headers=headers, media_type=_MEDIA_TYPES[name])


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(lambda name: _file(name).decode()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "visible": visible,
        "words": words,
        "path": path,
        "plain": plain,
        "moment": moment,
        "count": _count,
        "cut": cut,
    }
    return environment


@cache
def _file(name: str) -> bytes:
    return (files(_PACKAGE) / "templates" / name).read_bytes()


@cache
def _digest(name: str) -> str:
    return hashlib.sha256(_file(name)).hexdigest()[:12]


def moment(stamp: int, form: str = "%Y-%m-%d %H:%M UTC") -> str:
    """Return a time as text; git accepts times that no calendar has."""
    try:
        return datetime.fromtimestamp(stamp, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return "at an impossible time"


def _count(number: int, singular: str, plural: str = "") -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


REPO = "/{owner}/{repo}"
KINDS = ("branch", "tag", "commit")
_GIT = ".git"


@dataclass(frozen=True, slots=True)
class RepositoryView:
    """A repository that the caller may read, and the addresses of its pages."""

    call: Call
    row: Repository
    git: pygit2.Repository

    @property
    def name(self) -> str:
        return self.row.full_name

    @property
    def empty(self) -> bool:
        return not git_read.branch_names(self.git)

    @property
    def clone_url(self) -> str:
        return f"{self.call.root_url}/{self.row.full_name}.git"

    def address(self, *parts: object) -> str:
        """Return the address of a page of this repository, percent-encoded."""
        path = "/".join(str(part) for part in (self.row.full_name, *parts) if str(part))
        return f"{root(self.call)}/{quote(path)}"

    @property
    def tabs(self) -> list[tuple[str, str, str]]:
        """The parts of a repository: key, name and address each."""
        if self.empty:
            return [("files", "Files", self.address())]
        return [
            ("files", "Files", self.address()),
            ("history", "History", self.address("commits/branch", self.row.default_branch)),
            ("pulls", "Pull requests", self.address("pulls")),
            ("branches", "Branches", self.address("branches")),
        ]

    def branch_page(self, branch: str) -> str:
        """Return the address of the files of a branch."""
        return self.address("src/branch", branch)


@dataclass(frozen=True, slots=True)
class Location:
    """A path at a commit. `kind` and `ref` are how the address names the commit."""

    home: RepositoryView
    commit: pygit2.Commit
    kind: str
    ref: str
    path: str

    def at(self, view: str, path: str | None = None) -> str:
        """Return the address of a view (``src``, ``raw``, ``commits``) of a path home."""
        return self.home.address(view, self.kind, self.ref, self.path if path is None else path)

    @property
    def name(self) -> str:
        """The branch or tag, or the short id of the commit."""
        return self.ref[:10] if self.kind == "commit" else self.ref

    @property
    def permalink(self) -> str:
        """The same at this commit, whatever the branch does later."""
        return self.home.address("src/commit", self.commit.id, self.path)

    @property
    def trail(self) -> list[tuple[str, str]]:
        """The folders above and this path itself: name and address each."""
        parts = self.path.split("/") if self.path else []
        return [
            (name, self.at("src", "/".join(parts[: number + 1])))
            for number, name in enumerate(parts)
        ]


def repository_of(access: Access, call: Call) -> RepositoryView:
    """
    Return the repository of the address.

    Raises:
        ApiError: 404, missing or hidden.
    """
    row = access.repository(call, suffix=_GIT)
    return RepositoryView(call, row, git_read.open_repository(row.path))


def filled_repository(access: Access, call: Call) -> RepositoryView:
    """
    Return the repository of the address if it has a branch.

    Raises:
        ApiError: 404, missing, hidden or empty.
    """
    home = repository_of(access, call)
    if home.empty:
        raise ApiError(404, "This repository is empty.")
    return home


def top_of_default_branch(home: RepositoryView) -> Location | None:
    """Return the top of the default branch, or None without one."""
    branch = home.row.default_branch
    commit = git_read.branch_commit(home.git, branch)
    return Location(home, commit, "branch", branch, "") if commit else None


def location_of(access: Access, call: Call) -> Location:
    """
    Return the location that ``{kind}/{rest}`` of the address names.

    Raises:
        ApiError: 404, no such repository or commit.
    """
    home, kind = repository_of(access, call), call.param("kind")
    if kind not in KINDS:
        raise ApiError(404)
    location = _split(home, kind, _parts(call))
    if location is None:
        raise ApiError(404)
    return location


def _parts(call: Call) -> list[str]:
    return [part for part in str(call.request.path_params.get("rest", "")).split("/") if part]


def _split(home: RepositoryView, kind: str, parts: Sequence[str]) -> Location | None:
    """A branch name may contain slashes: the shortest that exists wins."""
    for count in range(1, len(parts) + 1):
        name = "/".join(parts[:count])
        commit = _commit(home.git, kind, name)
        if commit is not None:
            return Location(home, commit, kind, name, "/".join(parts[count:]))
    return None


def _commit(git: pygit2.Repository, kind: str, name: str) -> pygit2.Commit | None:
    match kind:
        case "branch":
            return git_read.branch_commit(git, name)
        case "tag":
            return git_read.tag_commit(git, name)
        case _:
            return git_read.by_short_id(git, name)
