"""
Pages of pull requests: the list, one with its discussion and commits, what it changes.

Shows what is stored and what git says now; merging is the API's.

Called through ``pages.routes``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pygit2
from starlette.responses import RedirectResponse, Response

from orderkit.adapters.embedded.forge import gitmerge, gitread, pullgit
from orderkit.adapters.embedded.forge.api.calls import ApiError, Call
from orderkit.adapters.embedded.forge.issues import Issue, Label
from orderkit.adapters.embedded.forge.pages import changes, places, rawdiff, robots, site
from orderkit.adapters.embedded.forge.pages.places import Home, PathAtCommit
from orderkit.adapters.embedded.forge.pages.records import record
from orderkit.adapters.embedded.forge.pullgit import Pull
from orderkit.adapters.embedded.forge.pulls import PullFilter

PAGE = 50
COMMITS_MAX = 250
STATES = ("open", "closed", "all")
_MARKER = re.compile(r"<!--\s*orderkit-operation:\s*(\S+)\s+requester:\s*(.*?)\s*-->")
_HIDDEN = re.compile(r"<!--.*?-->", re.DOTALL)
_OUTLOOK = {
    "checking": "The forge checks whether it can be merged. Load the page again.",
    "mergeable": "It can be merged.",
    "conflict": "It cannot be merged: the base branch changed the same lines. Bring the base into "
    "the head branch, or make the change again from the base.",
    "empty": "It cannot be merged: it changes nothing against the base branch any more.",
    "ancestor": "There is nothing to merge: the base branch has all of its commits.",
    "error": "It cannot be merged: the head or the base branch is gone.",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A pull request as pages show it."""

    pull: Pull
    issue: Issue
    poster: str
    state: str
    labels: Sequence[Label]

    @property
    def badge(self) -> str:
        return {"open": "good", "merged": "good", "closed": "bad"}.get(self.state, "warn")


@dataclass(frozen=True, slots=True)
class Remark:
    """One text of the discussion."""

    by: str
    at: str
    text: str
    number: int


@dataclass(frozen=True, slots=True)
class Span:
    """The commits of a pull request: where they begin (excluded) and end, as full ids."""

    base: str
    head: str


def index(call: Call) -> Response:
    """GET /{owner}/{repo}/pulls?state=open|closed|all, newest first."""
    here = _home(call)
    state = call.query("state", "open")
    state = state if state in STATES else "open"
    wanted = PullFilter(state="" if state == "all" else state)
    found = call.forge.pulls.index(here.row.id, wanted)
    page = min(max(call.number("page", 1), 1), len(found) // PAGE + 1)
    chosen = found[(page - 1) * PAGE : page * PAGE]
    return site.page(
        call,
        "pulls.html",
        f"Pull requests · {here.name}",
        home=here,
        tab="pulls",
        state=state,
        states=STATES,
        pulls=[_shown(call, each) for each in chosen],
        before=f"?state={state}&page={page - 1}" if page > 1 else "",
        after=f"?state={state}&page={page + 1}" if len(found) > page * PAGE else "",
    )


def conversation(call: Call) -> Response:
    """GET /{owner}/{repo}/pulls/{number}[.diff|.patch]: state, discussion, commits."""
    here = _home(call)
    name, _, form = call.param("number").partition(".")
    shown = _shown(call, _pull(call, here, name))
    span = _span(here, shown.pull)
    if form:
        if form not in ("diff", "patch") or span is None:
            raise ApiError(404)
        return rawdiff.between(call.forge, here.row.path, span.base, span.head, form)
    commits = _commits(here, shown.pull, span)
    return _page(
        here,
        "pull.html",
        shown,
        view="conversation",
        outlook=_outlook(here, shown.pull),
        merged_by=_name(call, shown.pull.merged.by) if shown.pull.merged else "",
        origin=_origin(shown.issue.body),
        body=_text(shown.issue.body),
        said=robots.said_of(here, pullgit.last_head(here.row.path, shown.pull)),
        comments=_comments(call, shown.issue),
        commits=[record(each) for each in commits[:COMMITS_MAX]],
        more=max(len(commits) - COMMITS_MAX, 0),
        span=span,
    )


def files(call: Call) -> Response:
    """GET /{owner}/{repo}/pulls/{number}/files: what it changes."""
    here = _home(call)
    shown = _shown(call, _pull(call, here, call.param("number")))
    span = _span(here, shown.pull)
    found = at = None
    if span is not None:
        base, head = (gitread.commit_by_id(here.git, each) for each in (span.base, span.head))
        if base is not None and head is not None:
            found = changes.between(here.git, base.tree, head.tree)
            at = PathAtCommit(here, head, "commit", span.head, "")
    return _page(here, "pullfiles.html", shown, view="files", changes=found, files_at=at)


def of_issue(call: Call) -> Response:
    """GET /{owner}/{repo}/issues/{number} leads to the pull request of that number."""
    here = places.home(call)
    found = _pull(call, here, call.param("number"))
    return RedirectResponse(here.address("pulls", found.number), 303)


def _home(call: Call) -> Home:
    here = places.home(call)
    if here.empty:
        raise ApiError(404, "This repository is empty.")
    return here


def _page(here: Home, template: str, shown: Shown, **values: Any) -> Response:
    title = f"{shown.issue.title} (#{shown.issue.number}) · {here.name}"
    return site.page(here.call, template, title, home=here, tab="pulls", shown=shown, **values)


def _pull(call: Call, here: Home, number: str) -> Pull:
    plain = number.isascii() and number.isdigit() and len(number) < 10  # noqa: PLR2004  no number of SQLite overflows
    found = call.forge.pulls.find(here.row.id, int(number)) if plain else None
    if found is None:
        raise ApiError(404)
    return found


def _shown(call: Call, pull: Pull) -> Shown:
    issue = call.forge.issues.by_id(pull.id)
    state = "merged" if pull.merged else "closed" if pull.closed else "open"
    return Shown(
        pull,
        issue,
        _name(call, pull.poster_id),
        "draft" if state == "open" and pull.draft else state,
        call.forge.issues.labels_on(pull.id),
    )


def _name(call: Call, account_id: int) -> str:
    return call.forge.accounts.by_id(account_id).name


def _outlook(here: Home, pull: Pull) -> str:
    if pull.merged or pull.closed:
        return ""
    return _OUTLOOK[pullgit.state(here.row.path, pull, here.call.forge.pulls.checks)]


def _span(here: Home, pull: Pull) -> Span | None:
    """Return the commits of a pull request, or None if git can no longer tell."""
    base, head = pullgit.merge_base(here.row.path, pull), pullgit.last_head(here.row.path, pull)
    known = all(gitread.commit_by_id(here.git, each) is not None for each in (base, head))
    return Span(base, head) if known else None


def _commits(here: Home, pull: Pull, span: Span | None) -> list[pygit2.Commit]:
    if span is None:
        return []
    base = span.base if pull.merged else pullgit.tips(here.row.path, pull).base or span.base
    return gitmerge.commits_between(here.git, base, span.head)


def _comments(call: Call, issue: Issue) -> list[Remark]:
    found = call.forge.comments.on_issue(issue.id)
    return [
        Remark(_name(call, each.poster_id), each.created, _text(each.body), each.id)
        for each in found
    ]


def _origin(body: str) -> tuple[str, str] | None:
    """Return operation and requester if the body ends in our mark; earlier ones are quotations."""
    found = list(_MARKER.finditer(body))
    if not found or body[found[-1].end() :].strip():
        return None
    return found[-1][1], found[-1][2]


def _text(markdown: str) -> str:
    """Return a text without the comments that only programs read."""
    return _HIDDEN.sub("", markdown.replace("\r\n", "\n")).strip()
