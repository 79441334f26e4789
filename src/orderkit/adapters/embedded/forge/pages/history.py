"""
Pages of history: commits of a branch or path, one commit with its changes, branches, tags.

Called through ``pages.routes``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, islice

import pygit2
from starlette.responses import RedirectResponse, Response

from orderkit.adapters.embedded.forge import gitread
from orderkit.adapters.embedded.forge.api.calls import ApiError, Call
from orderkit.adapters.embedded.forge.pages import changes, places, rawdiff, robots, site
from orderkit.adapters.embedded.forge.pages.places import Home, PathAtCommit
from orderkit.adapters.embedded.forge.pages.records import Record, record

PAGE = 50
PAGES_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Tip:
    """A branch or tag and the commit it names."""

    name: str
    address: str
    history: str
    commit: Record
    is_default: bool = False


def commits(call: Call) -> Response:
    """GET /{owner}/{repo}/commits/{branch|commit|tag}/{ref}[/{path}], 50 a page."""
    if call.param("kind") not in places.KINDS:
        return RedirectResponse(places.without_kind(call).at("commits"), 303)
    spot = places.place(call)
    page = min(max(call.number("page", 1), 1), PAGES_MAX)
    walk = gitread.history(spot.home.git, spot.commit, spot.path)
    found = list(islice(walk, (page - 1) * PAGE, page * PAGE + 1))
    if not found and page == 1:
        raise ApiError(404)
    records = [record(each) for each in found[:PAGE]]
    return site.page(
        call,
        "history.html",
        f"History of {spot.path or spot.ref} · {spot.home.name}",
        home=spot.home,
        place=spot,
        tab="history",
        days=[(day, list(each)) for day, each in groupby(records, lambda one: _day(one.stamp))],
        page=page,
        before=f"?page={page - 1}" if page > 1 else "",
        after=f"?page={page + 1}" if len(found) > PAGE and page < PAGES_MAX else "",
    )


def commit(call: Call) -> Response:
    """GET /{owner}/{repo}/commit/{sha}[.diff|.patch]: one commit and what it changes."""
    here = places.home(call)
    name, _, form = call.param("sha").partition(".")
    found = places.commit_by_prefix(here.git, name)
    if found is None or form not in ("", "diff", "patch"):
        raise ApiError(404)
    if form:
        return rawdiff.answer(call.forge, here.row.path, found, form)
    shown = record(found)
    return site.page(
        call,
        "commit.html",
        f"{shown.summary} · {here.name}",
        home=here,
        tab="history",
        commit=shown,
        said=robots.said_of(here, shown.id),
        changes=changes.of_commit(here.git, found),
        files_at=PathAtCommit(here, found, "commit", shown.id, ""),
    )


def branches(call: Call) -> Response:
    """GET /{owner}/{repo}/branches: every branch, the default one first."""
    here = _not_empty(call)
    default = here.row.default_branch
    names = sorted(gitread.branch_names(here.git), key=lambda name: (name != default, name))
    tips = [_tip(here, "branch", name) for name in names]
    return _tips(here, "Branches", [tip for tip in tips if tip])


def tags(call: Call) -> Response:
    """GET /{owner}/{repo}/tags: every tag."""
    here = _not_empty(call)
    prefix = gitread.TAGS
    names = [
        name.removeprefix(prefix)
        for name in here.git.listall_references()
        if name.startswith(prefix)
    ]
    tips = [_tip(here, "tag", name) for name in sorted(names, reverse=True)]
    return _tips(here, "Tags", [tip for tip in tips if tip])


def _tips(here: Home, title: str, tips: list[Tip]) -> Response:
    return site.page(
        here.call,
        "tips.html",
        f"{title} · {here.name}",
        home=here,
        tab=title.lower(),
        heading=title,
        tips=tips,
    )


def _tip(here: Home, kind: str, name: str) -> Tip | None:
    find = gitread.branch_commit if kind == "branch" else gitread.tag_commit
    try:
        found = find(here.git, name)
    except pygit2.InvalidSpecError:
        return None  # a tag may name a tree or a file
    if found is None:
        return None
    return Tip(
        name,
        here.address(f"src/{kind}", name),
        here.address(f"commits/{kind}", name),
        record(found),
        is_default=kind == "branch" and name == here.row.default_branch,
    )


def _not_empty(call: Call) -> Home:
    here = places.home(call)
    if here.empty:
        raise ApiError(404, "This repository is empty.")
    return here


def _day(stamp: int) -> str:
    return site.moment(stamp, "%-d %B %Y")
