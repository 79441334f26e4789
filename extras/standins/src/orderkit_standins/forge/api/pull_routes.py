"""
Endpoints of issues and pull requests: their comments, reviews and timeline; open, list, merge.

Observed on Gitea 1.26.0: a comment on a missing issue is a 500, the list of an issue's comments is
not paged. Not there: changes of an issue (a pull request is changed as one), labels, assignees,
milestones, due dates, locks, reactions, attachments; requested reviewers and forks; pending reviews
and comments on lines. Of the timeline only pushes and changes of the base branch are.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from orderkit_standins.forge import git_merge, git_read, pull_requests
from orderkit_standins.forge.api.access import ISSUES, Access, Right, refuse_archived
from orderkit_standins.forge.api.branch_routes import own_branch
from orderkit_standins.forge.api.calls import (
    ApiError,
    Call,
    Fields,
    empty_answer,
    json_answer,
    paged,
)
from orderkit_standins.forge.api.merging import MergeRequest, Merging
from orderkit_standins.forge.api.routes import REPO, route
from orderkit_standins.forge.api.shapes import Json, Shapes
from orderkit_standins.forge.api.webhook_events import WebhookEvents
from orderkit_standins.forge.issues import Comment, Issue, Issues, NewIssue
from orderkit_standins.forge.pull_requests import MergeJournal, Pull, Pulls
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.reviews import VERDICTS, PullEvent, Review, Reviews

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


_REVIEWS = f"{REPO}/pulls/{{number:number}}/reviews"
_EVENT_TYPES = {
    "APPROVED": "pull_request_review_approved",
    "REQUEST_CHANGES": "pull_request_review_rejected",
}
_OWN = {"APPROVED": "approve", "REQUEST_CHANGES": "reject"}


@dataclass(frozen=True, slots=True)
class ReviewRoutes:
    """Endpoints of reviews."""

    access: Access
    pulls: Pulls
    reviews: Reviews
    shapes: Shapes
    events: WebhookEvents

    @route("GET", _REVIEWS, "repository")
    def list_reviews(self, call: Call) -> Response:
        repo, pull = self._of_call(call)
        head = pull_requests.tips(repo.path, pull).head
        return paged(call, self.reviews.of_pull(pull.id), lambda review: self._shape(review, head))

    @route("POST", _REVIEWS, "repository")
    def create(self, call: Call) -> Response:
        """Review a pull request; its author may neither approve nor reject it."""
        (repo, pull), user, body = self._of_call(call), call.user, call.fields()
        body.refuse_unsupported("comments")
        state, text = body.text("event"), body.text("body")
        if state in _OWN and pull.poster_id == user.id:
            raise ApiError(422, f"{_OWN[state]} your own pull is not allowed")
        if state not in (*VERDICTS, "COMMENT"):
            body.refuse_unsupported("event")
        if state != "APPROVED" and not text.strip():
            raise ApiError(422, f"review event {state} requires a body")
        if not pull.open and state in VERDICTS:
            raise ApiError(422, "can't submit review for a closed or merged PR")
        head = pull_requests.tips(repo.path, pull).head
        writes = self.access.right_on(call.actor, repo) >= Right.WRITE
        review = self.reviews.add(
            pull.id,
            user.id,
            state=state,
            body=text,
            sha=body.text("commit_id") or head,
            official=writes and state in VERDICTS,
        )
        if event_type := _EVENT_TYPES.get(state):
            self.events.pull_changed(repo, pull.id, "reviewed", by=user, event_type=event_type)
        return json_answer(self._shape(review, head))

    @route("POST", f"{_REVIEWS}/{{id:number}}/dismissals", "repository")
    def dismiss(self, call: Call) -> Response:
        repo, pull = self._of_call(call)
        if self.access.right_on(call.actor, repo) < Right.ADMIN:
            raise ApiError(403, "Must be repo admin")
        for review in self.reviews.of_pull(pull.id):
            if review.id == call.path_number("id"):
                self.reviews.dismiss(review)
                return json_answer(self._shape(review, review.sha) | {"dismissed": True})
        raise ApiError(404)

    @route("GET", f"{REPO}/issues/{{number:number}}/timeline", "issue")
    def timeline(self, call: Call) -> Response:
        _, pull = self._of_call(call)
        return paged(call, self.reviews.events(pull.id), self._event_shape)

    def _of_call(self, call: Call) -> tuple[Repository, Pull]:
        repo = self.access.repository(call)
        pull = self.pulls.find(repo.id, call.path_number("number"))
        if pull is None:
            raise ApiError(404)
        return repo, pull

    def _shape(self, review: Review, head: str) -> Json:
        return {
            "id": review.id,
            "user": self.shapes.account_by_id(review.reviewer_id),
            "state": review.state,
            "body": review.body,
            "commit_id": review.sha,
            "stale": review.sha != head,
            "official": review.official,
            "dismissed": review.dismissed,
            "submitted_at": review.submitted,
        }

    def _event_shape(self, event: PullEvent) -> Json:
        return {
            "id": event.id,
            "type": event.kind,
            "user": self.shapes.account_by_id(event.doer_id),
            "body": event.body,
            "created_at": event.created,
        }


NO_CHANGES = "Invalid PullRequest: There are no changes between the head and the base"
MERGED = "cannot change state of this pull request, it was already merged"
_STYLES = ("merge", "rebase", "rebase-merge", "squash", "fast-forward-only", "manually-merged")
"""What Gitea can be asked for; not all are merged with (``api.shapes.MERGE_STYLES``)."""
_PULL = f"{REPO}/pulls/{{number:number}}"


@dataclass(frozen=True, slots=True)
class PullRoutes:
    """Endpoints of pull requests."""

    access: Access
    issues: Issues
    pulls: Pulls
    journal: MergeJournal
    merging: Merging
    events: WebhookEvents
    shapes: Shapes
    reviews: Reviews

    @route("GET", f"{REPO}/pulls", "repository")
    def list_pulls(self, call: Call) -> Response:
        """Return a page of pull requests: ``?state=&base_branch=``, newest first."""
        repo = self.access.repository(call)
        state, base = call.query("state", "all"), call.query("base_branch")
        pulls = self.pulls.listed(repo.id, state=state, base=base)
        return paged(call, pulls, lambda pull: self._settled_shape(call, repo, pull))

    def _settled_shape(self, call: Call, repo: Repository, pull: Pull) -> Json:
        """Finish an interrupted merge; return the pull request as this caller sees it."""
        self.journal.settle(repo, pull)
        return self.shapes.pull(repo, pull.id, self.access.right_on(call.actor, repo))

    def _of_call(self, call: Call) -> tuple[Repository, Pull]:
        """Return the repository and pull request of the path; finish an interrupted merge."""
        repo = self.access.repository(call)
        pull = self.pulls.find(repo.id, call.path_number("number"))
        if pull is None:
            raise ApiError(404)
        return repo, self.journal.settle(repo, pull)

    @route("GET", _PULL, "repository")
    def show(self, call: Call) -> Response:
        return json_answer(self._settled_shape(call, *self._of_call(call)))

    @route("GET", f"{REPO}/pulls/{{base}}/{{head:path}}", "repository")
    def by_branches(self, call: Call) -> Response:
        """Return the *first* pull request ever between two branches, open or not."""
        repo = self.access.repository(call)
        head, base = own_branch(repo, call.param("head")), call.param("base")
        pull = self.pulls.first_between(repo.id, head=head, base=base)
        if pull is None:
            raise ApiError(404)
        return json_answer(self._settled_shape(call, repo, pull))

    @route("POST", f"{REPO}/pulls", "repository")
    def create(self, call: Call) -> Response:
        """Open a pull request; Gitea does not ask whether there is a difference."""
        repo, user = self.access.repository(call), call.user
        refuse_archived(repo)
        body = call.fields()
        head, base, title = (body.required(key) for key in ("head", "base", "title"))
        if head == base:
            raise ApiError(422, NO_CHANGES)
        head = own_branch(repo, head)
        _check_ends(repo, head, base)
        if self.access.right_on(call.actor, repo) < Right.WRITE:
            raise ApiError(403, "user is not a collaborator")
        _refuse_unsupported(body)
        new = NewIssue(user.id, title, body.text("body"), is_pull=True)
        pull = self.pulls.create(repo, new, head=head, base=base)
        git, tips = git_read.open_repository(repo.path), pull_requests.tips(repo.path, pull)
        commits = git_merge.commits_between(git, tips.base, tips.head)
        self.reviews.note_push(pull.id, user.id, [str(commit.id) for commit in commits])
        shape = self._settled_shape(call, repo, pull)
        self.pulls.checks.start(pull.id)
        self.events.pull_changed(repo, pull.id, "opened", by=user)
        return json_answer(shape, 201)

    @route("PATCH", _PULL, "repository")
    def change(self, call: Call) -> Response:
        """Change title, body, state, base: what is given."""
        repo, pull = self._of_call(call)
        if call.user.id != pull.poster_id and (
            self.access.right_on(call.actor, repo) < Right.WRITE
        ):
            raise ApiError(403)
        body, issue = call.fields(), self.issues.by_id(pull.id)
        _refuse_unsupported(body)
        self._change_text(call, repo, issue, body)
        pull = self._change_state(call, repo, pull, body.optional("state", str))
        self._change_base(call, repo, pull, body.text("base"))
        return json_answer(self._settled_shape(call, repo, pull), 201)

    def _change_text(self, call: Call, repo: Repository, issue: Issue, body: Fields) -> None:
        title, text = body.text("title") or None, body.optional("body", str)
        self.issues.edit(issue, title=title, body=text)
        for key, old, new in (("title", issue.title, title), ("body", issue.body, text)):
            if new not in (None, old):
                changes = {key: {"from": old}}
                self.events.pull_changed(repo, issue.id, "edited", by=call.user, changes=changes)

    def _change_state(self, call: Call, repo: Repository, pull: Pull, state: str | None) -> Pull:
        """
        Close or reopen a pull request, if that is not its state already; tell webhooks.

        Raises:
            ApiError: 412, it is merged, or there is no such state.
        """
        if state is None:
            return pull
        if pull.merged:
            raise ApiError(412, MERGED)
        if state not in ("open", "closed"):
            raise ApiError(412, f"unknown state: {state}")
        closed = state == "closed"
        if closed == pull.closed:
            return pull
        changed = self.pulls.set_closed(repo, pull, closed=closed)
        action = "closed" if closed else "reopened"
        self.events.pull_changed(repo, pull.id, action, by=call.user)
        return changed

    def _change_base(self, call: Call, repo: Repository, pull: Pull, base: str) -> None:
        if not base or pull.merged or base == pull.base:
            return
        if git_read.branch_commit(git_read.open_repository(repo.path), base) is None:
            raise ApiError(404, f"new base '{base}' not exist")
        if pull.closed:
            raise ApiError(422, f"issue is closed [id: {pull.id}, repo_id: {repo.id}]")
        self.pulls.retarget(repo, pull, base)
        self.reviews.note_retarget(pull.id, call.user.id)
        changes = {"ref": {"from": pull.base}}
        self.events.pull_changed(repo, pull.id, "edited", by=call.user, changes=changes)

    @route("POST", f"{_PULL}/merge", "repository")
    def merge(self, call: Call) -> Response:
        """Merge a pull request; success is 200 without a body."""
        user = call.user
        refuse_archived(self.access.repository(call))
        body = call.fields()
        style = body.required("Do")
        if style not in _STYLES:
            raise ApiError(422, "[Do]: In")
        body.refuse_unsupported("merge_when_checks_succeed", "delete_branch_after_merge")
        repo, pull = self._of_call(call)
        request = MergeRequest(
            doer=user,
            style=style,
            title=body.text("MergeTitleField").strip(),
            text=body.text("MergeMessageField").strip(),
            head=body.text("head_commit_id"),
            force=body.flag("force_merge"),
        )
        self.merging.merge(repo, pull, request)
        return Response()


def _refuse_unsupported(body: Fields) -> None:
    body.refuse_unsupported("labels", "assignee", "assignees", "reviewers", "milestone")
    body.refuse_unsupported("content_version")  # ignored, an edit would overwrite another


def _check_ends(repo: Repository, head: str, base: str) -> None:
    git = git_read.open_repository(repo.path)
    for name in (head, base):
        if git_read.branch_commit(git, name) is None:
            raise ApiError(404, f'ref "{name}" does not exist')
