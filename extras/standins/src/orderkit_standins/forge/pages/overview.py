"""
Pages above repositories: the first with search and the way to sign in, an owner's, and errors.

`refuse_with_page` says what happened, and what the reader can do now. Programs that do not ask for
HTML get one line of text, as from Gitea.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from itertools import groupby

import pygit2
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from orderkit_standins.forge import git_read
from orderkit_standins.forge.accounts import Accounts
from orderkit_standins.forge.api.access import Access
from orderkit_standins.forge.api.calls import ApiError, Call
from orderkit_standins.forge.api.routes import route
from orderkit_standins.forge.pages import site
from orderkit_standins.forge.repositories import Repositories, Repository

CHALLENGE = {"WWW-Authenticate": 'Basic realm="Orderkit forge", charset="UTF-8"'}


@dataclass(frozen=True, slots=True)
class Advice:
    """Title of an error page and what it says."""

    title: str
    text: str


_ADVICE = {
    401: Advice(
        "These credentials are not known",
        "The user name, password or token is wrong, or the token was deleted. "
        "Reload the page to enter them again.",
    ),
    403: Advice(
        "Not allowed",
        "You are signed in, but may not see this. Ask an owner of the organisation for access, "
        "or use credentials (a token with scope read:repository) that have it.",
    ),
    404: Advice(
        "Nothing here",
        "The address is wrong, or it was moved or deleted, or it is private and you may not see "
        "it. Check the spelling of owner, repository, branch and path.",
    ),
}
_REFUSED = Advice(
    "Nothing was changed",
    "What was asked for does not fit the present state. Go back and load the page again.",
)
_ADVICE |= dict.fromkeys((405, 409, 422, 423), _REFUSED)
_OTHER = Advice(
    "The forge failed",
    "This is a fault of the forge, not yours. Try again; if it stays, read the log of the "
    "process that runs `orderkit up`.",
)


def refuse_with_page(call: Call, refusal: ApiError) -> Response:
    """Return the page of a refusal; one that leads elsewhere needs none."""
    if HTTPStatus.MULTIPLE_CHOICES <= refusal.status < HTTPStatus.BAD_REQUEST:
        return Response(status_code=refusal.status, headers=refusal.headers)
    headers = {**refusal.headers}
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        headers |= CHALLENGE
    if "text/html" not in call.request.headers.get("accept", ""):
        text = refusal.message or HTTPStatus(refusal.status).phrase
        return PlainTextResponse(f"{text}\n", refusal.status, headers)
    advice = _ADVICE.get(refusal.status, _OTHER)
    return site.page(
        call,
        "refusal.html",
        advice.title,
        status=refusal.status,
        headers=headers,
        advice=advice,
        code=refusal.status,
        detail=refusal.message,
    )


@dataclass(frozen=True, slots=True)
class ListedRepository:
    """A repository in a list."""

    row: Repository
    address: str
    last: int | None
    """When its default branch last moved; None: it is empty."""


@dataclass(frozen=True, slots=True)
class OverviewPages:
    """The pages above repositories."""

    access: Access
    accounts: Accounts
    repositories: Repositories

    @route("GET", "/", "repository")
    def start(self, call: Call) -> Response:
        """Return the repositories that the caller may read, by owner; ``?q=`` searches by name."""
        if "sign_in" in call.request.query_params:
            return _sign_in(call)
        query = call.query("q").strip()
        rows = self.access.readable(call, self.repositories.all())
        matching = [row for row in rows if query.lower() in row.full_name.lower()]
        page_rows, page = _page_of(call, matching)
        groups = groupby(page_rows, lambda repository: repository.row.repo.owner)
        return site.page(
            call,
            "start.html",
            f"Repositories matching {query}" if query else "Repositories",
            query=query,
            groups=[(owner, list(repositories)) for owner, repositories in groups],
            part=page,
            any=bool(rows),
        )

    @route("GET", "/assets/{name}")
    def asset(self, call: Call) -> Response:
        return site.asset(call.param("name"))

    @site.page_route("/{owner}")
    def owner(self, call: Call) -> Response:
        """Return an organisation or user and the repositories that the caller may read."""
        account = self.accounts.find(call.param("owner"))
        if account is None or not self.access.sees(call.actor.account, account):
            raise ApiError(404)
        rows = self.access.readable(call, self.repositories.all(owner_id=account.id))
        repositories, page = _page_of(call, rows)
        title = account.name
        return site.page(call, "owner.html", title, account=account, listed=repositories, part=page)


def _sign_in(call: Call) -> Response:
    target = call.query("sign_in")
    if call.actor.account is None:
        return site.page(
            call, "signin.html", "Sign in", status=401, headers=CHALLENGE, target=target
        )
    local = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return RedirectResponse(target if local else f"{site.root(call)}/", 303)


def _listed_repository(call: Call, row: Repository) -> ListedRepository:
    try:
        tip = git_read.branch_commit(git_read.open_repository(row.path), row.default_branch)
    except pygit2.GitError:
        tip = None  # deleted since the list was made
    address = f"{site.root(call)}/{row.full_name}"
    return ListedRepository(row, address, tip.commit_time if tip else None)


def _page_of(call: Call, rows: list[Repository]) -> tuple[list[ListedRepository], site.ListPage]:
    page_rows, page = site.page_of(call, sorted(rows, key=lambda row: row.full_name.lower()))
    return [_listed_repository(call, row) for row in page_rows], page
