"""Endpoints of merge requests: open, list, change, merge, approvals, versions, notes, events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from starlette.responses import Response

from orderkit_standins.forge import git_read, pull_requests
from orderkit_standins.forge.api.access import Right
from orderkit_standins.forge.api.merging import MergeQueues
from orderkit_standins.forge.gitlab.face import Ask, GitLabError, Json, answer, at, paged, refused
from orderkit_standins.forge.gitlab.places import Places
from orderkit_standins.forge.gitlab.repository import RepositoryEndpoints
from orderkit_standins.forge.issues import Issues
from orderkit_standins.forge.pull_requests import MergeJournal, Pull, Pulls
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.reviews import PullEvent, Review, Reviews

_DRAFTS = ("draft:", "[draft]", "(draft)")
_MERGE_STATUS = {
    "checking": "checking",
    "conflict": "conflict",
    "ancestor": "commits_status",
    "error": "commits_status",
}
_UNREADY = {"pending": "ci_still_running", "failure": "ci_must_pass", "": "ci_must_pass"}
_STATES = {"opened": "open", "closed": "closed", "merged": "closed", "all": "all"}


@dataclass(frozen=True, slots=True)
class MergeRequestEndpoints:
    """Endpoints below ``projects/:id/merge_requests``."""

    places: Places
    issues: Issues
    pulls: Pulls
    journal: MergeJournal
    reviews: Reviews
    repository: RepositoryEndpoints
    trains: MergeQueues
    """Merge requests that wait on a train."""

    # Shapes

    def _shape(self, repo: Repository, pull: Pull) -> Json:
        places, issue = self.places, self.issues.by_id(pull.id)
        tips = pull_requests.tips(repo.path, pull)
        head = pull_requests.last_head(repo.path, pull) if pull.closed else tips.head
        state = "merged" if pull.merged else "closed" if pull.closed else "opened"
        full = f"{places.full(repo.repo.owner)}/{repo.repo.name}"
        return {
            "id": pull.id,
            "iid": pull.number,
            "project_id": repo.id,
            "source_project_id": repo.id,
            "target_project_id": repo.id,
            "title": pull.title,
            "description": issue.body,
            "state": state,
            "draft": pull.title.lower().startswith(_DRAFTS),
            "source_branch": pull.head,
            "target_branch": pull.base,
            "sha": head,
            "diff_refs": {
                "base_sha": pull_requests.merge_base(repo.path, pull),
                "head_sha": head,
                "start_sha": tips.base,
            },
            "detailed_merge_status": self._merge_status(repo, pull),
            "merge_commit_sha": pull.merged.commit if pull.merged else None,
            "squash_commit_sha": None,
            "author": places.user_shape(places.accounts.by_id(pull.poster_id)),
            "created_at": issue.created,
            "updated_at": issue.updated,
            "references": {"short": f"!{pull.number}", "full": f"{full}!{pull.number}"},
        }

    def _merge_status(self, repo: Repository, pull: Pull) -> str:
        """Say what keeps it from being merged, in GitLab's words."""
        if pull.closed:
            return "not_open"
        if pull.title.lower().startswith(_DRAFTS):
            return "draft_status"
        state = pull_requests.state(repo.path, pull, self.pulls.checks)
        if state in _MERGE_STATUS:
            return _MERGE_STATUS[state]
        if self.places.settings(repo)["only_allow_merge_if_pipeline_succeeds"]:
            head = pull_requests.tips(repo.path, pull).head
            return _UNREADY.get(self.repository.pipeline(repo, head), "mergeable")
        return "mergeable"

    def _of(self, ask: Ask) -> tuple[Repository, Pull]:
        repo = self.places.project(ask)
        number = ask.params["iid"]
        pull = self.pulls.find(repo.id, int(number)) if number.isdigit() else None
        if pull is None:
            raise GitLabError(404, "404 Not found")
        return repo, self.journal.settle(repo, pull)

    # Merge requests

    @at("GET", "projects/:id/merge_requests")
    def listed(self, ask: Ask) -> Response:
        repo, state = self.places.project(ask), ask.query("state", "all")
        pulls = [
            self.journal.settle(repo, pull)
            for pull in self.pulls.listed(repo.id, state=_STATES[state])
            if ask.query("target_branch", pull.base) == pull.base
            and ask.query("source_branch", pull.head) == pull.head
        ]
        return paged(ask, [self._shape(repo, pull) for pull in pulls])

    @at("GET", "groups/:id/merge_requests")
    def of_group(self, ask: Ask) -> Response:
        places, org = self.places, self.places.org(ask)
        repos = [
            repo
            for repo in places.repositories.all(owner_id=org.id)
            if places.access.right_on(ask.actor, repo) >= Right.READ
        ]
        found = [(r, p) for r in repos for p in self.pulls.listed(r.id, state="open")]
        return paged(ask, [self._shape(repo, pull) for repo, pull in found])

    @at("GET", "projects/:id/merge_requests/:iid")
    def show(self, ask: Ask) -> Response:
        return answer(self._shape(*self._of(ask)))

    @at("POST", "projects/:id/merge_requests")
    def create(self, ask: Ask) -> Response:
        repo = self.places.project(ask)
        if repo.archived:
            raise GitLabError(403, "403 Forbidden")
        fields = {"head": "source_branch", "base": "target_branch", "title": "title"}
        body = {ours: ask.field(theirs) for ours, theirs in fields.items()}
        body["body"] = ask.field("description") or ""
        made = ask.gitea("POST", f"/repos/{repo.full_name}/pulls", body)
        if made.status == 409:  # noqa: PLR2004
            text = "Another open merge request already exists for this source branch"
            raise GitLabError(409, [text])
        if made.status == 404:  # noqa: PLR2004
            raise GitLabError(400, ["Source branch does not exist"])
        if not made.ok:
            raise refused(made, 400 if made.status == 422 else 0)  # noqa: PLR2004
        pull = self.pulls.find(repo.id, int(made.document["number"]))
        return answer(self._shape(repo, pull) if pull else {}, 201)

    @at("PUT", "projects/:id/merge_requests/:iid")
    def change(self, ask: Ask) -> Response:
        repo, pull = self._of(ask)
        body: Json = {}
        for theirs, ours in (
            ("title", "title"),
            ("description", "body"),
            ("target_branch", "base"),
        ):
            if theirs in ask.body:
                body[ours] = ask.body[theirs]
        if event := ask.field("state_event"):
            body["state"] = {"close": "closed", "reopen": "open"}[str(event)]
        done = ask.gitea("PATCH", f"/repos/{repo.full_name}/pulls/{pull.number}", body)
        if not done.ok:
            raise refused(done, 422 if done.status == 412 else 0)  # noqa: PLR2004
        return answer(self._shape(*self._of(ask)))

    @at("PUT", "projects/:id/merge_requests/:iid/merge")
    def merge(self, ask: Ask) -> Response:
        """Merge; 401 no right, 405 not now, 409 another head, 422 a conflict that git found."""
        repo, pull = self._of(ask)
        if repo.archived or self.places.access.right_on(ask.actor, repo) < Right.WRITE:
            raise GitLabError(403 if repo.archived else 401, "401 Unauthorized")
        sha = ask.field("sha")
        if sha and sha != pull_requests.tips(repo.path, pull).head:
            raise GitLabError(409, "SHA does not match HEAD of source branch")
        squash = bool(ask.field("squash"))
        if self._merge_status(repo, pull) != "mergeable" or (
            squash and not repo.allow_squash_merge
        ):
            raise GitLabError(405, "405 Method Not Allowed")
        message = str(ask.field("squash_commit_message" if squash else "merge_commit_message"))
        title, _, text = message.partition("\n")
        body = {
            "Do": "squash" if squash else "merge",
            "head_commit_id": sha or "",
            "MergeTitleField": title,
            "MergeMessageField": text.strip(),
        }
        done = ask.gitea("POST", f"/repos/{repo.full_name}/pulls/{pull.number}/merge", body)
        if done.status == 405 and "not allowed to merge" in done.text:  # noqa: PLR2004
            raise GitLabError(401, "401 Unauthorized")
        if not done.ok:
            status = 422 if done.status == 409 else done.status  # noqa: PLR2004
            raise GitLabError(status, "Branch cannot be merged")
        return answer(self._shape(*self._of(ask)))

    @at("GET", "projects/:id/merge_trains/merge_requests/:iid")
    def on_train(self, ask: Ask) -> Response:
        repo, pull = self._on_line(ask)
        if not self.trains.holds(pull):
            raise GitLabError(404, "404 Not found")
        return answer(self._train_entry(repo, pull))

    @at("POST", "projects/:id/merge_trains/merge_requests/:iid")
    def board(self, ask: Ask) -> Response:
        """Put a merge request at the end of the train of its target branch."""
        repo, pull = self._on_line(ask)
        if self.places.access.right_on(ask.actor, repo) < Right.WRITE:
            raise GitLabError(403, "403 Forbidden")
        head = pull_requests.tips(repo.path, pull).head
        if ask.field("sha") not in (None, head):
            raise GitLabError(409, "SHA does not match HEAD of source branch")
        if self.trains.holds(pull) or self._merge_status(repo, pull) != "mergeable":
            raise GitLabError(400, "Failed to merge")
        self.trains.add(repo, pull, head, ask.user)
        return answer([self._train_entry(repo, pull)], 201)

    def _on_line(self, ask: Ask) -> tuple[Repository, Pull]:
        repo, pull = self._of(ask)
        if not self.places.settings(repo)["merge_trains_enabled"]:
            raise GitLabError(403, "403 Forbidden")
        return repo, pull

    def _train_entry(self, repo: Repository, pull: Pull) -> Json:
        created = self.issues.by_id(pull.id).updated
        merge_request = self._shape(repo, pull)
        return {
            "id": pull.id,
            "merge_request": merge_request,
            "user": merge_request["author"],
            "pipeline": None,
            "target_branch": pull.base,
            "status": "fresh",
            "created_at": created,
            "updated_at": created,
            "merged_at": None,
            "duration": None,
        }

    # Approvals

    @at("GET", "projects/:id/merge_requests/:iid/approvals")
    def approvals(self, ask: Ask) -> Response:
        return answer(self._approvals(self._of(ask)[1]))

    def _approvals(self, pull: Pull) -> Json:
        last = {review.reviewer_id: review for review in self.reviews.of_pull(pull.id)}
        places = self.places
        approved = [
            {"user": places.user_shape(places.accounts.by_id(number)), "approved_at": r.submitted}
            for number, r in last.items()
            if r.state == "APPROVED" and not r.dismissed
        ]
        return {"approved_by": approved, "user_has_approved": False}

    @at("POST", "projects/:id/merge_requests/:iid/approve")
    def approve(self, ask: Ask) -> Response:
        repo, pull = self._of(ask)
        head = pull_requests.tips(repo.path, pull).head
        if self.places.access.right_on(ask.actor, repo) < Right.WRITE:
            raise GitLabError(401, "401 Unauthorized")
        if ask.field("sha") not in (None, head):
            raise GitLabError(409, f"SHA does not match HEAD of source branch: {head}")
        body = {"event": "APPROVED", "commit_id": head}
        done = ask.gitea("POST", f"/repos/{repo.full_name}/pulls/{pull.number}/reviews", body)
        if not done.ok:
            raise GitLabError(401, "401 Unauthorized")
        return answer(self._approvals(pull), 201)

    @at("POST", "projects/:id/merge_requests/:iid/unapprove")
    def unapprove(self, ask: Ask) -> Response:
        _, pull = self._of(ask)
        mine = [r for r in self.reviews.of_pull(pull.id) if r.reviewer_id == ask.user.id]
        if not [r for r in mine if r.state == "APPROVED" and not r.dismissed]:
            raise GitLabError(404, "404 Not found")
        for review in mine:
            if review.state == "APPROVED":
                self.reviews.dismiss(review)
        return answer({}, 201)

    @at("GET", "projects/:id/merge_requests/:iid/versions")
    def versions(self, ask: Ask) -> Response:
        """Return what its head was, newest first."""
        repo, pull = self._of(ask)
        versions: list[object] = []
        for event in self.reviews.events(pull.id):
            commits = _commits(event)
            head = commits[0] if commits else pull_requests.tips(repo.path, pull).head
            shape = {"id": event.id, "head_commit_sha": head, "created_at": event.created}
            versions.append(shape)
        return paged(ask, versions[::-1])

    # Notes

    @at("GET", "projects/:id/merge_requests/:iid/notes")
    def notes(self, ask: Ask) -> Response:
        """Return comments, rejections by the forge's pages, and what the system notes."""
        _, pull = self._of(ask)
        notes = [*self._comments(pull), *self._rejections(pull), *self._system_notes(pull)]
        notes.sort(key=lambda note: (note["created_at"], note["id"]))
        return paged(ask, notes)

    def _comments(self, pull: Pull) -> Iterator[Json]:
        for comment in self.issues.comments(pull.id):
            yield self._note(comment.id, comment.poster_id, comment.body, comment.created)

    def _rejections(self, pull: Pull) -> Iterator[Json]:
        for review in self.reviews.of_pull(pull.id):
            if review.state == "REQUEST_CHANGES" and not review.dismissed:
                yield self._note(*_as_note(review))

    def _system_notes(self, pull: Pull) -> Iterator[Json]:
        for event in self.reviews.events(pull.id):
            if event.kind == "change_target_branch":
                text = f"changed target branch from `?` to `{pull.base}`"
                note = self._note(3_000_000 + event.id, event.doer_id, text, event.created)
                yield note | {"system": True}

    def _note(self, number: int, poster: int, body: str, created: str) -> Json:
        author = self.places.user_shape(self.places.accounts.by_id(poster))
        shape = {"id": number, "body": body, "author": author, "created_at": created}
        return shape | {"system": False}

    @at("POST", "projects/:id/merge_requests/:iid/notes")
    def add_note(self, ask: Ask) -> Response:
        repo, pull = self._of(ask)
        path = f"/repos/{repo.full_name}/issues/{pull.number}/comments"
        made = ask.gitea("POST", path, {"body": ask.field("body")})
        if not made.ok:
            raise refused(made)
        return answer({"id": made.document["id"], "body": ask.field("body")}, 201)

    @at("PUT", "projects/:id/merge_requests/:iid/notes/:note")
    def edit_note(self, ask: Ask) -> Response:
        return self._note_call(ask, "PATCH", {"body": ask.field("body")})

    @at("DELETE", "projects/:id/merge_requests/:iid/notes/:note")
    def drop_note(self, ask: Ask) -> Response:
        return self._note_call(ask, "DELETE", None)

    def _note_call(self, ask: Ask, method: str, body: Json | None) -> Response:
        repo, _ = self._of(ask)
        path = f"/repos/{repo.full_name}/issues/comments/{ask.params['note']}"
        done = ask.gitea(method, path, body)
        if not done.ok:
            raise refused(done)
        return answer(done.document) if done.document else Response(status_code=204)

    # Events

    @at("GET", "projects/:id/events")
    def events(self, ask: Ask) -> Response:
        """Return who pushed to the branches of merge requests, oldest first."""
        repo = self.places.project(ask)
        git = git_read.open_repository(repo.path)
        events: list[Json] = []
        for pull in self.pulls.listed(repo.id):
            for event in self.reviews.events(pull.id):
                commits = _commits(event)
                oldest = git_read.commit_by_id(git, commits[-1]) if commits else None
                if oldest is None:
                    continue
                parent = str(oldest.parent_ids[0]) if oldest.parent_ids else None
                push: Json = {"ref_type": "branch", "ref": pull.head, "action": "pushed"}
                push |= {"commit_from": parent, "commit_to": commits[0]}
                author = self.places.user_shape(self.places.accounts.by_id(event.doer_id))
                shape = {"id": event.id, "action_name": "pushed to", "author": author}
                events.append({**shape, "created_at": event.created, "push_data": push})
        events.sort(key=lambda event: event["id"])
        return paged(ask, events)


def _commits(event: PullEvent) -> list[str]:
    """Return what a push added, newest first."""
    if event.kind != "pull_push":
        return []
    return [str(commit) for commit in json.loads(event.body).get("commit_ids") or ()]


def _as_note(review: Review) -> tuple[int, int, str, str]:
    """Return a rejection as the note that says so on GitLab."""
    text = f"{review.body}\n\n<!-- orderkit-review: rejected {review.sha} -->"
    return 2_000_000 + review.id, review.reviewer_id, text, review.submitted
