"""
Endpoints of commit statuses: set one, list all, combine the newest of each context.

As in Gitea the state is called ``state`` when it is sent and ``status`` in what is answered;
a status for an unknown commit is a 500.

Called through their routes.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from orderkit_standins.forge import git_read
from orderkit_standins.forge.api.access import Access, Right
from orderkit_standins.forge.api.calls import ApiError, Call, json_answer, paged, window
from orderkit_standins.forge.api.content_routes import commit_at
from orderkit_standins.forge.api.routes import REPO, route
from orderkit_standins.forge.api.shapes import Shapes
from orderkit_standins.forge.statuses import TEXTS, Statuses, combined

_STATUSES = f"{REPO}/statuses/{{sha:path}}"


@dataclass(frozen=True, slots=True)
class StatusRoutes:
    """Endpoints of commit statuses."""

    access: Access
    statuses: Statuses
    shapes: Shapes

    @route("POST", _STATUSES, "repository")
    def create(self, call: Call) -> Response:
        """Set a status, also in an archive."""
        user, repo = call.user, self.access.repository(call)
        if self.access.right_on(call.actor, repo) < Right.WRITE:
            raise ApiError(403, "user should have a permission to write to a repo")
        body, sha = call.fields(), call.param("sha")
        texts = {key: body.text(key) for key in TEXTS}
        git = git_read.open_repository(repo.path)
        try:
            commit = commit_at(git, sha, short_ids=True)
        except ApiError as error:
            text = f"GetCommit[{sha}]: object does not exist [id: {sha}, rel_path: ]"
            raise ApiError(500, text) from error
        status = self.statuses.add(repo.id, str(commit.id), texts, creator_id=user.id)
        return json_answer(self.shapes.status(repo, status), 201)

    @route("GET", _STATUSES, "repository")
    def list_statuses(self, call: Call) -> Response:
        """Return the statuses of a full commit id, newest first; an unknown one has none."""
        repo = self.access.repository(call)
        statuses = self.statuses.of_commit(repo.id, call.param("sha"))
        return paged(call, statuses[::-1], lambda status: self.shapes.status(repo, status))

    @route("GET", f"{REPO}/commits/{{ref:path}}/status", "repository")
    def combine(self, call: Call) -> Response:
        """Return one page of the newest statuses; their common state is that of the page."""
        repo = self.access.repository(call)
        commit = commit_at(git_read.open_repository(repo.path), call.param("ref"), short_ids=True)
        latest, page = self.statuses.latest(repo.id, str(commit.id)), window(call)
        statuses = sorted(latest[page.part], key=lambda status: status.index)
        body = {
            "state": combined(status.state for status in statuses),
            "sha": str(commit.id),
            "total_count": len(statuses),
            "statuses": [self.shapes.status(repo, status) for status in statuses] or None,
        }
        return json_answer(body, headers=page.headers(call, len(latest)))
