"""
Pages of pull requests: the list, one with its discussion and commits, what it changes.

Shows what is stored and what git says now; merging is the API's.

Called through their routes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pygit2
from starlette.responses import RedirectResponse, Response

from orderkit.adapters.embedded.forge import git_merge, git_read, pull_request_git
from orderkit.adapters.embedded.forge.accounts import Accounts
from orderkit.adapters.embedded.forge.api.access import Access
from orderkit.adapters.embedded.forge.api.calls import ApiError, Call
from orderkit.adapters.embedded.forge.issues import Issue, Issues
from orderkit.adapters.embedded.forge.pages import changes, locations, site
from orderkit.adapters.embedded.forge.pages.commit_records import record, shown_statuses
from orderkit.adapters.embedded.forge.pages.locations import REPO, Location, RepositoryView
from orderkit.adapters.embedded.forge.pull_request_git import Pull
from orderkit.adapters.embedded.forge.pulls import Pulls
from orderkit.adapters.embedded.forge.statuses import Statuses

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
class ShownPull:
    """A pull request as pages show it."""

    pull: Pull
    issue: Issue
    poster: str
    state: str

    @property
    def badge(self) -> str:
        return {"open": "good", "merged": "good", "closed": "bad"}.get(self.state, "warn")


@dataclass(frozen=True, slots=True)
class ShownComment:
    """One comment of the discussion."""

    by: str
    at: str
    text: str
    number: int


@dataclass(frozen=True, slots=True)
class CommitRange:
    """The commits of a pull request: where they begin (excluded) and end, as full ids."""

    base: str
    head: str


@dataclass(frozen=True, slots=True)
class PullPages:
    """The pages of pull requests."""

    access: Access
    accounts: Accounts
    issues: Issues
    pulls: Pulls
    statuses: Statuses

    @site.page_route(f"{REPO}/pulls")
    def list_pulls(self, call: Call) -> Response:
        """Return pull requests: ``?state=open|closed|all``, newest first."""
        home = locations.filled_repository(self.access, call)
        state = call.query("state", "open")
        state = state if state in STATES else "open"
        pulls, page = site.page_of(call, self.pulls.listed(home.row.id, state=state))
        return site.page(
            call,
            "pulls.html",
            f"Pull requests · {home.name}",
            home=home,
            tab="pulls",
            state=state,
            states=STATES,
            pulls=[self._shown_pull(pull) for pull in pulls],
            part=page,
        )

    @site.page_route(f"{REPO}/pulls/{{number}}")
    @site.page_route(f"{REPO}/pulls/{{number}}/commits")
    def conversation(self, call: Call) -> Response:
        """Return state, discussion and commits."""
        home = locations.filled_repository(self.access, call)
        shown_pull = self._shown_pull(self._pull(home, call.param("number")))
        pull, commits = shown_pull.pull, _range(home, shown_pull.pull)
        commit_records = _commits(home, pull, commits)
        head = pull_request_git.last_head(home.row.path, pull)
        return _page(
            home,
            "pull.html",
            shown_pull,
            view="conversation",
            outlook=self._outlook(home, pull),
            merged_by=self._name(pull.merged.by) if pull.merged else "",
            origin=_origin(shown_pull.issue.body),
            body=_text(shown_pull.issue.body),
            said=shown_statuses(self.statuses.latest(home.row.id, head)),
            comments=[
                ShownComment(self._name(c.poster_id), c.created, _text(c.body), c.id)
                for c in self.issues.comments(shown_pull.issue.id)
            ],
            commits=[record(commit) for commit in commit_records[:COMMITS_MAX]],
            more=max(len(commit_records) - COMMITS_MAX, 0),
        )

    @site.page_route(f"{REPO}/pulls/{{number}}/files")
    def files(self, call: Call) -> Response:
        """Return what a pull request changes."""
        home = locations.filled_repository(self.access, call)
        shown_pull = self._shown_pull(self._pull(home, call.param("number")))
        commits, changed, location = _range(home, shown_pull.pull), None, None
        if commits is not None:
            ids = (commits.base, commits.head)
            base, head = (git_read.commit_by_id(home.git, commit_id) for commit_id in ids)
            if base is not None and head is not None:
                changed = changes.between(home.git, base.tree, head.tree)
                location = Location(home, head, "commit", commits.head, "")
        return _page(
            home, "pullfiles.html", shown_pull, view="files", changes=changed, files_at=location
        )

    @site.page_route(f"{REPO}/issues/{{number}}")
    def of_issue(self, call: Call) -> Response:
        """Lead to the pull request of that number."""
        home = locations.repository_of(self.access, call)
        pull = self._pull(home, call.param("number"))
        return RedirectResponse(home.address("pulls", pull.number), 303)

    def _pull(self, home: RepositoryView, number: str) -> Pull:
        plain = number.isascii() and number.isdigit() and len(number) < 10  # noqa: PLR2004  no number of SQLite overflows
        pull = self.pulls.find(home.row.id, int(number)) if plain else None
        if pull is None:
            raise ApiError(404)
        return pull

    def _shown_pull(self, pull: Pull) -> ShownPull:
        state = "merged" if pull.merged else "closed" if pull.closed else "open"
        state = "draft" if state == "open" and pull.draft else state
        return ShownPull(pull, self.issues.by_id(pull.id), self._name(pull.poster_id), state)

    def _name(self, account_id: int) -> str:
        return self.accounts.by_id(account_id).name

    def _outlook(self, home: RepositoryView, pull: Pull) -> str:
        if pull.merged or pull.closed:
            return ""
        return _OUTLOOK[pull_request_git.state(home.row.path, pull, self.pulls.checks)]


def _page(home: RepositoryView, template: str, shown_pull: ShownPull, **values: Any) -> Response:
    title = f"{shown_pull.issue.title} (#{shown_pull.issue.number}) · {home.name}"
    return site.page(home.call, template, title, home=home, tab="pulls", shown=shown_pull, **values)


def _range(home: RepositoryView, pull: Pull) -> CommitRange | None:
    """Return the commits of a pull request, or None if git can no longer tell."""
    path = home.row.path
    base, head = pull_request_git.merge_base(path, pull), pull_request_git.last_head(path, pull)
    both_exist = all(git_read.commit_by_id(home.git, commit) is not None for commit in (base, head))
    return CommitRange(base, head) if both_exist else None


def _commits(home: RepositoryView, pull: Pull, commits: CommitRange | None) -> list[pygit2.Commit]:
    if commits is None:
        return []
    tip = "" if pull.merged else pull_request_git.tips(home.row.path, pull).base
    return git_merge.commits_between(home.git, tip or commits.base, commits.head)


def _origin(body: str) -> tuple[str, str] | None:
    """Return operation and requester if the body ends in our mark; earlier ones are quotations."""
    marks = list(_MARKER.finditer(body))
    if not marks or body[marks[-1].end() :].strip():
        return None
    return marks[-1][1], marks[-1][2]


def _text(markdown: str) -> str:
    """Return a text without the comments that only programs read."""
    return _HIDDEN.sub("", markdown.replace("\r\n", "\n")).strip()
