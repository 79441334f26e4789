"""
Pages of history: commits of a branch or path, one commit with its changes, branches.

Called through their routes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, islice

from starlette.responses import Response

from orderkit_standins.forge import git_read
from orderkit_standins.forge.api.access import Access
from orderkit_standins.forge.api.calls import ApiError, Call
from orderkit_standins.forge.api.routes import route
from orderkit_standins.forge.pages import changes, locations, site
from orderkit_standins.forge.pages.commit_records import CommitRecord, record, shown_statuses
from orderkit_standins.forge.pages.locations import REPO, Location, RepositoryView
from orderkit_standins.forge.statuses import Statuses

PAGE = 50
PAGES_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Tip:
    """A branch and the commit it names."""

    name: str
    address: str
    history: str
    commit: CommitRecord
    is_default: bool


@dataclass(frozen=True, slots=True)
class HistoryPages:
    """The pages of history."""

    access: Access
    statuses: Statuses

    @site.page_route(f"{REPO}/commits/{{kind}}")
    @route("GET", f"{REPO}/commits/{{kind}}/{{rest:path}}", "repository")
    def commits(self, call: Call) -> Response:
        """Return the commits of ``{branch|commit|tag}/{ref}[/{path}]``, 50 a page."""
        location = locations.location_of(self.access, call)
        home = location.home
        page = min(max(call.query_number("page", 1), 1), PAGES_MAX)
        walk = git_read.history(home.git, location.commit, location.path)
        commits = list(islice(walk, (page - 1) * PAGE, page * PAGE + 1))
        if not commits and page == 1:
            raise ApiError(404)
        records = [record(commit) for commit in commits[:PAGE]]
        days = groupby(records, lambda commit: site.moment(commit.stamp, "%-d %B %Y"))
        return site.page(
            call,
            "history.html",
            f"History of {location.path or location.ref} · {home.name}",
            home=home,
            place=location,
            tab="history",
            days=[(day, list(commits_of_day)) for day, commits_of_day in days],
            page=page,
            before=f"?page={page - 1}" if page > 1 else "",
            after=f"?page={page + 1}" if len(commits) > PAGE and page < PAGES_MAX else "",
        )

    @site.page_route(f"{REPO}/commit/{{sha}}")
    def commit(self, call: Call) -> Response:
        """Return one commit and what it changes."""
        home = locations.repository_of(self.access, call)
        commit = git_read.by_short_id(home.git, call.param("sha"))
        if commit is None:
            raise ApiError(404)
        commit_record = record(commit)
        return site.page(
            call,
            "commit.html",
            f"{commit_record.summary} · {home.name}",
            home=home,
            tab="history",
            commit=commit_record,
            said=shown_statuses(self.statuses.latest(home.row.id, commit_record.id)),
            changes=changes.of_commit(home.git, commit),
            files_at=Location(home, commit, "commit", commit_record.id, ""),
        )

    @site.page_route(f"{REPO}/branches")
    def branches(self, call: Call) -> Response:
        """Return every branch, the default one first."""
        home = locations.filled_repository(self.access, call)
        default = home.row.default_branch
        names = sorted(git_read.branch_names(home.git), key=lambda name: (name != default, name))
        return site.page(
            call,
            "tips.html",
            f"Branches · {home.name}",
            home=home,
            tab="branches",
            tips=[tip for name in names if (tip := _tip(home, name))],
        )


def _tip(home: RepositoryView, name: str) -> Tip | None:
    commit = git_read.branch_commit(home.git, name)
    if commit is None:
        return None
    return Tip(
        name,
        home.branch_page(name),
        home.address("commits/branch", name),
        record(commit),
        is_default=name == home.row.default_branch,
    )
