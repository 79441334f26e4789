"""GitHub's endpoints of pull requests, reviews, comments, statuses and activity."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from starlette.responses import Response

from orderkit_standins.forge import git_merge, git_read, pull_requests
from orderkit_standins.forge.api.access import ISSUES, Access, Right
from orderkit_standins.forge.api.calls import ApiError, Call
from orderkit_standins.forge.api.content_routes import StatusRoutes
from orderkit_standins.forge.api.merging import MergeQueues, MergeRequest
from orderkit_standins.forge.api.pull_routes import IssueRoutes, PullRoutes, ReviewRoutes
from orderkit_standins.forge.api.routes import route
from orderkit_standins.forge.api.shapes import Json
from orderkit_standins.forge.github.answers import REPO, Limits, answer, paged, rewritten
from orderkit_standins.forge.github.shapes import GitHubShapes
from orderkit_standins.forge.issues import Issue
from orderkit_standins.forge.pull_requests import Pull
from orderkit_standins.forge.repositories import Repository
from orderkit_standins.forge.statuses import TEXTS, combined

_PULL = f"{REPO}/pulls/{{number:number}}"
_ISSUE = f"{REPO}/issues/{{index:number}}"
_COMMENT = f"{REPO}/issues/comments/{{id:number}}"
_VERDICTS = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "REQUEST_CHANGES", "COMMENT": "COMMENT"}
_NO_COMMIT = "0" * 40


@dataclass(frozen=True, slots=True)
class GitHubPullRoutes:
    """Endpoints of pull requests."""

    access: Access
    own: PullRoutes
    shapes: GitHubShapes
    queues: MergeQueues

    def _of_call(self, call: Call) -> tuple[Repository, Pull]:
        repo = self.access.repository(call)
        pull = self.own.pulls.find(repo.id, call.path_number("number"))
        if pull is None:
            raise ApiError(404)
        return repo, self.own.journal.settle(repo, pull)

    def _answer(self, call: Call, repo: Repository, number: int, status: int = 200) -> Response:
        pull = self.own.pulls.find(repo.id, number)
        if pull is None:
            raise ApiError(404)
        right = self.access.right_on(call.actor, repo)
        return answer(self.shapes.pull(repo, pull, right, whole=True), status)

    @route("GET", f"{REPO}/pulls", "repository")
    def list_pulls(self, call: Call) -> Response:
        repo = self.access.repository(call)
        state = call.query("state", "open")
        pulls = self.own.pulls.listed(repo.id, state=state, base=call.query("base"))
        _, _, head = call.query("head").rpartition(":")
        pulls = [self.own.journal.settle(repo, p) for p in pulls if head in ("", p.head)]
        right = self.access.right_on(call.actor, repo)
        return paged(call, pulls, lambda p: self.shapes.pull(repo, p, right, whole=False))

    @route("POST", f"{REPO}/pulls", "repository")
    def create(self, call: Call) -> Response:
        """Open one; GitHub refuses it without commits, and a second one."""
        repo, body = self.access.repository(call), call.fields()
        head, base = body.required("head"), body.required("base")
        git = git_read.open_repository(repo.path)
        tips = [git_read.branch_commit(git, name) for name in (base, head)]
        if None in tips:
            raise ApiError(422, "Validation Failed")
        if not git_merge.commits_between(git, *(str(tip.id) for tip in tips if tip)):
            raise ApiError(422, f"No commits between {base} and {head}")
        if self.own.pulls.open_between(repo.id, head=head, base=base) is not None:
            raise ApiError(422, f"A pull request already exists for {repo.repo.owner}:{head}.")
        known = ("head", "base", "title", "body")
        made = self.own.create(rewritten(call, {key: body.text(key) for key in known}))
        return self._answer(call, repo, json.loads(bytes(made.body))["number"], 201)

    @route("GET", _PULL, "repository")
    def show(self, call: Call) -> Response:
        repo, pull = self._of_call(call)
        return self._answer(call, repo, pull.number)

    @route("PATCH", _PULL, "repository")
    def change(self, call: Call) -> Response:
        repo, pull = self._of_call(call)
        self.own.change(call)
        return self._answer(call, repo, pull.number)

    @route("PUT", f"{_PULL}/merge", "repository")
    def merge(self, call: Call) -> Response:
        """Merge; whatever cannot be merged is 405, another head 409."""
        repo, body = self.access.writable(call), call.fields()
        _, pull = self._of_call(call)
        if pull.merged or not pull.open:
            raise ApiError(405, "Pull Request is not mergeable")
        if body.text("sha") not in ("", pull_requests.tips(repo.path, pull).head):
            raise ApiError(409, "Head branch was modified. Review and try the merge again.")
        self.queues.refuse_merge(repo, pull)
        style = body.text("merge_method") or "merge"
        if style == "squash" and not repo.allow_squash_merge:
            raise ApiError(405, "Squash merges are not allowed on this repository.")
        request = MergeRequest(
            doer=call.user,
            style=style,
            title=body.text("commit_title").strip(),
            text=body.text("commit_message").strip(),
            head=body.text("sha"),
        )
        try:
            self.own.merging.merge(repo, pull, request)
        except ApiError as error:
            if error.status == 409:  # noqa: PLR2004  a conflict that git found
                raise ApiError(405, "Pull Request is not mergeable") from error
            raise
        merged = self.own.pulls.by_id(pull.id).merged
        sha = merged.commit if merged else ""
        return answer({"sha": sha, "merged": True, "message": "Pull Request successfully merged"})


@dataclass(frozen=True, slots=True)
class GitHubReviewRoutes:
    """Endpoints of reviews and of who pushed."""

    access: Access
    own: ReviewRoutes
    shapes: GitHubShapes

    def _of_call(self, call: Call) -> tuple[Repository, Pull]:
        repo = self.access.repository(call)
        pull = self.own.pulls.find(repo.id, call.path_number("number"))
        if pull is None:
            raise ApiError(404)
        return repo, pull

    @route("GET", f"{_PULL}/reviews", "repository")
    def list_reviews(self, call: Call) -> Response:
        repo, pull = self._of_call(call)
        found = self.own.reviews.of_pull(pull.id)
        return paged(call, found, lambda review: self.shapes.review(repo, pull, review))

    @route("POST", f"{_PULL}/reviews", "repository")
    def create(self, call: Call) -> Response:
        (repo, pull), body = self._of_call(call), call.fields()
        event = _VERDICTS.get(body.text("event"))
        if event is None:
            raise ApiError(422, "Validation Failed")
        sent = {"event": event, "body": body.text("body"), "commit_id": body.text("commit_id")}
        self.own.create(rewritten(call, sent))
        made = self.own.reviews.of_pull(pull.id)[-1]
        return answer(self.shapes.review(repo, pull, made))

    @route("GET", f"{REPO}/issues/{{number:number}}/timeline", "issue")
    def timeline(self, call: Call) -> Response:
        """Return changes of the base; what else happened is not kept."""
        repo, pull = self._of_call(call)
        events = self.own.reviews.events(pull.id)
        kept = [event for event in events if event.kind == "change_target_branch"]

        def shape(event: object) -> Json:
            number, doer, created = event.id, event.doer_id, event.created  # type: ignore[attr-defined]  # of one class
            return {
                "id": number,
                "node_id": f"BRC_{number}",
                "url": f"{self.shapes.api(repo)}/issues/events/{number}",
                "actor": self.shapes.user_by_id(doer),
                "event": "base_ref_changed",
                "commit_id": None,
                "commit_url": None,
                "created_at": created,
                "performed_via_github_app": None,
            }

        return paged(call, kept, shape)

    @route("GET", f"{REPO}/activity", "repository")
    def activity(self, call: Call) -> Response:
        """Return who pushed to a branch, as far as a pull request noted it."""
        repo = self.access.repository(call)
        branch = call.query("ref").removeprefix(git_read.HEADS)
        return answer(list(self._pushes(repo, branch)))

    def _pushes(self, repo: Repository, branch: str) -> Iterator[Json]:
        git = git_read.open_repository(repo.path)
        for pull in self.own.pulls.listed(repo.id)[::-1]:
            if pull.head != branch:
                continue
            for event in self.own.reviews.events(pull.id):
                commits = json.loads(event.body or "{}").get("commit_ids") or ()
                if event.kind != "pull_push" or not commits:
                    continue
                first = git_read.commit_by_id(git, commits[-1])
                parents = first.parent_ids if first is not None else ()
                yield {
                    "id": event.id,
                    "node_id": f"PSH_{event.id}",
                    "before": str(parents[0]) if parents else _NO_COMMIT,
                    "after": commits[0],
                    "ref": git_read.HEADS + branch,
                    "timestamp": event.created,
                    "activity_type": "push",
                    "actor": self.shapes.user_by_id(event.doer_id),
                }


@dataclass(frozen=True, slots=True)
class GitHubNotes:
    """Endpoints of comments and commit statuses."""

    access: Access
    issues: IssueRoutes
    statuses: StatusRoutes
    shapes: GitHubShapes
    limits: Limits

    def _issue(self, call: Call) -> tuple[Repository, Issue]:
        repo = self.access.repository(call, unit=ISSUES)
        issue = self.issues.issues.find(repo.id, call.path_number("index"))
        if issue is None:
            raise ApiError(404)
        return repo, issue

    @route("GET", f"{_ISSUE}/comments", "issue")
    def comments(self, call: Call) -> Response:
        repo, issue = self._issue(call)
        found = self.issues.issues.comments(issue.id)
        return paged(call, found, lambda comment: self.shapes.comment(repo, comment))

    @route("POST", f"{_ISSUE}/comments", "issue")
    def create_comment(self, call: Call) -> Response:
        repo, issue = self._issue(call)
        self.issues.create_comment(call)
        made = self.issues.issues.comments(issue.id)[-1]
        return answer(self.shapes.comment(repo, made), 201)

    @route("PATCH", _COMMENT, "issue")
    def edit_comment(self, call: Call) -> Response:
        self.issues.edit_comment(call)
        repo = self.access.repository(call, unit=ISSUES)
        edited = self.issues.issues.find_comment(repo.id, call.path_number("id"))
        if edited is None:
            raise ApiError(404)
        return answer(self.shapes.comment(repo, edited))

    @route("DELETE", _COMMENT, "issue")
    def delete_comment(self, call: Call) -> Response:
        return self.issues.delete_comment(call)

    @route("POST", f"{REPO}/statuses/{{sha}}", "repository")
    def create_status(self, call: Call) -> Response:
        """Add a status; GitHub keeps a bounded number of one context and commit."""
        repo, sha, body = self.access.repository(call), call.param("sha"), call.fields()
        if self.access.right_on(call.actor, repo) < Right.WRITE:
            raise ApiError(403, "Must have push access")
        if git_read.commit_by_id(git_read.open_repository(repo.path), sha) is None:
            raise ApiError(422, f"No commit found for SHA: {sha}")
        before = self.statuses.statuses.of_commit(repo.id, sha)
        context = body.text("context") or "default"
        if sum(status.context == context for status in before) >= self.limits.statuses_max:
            text = f"This SHA and context has reached the maximum number of statuses: {context}"
            raise ApiError(422, text)
        texts = {key: body.text(key) for key in TEXTS} | {"context": context}
        made = self.statuses.statuses.add(repo.id, sha, texts, creator_id=call.user.id)
        creator = {"creator": self.shapes.user_by_id(made.creator_id)}
        return answer({**self.shapes.status(repo, made), **creator}, 201)

    @route("GET", f"{REPO}/commits/{{sha}}/status", "repository")
    def combined_status(self, call: Call) -> Response:
        repo, sha = self.access.repository(call), call.param("sha")
        if git_read.commit_by_id(git_read.open_repository(repo.path), sha) is None:
            raise ApiError(404)
        latest = self.statuses.statuses.latest(repo.id, sha)
        page = paged(call, latest, lambda s: self.shapes.status(repo, s), inside="statuses")
        api = f"{self.shapes.api(repo)}/commits/{sha}"
        body = {
            **json.loads(bytes(page.body)),
            "state": combined(status.state for status in latest),
            "sha": sha,
            "repository": self.shapes.repository(repo, self.access.right_on(call.actor, repo)),
            "commit_url": api,
            "url": f"{api}/status",
        }
        link = page.headers.get("link")
        return answer(body, headers={"Link": link} if link else None)
