"""
Pages of pull requests: the list, one with its discussion and commits, what it changes.

Shows what is stored and what git says now. Reviews and merges are made by the endpoints of the API,
from forms at Gitea's addresses and with its fields. A form names the head that was shown, and has a
token for its reader and its pull request, which ends with the process.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl

import pygit2
from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from orderkit_standins.forge import git_merge, git_read, pull_requests
from orderkit_standins.forge.accounts import Account, Accounts
from orderkit_standins.forge.api.access import Access, require_scope
from orderkit_standins.forge.api.calls import ApiError, Call, Endpoint
from orderkit_standins.forge.api.pull_routes import PullRoutes, ReviewRoutes
from orderkit_standins.forge.api.routes import route
from orderkit_standins.forge.issues import Issue
from orderkit_standins.forge.pages import shown_commits, site
from orderkit_standins.forge.pages.shown_commits import record, shown_statuses
from orderkit_standins.forge.pages.site import REPO, Location, RepositoryView
from orderkit_standins.forge.pull_requests import Pull
from orderkit_standins.forge.reviews import Review
from orderkit_standins.forge.statuses import Statuses
from orderkit_standins.markdown_html import in_html

COMMITS_MAX, COMMENTS_MAX = 250, 200
STATES = ("open", "closed", "all")
_MARKER = re.compile(r"\s*orderkit-operation:\s*(\S+)\s+requester:(.*)-->")
_EVENTS = {"approve": "APPROVED", "reject": "REQUEST_CHANGES", "comment": "COMMENT"}
_FORM_KEY = secrets.token_bytes(32)
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
    html: Markup
    anchor: str
    review: Review | None = None


@dataclass(frozen=True, slots=True)
class PullForms:
    """What a reader may do with a pull request."""

    head: str
    token: str
    may_judge: bool
    """Its author may neither approve nor reject it."""
    may_merge: bool


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
    statuses: Statuses
    api: PullRoutes
    review_api: ReviewRoutes

    @site.page_route(f"{REPO}/pulls")
    def list_pulls(self, call: Call) -> Response:
        """Return pull requests: ``?state=open|closed|all``, newest first."""
        home = site.filled_repository(self.access, call)
        state = call.query("state", "open")
        state = state if state in STATES else "open"
        pulls, page = site.page_of(call, self.api.pulls.listed(home.row.id, state=state))
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
        home = site.filled_repository(self.access, call)
        shown_pull = self._shown_pull(self._pull(home, call.param("number")))
        pull, commits = shown_pull.pull, _range(home, shown_pull.pull)
        commit_records = _commits(home, pull, commits)
        head = pull_requests.last_head(home.row.path, pull)
        return _page(
            home,
            "pull.html",
            shown_pull,
            view="conversation",
            outlook=self._outlook(home, pull),
            forms=self._forms(home, pull),
            head=head,
            merged_by=self._name(pull.merged.by) if pull.merged else "",
            origin=_origin(shown_pull.issue.body),
            said=shown_statuses(self.statuses.latest(home.row.id, head)),
            **self._discussion(home, shown_pull),
            commits=[record(commit) for commit in commit_records[:COMMITS_MAX]],
            more=max(len(commit_records) - COMMITS_MAX, 0),
        )

    @site.page_route(f"{REPO}/pulls/{{number}}/files")
    def files(self, call: Call) -> Response:
        """Return what a pull request changes."""
        home = site.filled_repository(self.access, call)
        shown_pull = self._shown_pull(self._pull(home, call.param("number")))
        commits, changed, location = _range(home, shown_pull.pull), None, None
        if commits is not None:
            ids = (commits.base, commits.head)
            base, head = (git_read.commit_by_id(home.git, commit_id) for commit_id in ids)
            if base is not None and head is not None:
                changed = shown_commits.between(home.git, base.tree, head.tree)
                location = Location(home, head, "commit", commits.head, "")
        return _page(
            home, "pullfiles.html", shown_pull, view="files", changes=changed, files_at=location
        )

    def _pull(self, home: RepositoryView, number: str) -> Pull:
        plain = number.isascii() and number.isdigit() and len(number) < 10  # noqa: PLR2004  no number of SQLite overflows
        pull = self.api.pulls.find(home.row.id, int(number)) if plain else None
        if pull is None:
            raise ApiError(404)
        return pull

    def _shown_pull(self, pull: Pull) -> ShownPull:
        state = "merged" if pull.merged else "closed" if pull.closed else "open"
        state = "draft" if state == "open" and pull.draft else state
        return ShownPull(pull, self.api.issues.by_id(pull.id), self._name(pull.poster_id), state)

    def _name(self, account_id: int) -> str:
        return self.accounts.by_id(account_id).name

    def _discussion(self, home: RepositoryView, shown: ShownPull) -> dict[str, Any]:
        """Return the description, reviews and comments, their Markdown as HTML."""
        comments = self.api.issues.comments(shown.issue.id)[:COMMENTS_MAX]
        reviews = self.api.reviews.of_pull(shown.pull.id)[-COMMENTS_MAX:]
        texts = (shown.issue.body, *(r.body for r in reviews), *(c.body for c in comments))
        html = in_html(texts, home.branch_page(home.row.default_branch))
        return {
            "body": next(html),
            "reviews": [
                ShownComment(self._name(r.reviewer_id), r.submitted, next(html), "", r)
                for r in reviews
            ],
            "comments": [
                ShownComment(self._name(c.poster_id), c.created, next(html), f"issuecomment-{c.id}")
                for c in comments
            ],
        }

    def _outlook(self, home: RepositoryView, pull: Pull) -> str:
        if not pull.open:
            return ""
        if pull.draft:
            return "Its title says that it is work in progress, so it cannot be merged."
        state = pull_requests.state(home.row.path, pull, self.api.pulls.checks)
        tips = pull_requests.tips(home.row.path, pull)
        lacks = self.api.merging.rules.unready(home.row, pull, tips)
        if state == "mergeable" and lacks:
            return f"It cannot be merged yet: {lacks[0].lower()}{lacks[1:]}."
        return _OUTLOOK[state]

    def _forms(self, home: RepositoryView, pull: Pull) -> PullForms | None:
        """Return what the reader may do, or None if that is nothing."""
        call, account = home.call, home.call.actor.account
        try:
            require_scope(call.actor, "repository", write=True)
        except ApiError:
            return None
        if account is None or not pull.open or home.row.archived:
            return None
        return PullForms(
            head=pull_requests.tips(home.row.path, pull).head,
            token=_form_token(account, pull),
            may_judge=account.id != pull.poster_id,
            may_merge=self._outlook(home, pull) == _OUTLOOK["mergeable"]
            and self.api.merging.rules.may_merge(home.row, account, pull.base),
        )

    @route("POST", f"{REPO}/pulls/{{number}}/merge", "repository")
    def merge(self, call: Call) -> Response:
        """Merge with a merge commit."""
        form = self._form(call, "head_commit_id")
        fields = {"Do": form.get("do"), "head_commit_id": form["head_commit_id"]}
        return self._pass_on(call, self.api.merge, fields)

    @route("POST", f"{REPO}/pulls/{{number}}/files/reviews/submit", "repository")
    def review(self, call: Call) -> Response:
        """Approve, ask for changes, or comment."""
        form = self._form(call, "commit_id")
        fields = {
            "event": _EVENTS.get(form.get("type", ""), "unknown"),
            "body": form.get("content", ""),
            "commit_id": form["commit_id"],
        }
        return self._pass_on(call, self.review_api.create, fields)

    def _form(self, call: Call, head_field: str) -> Mapping[str, str]:
        """
        Return the fields of a form that was made for its sender.

        Raises:
            ApiError: 403, it was not; 409, somebody pushed since.
        """
        home = site.repository_of(self.access, call)
        pull = self._pull(home, call.param("number"))
        try:
            form = dict(parse_qsl(call.body.decode(errors="replace"), max_num_fields=20))
        except ValueError as error:
            raise ApiError(422, str(error)) from error
        token = form.get("_csrf", "").encode()
        # browsers add remembered credentials to what pages of others send
        if not hmac.compare_digest(_form_token(call.user, pull).encode(), token):
            raise ApiError(403, "The page that this was sent from is not valid any more.")
        if form.get(head_field) != pull_requests.tips(home.row.path, pull).head:
            raise ApiError(409, "Somebody pushed to it since the page was loaded.")
        return form

    def _pass_on(self, call: Call, endpoint: Endpoint, fields: Mapping[str, object]) -> Response:
        """Have an endpoint of the API act, and lead back to the pull request."""
        endpoint(replace(call, body=json.dumps(fields).encode()))
        home = site.repository_of(self.access, call)
        return RedirectResponse(home.address("pulls", call.param("number")), 303)


def _page(home: RepositoryView, template: str, shown_pull: ShownPull, **values: Any) -> Response:
    title = f"{shown_pull.issue.title} (#{shown_pull.issue.number}) · {home.name}"
    return site.page(home.call, template, title, home=home, tab="pulls", shown=shown_pull, **values)


def _range(home: RepositoryView, pull: Pull) -> CommitRange | None:
    """Return the commits of a pull request, or None if git can no longer tell."""
    path = home.row.path
    base, head = pull_requests.merge_base(path, pull), pull_requests.last_head(path, pull)
    both_exist = all(git_read.commit_by_id(home.git, commit) is not None for commit in (base, head))
    return CommitRange(base, head) if both_exist else None


def _commits(home: RepositoryView, pull: Pull, commits: CommitRange | None) -> list[pygit2.Commit]:
    if commits is None:
        return []
    tip = "" if pull.merged else pull_requests.tips(home.row.path, pull).base
    return git_merge.commits_between(home.git, tip or commits.base, commits.head)


def _origin(body: str) -> tuple[str, str] | None:
    """Return operation and requester if the body ends in our mark; earlier ones are quotations."""
    mark = _MARKER.fullmatch(body.rstrip().rpartition("<!--")[2])
    return (mark[1], mark[2].strip()) if mark else None


def _form_token(account: Account, pull: Pull) -> str:
    return hmac.new(_FORM_KEY, f"{account.id} {pull.id}".encode(), hashlib.sha256).hexdigest()
