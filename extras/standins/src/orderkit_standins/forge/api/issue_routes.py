"""
Endpoints of issues (open one), and of the comments on issues and pull requests.

Observed on Gitea 1.26.0: a comment on a missing issue is a 500, the list of an issue's comments
is not paged. Not there: changes of an issue (a pull request is changed as one), labels, assignees,
milestones, due dates, locks, reactions, attachments.

Called through their routes.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from orderkit_standins.forge.api.access import ISSUES, Access, Right, refuse_archived
from orderkit_standins.forge.api.calls import ApiError, Call, empty_answer, json_answer
from orderkit_standins.forge.api.routes import REPO, route
from orderkit_standins.forge.api.shapes import Shapes
from orderkit_standins.forge.api.webhook_events import WebhookEvents
from orderkit_standins.forge.issues import Comment, Issue, Issues, NewIssue
from orderkit_standins.forge.repositories import Repository

_ISSUE = f"{REPO}/issues/{{index:number}}"
_COMMENT = f"{REPO}/issues/comments/{{id:number}}"


@dataclass(frozen=True, slots=True)
class IssueRoutes:
    """Endpoints of issues and comments."""

    access: Access
    issues: Issues
    events: WebhookEvents
    shapes: Shapes

    def _repository(self, call: Call) -> Repository:
        return self.access.repository(call, unit=ISSUES)

    @route("POST", f"{REPO}/issues", "issue")
    def create(self, call: Call) -> Response:
        """Open an issue, for everybody who may read."""
        repo, user = self._repository(call), call.user
        refuse_archived(repo)
        body = call.fields()
        new = NewIssue(user.id, body.required("title"), body.text("body"))
        issue = self.issues.create(repo.id, new)
        return json_answer(self.shapes.issue(repo, issue), 201)

    def _issue(self, call: Call, repo: Repository) -> Issue:
        issue = self.issues.find(repo.id, call.path_number("index"))
        if issue is None:
            raise ApiError(404)
        return issue

    def _require_writer_or(self, call: Call, repo: Repository, poster_id: int) -> None:
        writes = self.access.right_on(call.actor, repo, ISSUES) >= Right.WRITE
        if poster_id != call.user.id and not writes:
            raise ApiError(403)

    # Comments

    @route("GET", f"{_ISSUE}/comments", "issue")
    def comments(self, call: Call) -> Response:
        """Return all comments of an issue, whatever `limit` says."""
        repo = self._repository(call)
        comments = self.issues.comments(self._commented(call, repo).id)
        shapes = [self.shapes.comment(repo, comment) for comment in comments]
        return json_answer(shapes, headers={"X-Total-Count": str(len(comments))})

    @route("POST", f"{_ISSUE}/comments", "issue")
    def create_comment(self, call: Call) -> Response:
        """Comment on an issue, for everybody who may read."""
        repo, user = self._repository(call), call.user
        refuse_archived(repo)
        text = call.fields().required("body")
        comment = self.issues.add_comment(self._commented(call, repo), user.id, text)
        self.events.commented(repo, comment, "created", by=user)
        return json_answer(self.shapes.comment(repo, comment), 201)

    @route("PATCH", _COMMENT, "issue")
    def edit_comment(self, call: Call) -> Response:
        """Replace the text of a comment, by its author or a writer."""
        repo = self._repository(call)
        refuse_archived(repo)
        self.issues.edit_comment(self._own_comment(call, repo), call.fields().required("body"))
        edited = self._own_comment(call, repo)
        self.events.commented(repo, edited, "edited", by=call.user)
        return json_answer(self.shapes.comment(repo, edited))

    @route("DELETE", _COMMENT, "issue")
    def delete_comment(self, call: Call) -> Response:
        """Remove a comment, by its author or a writer."""
        repo = self._repository(call)
        comment = self._own_comment(call, repo)
        self.events.commented(repo, comment, "deleted", by=call.user)
        self.issues.delete_comment(comment)
        return empty_answer()

    def _commented(self, call: Call, repo: Repository) -> Issue:
        """Return the issue of the path; Gitea breaks when there is none."""
        number = call.path_number("index")
        issue = self.issues.find(repo.id, number)
        if issue is None:
            text = f"issue does not exist [id: 0, repo_id: {repo.id}, index: {number}]"
            raise ApiError(500, text)
        return issue

    def _own_comment(self, call: Call, repo: Repository) -> Comment:
        number = call.path_number("id")
        comment = self.issues.find_comment(repo.id, number)
        if comment is None:
            raise ApiError(404, errors=[f"comment does not exist [id: {number}, issue_id: 0]"])
        self._require_writer_or(call, repo, comment.poster_id)
        return comment
