"""
Endpoints of reviews and of a pull request's timeline.

Pending reviews and comments on lines are not kept. Of the timeline only pushes and changes of the
base branch are.

Called through their routes.
"""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from orderkit_standins.forge import pull_request_git
from orderkit_standins.forge.api.access import Access, Right
from orderkit_standins.forge.api.calls import ApiError, Call, json_answer, paged
from orderkit_standins.forge.api.routes import REPO, route
from orderkit_standins.forge.api.shapes import Json, Shapes
from orderkit_standins.forge.api.webhook_events import WebhookEvents
from orderkit_standins.forge.pull_request_git import Pull
from orderkit_standins.forge.pulls import Pulls
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.reviews import VERDICTS, PullEvent, Review, Reviews

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
        head = pull_request_git.tips(repo.path, pull).head
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
        head = pull_request_git.tips(repo.path, pull).head
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
