"""
Pages above repositories: the first one with search, an owner's, and the way to sign in.

Called through ``pages.routes``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from urllib.parse import urlencode

import pygit2
from starlette.responses import RedirectResponse, Response

from orderkit.adapters.embedded.forge import gitread
from orderkit.adapters.embedded.forge.api import access, moved
from orderkit.adapters.embedded.forge.api.calls import ApiError, Call
from orderkit.adapters.embedded.forge.api.repos import visible
from orderkit.adapters.embedded.forge.pages import site
from orderkit.adapters.embedded.forge.registry import RepoRow

PAGE = 50
CHALLENGE = {"WWW-Authenticate": 'Basic realm="Orderkit forge", charset="UTF-8"'}


@dataclass(frozen=True, slots=True)
class Listed:
    """A repository in a list."""

    row: RepoRow
    address: str
    last: int | None
    """When its default branch last moved; None: it is empty."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One page of a longer list."""

    number: int
    last: int
    total: int
    before: str
    after: str


def start(call: Call) -> Response:
    """GET /: repositories that the caller may read, by owner; ``?q=`` searches by name."""
    if "sign_in" in call.request.query_params:
        return _sign_in(call)
    query = call.query("q").strip()
    rows = visible(call, call.forge.registry.all())
    found = sorted(
        (row for row in rows if query.lower() in row.full_name.lower()),
        key=lambda row: row.full_name.lower(),
    )
    shown, part = _slice(call, found)
    groups = [
        (owner, [_listed(call, row) for row in each])
        for owner, each in groupby(shown, lambda row: row.repo.owner)
    ]
    title = f"Repositories matching {query}" if query else "Repositories"
    return site.page(
        call, "start.html", title, query=query, groups=groups, part=part, any=bool(rows)
    )


def owner(call: Call) -> Response:
    """GET /{owner}: an organisation or user and the repositories that the caller may read."""
    name = call.param("owner")
    account = call.forge.accounts.find(name)
    if account is None:
        moved.refuse_old_account(call, name)
    if account is None or not access.sees(call.forge.accounts, call.actor.account, account):
        raise ApiError(404)
    rows = visible(call, call.forge.registry.all(owner_id=account.id))
    shown, part = _slice(call, sorted(rows, key=lambda row: row.full_name.lower()))
    listed = [_listed(call, row) for row in shown]
    return site.page(call, "owner.html", account.name, account=account, listed=listed, part=part)


def login(call: Call) -> Response:
    """GET /user/login: Gitea's address for signing in leads to ours."""
    target = urlencode({"sign_in": call.query("redirect_to", "/")})
    return RedirectResponse(f"{site.root(call)}/?{target}", 303)


def _sign_in(call: Call) -> Response:
    target = call.query("sign_in")
    if call.actor.account is None:
        return site.page(
            call, "signin.html", "Sign in", status=401, headers=CHALLENGE, target=target
        )
    local = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return RedirectResponse(target if local else f"{site.root(call)}/", 303)


def _listed(call: Call, row: RepoRow) -> Listed:
    try:
        tip = gitread.branch_commit(gitread.open_repository(row.path), row.default_branch)
    except pygit2.GitError:
        tip = None  # deleted since the list was made
    address = f"{site.root(call)}/{row.full_name}"
    return Listed(row, address, tip.commit_time if tip else None)


def _slice(call: Call, rows: list[RepoRow]) -> tuple[list[RepoRow], Slice]:
    last = max((len(rows) + PAGE - 1) // PAGE, 1)
    number = min(max(call.number("page", 1), 1), last)
    part = Slice(
        number,
        last,
        len(rows),
        before=_page_address(call, number - 1) if number > 1 else "",
        after=_page_address(call, number + 1) if number < last else "",
    )
    return rows[(number - 1) * PAGE : number * PAGE], part


def _page_address(call: Call, number: int) -> str:
    query = {"q": call.query("q"), "page": str(number)}
    return "?" + urlencode({key: value for key, value in query.items() if value})
